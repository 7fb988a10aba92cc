//! The program under real web servers together with a PHP frontend, as a browser, the application and
//! an administrator see it. Needs root, the web servers and PHP: `cargo test --test servers`.
#![allow(
    clippy::too_many_lines,
    reason = "a test is one table, or one sequence of steps"
)]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

mod beside;
mod browser;
mod chromium;
mod clients;
mod error_pages;
mod kept;
mod openapi;
mod pages;
mod paths;
mod pictures;
mod place;
mod restarts;
mod routing;
mod rules;
mod screen;
mod setup_page;
#[path = "../support/mod.rs"]
mod support;

use support::site::{
    CADDIES, NOBODY, Php, Settings, Site, apache, apache_with_fastcgi, files_in, htaccess,
    lighttpd, module, nginx_with_fastcgi, nginx_with_fcgiwrap, wait_until,
};

use support::{children, chmod, files_below, json, output};

const DATE: &str = "2026-03-04";

const LIGHTTPD: &str = "examples/lighttpd.conf.example";
const LIGHTTPD_FASTCGI: &str = "examples/lighttpd-fastcgi.conf.example";
/// The application under Caddy, as the example says
const PAGES_OF_CADDY: &str = "import comedor.caddyfile\n php_fastcgi unix/fpm.sock";

/// A test for each server: everything works, and this check of the site succeeds.
macro_rules! servers {
    ($($name:ident: $site:expr $(=> $check:expr)?;)*) => {$(
        #[test]
        fn $name() {
            let site = $site;
            site.exercise();
            $($check(&site);)?
        }
    )*};
}

servers! {
    apache_prefork_with_mod_php_and_mod_cgi:
        apache("prefork", Php::Module, "cgi", Settings::Server);
    apache_prefork_with_mod_php_and_mod_cgid:
        apache("prefork", Php::Module, "cgid", Settings::File);
    apache_prefork_with_php_fpm_and_mod_cgi: apache("prefork", Php::Fpm, "cgi", Settings::File);
    apache_event_with_php_fpm_and_mod_cgid: apache("event", Php::Fpm, "cgid", Settings::Server);
    apache_event_with_php_fpm_and_mod_cgi: apache("event", Php::Fpm, "cgi", Settings::File);
    apache_event_with_php_fpm_by_proxy_pass_match:
        apache("event", Php::FpmByProxyPassMatch, "cgid", Settings::File);
    apache_event_with_php_fpm_by_proxy_pass_match_and_fastcgi:
        apache_with_fastcgi("event", Php::FpmByProxyPassMatch);
    apache_prefork_with_htaccess_only: htaccess("prefork", Php::Module, "cgi", Settings::File);
    apache_event_with_htaccess_only: htaccess("event", Php::Fpm, "cgid", Settings::Server);
    lighttpd_with_php_cgi_that_checks_for_files: lighttpd(LIGHTTPD, "enable", Settings::File);
    lighttpd_with_php_cgi_that_does_not_check_for_files_and_fastcgi:
        lighttpd(LIGHTTPD_FASTCGI, "disable", Settings::Server);
    nginx_with_php_fpm_and_fcgiwrap_and_server_settings: nginx_with_fcgiwrap(Settings::Server);
    nginx_with_php_fpm_and_fcgiwrap: nginx_with_fcgiwrap(Settings::File);
    // lighttpd without systemd would lose what the program writes to standard error.
    lighttpd_with_php_cgi_that_does_not_check_for_files_and_the_breakagelog_of_the_example:
        lighttpd(LIGHTTPD, "disable", Settings::Server)
            => |site: &Site| site.logs_errors_in("breakage.log");
    lighttpd_with_php_cgi_that_checks_for_files_and_fastcgi:
        lighttpd(LIGHTTPD_FASTCGI, "enable", Settings::File)
            => |site: &Site| site.logs_errors_in("error.log");
    nginx_with_php_fpm_and_fastcgi: nginx_with_fastcgi() => Site::with_a_socket;
    apache_prefork_with_mod_php_and_fastcgi:
        apache_with_fastcgi("prefork", Php::Module) => Site::with_a_socket;
    apache_event_with_php_fpm_and_fastcgi:
        apache_with_fastcgi("event", Php::Fpm) => Site::with_a_socket;
}

