//! `comedor-setup.php` in Chromium: what an administrator sees on each kind of server, from the script that
//! still answers to comedor that does.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::chromium::Browser;
use crate::support::redis::Redis;
use crate::support::site::{CADDIES, NOBODY, Php, Settings, Site, module, wait_until};
use crate::support::{REPOSITORY, chmod, free_port, output, text_of};
use crate::{LIGHTTPD, PAGES_OF_CADDY};

const DAY: &str = "data/Centros/centro1/Aularios/aula1/Comedor/2026-03/04/_datos.json";
/// A saved menu with names that a careless save would change, as PHP writes it.
const MENU: &str = r#"{
    "date": "2026-03-04",
    "menus": {
        "basal": {
            "plates": {
                "primero": {
                    "name": "Lentejas \"de la abuela\" \/ ñ",
                    "pictogram": "lentejas.png"
                },
                "segundo": {
                    "name": "",
                    "pictogram": ""
                }
            }
        }
    }
}"#;

/// The web servers, and how each runs PHP and comedor.
#[derive(Clone, Copy, PartialEq)]
enum Server {
    Apache,
    ApacheWithFastcgi,
    Nginx,
    Caddy,
    CaddyWithTls,
    Lighttpd,
}

/// A site with the page beside the script, and a browser in it.
struct Setup {
    site: Site,
    server: Server,
    /// Where the application is on the site: empty, or a folder and a slash
    folder: &'static str,
    /// The page of the login
    login: String,
    /// More lines of the web server's configuration; for Caddy more sites
    lines: String,
    /// What an older configuration of comedor does not have
    missing: Option<&'static str>,
    /// The address that the browser opens, if it is not the site's own
    entry: Option<String>,
    browser: Browser,
}

impl Setup {
    fn new(server: Server, language: &str) -> Setup {
        let site = Site::new();
        let script = text_of("tests/fixtures/site/comedor.php");
        let data = format!("{}/data", site.path().display());
        site.write(
            "docroot/api/comedor.php",
            &script.replace("/DATA/service", &data),
        );
        site.write(
            "docroot/api/comedor-setup.php",
            &text_of("setup/comedor-setup.php"),
        );
        fs::create_dir_all(site.path().join(DAY).parent().unwrap()).unwrap();
        site.write(DAY, MENU);
        let browser = Browser::new(language);
        Setup {
            site,
            server,
            folder: "",
            login: "login.php".to_owned(),
            lines: String::new(),
            missing: None,
            entry: None,
            browser,
        }
    }

    /// Inserts code of the application at the start of the script and of the login.
    fn insert(&self, code: &str) {
        for page in ["docroot/login.php", "docroot/api/comedor.php"] {
            let text = fs::read_to_string(self.site.path().join(page)).unwrap();
            self.site
                .write(page, &text.replacen("<?php", &format!("<?php {code}"), 1));
        }
    }

    /// Gives the service of the application another name.
    fn name_service(&self, name: &str) {
        for page in ["docroot/login.php", "docroot/api/comedor.php"] {
            let text = fs::read_to_string(self.site.path().join(page)).unwrap();
            self.site.write(page, &text.replace("service", name));
        }
    }

    /// Another login, which ends with this code of the application. PHP keeps a page in memory for two seconds, so it
    /// has another name.
    fn insert_after_login(&mut self, code: &str) {
        let login = text_of("tests/fixtures/site/login.php");
        self.login = format!("login-{}", self.login);
        self.site.write(
            &format!("docroot/{}", self.login),
            &format!("{login}\n{code}"),
        );
    }

    /// More lines of PHP-FPM's pool.
    fn set_up_pool(&mut self, lines: String) {
        self.site.fpm_settings = lines.leak();
    }

