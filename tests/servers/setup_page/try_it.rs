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

/// comedor 1.0 sends no reason with INVALID_SESSION. The web server removed `X-Powered-By`.
#[test]
fn try_knows_the_answers_of_version_1_0_without_a_session() {
    let (mut setup, _) = enabled(Server::Apache);
    setup.serve(true);
    setup.open();
    for (sentence, cause) in [
        (
            "Not logged in: the request has no valid session.",
            "comedor does not find your session",
        ),
        (
            "The session is not usable; please log in again.",
            "comedor finds your session and cannot read it",
        ),
        (
            "The session has no centre.", "no usable centre in it for the service",
        ),
        (
            "The centre in the session cannot be used.",
            "no usable centre in it for the service",
        ),
    ] {
        let body = json!({"success": false, "error": sentence, "code": "INVALID_SESSION"});
        let answer = format!("understood(400, {})", json!(body.to_string()));
        let said = setup
            .browser
            .evaluate(&format!("[{answer}.isComedor, cause({answer}, 'aula1')]"));
        assert_eq!(said[0], true, "{sentence}");
        assert!(said[1].as_str().unwrap().contains(cause), "{said}");
    }
    let script = r#"understood(400, '{"code":"INVALID_SESSION","error":"Centre not found in the session"}')"#;
    let said = setup.browser.evaluate(&format!("{script}.isComedor"));
    assert_eq!(said, false, "the PHP script's answer");
}

/// To paste the values again would change nothing.
#[test]
fn try_names_a_centre_that_comedor_cannot_use_and_asks_for_no_other_values() {
    let (mut setup, _) = enabled(Server::Apache);
    setup.insert_after_login("$_SESSION['auth_data']['service']['centro'] = 'Colegio San José';");
    setup.serve(true);
    setup.open();
    setup.values();
    setup.browser.evaluate("element('aulario').value = 'aula1'");
    let results = setup.press_try();
    let red = "red: comedor cannot use the name of your centre, Colegio San José. Change it: heading “Ids”";
    assert!(results.contains(red), "{results}");
    assert!(!results.contains("aste the values again"), "{results}");
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

/// The script of EntreAulas admits no login without the list `aulas`. What such a login lacks is then no fault of comedor.
#[test]
fn login_that_the_script_refuses_too_is_told_what_it_lacks_and_not_to_disable_or_to_open_comedor() {
    let (mut setup, _) = enabled(Server::Apache);
    let is_listed =
        "if (!in_array($_GET['aulario'], $_SESSION['auth_data']['service']['aulas'] ?? [], true)) {
        answer(403, ['error' => 'Insufficient permissions', 'code' => 'FORBIDDEN']);
    }
    $aulario = ";
    setup.change_script("$aulario = ", is_listed);
    setup.serve(true);
    for (code, lacks, cause) in [
        (
            "$_SESSION['auth_data'] = ['permissions' => ['*', 'sysadmin:access', 'service:access'],
                'service' => ['centro' => 'centro1']];",
            "service:docente, aulas",
            "Your user lacks the permission service:docente.",
        ),
        (
            "unset($_SESSION['auth_data']['service']['aulas']);",
            "aulas",
            "Your session has no list of aularios (aulas)",
        ),
        (
            "$_SESSION['auth_data']['service']['aulas'] = [];",
            "aulas",
            "aula1 is not among the aularios of your session.",
        ),
        (
            "$_SESSION['auth_data']['permissions'] = ['sysadmin:access'];",
            "service:docente, service:access",
            "Your user lacks the permission service:docente.",
        ),
    ] {
        setup.insert_after_login(code);
        setup.open();
        assert!(setup.values().contains("COMEDOR_ACCESS=listed\n"));
        let note = format!(
            "Your user lacks the following: {lacks}. The values are right, but without it “Try”"
        );
        let shown = setup.shown();
        assert!(shown.contains(&note), "{code}: {shown}");
        assert!(!shown.contains("Which sessions may use"), "{code}: {shown}");
        setup.browser.evaluate("element('aulario').value = 'aula1'");
        let results = setup.press_try();
        assert!(
            results.contains(&format!("red: {cause}")),
            "{code}: {results}"
        );
        for wrong in ["disable comedor", "COMEDOR_ACCESS=centre"] {
            assert!(!results.contains(wrong), "{code}: {results}");
        }
    }
}

