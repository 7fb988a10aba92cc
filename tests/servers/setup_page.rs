//! `comedor-setup.php` in Chromium: what an administrator sees on each kind of server, from the script that
//! still answers to comedor that does.

use std::fs;

use crate::chromium::Browser;
use crate::support::site::{CADDIES, NOBODY, Php, Settings, Site};
use crate::support::text_of;
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
    /// More lines of the web server's configuration
    lines: String,
    browser: Browser,
}

impl Setup {
    fn new(server: Server, language: &str) -> Setup {
        let site = Site::new();
        let script = text_of("tests/fixtures/site/comedor.php");
        let data = format!("{}/data", site.path().display());
        site.write("docroot/api/comedor.php", &script.replace("/DATA/service", &data));
        site.write("docroot/api/comedor-setup.php", &text_of("setup/comedor-setup.php"));
        fs::create_dir_all(site.path().join(DAY).parent().unwrap()).unwrap();
        site.write(DAY, MENU);
        let browser = Browser::new(language);
        Setup { site, server, folder: "", lines: String::new(), browser }
    }

    /// Inserts code of the application at the start of the script and of the login.
    fn insert(&self, code: &str) {
        for page in ["docroot/login.php", "docroot/api/comedor.php"] {
            let text = fs::read_to_string(self.site.path().join(page)).unwrap();
            self.site.write(page, &text.replacen("<?php", &format!("<?php {code}"), 1));
        }
    }

    /// Moves the application into a folder of the site.
    fn move_into(&mut self, folder: &'static str) {
        let docroot = self.site.path().join("docroot");
        fs::create_dir(docroot.join(folder)).unwrap();
        fs::rename(docroot.join("api"), docroot.join(folder).join("api")).unwrap();
        fs::copy(docroot.join("login.php"), docroot.join(folder).join("login.php")).unwrap();
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
            let path = format!("/{}api/comedor.php", self.folder);
            lines = self.site.fill(example, Settings::File).replace("/api/comedor.php", &path);
        }
        lines += &self.lines;
        if is_enabled && matches!(self.server, Server::ApacheWithFastcgi | Server::Nginx) {
            self.site.start_responder();
        }
        match self.server {
            Server::Apache => self.site.start_apache("prefork", Php::Module, "cgi", &lines),
            Server::ApacheWithFastcgi => self.site.start_apache("event", Php::Fpm, "cgid", &lines),
            Server::Nginx => self.site.start_nginx("", &lines),
            _ => self.site.start_lighttpd("enable", &lines),
        }
    }

    fn serve_by_caddy(&mut self, is_enabled: bool) {
        if is_enabled {
            self.site.stop_responder();
        }
        let pages = if is_enabled { PAGES_OF_CADDY } else { "php_fastcgi unix/fpm.sock" };
        let address = self.address();
        self.site.start_caddy(CADDIES[0], &address, pages, "");
    }

    /// The site's address in the browser.
    fn address(&self) -> String {
        match self.server {
            Server::CaddyWithTls => format!("https://school.example:{}", self.site.port),
            Server::Caddy => format!("http://127.0.0.1:{}", self.site.port),
            _ => format!("http://127.0.0.1:{}", self.site.port),
        }
    }

    /// Logs in and opens the page.
    fn open(&mut self) {
        let application = format!("{}/{}", self.address(), self.folder);
        self.browser.open(&format!("{application}login.php"));
        self.browser.open(&format!("{application}api/comedor-setup.php"));
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
        let items = "[...document.querySelectorAll('#out li')].map(item => item.className + ': ' + item.innerText)";
        self.browser.text(&format!("tryComedor().then(() => {items}.join('\\n'))"))
    }

    /// From the script that answers to comedor, with the values of the page. Returns those.
    #[track_caller]
    fn set_up(&mut self, heading: &str) -> String {
        self.serve(false);
        self.open();
        let page = self.browser.text("document.body.innerText");
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
        assert!(results.contains("green done: ") && !results.contains("red"), "{results}");
        assert!(results.contains("was saved with its own names"), "{results}");
        assert_eq!(fs::read_to_string(self.site.path().join(DAY)).unwrap(), MENU);
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
    caddy: Caddy, "Caddy";
    lighttpd: Lighttpd, "lighttpd";
    subfolder: Apache, "Apache", |setup| setup.move_into("entreaulas/");
}

#[test]
fn look() {
    for (language, scheme) in [("en", "light"), ("es", "dark")] {
        let mut setup = Setup::new(Server::Apache, language);
        setup.serve(false);
        setup.browser.call(
            "Emulation.setEmulatedMedia",
            serde_json::json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        );
        setup.open();
        setup.values();
        let red = setup.browser.picture(760);
        fs::write(format!("/tmp/w-page-{language}-0.png"), red).unwrap();
        setup.press_try();
        let red = setup.browser.picture(760);
        fs::write(format!("/tmp/w-page-{language}-red.png"), red).unwrap();
        setup.serve(true);
        setup.press_try();
        let green = setup.browser.picture(760);
        fs::write(format!("/tmp/w-page-{language}-green.png"), green).unwrap();
    }
}