    /// Moves the application into a folder of the site.
    fn move_into(&mut self, folder: &'static str) {
        let docroot = self.site.path().join("docroot");
        fs::create_dir(docroot.join(folder)).unwrap();
        fs::rename(docroot.join("api"), docroot.join(folder).join("api")).unwrap();
        fs::copy(
            docroot.join("login.php"),
            docroot.join(folder).join("login.php"),
        )
        .unwrap();
        self.folder = folder;
    }

    /// Starts the web server, with comedor enabled as the example for it says, or without.
    fn serve(&mut self, is_enabled: bool) {
        self.site.stop_servers();
        let example = match self.server {
            Server::Apache => "apache.conf.example",
            Server::ApacheWithFastcgi => "examples/apache-fastcgi.conf.example",
            Server::Nginx => "examples/nginx.conf.example",
            Server::Lighttpd => LIGHTTPD,
            Server::Caddy | Server::CaddyWithTls => return self.serve_by_caddy(is_enabled),
        };
        let mut lines = String::new();
        if is_enabled {
            lines = self.site.fill(example, Settings::File);
            if let Some(missing) = self.missing {
                assert!(lines.contains(missing), "{missing}");
                lines = lines.replace(missing, "");
            }
        }
        lines += &self.lines;
        if is_enabled && matches!(self.server, Server::ApacheWithFastcgi | Server::Nginx) {
            self.site.start_responder();
        }
        match self.server {
            Server::Apache => self
                .site
                .start_apache("prefork", Php::Module, "cgi", &lines),
            Server::ApacheWithFastcgi => self.site.start_apache("event", Php::Fpm, "cgid", &lines),
            Server::Nginx => self.site.start_nginx("", &lines),
            _ => self.site.start_lighttpd("enable", &lines),
        }
    }

    fn serve_by_caddy(&mut self, is_enabled: bool) {
        if is_enabled {
            self.site.stop_responder();
        }
        let pages = if is_enabled {
            PAGES_OF_CADDY
        } else {
            "php_fastcgi unix/fpm.sock"
        };
        let (address, lines) = (self.address(), self.lines.clone());
        self.site.start_caddy(CADDIES[0], &address, pages, &lines);
    }

    /// The site's address in the browser.
    fn address(&self) -> String {
        match self.server {
            Server::CaddyWithTls => format!("https://school.example:{}", self.site.port),
            _ => format!("http://127.0.0.1:{}", self.site.port),
        }
    }

    /// Logs in and opens the page.
    fn open(&mut self) {
        self.log_in();
        self.browser.open(&self.url("api/comedor-setup.php"));
    }

    fn log_in(&mut self) {
        self.browser.open(&self.url(&self.login));
    }

    /// The address of a page of the application in the browser.
    fn url(&self, page: &str) -> String {
        let site = self.entry.clone().unwrap_or_else(|| self.address());
        format!("{site}/{}{page}", self.folder)
    }

    /// What the browser shows.
    fn shown(&mut self) -> String {
        self.browser.text("document.body.innerText")
    }

    /// What "Copy" copies.
    #[track_caller]
    fn values(&mut self) -> String {
        self.browser.text(
            "new Promise(resolve => {
                document.addEventListener('copy', () => resolve(document.activeElement.value));
                (function click() {
                    element('copy').disabled ? setTimeout(click, 10) : element('copy').click();
                })();
            })",
        )
    }

    /// Presses "Try". Returns its results, a line each: the colour, and the sentence.
    #[track_caller]
    fn press_try(&mut self) -> String {
        self.browser.text(
            "(async () => {
                element('try').click();
                while (element('try').disabled) await new Promise(resolve => setTimeout(resolve, 10));
                const items = [...document.querySelectorAll('#out li')];
                return items.map(item => `${item.className}: ${item.innerText}`).join('\\n');
            })()",
        )
    }

    /// From the script that answers to comedor, with the values of the page. Returns those.
    #[track_caller]
    fn set_up(&mut self, heading: &str) -> String {
        self.serve(false);
        self.open();
        let page = self.shown();
        // In a container, more follows.
        let is_heading = |line: &str| {
            line.split(" (").next() == Some(&format!("Heading of the guide\t{heading}"))
        };
        assert!(page.lines().any(is_heading), "{heading}: {page}");
        let values = self.values();
        let before = self.press_try();
        assert!(before.contains("red: The script still answers"), "{before}");
        self.site.write("cgi/comedor.conf", &values);
        self.serve(true);
        self.all_green();
        values
    }

    #[track_caller]
    fn all_green(&mut self) {
        let results = self.press_try();
        assert!(
            results.contains("green done: ") && !results.contains("red"),
            "{results}"
        );
        assert!(
            results.contains("was saved with its own names"),
            "{results}"
        );
        assert_eq!(
            fs::read_to_string(self.site.path().join(DAY)).unwrap(),
            MENU
        );
    }
}

