//! What the page shows, and to whom.

use super::*;

#[test]
fn page_in_spanish() {
    let mut setup = Setup::new(Server::Apache, "es-ES,es");
    setup.serve(false);
    setup.open();
    let page = setup.shown();
    assert!(
        page.contains("Configurar comedor") && page.contains("\nUsuario\twww-data\n"),
        "{page}"
    );
    let values = setup.values();
    let before = setup.press_try();
    assert!(
        before.contains("red: Todavía responde el script"),
        "{before}"
    );
    setup.site.write("cgi/comedor.conf", &values);
    setup.serve(true);
    let results = setup.press_try();
    assert!(results.contains("green done: Todo funciona."), "{results}");
    assert_eq!(
        setup.browser.evaluate("document.documentElement.lang"),
        "es"
    );
}

const LOG_IN: &str = "Log in to the application, in this browser, as an administrator (with the permission \
    sysadmin:access), and reload this page. (If you are logged in, comedor.php may stop before it reads your login: see PHP’s error log.)";

#[test]
fn only_an_administrator_sees_more_than_one_sentence() {
    let mut setup = Setup::new(Server::Apache, "en");
    setup.serve(false);
    let page = setup.url("api/comedor-setup.php");
    let raw = format!("{page}?action=get_menu_types&aulario=aula1");
    setup.browser.open(&page);
    assert_eq!(setup.shown(), LOG_IN);
    setup.insert_after_login("$_SESSION['auth_data']['permissions'] = ['service:docente'];");
    setup.log_in();
    for address in [&page, &raw] {
        setup.browser.open(address);
        assert_eq!(setup.shown(), LOG_IN);
    }
    let (status, body) = setup.site.curl(&["-i", &page]);
    assert!(
        status == 403 && !body.contains(setup.site.path().to_str().unwrap()),
        "{body}"
    );
    for header in [
        "Cache-Control: no-store",
        "frame-ancestors 'none'",
        "X-Frame-Options: DENY",
        "Cross-Origin-Opener-Policy: same-origin",
    ] {
        assert!(body.contains(header), "{header}: {body}");
    }
}

#[test]
fn page_runs_the_script_for_its_own_requests_only() {
    let mut setup = Setup::new(Server::Apache, "en");
    let ran = setup.site.path().join("data/ran");
    setup.insert(&format!("touch('{}');", ran.display()));
    setup.serve(false);
    fs::remove_file(&ran).unwrap();
    let page = setup.url("api/comedor-setup.php");
    let with = |query: &str| format!("{page}?{query}");
    for arguments in [
        &["-d", "x=1", &page][..],
        &["-X", "POST", &page],
        &["-X", "GET", "-d", "{}", &page],
        &[&with("action=save_menu&aulario=aula1")],
        &[&with("action=get_menu_types&aulario=aula1&date=2026-03-04")],
        &[&with("action=get_menu_types&aulario[]=aula1")],
        &[&with("aulario=aula1")],
    ] {
        let (status, body) = setup.site.curl(arguments);
        assert!(
            status == 400 && body.contains("Open this page without parameters."),
            "{arguments:?}"
        );
    }
    let text = text_of("setup/comedor-setup.php");
    // No time of change can be set: this shortens the day.
    setup.site.write(
        "docroot/api/old.php",
        &text.replace("MAX_AGE = 86400", "MAX_AGE = -1"),
    );
    let (status, body) = setup.site.curl(&[&setup.url("api/old.php")]);
    assert!(
        status == 410 && body.contains("copied more than a day ago"),
        "{status} {body}"
    );
    setup.site.write("docroot/elsewhere.php", &text);
    let (status, body) = setup.site.curl(&[&setup.url("elsewhere.php")]);
    assert!(
        status == 404 && body.contains("no comedor.php in the folder"),
        "{status} {body}"
    );
    assert!(!ran.exists());
}

/// Markup, quotes, a line feed, an escape sequence of terminals, and a character that reverses text.
const HOSTILE: &str = "<img src=x onerror=evil()>\"'`$(id)\n\u{1b}[31m\u{202e}";