#[test]
fn login_that_only_comedor_refuses_is_told_to_disable_or_to_open_it() {
    let (mut setup, _) = enabled(Server::Apache);
    setup.serve(true);
    setup.insert_after_login("unset($_SESSION['auth_data']['service']['aulas']);");
    setup.open();
    setup.values();
    setup.does_not_show("The values are right, but");
    let results = setup.press_try();
    for expected in [
        "amber: If users are at work, first disable comedor again",
        "Or, since the script admits your user as it is, set COMEDOR_ACCESS=centre.",
    ] {
        assert!(results.contains(expected), "{results}");
    }
}

#[test]
fn try_says_that_comedor_answers_for_another_application() {
    let (mut setup, values) = enabled(Server::ApacheWithFastcgi);
    let script = setup.script().display().to_string();
    assert!(values.contains(&script), "{values}");
    let other = values.replace(&script, "/var/www/otra/api/comedor.php");
    setup.site.write("cgi/comedor.conf", &other);
    setup.serve(true);
    let results = setup.press_try();
    assert!(
        results.contains("red: This comedor answers for another application of this server"),
        "{results}"
    );
    assert_eq!(results.matches("red: ").count(), 1, "{results}");
    assert!(!results.contains("aste the values again"), "{results}");
}

/// As with a web server that does not say the script: with a configuration of version 1.0.0.
#[test]
fn try_says_that_the_settings_are_those_of_another_application() {
    let (mut setup, values) = enabled(Server::Apache);
    let other = values.replace("PHPSESSID", "OTHER");
    let other = other.replace(
        &setup.script().display().to_string(),
        "/var/www/otra/api/comedor.php",
    );
    setup.site.write("cgi/comedor.conf", &other);
    setup.site.write("tmp/comedor.conf", &other);
    setup.site.examples = Some("tests/fixtures/version-1.0.0".into());
    setup.serve(true);
    setup.open();
    let results = setup.press_try();
    let red = "red: comedor does not know your session: it uses the settings of another application \
        (/var/www/otra/api/comedor.php in comedor.conf)";
    assert!(results.contains(red), "{results}");
    assert!(!results.contains("aste the values again"), "{results}");
}

#[test]
fn try_compares_the_dates_of_today() {
    let mut setup = Setup::new(Server::Apache, "en");
    // 26 hours from the other zone: never the same date.
    setup.insert("date_default_timezone_set('Pacific/Kiritimati');");
    let values = setup.set_up("Apache");
    let results = setup.press_try();
    assert!(
        results.contains("green: comedor and PHP have the same date today."),
        "{results}"
    );
    let zone = "TZ=Pacific/Kiritimati\n";
    assert!(values.contains(zone), "{values}");
    setup
        .site
        .write("cgi/comedor.conf", &values.replace(zone, "TZ=Etc/GMT+12\n"));
    let results = setup.press_try();
    assert!(
        results.contains("red: For comedor today is 20")
            && results.contains("(Pacific/Kiritimati)"),
        "{results}"
    );
}

#[test]
fn try_without_an_aulario_asks_for_one_and_sends_nothing() {
    let mut setup = Setup::new(Server::Apache, "en");
    setup.serve(false);
    setup.open();
    setup.values();
    let requests = "performance.getEntriesByType('resource').length";
    let before = setup.browser.evaluate(requests);
    setup.browser.evaluate("element('aulario').value = ' '");
    assert_eq!(setup.press_try(), "amber: Enter an aulario.");
    assert_eq!(setup.browser.evaluate(requests), before);
    setup.browser.evaluate("element('aulario').value = 'aula1'");
    let results = setup.press_try();
    assert!(
        results.contains("red: The script still answers"),
        "{results}"
    );
    assert_ne!(setup.browser.evaluate(requests), before);
}

#[test]
fn try_says_with_which_login_it_was() {
    let (mut setup, _) = enabled(Server::Apache);
    setup.serve(true);
    let results = setup.press_try();
    let login = "Tried with your login: centre centro1; permissions service:access, service:docente, sysadmin:access; \
        aulas: aula1.";
    assert!(results.contains(login), "{results}");
    setup.insert_after_login(
        "unset($_SESSION['auth_data']['service']['aulas'], $_SESSION['auth_data']['permissions'][0]);",
    );
    setup.open();
    setup.values();
    let results = setup.press_try();
    assert!(
        results.contains("permissions service:docente, sysadmin:access; aulas: –."),
        "{results}"
    );
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
    setup.require_password("/api");
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
fn try_names_a_password_that_the_page_needs_and_comedor_does_not() {
    let (mut setup, _) = enabled(Server::Apache);
    setup.require_password("/api/comedor-setup.php");
    setup.browser.answer_passwords(Some("x"));
    setup.serve(true);
    setup.open();
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
