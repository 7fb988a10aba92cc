//! What "Try" says if a setting, the login, or what the program may do is wrong.

use super::*;

/// A site with comedor enabled with the page's own values, where a wrong one follows.
pub(super) fn enabled(server: Server) -> (Setup, String) {
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