#[test]
fn hostile_names_in_session_and_folders_are_shown_as_text() {
    let mut setup = Setup::new(Server::Apache, "en");
    let centros = setup.site.path().join("data/Centros");
    let hostile = HOSTILE.replace('/', "");
    fs::create_dir_all(centros.join(&hostile).join("Aularios")).unwrap();
    fs::write(
        centros.join(format!("centro1/Aularios/{hostile}.json")),
        "{}",
    )
    .unwrap();
    let script = "</script><script>evil()</script>";
    let string = format!("base64_decode('{}')", base64(&format!("{HOSTILE}{script}")));
    setup.insert_after_login(&format!(
        "$_SESSION['auth_data'][{string}] = ['centro' => 'centro1'];
        $_SESSION['auth_data']['otro'] = ['centro' => {string}, 'aulas' => [{string}]];
        $_SESSION['auth_data']['permissions'][] = {string};
        $_SESSION['auth_data']['service']['aulas'][] = {string};
        $_SESSION[{string}] = {string};"
    ));
    setup.serve(false);
    setup.open();
    setup.browser.evaluate(
        "for (const details of document.querySelectorAll('details')) details.open = true",
    );
    let shown = setup.shown();
    assert!(shown.contains("comedor cannot use these names"), "{shown}");
    assert!(
        shown.contains("<img src=x onerror=evil()>\"'`$(id)\u{fffd}\u{fffd}[31m\u{fffd}"),
        "{shown}"
    );
    assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
    assert_eq!(
        setup
            .browser
            .evaluate("document.querySelectorAll('img').length"),
        0
    );
    assert_eq!(
        setup
            .browser
            .evaluate("document.querySelectorAll('script').length"),
        1
    );
    let values = setup.values();
    setup.site.write("cgi/comedor.conf", &values);
    setup.serve(true);
    setup.all_green();
}

#[test]
fn page_says_what_names_that_comedor_cannot_use_lead_to_and_where_the_guide_has_the_change() {
    for (language, note) in [
        (
            "en",
            "comedor cannot use these names (only A-Z a-z 0-9 . _ -, at most 250 characters): Colegio San José. Their \
            users would be without the API. Change them before you enable comedor: heading “Ids” of docs/files.md.",
        ),
        (
            "es",
            "comedor no puede usar estos nombres (solo A-Z a-z 0-9 . _ -, 250 caracteres como máximo): Colegio San José. \
            Sus usuarios se quedarían sin la API. Cámbialos antes de activar comedor: apartado «Nombres con espacios o \
            tildes» de la guía.",
        ),
    ] {
        let mut setup = Setup::new(Server::Apache, language);
        setup.serve(false);
        setup.open();
        assert!(!setup.shown().contains("A-Z"));
        let centre = setup.site.path().join("data/Centros/Colegio San José");
        fs::create_dir_all(centre.join("Aularios")).unwrap();
        setup.open();
        let shown = setup.shown();
        assert!(shown.contains(note), "{shown}");
    }
}

#[test]
fn page_at_another_path_names_the_change_by_which_comedor_answers_there() {
    for server in [
        Server::Apache,
        Server::ApacheWithFastcgi,
        Server::Nginx,
        Server::Lighttpd,
    ] {
        let mut setup = Setup::new(server, "en");
        let docroot = setup.site.path().join("docroot");
        fs::create_dir(docroot.join("school")).unwrap();
        fs::rename(docroot.join("api"), docroot.join("school/rest")).unwrap();
        let page = "school/rest/comedor-setup.php";
        setup.changed = Some(("/api/comedor", "/school/rest/comedor"));
        setup.serve(false);
        setup.log_in();
        setup.browser.open(&setup.url(page));
        let note = "comedor answers paths that end in /api/comedor.php, and /school/rest/comedor.php does not. In its \
            configuration for the web server (“4. Enable” of the guide names the file), write /school/rest/comedor \
            instead of /api/comedor in each line.";
        let shown = setup.shown();
        assert!(shown.contains(note), "{shown}");
        let values = setup.values();
        setup.site.write("cgi/comedor.conf", &values);
        setup.serve(true);
        setup.all_green();
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
    let shown = setup.shown();
    let line = format!("comedor.conf by hand: COMEDOR_SCRIPT={root}/api/comedor.php\n");
    assert!(shown.contains(&line), "{shown}");
}

#[test]
fn page_says_that_a_policy_of_the_site_stops_its_script() {
    let mut setup = Setup::new(Server::Nginx, "en");
    setup.lines = "add_header Content-Security-Policy \"script-src 'self'\" always;".to_owned();
    // A location with its own add_header would not inherit it.
    setup.serve(false);
    setup.open();
    let shown = setup.shown();
    assert!(shown.contains("The buttons do nothing: "), "{shown}");
    assert!(shown.contains("COMEDOR_SERVICE=service\n"), "{shown}");
}

#[test]
fn administrator_without_a_list_of_aularios_is_asked_and_not_locked_out() {
    let mut setup = Setup::new(Server::Apache, "en");
    setup.insert_after_login("unset($_SESSION['auth_data']['service']['aulas']);");
    let values = setup.set_up("Apache");
    assert!(values.contains("COMEDOR_ACCESS=centre\n"), "{values}");
    let question = "Your user lacks the following: aulas. Which sessions may use comedor?";
    assert!(setup.shown().contains(question));
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
    let script = setup.site.path().join("docroot/api/comedor.php");
    let text = fs::read_to_string(&script).unwrap();
    fs::write(
        &script,
        text.replace("/data/Centros/", "/data/' . 'Centros/"),
    )
    .unwrap();
    setup.serve(false);
    setup.open();
    assert!(setup.shown().contains("No folder “Centros” was found."));
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
        let note = format!("comedor.conf by hand: COMEDOR_DATA_DIR={folder}\n");
        let shown = setup.shown();
        assert!(shown.contains(&note), "{shown}");
    }
    for folder in [
        "/DATA/..otro", "/etcetera/otro", "/var/otro", "/DATA/mis-aulas",
    ] {
        setup.browser.evaluate(&type_folder(folder));
        let values = setup.accepted_values();
        let start = format!("COMEDOR_SERVICE=otro\nCOMEDOR_DATA_DIR={folder}\n");
        assert!(values.starts_with(&start), "{values}");
        assert!(!setup.shown().contains("by hand"));
    }
}

