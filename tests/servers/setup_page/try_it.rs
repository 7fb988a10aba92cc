//! What "Try" says if something is wrong.

use super::*;

/// A site with comedor enabled with the page's own values, where a wrong one follows.
fn enabled(server: Server) -> (Setup, String) {
    let mut setup = Setup::new(server, "en");
    setup.serve(false);
    setup.open();
    let values = setup.values();
    setup.site.write("cgi/comedor.conf", &values);
    (setup, values)
}

#[test]
fn try_names_the_wrong_setting() {
    let (mut setup, values) = enabled(Server::Apache);
    setup.serve(true);
    setup.all_green();
    let folder = setup.site.path().display().to_string();
    // Data of other applications: without this aulario, with other types, and without the menu.
    for (name, aulario, types) in [
        ("without", "aula9", "[]"),
        ("other", "aula1", r#"[{"id":"x","label":"X"}]"#),
        ("empty", "aula1", "[]"),
    ] {
        let aularios = format!("{folder}/{name}/Centros/centro1/Aularios");
        fs::create_dir_all(format!("{aularios}/{aulario}")).unwrap();
        fs::write(format!("{aularios}/{aulario}.json"), "{}").unwrap();
        fs::write(
            format!("{aularios}/{aulario}/Comedor-MenuTypes.json"),
            types,
        )
        .unwrap();
    }
    let data = format!("DATA_DIR={folder}/data");
    for (right, wrong, cause) in [
        (
            &*format!("_DIR={folder}/sessions"),
            &*format!("_DIR={folder}/tmp"),
            "comedor does not find your session. PHP has it in",
        ),
        (
            "NAME=PHPSESSID", "NAME=OTHER", "comedor does not find your session",
        ),
        (
            "FORMAT=php\n",
            "FORMAT=php_serialize\n",
            "comedor finds your session and cannot read it",
        ),
        (
            "SERVICE=service", "SERVICE=other", "no usable centre in it for the service",
        ),
        (
            &data,
            &format!("DATA_DIR={folder}/without"),
            "comedor does not find the aulario aula1",
        ),
        (
            &data,
            &format!("DATA_DIR={folder}/other"),
            "comedor and the script show different menu types",
        ),
        (
            &data,
            &format!("DATA_DIR={folder}/empty"),
            "No save was tried: comedor shows another menu of 2026-03-04",
        ),
        (
            &data,
            &format!("DATA_DIR={folder}/nothing"),
            "run the check of the guide (comedor check)",
        ),
        (
            "TZ=UTC",
            "ZONE=UTC",
            "run the check of the guide (comedor check)",
        ),
    ] {
        assert!(values.contains(right), "{right}: {values}");
        setup
            .site
            .write("cgi/comedor.conf", &values.replace(right, wrong));
        let results = setup.press_try();
        let expected = format!("red: {cause}");
        assert!(
            results.contains("amber: If users are at work, first disable comedor again"),
            "{results}"
        );
        assert!(
            results.contains(cause) && results.contains("red: "),
            "{expected}: {results}"
        );
        assert_eq!(results.matches("red: ").count(), 1, "{results}");
        assert_eq!(
            fs::read_to_string(setup.site.path().join(DAY)).unwrap(),
            MENU
        );
    }
}

#[test]
fn try_names_the_missing_permission_or_right() {
    let (mut setup, _) = enabled(Server::Apache);
    setup.serve(true);
    for (code, cause) in [
        (
            "$_SESSION['auth_data']['permissions'] = ['sysadmin:access', 'service:access'];",
            "red: Your user lacks the permission service:docente.",
        ),
        (
            "$_SESSION['auth_data']['permissions'] = ['sysadmin:access', 'service:docente'];",
            "red: Your user lacks the permission service:access, which COMEDOR_ACCESS=listed requires.",
        ),
        (
            "unset($_SESSION['auth_data']['service']['aulas']);",
            "red: Your session has no list of aularios (aulas)",
        ),
        (
            "$_SESSION['auth_data']['service']['aulas'] = ['aula2'];",
            "red: aula1 is not among the aularios of your session.",
        ),
    ] {
        setup.insert_after_login(code);
        setup.open();
        setup.values();
        setup.browser.evaluate("element('aulario').value = 'aula1'");
        let results = setup.press_try();
        assert!(results.contains(cause), "{cause}: {results}");
    }
}

#[test]
fn try_tells_that_comedor_cannot_save() {
    let (mut setup, _) = enabled(Server::Apache);
    setup.serve(true);
    chmod(setup.site.path().join(DAY), 0o444);
    let results = setup.press_try();
    assert!(results.contains("green: You can read"), "{results}");
    assert!(
        results.contains("red: comedor reads, and cannot save"),
        "{results}"
    );
}

#[test]
fn try_saves_no_menu_if_none_is_saved_already() {
    let (mut setup, _) = enabled(Server::Apache);
    setup.serve(true);
    let day = setup.site.path().join(DAY);
    for content in [None, Some(MENU.replace("basal", "deleted"))] {
        match &content {
            None => fs::remove_file(&day).unwrap(),
            Some(menu) => fs::write(&day, menu).unwrap(),
        }
        setup.open();
        setup.values();
        let results = setup.press_try();
        assert!(results.contains("green: You can read"), "{results}");
        assert!(
            results.contains("amber: No save was tried, since aula1"),
            "{results}"
        );
        assert!(!results.contains("green done"), "{results}");
        assert_eq!(fs::read_to_string(&day).ok(), content);
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
    let folder = setup.site.path().display().to_string();
    setup
        .site
        .write("passwords", "x:{SHA}EfatjsUqKYSrqv18O1FlA3hcIHI=\n");
    let modules = ["auth_basic", "authn_core", "authn_file", "authz_user"]
        .map(module)
        .concat();
    setup.lines = format!(
        "\n{modules}<Location \"/api\">\nAuthType Basic\nAuthName x\nAuthUserFile {folder}/passwords\n\
        Require valid-user\n</Location>\n"
    );
    setup.browser.answer_passwords(Some("x"));
    setup.serve(true);
    setup.open();
    assert_eq!(setup.values(), values);
    assert!(
        setup
            .press_try()
            .contains("green: comedor answers. The web server asks for a password")
    );
    setup.all_green();
}

#[test]
fn try_names_a_service_that_cannot_be_reached_and_error_pages_of_the_site() {
    let (mut setup, _) = enabled(Server::Nginx);
    setup.lines = "error_page 400 403 404 /login.php; fastcgi_intercept_errors on;".to_owned();
    setup.missing = Some("fastcgi_intercept_errors off;");
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