#[test]
fn apache_with_suexec_writes_all_files_as_the_user_of_the_site() {
    for (mpm, cgi) in [("prefork", "cgi"), ("event", "cgid")] {
        // suEXEC only runs programs below this folder.
        let mut site = Site::new_in(Path::new("/var/www"));
        site.user = NOBODY;
        let suexec = format!("{}SuexecUserGroup #{NOBODY} #{NOBODY}\n", module("suexec"));
        let example = site.fill("apache.conf.example", Settings::File);
        site.start_apache(mpm, Php::Fpm, cgi, &(suexec + &example));
        site.exercise();
        let data = site.path().join("data");
        assert_eq!(
            files_below(&data, &["!", "-uid", &NOBODY.to_string()]),
            [""; 0]
        );
    }
}

#[test]
fn apache_as_process_1_of_a_container_reaps_all_processes() {
    for (mpm, cgi) in [("prefork", "cgi"), ("event", "cgid")] {
        let mut site = Site::new();
        site.is_container = true;
        let example = site.fill("apache.conf.example", Settings::File);
        site.start_apache(mpm, Php::Fpm, cgi, &example);
        site.exercise();
        let [apache] = <[Pid; 1]>::try_from(children(site.server_process())).unwrap();
        let is_program = |child: &Pid| name(*child).contains("comedor");
        wait_until("no process of comedor", || {
            !children(apache).iter().any(is_program)
        });
    }
}

/// The name of a process; empty if it has ended.
fn name(process: Pid) -> String {
    fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default()
}

#[test]
fn lighttpd_starts_the_program_again_after_it_was_stopped() {
    let site = lighttpd(LIGHTTPD_FASTCGI, "enable", Settings::File);
    site.answers();
    let mut programs = children(site.server_process());
    programs.retain(|child| name(*child) == "comedor\n");
    let [program] = <[Pid; 1]>::try_from(programs).unwrap();
    kill_process(program, Signal::TERM).unwrap();
    let read = site.api("action=get_menu_types&aulario=aula1");
    wait_until("the program", || site.curl(&[&read]).0 == 400);
    assert_ne!(name(program), "comedor\n");
}

/// This Caddy with these lines in its site.
fn caddy(program: &str, lines: &str) -> Site {
    let mut site = Site::new();
    site.start_caddy(
        program,
        &format!("http://127.0.0.1:{}", site.port),
        lines,
        "",
    );
    site
}

#[test]
fn caddy_with_php_fpm_also_in_a_route_and_a_socket_of_the_program() {
    for program in CADDIES {
        let site = caddy(program, PAGES_OF_CADDY);
        site.exercise();
        site.stop_responder();
        let read = site.api("action=get_menu_types&aulario=aula1");
        assert_eq!(site.curl(&[&read]).0, 502);
        site.start_responder_with_a_path();
        site.answers();
        // There the order of the lines counts.
        caddy(program, &format!("route {{\n {PAGES_OF_CADDY}\n }}")).answers();
    }
}

#[test]
fn caddy_runs_the_script_by_no_path_with_a_backslash() {
    for program in CADDIES {
        let site = caddy(program, PAGES_OF_CADDY);
        for path in [
            "api/comedor%5c.php",
            "api/comedor%5C.php?action=get_menu_types&aulario=aula1",
            "api/%5ccomedor.php",
            "api%5c/comedor.php",
            "api/com%5c%5cedor.php/x",
        ] {
            for method in ["GET", "POST"] {
                let (status, answer) = site.curl(&["-X", method, &site.url(path)]);
                assert_eq!((status, &*answer), (404, ""), "{program} {method} {path}");
            }
        }
    }
}

impl Site {
    /// The program answers a request without a session.
    #[track_caller]
    fn answers(&self) {
        let (status, answer) = self.curl(&[&self.api("action=get_menu_types&aulario=aula1")]);
        assert!(
            status == 400 && answer.contains("INVALID_SESSION"),
            "{status} {answer}"
        );
    }

    /// Everything that must work under each server.
    fn exercise(&self) {
        let jar = self.path().join("cookies");
        self.curl(&["-c", jar.to_str().unwrap(), &self.url("login.php")]);
        self.actions();
        self.requests();
        self.concurrent_clients();

        self.curl(&[&self.url("logout.php")]);
        self.answers();

        let logs = output(
            Command::new("cat").args(files_in(&self.path().join("log"))),
            "coreutils",
        );
        let logs = String::from_utf8_lossy(&logs);
        assert!(
            !logs.contains("comedor: "),
            "client errors must not be logged: {logs}"
        );
    }

