//! The values that the page offers, those that the administrator chooses, and those for which there is a note instead.

use super::*;

#[test]
fn administrator_without_a_list_of_aularios_is_asked_and_not_locked_out() {
    let mut setup = Setup::new(Server::Apache, "en");
    setup.insert_after_login("unset($_SESSION['auth_data']['service']['aulas']);");
    let values = setup.set_up("Apache");
    assert!(values.contains("COMEDOR_ACCESS=centre\n"), "{values}");
    setup.shows("Your user lacks the following: aulas. Which sessions may use comedor?");
    setup
        .browser
        .evaluate("document.querySelector('[value=listed]').click()");
    assert!(setup.values().contains("COMEDOR_ACCESS=listed\n"));
}

#[test]
fn service_and_folder_are_chosen_in_the_browser() {
    let mut setup = Setup::new(Server::Apache, "en");
    setup.insert_after_login(
        "$_SESSION['auth_data'] += ['otro' => ['centro' => 'centro1', 'aulas' => ['aula2']]];",
    );
    setup.change_script("/data/Centros/", "/data/' . 'Centros/");
    setup.serve(false);
    setup.open();
    setup.shows("No folder “Centros” was found.");
    assert_eq!(setup.browser.evaluate("element('copy').disabled"), true);
    setup.browser.evaluate("choose(1)");
    let type_folder = |folder: &str| {
        format!(
            "element('folder').value = '{folder}'; element('folder').dispatchEvent(new Event('input'))"
        )
    };
    setup.browser.evaluate(&type_folder("DATA/otro"));
    assert_eq!(setup.browser.evaluate("element('copy').disabled"), true);
    for folder in [
        "/DATA/$(id)", "/DATA/mis aulas", "/DATA/../etc", "/DATA/..", "/etc", "/usr/otro", "/",
        "/var/",
    ] {
        setup.browser.evaluate(&type_folder(folder));
        let values = setup.accepted_values();
        assert!(!values.contains("DATA_DIR"), "{values}");
        let refused = setup.configure(&format!("COMEDOR_DATA_DIR={folder}\n"));
        assert!(!refused.status.success(), "{folder}");
        setup.shows(&format!(
            "comedor.conf by hand: COMEDOR_DATA_DIR={folder}\n"
        ));
    }
    for folder in [
        "/DATA/..otro", "/etcetera/otro", "/var/otro", "/DATA/mis-aulas",
    ] {
        setup.browser.evaluate(&type_folder(folder));
        let values = setup.accepted_values();
        let start = format!("COMEDOR_SERVICE=otro\nCOMEDOR_DATA_DIR={folder}\n");
        assert!(values.starts_with(&start), "{values}");
        setup.does_not_show("by hand");
    }
}

#[test]
fn zone_is_offered_as_it_is_spelled_in_the_list_of_zones() {
    for (zone, canonical) in [
        ("europe/madrid", "Europe/Madrid"),
        ("utc", "UTC"),
        ("Etc/GMT+1", "Etc/GMT+1"),
    ] {
        let mut setup = Setup::new(Server::Apache, "en");
        setup.insert(&format!("date_default_timezone_set('{zone}');"));
        setup.serve(false);
        setup.open();
        let values = setup.values();
        assert!(values.ends_with(&format!("\nTZ={canonical}\n")), "{values}");
    }
}

/// The line with COMEDOR_SCRIPT that the page offers.
fn script_line(setup: &mut Setup) -> Option<String> {
    setup.serve(false);
    setup.open();
    let values = setup.values();
    let line = values
        .lines()
        .find(|line| line.starts_with("COMEDOR_SCRIPT="));
    line.map(str::to_owned)
}

#[test]
fn script_is_offered_as_the_web_server_says_it() {
    let mut setup = Setup::new(Server::Apache, "en");
    let docroot = setup.site.path().join("docroot");
    fs::rename(docroot.join("api"), docroot.join("release")).unwrap();
    symlink("release", docroot.join("api")).unwrap();
    let line = script_line(&mut setup);
    let script = format!("COMEDOR_SCRIPT={}", setup.script().display());
    assert_eq!(line, Some(script));
}

#[test]
fn script_is_not_offered_where_comedor_may_see_another_path() {
    let mut setup = Setup::new(Server::Apache, "en");
    setup.site.write(".dockerenv", "");
    assert_eq!(script_line(&mut setup), None);
    for (variable, value) in [
        // The path in a chroot
        ("DOCUMENT_ROOT", "/var/empty/docroot"),
        // A front controller
        ("SCRIPT_FILENAME", "/index.php"),
        ("SCRIPT_FILENAME", "proxy:fcgi://localhost/comedor.php"),
    ] {
        let mut setup = Setup::new(Server::Apache, "en");
        setup.insert(&format!("$_SERVER['{variable}'] = '{value}';"));
        assert_eq!(script_line(&mut setup), None, "{variable} {value}");
    }
}

/// A new folder of sessions, beside this one, with these characters in its name.
fn session_folder(beside: &Path, name: &str) -> TempDir {
    let folder = tempfile::Builder::new().prefix(name).tempdir_in(beside);
    let folder = folder.unwrap();
    chmod(folder.path(), 0o777);
    folder
}

#[test]
fn what_is_copied_has_only_values_that_configure_accepts_and_a_note_has_the_others() {
    let shared_memory = Path::new("/dev/shm");
    for (name, beside, is_offered) in [
        ("s-1_2.x", None, true),
        ("<b>\"`id`", None, false),
        // These could be copied safely
        ("colegio@example", None, false),
        ("menús", None, false),
        ("s", Some(shared_memory), false),
    ] {
        let mut setup = Setup::new(Server::Apache, "en");
        let own = setup.site.path().join("sessions");
        let folder = session_folder(beside.unwrap_or(&own), name);
        let folder = folder.path().display();
        setup.insert(&format!("session_save_path('{folder}');"));
        setup.serve(false);
        setup.open();
        let line = format!("COMEDOR_SESSION_DIR={folder}\n");
        let values = setup.accepted_values();
        assert_eq!(values.contains(&line), is_offered, "{values}");
        assert_eq!(values.contains("SESSION_DIR"), is_offered, "{values}");
        let accepted = setup.configure(&line).status.success();
        assert_eq!(accepted, is_offered, "{line}");
        let note = "“comedor configure” does not accept this value of COMEDOR_SESSION_DIR in a paste. \
            After that command, write this line into comedor.conf by hand: ";
        let shown = setup.shown();
        let is_noted = shown.contains(&format!("{note}{line}"));
        assert_eq!(is_noted, !is_offered, "{shown}");
    }
}

#[test]
fn script_in_a_folder_that_configure_does_not_accept_is_in_a_note() {
    let mut setup = Setup::new(Server::Apache, "en");
    let root = setup.site.path().join("colegio@example");
    symlink("docroot", &root).unwrap();
    let root = root.display();
    setup.insert(&format!(
        "$_SERVER['DOCUMENT_ROOT'] = '{root}'; $_SERVER['SCRIPT_FILENAME'] = '{root}/api/comedor.php';"
    ));
    setup.serve(false);
    setup.open();
    let values = setup.accepted_values();
    assert!(!values.contains("COMEDOR_SCRIPT"), "{values}");
    setup.shows(&format!(
        "comedor.conf by hand: COMEDOR_SCRIPT={root}/api/comedor.php\n"
    ));
}