const NOT_FOR_IT: &str = "comedor is not for this application:";

#[test]
fn page_says_what_to_give_to_a_login_without_a_centre() {
    let mut setup = Setup::new(Server::Apache, "en");
    setup.serve(false);
    let installer = "$_SESSION['auth_data'] = \
        ['permissions' => ['*', 'sysadmin:access', 'service:access']];";
    for code in [
        installer,
        "$_SESSION['auth_data']['service']['centro'] = '';",
    ] {
        setup.insert_after_login(code);
        setup.open();
        let shown = setup.shown();
        let advice = "give this user a centre, aularios (aulas) and the permissions service:access and \
            service:docente; then log in again";
        assert!(shown.contains(advice), "{code}: {shown}");
        assert!(!shown.contains(NOT_FOR_IT), "{code}: {shown}");
        assert!(!shown.contains("COMEDOR_SERVICE="), "{code}: {shown}");
    }
}

#[test]
fn page_says_that_an_application_has_no_aularios_yet() {
    let mut setup = Setup::new(Server::Apache, "en");
    let aularios = setup.site.path().join("data/Centros/centro1/Aularios");
    let remove = "foreach (glob('DATA/*.json') as $file) { unlink($file); }";
    setup.insert(&remove.replace("DATA", aularios.to_str().unwrap()));
    setup.serve(false);
    setup.open();
    let shown = setup.shown();
    let advice = "data/Centros. Create one in the application, and reload this page.";
    assert!(
        shown.contains("There are no aularios below ") && shown.contains(advice),
        "{shown}"
    );
    assert!(!shown.contains(NOT_FOR_IT), "{shown}");
    assert!(!shown.contains("COMEDOR_SERVICE="), "{shown}");
}

#[test]
fn page_refuses_applications_that_comedor_is_not_for() {
    let mut setup = Setup::new(Server::Apache, "en");
    setup.insert("session_set_save_handler(new class extends SessionHandler {}, true);");
    setup.serve(false);
    setup.open();
    let shown = setup.shown();
    assert!(
        shown.contains(NOT_FOR_IT) && shown.contains("kept by code of the application"),
        "{shown}"
    );
    assert!(!shown.contains("COMEDOR_SERVICE="), "{shown}");
    let mut setup = Setup::new(Server::Apache, "en");
    setup.insert("if (false) { new PDO('sqlite:x'); }");
    setup.insert("while (ob_get_level()) { ob_end_clean(); } echo ' '; flush();");
    setup.serve(false);
    setup.log_in();
    let (_, body) = setup.site.curl(&[&setup.url("api/comedor-setup.php")]);
    assert!(
        body.contains("sends its answer without PHP’s output buffers"),
        "{body}"
    );
}

#[test]
fn fifos_and_large_files_in_the_data_are_skipped() {
    let mut setup = Setup::new(Server::Apache, "en");
    let aulario = setup
        .site
        .path()
        .join("data/Centros/centro1/Aularios/aula1");
    let month = aulario.join("Comedor/2026-03");
    for day in ["05", "06"] {
        fs::create_dir(month.join(day)).unwrap();
    }
    let mut fifo = Command::new("mkfifo");
    fifo.args([
        month.join("05/_datos.json"),
        aulario.with_file_name("aula9.json"),
    ]);
    output(&mut fifo, "coreutils");
    let large = MENU.replace("2026-03-04", "2026-03-06") + &" ".repeat(2 << 20);
    fs::write(month.join("06/_datos.json"), large).unwrap();
    setup.set_up("Apache");
    let results = setup.press_try();
    assert!(
        results.contains("the menu of 2026-03-04 in aula1 was saved"),
        "{results}"
    );
}

