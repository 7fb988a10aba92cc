//! What "Try" says of a web server that answers itself, asks for a password, or cannot connect to comedor.

use super::try_it::enabled;
use super::*;

impl Setup {
    /// Apache demands the name and the password `x` for this path.
    fn require_password(&mut self, path: &str) {
        let folder = self.site.path().display().to_string();
        self.site
            .write("passwords", "x:{SHA}EfatjsUqKYSrqv18O1FlA3hcIHI=\n");
        let modules = ["auth_basic", "authn_core", "authn_file", "authz_user"]
            .map(module)
            .concat();
        self.lines = format!(
            "\n{modules}<Location \"{path}\">\nAuthType Basic\nAuthName x\nAuthUserFile {folder}/passwords\n\
            Require valid-user\n</Location>\n"
        );
    }

    /// Serves comedor and the page with a password for this path, which the browser knows, and opens the page.
    fn open_with_password(&mut self, path: &str) {
        self.require_password(path);
        self.browser.answer_passwords(Some("x"));
        self.serve(true);
        self.open();
    }
}

#[test]
fn try_names_what_answers_instead_of_comedor() {
    let (mut setup, _) = enabled(Server::Apache);
    setup.browser.answer_passwords(None);
    let password = module("auth_basic")
        + &module("authn_core")
        + &module("authz_user")
        + "<Location \"/api/comedor.php\">\nAuthType Basic\nAuthName x\nRequire valid-user\n</Location>\n";
    for (lines, cause) in [
        (
            "<Location \"/api/comedor.php\">\nRequire all denied\n</Location>",
            "red: The web server denies access to the program (403)",
        ),
        (
            "RedirectMatch 404 ^/api/comedor.php",
            "red: The web server does not find the program (404)",
        ),
        (
            "RedirectMatch 500 ^/api/comedor.php",
            "red: The web server could not run the program (500)",
        ),
        (
            "RedirectMatch 410 ^/api/comedor.php",
            "red: Neither comedor nor the script answers, but a page of the web server (410)",
        ),
        (
            "RedirectMatch 302 ^/api/comedor.php /elsewhere",
            "red: The web server or the script sends the browser to another address",
        ),
        (
            &*password,
            "red: The web server asks for a password of its own, and refuses it to comedor",
        ),
    ] {
        setup.lines = format!("\n{lines}\n");
        setup.serve(true);
        let results = setup.press_try();
        assert!(results.contains(cause), "{cause}: {results}");
        assert!(results.contains("amber: If users are at work"), "{results}");
    }
}

#[test]
fn password_of_the_web_server_hides_the_answer_without_a_login() {
    let (mut setup, values) = enabled(Server::Apache);
    setup.open_with_password("/api");
    assert_eq!(setup.values(), values);
    assert!(
        setup
            .press_try()
            .contains("green: comedor answers. The web server asks for a password")
    );
    setup.all_green();
}

#[test]
fn try_names_a_password_that_the_page_needs_and_comedor_does_not() {
    let (mut setup, _) = enabled(Server::Apache);
    setup.open_with_password("/api/comedor-setup.php");
    setup.values();
    let results = setup.press_try();
    assert!(
        results.contains(
            "amber: The web server asks for a password for this page, and not for comedor’s address"
        ),
        "{results}"
    );
    assert!(
        results.contains("green: You can save") && !results.contains("green done"),
        "{results}"
    );
}

#[test]
fn page_whose_address_has_a_name_and_a_password_works() {
    for is_asked in [false, true] {
        let (mut setup, _) = enabled(Server::Apache);
        if is_asked {
            setup.require_password("/api");
        }
        setup.entry = Some(format!("http://x:x@127.0.0.1:{}", setup.site.port));
        setup.serve(true);
        setup.open();
        setup.values();
        setup.all_green();
    }
}

#[test]
fn try_names_a_service_that_cannot_be_reached_and_error_pages_of_the_site() {
    let (mut setup, _) = enabled(Server::Nginx);
    setup.lines = "error_page 400 403 404 /login.php; fastcgi_intercept_errors on;".to_owned();
    setup.changed = Some(("fastcgi_intercept_errors off;", ""));
    setup.serve(true);
    let results = setup.press_try();
    assert!(
        results.contains("red: comedor answers, but the web server replaces its error answers"),
        "{results}"
    );
    assert!(!results.contains("You can save"), "{results}");
    setup.site.stop_responder();
    fs::remove_file(setup.site.path().join("comedor.sock")).unwrap();
    let results = setup.press_try();
    assert!(
        results.contains("red: The web server cannot connect to comedor (502)"),
        "{results}"
    );
}
