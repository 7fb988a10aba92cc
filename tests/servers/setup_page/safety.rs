//! To whom the page shows something, for which requests it runs the script, and that it does no harm.

use super::*;

const LOG_IN: &str = "Log in to the application, in this browser and at this address, as an administrator (with the \
    permission sysadmin:access), and reload this page. (If you are logged in, comedor.php may stop \
    before it reads your login: see PHP’s error log.)";

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
    let made = "['img', 'script'].map((name) => document.querySelectorAll(name).length)";
    assert_eq!(setup.browser.evaluate(made), json!([0, 1]));
    setup.enable();
    setup.all_green();
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
    setup.shows("Only a part of the data was looked at");
    setup.shows("COMEDOR_SERVICE=service\n");
}

fn base64(text: &str) -> String {
    use base64::prelude::{BASE64_STANDARD, Engine};
    BASE64_STANDARD.encode(text)
}