#[test]
fn page_does_not_hold_the_session_while_it_looks() {
    let mut setup = Setup::new(Server::Apache, "en");
    setup.change_page(
        "show(look());",
        "exit(session_status() === PHP_SESSION_NONE ? 'free' : 'held');",
    );
    setup.serve(false);
    setup.open();
    assert_eq!(setup.shown(), "free");
}

#[test]
fn page_ends_its_look_after_some_seconds_and_says_so() {
    let mut setup = Setup::new(Server::Apache, "en");
    setup.change_page("MAX_SECONDS = 5", "MAX_SECONDS = -1");
    setup.serve(false);
    setup.open();
    let shown = setup.shown();
    assert!(
        shown.contains("Only a part of the data was looked at")
            && shown.contains("COMEDOR_SERVICE=service\n"),
        "{shown}"
    );
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

#[test]
fn page_shows_the_umask_of_php() {
    let mut setup = Setup::new(Server::Apache, "en");
    setup.insert("umask(0027);");
    setup.serve(false);
    setup.open();
    let shown = setup.shown();
    assert!(shown.contains("\numask\t0027\n"), "{shown}");
}

#[test]
fn page_names_shared_hosting_where_php_owns_the_script() {
    let hosting = "Apache with FastCGI (if you are not root on this server: Shared hosting)";
    for (owner, is_named) in [(NOBODY, true), (0, false)] {
        let mut setup = Setup::new(Server::ApacheWithFastcgi, "en");
        setup.site.user = NOBODY;
        setup.serve(false);
        chown(setup.script(), Some(owner), None).unwrap();
        setup.open();
        let shown = setup.shown();
        assert!(shown.contains("Apache with FastCGI"), "{shown}");
        assert_eq!(shown.contains(hosting), is_named, "{shown}");
    }
}

/// The line with COMEDOR_SCRIPT that the page offers.
fn script_line(setup: &mut Setup) -> Option<String> {
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
    setup.serve(false);
    let line = script_line(&mut setup);
    let script = format!("COMEDOR_SCRIPT={}", setup.script().display());
    assert_eq!(line, Some(script));
}

#[test]
fn script_is_not_offered_where_comedor_may_see_another_path() {
    let mut setup = Setup::new(Server::Apache, "en");
    setup.site.write(".dockerenv", "");
    setup.serve(false);
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
        setup.serve(false);
        assert_eq!(script_line(&mut setup), None, "{variable} {value}");
    }
}

#[test]
fn page_says_that_the_settings_file_is_for_another_application() {
    let mut setup = Setup::new(Server::Apache, "en");
    setup.serve(false);
    let data = setup.site.path().join("data").display().to_string();
    let script = setup.script().display().to_string();
    let other = "/var/www/otra/api/comedor.php";
    for (settings, named) in [
        (
            format!("COMEDOR_SCRIPT={script}\nCOMEDOR_DATA_DIR={data}\n"),
            None,
        ),
        (
            format!("COMEDOR_SCRIPT={other}\nCOMEDOR_DATA_DIR={data}\n"),
            Some(other),
        ),
        // As version 1.0.0 wrote it
        (format!("COMEDOR_DATA_DIR={data}/\n"), None),
        (
            "# COMEDOR_SCRIPT=/x\n COMEDOR_DATA_DIR = /DATA/otra\n".to_owned(),
            Some("/DATA/otra"),
        ),
        // An empty value is the default
        (
            format!("COMEDOR_SCRIPT=\nTZ=UTC\nCOMEDOR_DATA_DIR={data}\n"),
            None,
        ),
        (
            "COMEDOR_SCRIPT= \nCOMEDOR_DATA_DIR=\nTZ=UTC\n".to_owned(),
            None,
        ),
        (
            format!("COMEDOR_DATA_DIR=\nCOMEDOR_SCRIPT={other}\n"),
            Some(other),
        ),
    ] {
        setup.site.write("tmp/comedor.conf", &settings);
        setup.open();
        let shown = setup.shown();
        let note = "comedor.conf of this server is for another application";
        match named {
            Some(path) => assert!(shown.contains(&format!("{note} ({path}).")), "{shown}"),
            None => assert!(!shown.contains(note), "{settings}: {shown}"),
        }
    }
}

fn base64(text: &str) -> String {
    use base64::prelude::{BASE64_STANDARD, Engine};
    BASE64_STANDARD.encode(text)
}