/// A test for each deployment: the page names this heading of the guide; `prepare` is before the start.
macro_rules! deployments {
    ($($name:ident: $server:ident, $heading:literal $(, $prepare:expr)?;)*) => {$(
        #[test]
        fn $name() {
            let mut setup = Setup::new(Server::$server, "en");
            $(let prepare: fn(&mut Setup) = $prepare; prepare(&mut setup);)?
            setup.set_up($heading);
        }
    )*};
}

deployments! {
    apache_with_mod_php: Apache, "Apache";
    apache_with_php_fpm_of_another_user: ApacheWithFastcgi, "Apache with FastCGI",
        |setup| setup.site.user = NOBODY;
    nginx: Nginx, "nginx";
    nginx_that_hides_the_header_of_comedor: Nginx, "nginx",
        |setup| setup.lines = "fastcgi_hide_header X-Powered-By;".to_owned();
    caddy: Caddy, "Caddy";
    lighttpd: Lighttpd, "lighttpd";
    subfolder: Apache, "Apache", |setup| setup.move_into("entreaulas/");
    https_with_redirects: CaddyWithTls, "Caddy", |setup| {
        let (address, port) = (setup.address(), free_port());
        setup.entry = Some(format!("http://school.example:{port}"));
        setup.lines = format!("http://school.example:{port} {{\n redir {address}{{uri}}\n}}");
        setup.insert("ini_set('session.cookie_secure', '1');");
    };
    open_basedir_and_disabled_functions: ApacheWithFastcgi, "Apache with FastCGI", |setup| {
        setup.site.user = NOBODY;
        let functions = "posix_geteuid,posix_getegid,ini_get,ini_set,get_included_files";
        setup.set_up_pool(format!(
            "php_admin_value[open_basedir] = {}\nphp_admin_value[disable_functions] = {functions}",
            setup.site.path().display(),
        ));
    };
    handlers_of_the_application_that_throw: Nginx, "nginx", |setup| {
        setup.insert("set_error_handler(function () { throw new Error('handler'); });
            set_exception_handler(function () { http_response_code(500); });
            ob_start(function ($text) { return $text; });");
    };
    script_with_an_error_of_its_own: Nginx, "nginx", |setup| {
        let script = setup.site.path().join("docroot/api/comedor.php");
        let text = fs::read_to_string(&script).unwrap();
        fs::write(&script, text.replace("switch (", "undefined(); switch (")).unwrap();
    };
}

#[test]
fn session_name_and_folder_set_by_code() {
    let mut setup = Setup::new(Server::Nginx, "en");
    let folder = setup.site.path().join("sessions/own");
    fs::create_dir(&folder).unwrap();
    let folder = folder.display();
    setup.insert(&format!(
        "session_name('AULAS'); session_save_path('{folder}');
        ini_set('session.serialize_handler', 'php_serialize'); date_default_timezone_set('Atlantic/Canary');"
    ));
    let values = setup.set_up("nginx");
    let data = setup.site.path().join("data");
    assert_eq!(
        values,
        format!(
            "COMEDOR_SERVICE=service\nCOMEDOR_DATA_DIR={}\nCOMEDOR_SESSION_DIR={folder}\n\
            COMEDOR_SESSION_NAME=AULAS\nCOMEDOR_SESSION_FORMAT=php_serialize\nCOMEDOR_ACCESS=listed\n\
            TZ=Atlantic/Canary\n",
            data.display(),
        )
    );
}

#[test]
fn sessions_in_redis_whose_password_is_hidden_and_copied() {
    let redis = Redis::new();
    redis.command(&["CONFIG", "SET", "requirepass", "secreto"]);
    let mut setup = Setup::new(Server::Nginx, "en");
    let path = redis.tcp("127.0.0.1", "?auth=secreto");
    setup.set_up_pool(format!(
        "php_admin_value[session.save_handler] = redis\n\
        php_admin_value[session.save_path] = \"{path}\"\nphp_admin_value[session.gc_maxlifetime] = 777"
    ));
    let values = setup.set_up("nginx");
    let expected = format!("COMEDOR_SESSION_DIR={path}\nCOMEDOR_SESSION_NAME=PHPSESSID\n");
    assert!(values.contains(&expected), "{values}");
    assert!(
        values.contains("COMEDOR_SESSION_LIFETIME=777\n"),
        "{values}"
    );
    setup
        .browser
        .evaluate("document.querySelector('body > details').open = true");
    let shown = setup.shown();
    assert!(
        !shown.contains("secreto") && shown.contains("Show the address of Redis"),
        "{shown}"
    );
    setup
        .browser
        .evaluate("document.querySelector('#lines summary').click()");
    assert!(setup.shown().contains("auth=secreto"));
}

#[test]
fn proxy_that_changes_host_needs_the_line_that_the_page_names() {
    let mut setup = Setup::new(Server::Nginx, "en");
    let mut proxy = Site::new();
    proxy.start_nginx_only(&format!(
        "server {{ listen 127.0.0.1:{}; location / {{ proxy_pass http://127.0.0.1:{}; }} }}",
        proxy.port, setup.site.port,
    ));
    let origin = format!("http://school.example:{}", proxy.port);
    setup.entry = Some(origin.clone());
    setup.serve(false);
    setup.open();
    let values = setup.values();
    setup.site.write("cgi/comedor.conf", &values);
    setup.serve(true);
    let line = format!("COMEDOR_TRUSTED_ORIGINS={origin}");
    let results = setup.press_try();
    assert!(
        results.contains("red: comedor takes this page for one of another site"),
        "{results}"
    );
    assert!(
        results.contains(&format!("add this line to comedor.conf: {line}\n")),
        "{results}"
    );
    setup
        .site
        .write("cgi/comedor.conf", &format!("{values}{line}\n"));
    // The service looks at its settings at most once a second.
    wait_until("the new setting", || !setup.press_try().contains("red: "));
    setup.all_green();
}

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
        before.contains("red: Todavía contesta el script"),
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

const LOG_IN: &str = "Log in to the application as an administrator, in this browser, and reload this page. (If you \
    are logged in, comedor.php may stop before it reads your login: see PHP’s error log.)";

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
        "Cache-Control: no-store", "frame-ancestors 'none'", "X-Frame-Options: DENY",
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
fn value_that_cannot_be_copied_safely_is_left_out() {
    let mut setup = Setup::new(Server::Apache, "en");
    let folder = setup.site.path().join("sessions/<b>\"`id`");
    fs::create_dir(&folder).unwrap();
    setup.insert(&format!("session_save_path('{}');", folder.display()));
    setup.serve(false);
    setup.open();
    let shown = setup.shown();
    let note = "The value of COMEDOR_SESSION_DIR has characters that cannot be copied safely.";
    assert!(
        shown.contains(note) && shown.contains("/sessions/<b>\"`id`\n"),
        "{shown}"
    );
    assert!(!setup.values().contains("SESSION_DIR"));
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
    let question = "Your login lacks aulas. Which sessions may use comedor?";
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
    setup.browser.evaluate(&type_folder("/DATA/$(id)"));
    assert_eq!(setup.browser.evaluate("element('copy').disabled"), true);
    setup.browser.evaluate(&type_folder("/DATA/mis aulas"));
    let values = setup.values();
    assert!(
        values.starts_with("COMEDOR_SERVICE=otro\nCOMEDOR_DATA_DIR=/DATA/mis aulas\n"),
        "{values}"
    );
}

#[test]
fn page_refuses_applications_that_comedor_is_not_for() {
    for (code, reason) in [
        (
            "session_set_save_handler(new class extends SessionHandler {}, true);",
            "kept by code of the application",
        ),
        (
            "foreach (glob('DATA/*.json') as $file) { unlink($file); }",
            "There are no aularios below",
        ),
    ] {
        let mut setup = Setup::new(Server::Apache, "en");
        let aularios = setup.site.path().join("data/Centros/centro1/Aularios");
        setup.insert(&code.replace("DATA", aularios.to_str().unwrap()));
        setup.serve(false);
        setup.open();
        let shown = setup.shown();
        assert!(
            shown.contains("comedor is not for this application:") && shown.contains(reason),
            "{shown}"
        );
        assert!(!shown.contains("COMEDOR_SERVICE="), "{shown}");
    }
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

fn base64(text: &str) -> String {
    use base64::prelude::{BASE64_STANDARD, Engine};
    BASE64_STANDARD.encode(text)
}

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

/// The pictures of the page in the guides.
const PICTURES: [(&str, &str); 2] = [("en", "docs/setup-page.png"), ("es", "docs/es/pagina.png")];
/// For each a line of sha256sum: not of the file, but of text and style of the page in it.
const SHOWN: &str = "tests/servers/pictures.sha256";

/// Writes the names of a school over those of this test, and over versions.
const RENAME: &str = r#"
    const names = [["FOLDER/docroot", "/var/www/html"], ["FOLDER/data", "/DATA/entreaulas"],
        ["FOLDER/sessions", "/var/lib/php/sessions"], [/^Apache\/.*/, "Apache/2.4 (Debian)"], [/ \(PHP [^)]*\)$/, ""]];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        for (const [from, to] of names) texts.currentNode.data = texts.currentNode.data.replace(from, to);
    }
    document.body.innerText + document.querySelector("style").textContent