    /// Reads and writes, as JSON and as a form, succeed, and PHP sees their effect.
    fn actions(&self) {
        let types = self.call("get_menu_types", None);
        assert_eq!(types["menu_types"][0]["id"], "basal");
        self.save(DATE, "primero", "Lentejas/ñ");
        self.save_by_php(DATE, "postre");
        let menu = self.call(&format!("get_menu&date={DATE}"), None);
        assert_eq!(menu["menu"]["plates"]["primero"]["name"], "Lentejas/ñ");
        let saved = json!({"name": "PHP", "pictogram": "fruta.png"});
        assert_eq!(menu["menu"]["plates"]["postre"], saved);
        let (status, page) = self.curl(&[&self.url(&format!("day.php?date={DATE}"))]);
        assert!(status == 200 && page.contains("Lentejas\\/ñ"), "{page}");

        let delete = self.api("action=delete_menu_type&aulario=aula1");
        let (status, answer) = self.curl(&["-F", "id=alergias", &delete]);
        assert_eq!(status, 200, "form-data: {answer}");
        assert_eq!(
            self.call("get_menu_types", None)["menu_types"]
                .as_array()
                .unwrap()
                .len(),
            2
        );
    }

    fn settings(&self) -> PathBuf {
        let beside = self.path().join("docroot/api/comedor.conf");
        if beside.exists() {
            beside
        } else {
            self.path().join("cgi/comedor.conf")
        }
    }

    fn trust(&self, origins: &[String]) {
        let mut settings = File::options().append(true).open(self.settings()).unwrap();
        writeln!(settings, "COMEDOR_TRUSTED_ORIGINS={}", origins.join(",")).unwrap();
    }

    /// Waits until a FastCGI process has read changed settings.
    #[track_caller]
    fn wait_for(&self, expected: &str) {
        let url = self.api("action=get_menu_types&aulario=aula1");
        wait_until(expected, || self.curl(&["-i", &url]).1.contains(expected));
    }

    /// Saves the name of a plate with the frontend's PHP page.
    #[track_caller]
    fn save_by_php(&self, date: &str, plate: &str) {
        let url = self.url(&format!("day.php?date={date}"));
        let fields = format!("plate={plate}&name=PHP");
        assert_eq!(self.curl(&["-d", &fields, &url]).0, 200);
    }

