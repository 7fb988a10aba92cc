//! `comedor-setup.php` in Chromium: what an administrator sees on each kind of server, from the script that
//! still answers to comedor that does.

mod advice;
mod deployments;
mod pictures;
mod safety;
mod try_it;
mod values;
mod web_server;

use std::fs::{self, File};
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::chromium::Browser;
use crate::support::redis::Redis;
use crate::support::site::{CADDIES, NOBODY, Php, Settings, Site, module, wait_until};
use crate::support::{chmod, free_port, json, output, text_of};
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
    /// What is changed in the configuration of comedor: from and to
    changed: Option<(&'static str, &'static str)>,
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
        let page = text_of("setup/comedor-setup.php");
        // This machine may be a container, and have settings of its own.
        let folder = site.path().display();
        let page = page.replace(
            "['/.dockerenv', '/run/.containerenv']",
            &format!("['{folder}/.dockerenv']"),
        );
        let page = page.replace("/etc/comedor/", &format!("{folder}/tmp/"));
        assert_eq!(page.matches(&*folder.to_string()).count(), 2);
        site.write("docroot/api/comedor-setup.php", &page);
        fs::create_dir_all(site.path().join(DAY).parent().unwrap()).unwrap();
        site.write(DAY, MENU);
        let browser = Browser::new(language);
        Setup {
            site,
            server,
            folder: "",
            login: "login.php".to_owned(),
            lines: String::new(),
            changed: None,
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

    #[track_caller]
    fn change_page(&self, from: &str, to: &str) {
        let page = self.script().with_file_name("comedor-setup.php");
        replace_in(&page, from, to);
    }

    #[track_caller]
    fn change_script(&self, from: &str, to: &str) {
        replace_in(&self.script(), from, to);
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

    /// The script in whose place comedor answers.
    fn script(&self) -> PathBuf {
        let docroot = self.site.path().join("docroot");
        docroot.join(self.folder).join("api/comedor.php")
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
            if let Some((from, to)) = self.changed {
                assert!(lines.contains(from), "{from}");
                lines = lines.replace(from, to);
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

    /// The browser shows this text.
    #[track_caller]
    fn shows(&mut self, text: &str) {
        let shown = self.shown();
        assert!(shown.contains(text), "{text}: {shown}");
    }

    #[track_caller]
    fn does_not_show(&mut self, text: &str) {
        let shown = self.shown();
        assert!(!shown.contains(text), "{text}: {shown}");
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

    /// What "Copy" copies, which `comedor configure` accepts.
    #[track_caller]
    fn accepted_values(&mut self) -> String {
        let values = self.values();
        let output = self.configure(&values);
        assert!(output.status.success(), "{values}{output:?}");
        values
    }

    /// `comedor configure` with this paste, without a terminal.
    fn configure(&self, paste: &str) -> Output {
        self.site.write("tmp/paste", paste);
        let paste = File::open(self.site.path().join("tmp/paste")).unwrap();
        let mut configure = Command::new("setsid");
        configure.args(["--wait", "./comedor", "configure", "--yes"]);
        configure
            .current_dir(self.site.path().join("cgi"))
            .stdin(paste);
        configure.output().unwrap()
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

    /// Enables comedor with the values of the page. Returns those.
    #[track_caller]
    fn enable(&mut self) -> String {
        let values = self.values();
        self.site.write("cgi/comedor.conf", &values);
        self.serve(true);
        values
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

/// Replaces text that the file must have.
#[track_caller]
fn replace_in(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{from}");
    fs::write(file, text.replace(from, to)).unwrap();
}