"#;

#[test]
fn pictures_in_the_guides_show_the_page_as_it_is() {
    let is_to_write = std::env::var_os("COMEDOR_PICTURES").is_some();
    let mut shown = String::new();
    for (language, file) in PICTURES {
        let mut setup = Setup::new(Server::Apache, language);
        setup.insert("date_default_timezone_set('Europe/Madrid');");
        setup.name_service("entreaulas");
        setup.move_into("entreaulas/");
        setup.serve(false);
        setup.open();
        let values = setup.values();
        setup.site.write("cgi/comedor.conf", &values);
        setup.serve(true);
        setup.press_try();
        let folder = setup.site.path().display().to_string();
        let text = setup.browser.text(&RENAME.replace("FOLDER", &folder));
        assert!(!text.contains(&folder), "{text}");
        setup.site.write("tmp/shown", &text);
        let mut sum = Command::new("sha256sum");
        let sum = output(sum.arg(setup.site.path().join("tmp/shown")), "coreutils");
        shown += &format!("{}  {file}\n", &String::from_utf8(sum).unwrap()[..64]);
        let path = Path::new(REPOSITORY).join(file);
        if is_to_write {
            fs::write(&path, setup.browser.picture(700, "out")).unwrap();
        }
        assert!(
            fs::metadata(path).unwrap().len() <= 150_000,
            "{file} is large"
        );
    }
    if is_to_write {
        fs::write(Path::new(REPOSITORY).join(SHOWN), &shown).unwrap();
    }
    assert_eq!(
        text_of(SHOWN),
        shown,
        "take new pictures: COMEDOR_PICTURES=1 cargo test --test servers -- pictures"
    );
}