    /// Bodies, queries, methods and headers arrive as the client or the program sent them.
    fn requests(&self) {
        self.trust(&["https://menus.example".to_owned()]);
        self.wait_for("Vary: Origin");
        let read = self.api("action=get_menu_types&aulario=aula1");
        let save = self.api("action=save_menu&aulario=aula1");
        let json = "Content-Type: application/json";
        let file = |size| {
            let path = self.path().join(format!("tmp/{size}"));
            fs::write(&path, " ".repeat(size)).unwrap();
            format!("@{}", path.display())
        };
        let (big, huge) = (file(1024 * 1024 + 1), file(3_000_000));
        let body = format!(
            r#"{{"date":"{DATE}","menu_type":"basal","plates":{{"primero":{{"name":"Trozos"}}}}}}"#
        );
        let own = format!("Origin: http://127.0.0.1:{}", self.port);
        let of_path = |path: &str| read.replace("comedor.php?", &format!("comedor.php/{path}?"));
        let path_info = of_path("extra");
        let preflight = [
            "-iX", "OPTIONS", "-H", "Origin: https://menus.example", "-H",
            "Access-Control-Request-Method: POST", &save,
        ];
        let (help, only_help) = (format!("{read}&--help"), self.api("--help"));
        let cases: &[(u16, &str, &[&str])] = &[
            (
                200,
                "Trozos",
                &[
                    "-H", "Transfer-Encoding: chunked", "-H", json, "-d", &body, &save,
                ],
            ),
            (200, "Trozos", &["-H", &own, "-H", json, "-d", &body, &save]),
            (
                403,
                "FORBIDDEN",
                &[
                    "-H", "Origin: http://evil.example", "-H", json, "-d", &body, &save,
                ],
            ),
            (
                413,
                "TOO_LARGE",
                &["-H", json, "--data-binary", &big, &save],
            ),
            (
                413,
                "TOO_LARGE",
                &["-H", json, "-H", "Expect:", "--data-binary", &big, &save],
            ),
            // nginx itself rejects more than 2 MiB.
            (
                413,
                "",
                &["-H", json, "-H", "Expect:", "--data-binary", &huge, &save],
            ),
            (200, "menu_types", &[&help]),
            (400, "MISSING_PARAM", &[&only_help]),
            (200, "menu_types", &[&path_info]),
            (200, "menu_types", &[&of_path("get_menu_types")]),
            (400, "INVALID_ACTION", &[&of_path("get_menu")]),
            (400, "INVALID_ACTION", &[&of_path("get_menu/")]),
            (400, "INVALID_ACTION", &["-X", "DELETE", &read]),
            (400, "INVALID_ACTION", &[&save]),
            (403, "FORBIDDEN", &[&read.replace("aula1", "aula2")]),
            (200, "application/json", &["-I", &read]),
            (
                204,
                "Access-Control-Allow-Origin: https://menus.example",
                &preflight,
            ),
        ];
        for (status, pattern, arguments) in cases {
            let (found, answer) = self.curl(arguments);
            assert!(
                found == *status && answer.contains(pattern),
                "{arguments:?}: {found} {answer}"
            );
        }
        // An answer must arrive even if it was sent before the body was read. With an unread body,
        // mod_cgid and fcgiwrap lost one of five.
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..15 {
                        let rejected = ["-H", "Origin: http://evil.example", "-d", "{}", &save];
                        assert_eq!(self.curl(&rejected).0, 403);
                    }
                });
            }
        });
        if self.settings().ends_with("docroot/api/comedor.conf") {
            let copies = [
                "comedor.conf~", "comedor.conf.bak", ".comedor.conf.swp", "#comedor.conf#",
                "comedor.conf.txt",
            ];
            for name in copies {
                self.write(&format!("docroot/api/{name}"), "TZ=UTC\n");
            }
            for name in copies.into_iter().chain(["comedor.conf"]) {
                let path = format!("api/{}", name.replace('#', "%23"));
                let (status, answer) = self.curl(&[&self.url(&path)]);
                assert_eq!(status, 403, "{path} {answer}");
            }
        }
    }

    /// 160 requests of 8 clients. The program and the PHP page write different days concurrently and
    /// the same day in turn.
    fn concurrent_clients(&self) {
        let shared = "2026-05-31";
        thread::scope(|scope| {
            for client in 1..=8 {
                scope.spawn(move || {
                    let own = format!("2026-05-{client:02}");
                    for round in 0..5 {
                        self.save(shared, &format!("p{client}-{round}"), "CGI");
                        self.save(&own, &format!("c{round}"), "CGI");
                        self.save_by_php(&own, &format!("p{round}"));
                        let menu = self.call(&format!("get_menu&date={own}"), None);
                        assert_eq!(menu["menu"]["plates"][format!("p{round}")]["name"], "PHP");
                    }
                });
            }
        });
        let count = |date: &str| self.plates("aula1", date).as_object().unwrap().len();
        // Three plates are in every menu.
        assert_eq!(count(shared), 3 + 8 * 5);
        for client in 1..=8 {
            assert_eq!(count(&format!("2026-05-{client:02}")), 3 + 2 * 5);
        }
    }

    /// With a socket that stays open between the processes of the program: the cause of a 502 or 503 is
    /// in the server's log, as docs/troubleshooting.md quotes it; a request that comes while the program is
    /// not running is answered once it is.
    fn with_a_socket(&self) {
        self.logs_errors_in("error.log");
        // Kept connections need no socket.
        self.stop_responder();
        let [socket, moved] = ["comedor.sock", "moved.sock"].map(|name| self.path().join(name));
        let fails = |cause| {
            let (status, _) = self.curl(&[&self.api("action=get_menu_types&aulario=aula1")]);
            assert!([502, 503].contains(&status), "{status}");
            let log = fs::read_to_string(self.path().join("log/error.log")).unwrap();
            assert!(log.contains(cause), "{cause}: {log}");
        };
        fs::rename(&socket, &moved).unwrap();
        fails("No such file or directory");
        fs::rename(&moved, &socket).unwrap();
        chmod(&socket, 0o000);
        fails("Permission denied");
        chmod(&socket, 0o660);
        thread::scope(|scope| {
            scope.spawn(|| self.answers());
            self.start_responder();
        });
    }

    /// An error that an administrator can fix is a line in the server's log.
    #[track_caller]
    fn logs_errors_in(&self, log: &str) {
        let settings = self.settings();
        let valid = fs::read(&settings).unwrap();
        fs::write(&settings, "COMEDOR_UNKNOWN=1\n").unwrap();
        self.wait_for("INTERNAL_ERROR");
        let log = self.path().join("log").join(log);
        wait_until("the line in the log", || {
            fs::read_to_string(&log)
                .unwrap()
                .contains("comedor.conf: line 1: unknown setting")
        });
        fs::write(settings, valid).unwrap();
    }
}
