//! The rules of the script's folder hold for the program: under Apache, where no path goes around them, and elsewhere
//! as the guide says. What a site of Apache had enabled with version 1.0.0 goes on working.

use std::fs;

use crate::PAGES_OF_CADDY;
use crate::support::site::{CADDIES, Php, Settings, Site};
use crate::support::text_of;

const CGI: &str = "apache.conf.example";
const FASTCGI: &str = "examples/apache-fastcgi.conf.example";
const VERSION_1_0_0: &str = "tests/fixtures/version-1.0.0/apache.conf.example";

/// How Apache runs PHP and CGI programs
const KINDS: [(&str, Php, &str); 3] = [
    ("event", Php::Fpm, "cgid"),
    ("event", Php::FpmByProxyPassMatch, "cgid"),
    ("prefork", Php::Module, "cgi"),
];
/// A module in the place of that for CGI
const NO_CGI: &str = "headers";

const WITH_ACTIONS: &[&str] = &[
    "actions", "auth_basic", "authn_core", "authn_file", "authz_host", "authz_user", "dir",
];
const WITHOUT_ACTIONS: &[&str] = &[];

/// Who or what has answered a request without a session
#[derive(Debug, PartialEq)]
enum Answer {
    Comedor,
    Script,
    /// The server, with this status
    Server(u16),
}
use Answer::{Comedor, Script, Server};

impl Site {
    /// A site with a copy of the application in each of these folders, beside that in its document root.
    fn with_applications(folders: &[&str]) -> Site {
        let site = Site::new();
        for folder in folders {
            let api = site.path().join(folder).join("api");
            fs::create_dir_all(&api).unwrap();
            for name in ["comedor.php", "other.php"] {
                let script = site.path().join("docroot/api/comedor.php");
                fs::copy(script, api.join(name)).unwrap();
            }
        }
        site
    }

    /// Starts Apache with this example and these lines, in which FOLDER and PORT are the site's.
    fn start_with(&mut self, example: &str, (mpm, php, cgi): (&str, Php, &str), lines: &str) {
        let example = self.fill(example, Settings::File);
        self.start_with_text(&example, (mpm, php, cgi), lines);
    }

    fn start_with_text(&mut self, example: &str, (mpm, php, cgi): (&str, Php, &str), lines: &str) {
        let folder = self.path().display().to_string();
        let lines = lines.replace("FOLDER", &folder);
        let lines = lines.replace("PORT", &self.port.to_string());
        if example.contains("comedor.sock") {
            self.start_responder();
        }
        self.start_apache(mpm, php, cgi, &format!("{example}\n{lines}"));
    }

    #[track_caller]
    fn answer(&self, arguments: &[&str], path: &str) -> Answer {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let (status, body) = self.curl(&[&["--path-as-is"], arguments, &[&url]].concat());
        assert!(!body.contains("<?php"), "{path}: the source of the script");
        assert!(!body.contains("\u{7f}ELF"), "{path}: the program");
        if body.contains("OLD PHP SCRIPT") {
            Script
        } else if body.contains("INVALID_SESSION") {
            Comedor
        } else {
            Server(status)
        }
    }
}

/// Each way to write a rule, and how a request without a password and from another address is answered
const RULES: [(&str, &str, Answer); 5] = [
    (
        "docroot/address",
        "<Directory \"FOLDER/docroot/address\">\nRequire ip 192.0.2.0/24\n</Directory>",
        Server(403),
    ),
    (
        "docroot/location",
        "<Location \"/location\">\nRequire ip 192.0.2.0/24\n</Location>",
        Server(403),
    ),
    (
        "docroot/password",
        "<Directory \"FOLDER/docroot/password\">\nAuthType Basic\nAuthName x\nAuthUserFile FOLDER/passwords\n\
         Require valid-user\n</Directory>",
        Server(401),
    ),
    (
        "alias",
        "Alias \"/alias\" \"FOLDER/alias\"\n<Directory \"FOLDER/alias\">\nRequire all denied\n</Directory>",
        Server(403),
    ),
    ("docroot/open", "", Comedor),
];
/// The same in `.htaccess` files
const HTACCESS: [(&str, &str, Answer); 4] = [
    ("docroot/ht/address", "Require ip 192.0.2.0/24", Server(403)),
    (
        "docroot/ht/password",
        "AuthType Basic\nAuthName x\nAuthUserFile FOLDER/passwords\nRequire valid-user",
        Server(401),
    ),
    (
        "docroot/ht/rewrite",
        "RewriteEngine On\nRewriteRule ^ - [F]",
        Server(403),
    ),
    (
        "docroot/ht/api_only",
        "<Files \"comedor.php\">\nRequire all denied\n</Files>\n<Files \"other.php\">\nRequire all denied\n</Files>",
        Server(403),
    ),
];

/// The user `profe` with the password `clave`
const PASSWORDS: &str = "profe:{SHA}iSe9dI8mpyWKAeMYp+HnWFRYoig=\n";

fn site_with_rules(example: &str, kind: (&str, Php, &str)) -> Site {
    let cases = || RULES.iter().chain(&HTACCESS);
    let folders: Vec<&str> = cases().map(|(folder, ..)| *folder).collect();
    let mut site = Site::with_applications(&folders);
    site.modules = WITH_ACTIONS;
    site.write("passwords", PASSWORDS);
    let root = site.path().display().to_string();
    for (folder, rule, _) in HTACCESS {
        let path = format!("{folder}/.htaccess");
        site.write(&path, &rule.replace("FOLDER", &root));
    }
    let lines: Vec<&str> = RULES.iter().map(|(_, lines, _)| *lines).collect();
    site.start_with(example, kind, &lines.join("\n"));
    site
}

#[test]
fn rules_of_the_folder_hold_under_apache_by_cgi_and_by_fastcgi() {
    for example in [CGI, FASTCGI] {
        for kind in KINDS {
            let site = site_with_rules(example, kind);
            for (folder, _, expected) in RULES.iter().chain(&HTACCESS) {
                let path = folder.trim_start_matches("docroot");
                let path = format!("/{}/api/", path.trim_start_matches('/'));
                let answer = |arguments: &[&str], rest: &str| {
                    site.answer(arguments, &format!("{path}{rest}"))
                };
                for rest in ["comedor.php", "comedor.php/x", "comedor.php?action=x"] {
                    let found = answer(&[], rest);
                    assert_eq!(found, *expected, "{example} {} {path}{rest}", kind.0);
                }
                // As for the other scripts of the folder.
                if !(kind.1 == Php::FpmByProxyPassMatch) && *expected != Comedor {
                    assert_eq!(answer(&[], "other.php"), *expected, "{path}");
                }
                if *expected == Server(401) {
                    for (login, expected) in [("profe:clave", Comedor), ("profe:otra", Server(401))]
                    {
                        assert_eq!(answer(&["-u", login], "comedor.php"), expected, "{path}");
                    }
                }
            }
        }
    }
}

/// Spellings of the path of the script in the folder `FOLDER`
const SPELLINGS: [&str; 35] = [
    "/FOLDER/api/comedor.php",
    "/FOLDER/api/comedor.php?",
    "/FOLDER/api/comedor.php?x=/api/comedor.php",
    "/FOLDER/api/comedor.php/",
    "/FOLDER/api/comedor.php//",
    "/FOLDER/api/comedor.php/x",
    "/FOLDER/api/comedor.php/x.php",
    "/FOLDER/api/comedor.php/../comedor.php",
    "/FOLDER/api/comedor.php/api/comedor.php",
    "/FOLDER/api/comedor.php/.comedor/x",
    "/FOLDER/api/comedor.php%2Fx",
    "/FOLDER/api/comedor.php%00",
    "/FOLDER/api/comedor.php%0A",
    "/FOLDER/api/comedor.php%20",
    "/FOLDER/api/comedor.php.",
    "/FOLDER/api/comedor.php;x",
    "/FOLDER/api/comedor.php%3F",
    "/FOLDER/api/comedor.php%23",
    "/FOLDER/api/comedor.ph%70",
    "/FOLDER/api/comedor%2Ephp",
    "/FOLDER/api/comedor%252Ephp",
    "/FOLDER/api%2Fcomedor.php",
    "/FOLDER/%61pi/comedor.php",
    "/FOLDER/API/comedor.php",
    "/FOLDER/api/COMEDOR.PHP",
    "/FOLDER/api/./comedor.php",
    "/FOLDER/api//comedor.php",
    "/FOLDER//api/comedor.php",
    "//FOLDER/api/comedor.php",
    "/FOLDER/x/../api/comedor.php",
    "/FOLDER/api/x/../comedor.php",
    "/x/../FOLDER/api/comedor.php",
    "/%2e/FOLDER/api/comedor.php",
    "/x/%2e%2e/FOLDER/api/comedor.php",
    "/FOLDER/api/other.php",
];

/// The same at the address that Action redirects to. By FastCGI it is a folder like others.
const OF_ACTION: [&str; 7] = [
    "/.comedor/FOLDER/api/comedor.php",
    "/.comedor/x/../../FOLDER/api/comedor.php",
    "/%2Ecomedor/FOLDER/api/comedor.php",
    "//.comedor/FOLDER/api/comedor.php",
    "/.comedor/.comedor/FOLDER/api/comedor.php",
    "/x/.comedor/../../FOLDER/api/comedor.php",
    "/.comedor/../.comedor/FOLDER/api/comedor.php",
];

#[test]
fn no_spelling_of_the_path_goes_around_a_rule_or_shows_the_program_or_the_script() {
    for example in [CGI, FASTCGI] {
        for kind in KINDS {
            let site = site_with_rules(example, kind);
            let answer =
                |folder, spelling: &str| site.answer(&[], &spelling.replace("FOLDER", folder));
            assert_eq!(answer("open", SPELLINGS[0]), Comedor);
            assert_eq!(answer("open", SPELLINGS[6]), Comedor);
            let of_action: &[&str] = if example == CGI { &OF_ACTION } else { &[] };
            for spelling in SPELLINGS.iter().chain(of_action) {
                answer("open", spelling);
                // PHP-FPM itself runs the other script.
                if spelling.contains("other.php") && kind.1 == Php::FpmByProxyPassMatch {
                    continue;
                }
                for folder in ["address", "ht/address", "ht/rewrite", "alias"] {
                    let found = answer(folder, spelling);
                    assert!(
                        matches!(found, Server(400..=404)),
                        "{example} {} {folder} {spelling}: {found:?}",
                        kind.0
                    );
                }
            }
        }
    }
}

/// A site of its own at `HOST`
const OTHER_SITE: &str = "
    <VirtualHost *:PORT>
        ServerName default.example
    </VirtualHost>
    <VirtualHost *:PORT>
        ServerName other.example
        LINES
    </VirtualHost>";

/// Lines of a site, and requests to it with who answers
const SITES: [(&str, &[(&str, Answer)]); 10] = [
    // The first rule is that of docs/troubleshooting.md.
    (
        "RewriteEngine On\nRewriteRule /api/comedor\\.php(/|$) - [PT,L]\n\
         RewriteCond %{DOCUMENT_ROOT}%{REQUEST_URI} !-f\nRewriteRule ^ /open/api/other.php [L]",
        &[
            ("/open/api/comedor.php", Comedor),
            ("/open/api/comedor.php/x", Comedor),
        ],
    ),
    (
        "<Directory \"FOLDER/docroot\">\nRewriteEngine On\nRewriteRule ^es/(.*)$ /$1\n</Directory>",
        &[
            ("/es/open/api/comedor.php", Comedor),
            ("/es/open/api/comedor.php/x", Comedor),
            ("/es/cgi-bin/comedor", Server(403)),
            ("/es/.comedor/open/api/comedor.php", Server(403)),
        ],
    ),
    (
        "RewriteEngine On\nRewriteRule ^/es/(.*)$ /$1 [PT]",
        &[
            ("/es/open/api/comedor.php", Comedor),
            ("/es/cgi-bin/comedor", Server(403)),
            ("/es/.comedor/open/api/comedor.php", Server(404)),
        ],
    ),
    (
        "<Directory \"FOLDER/docroot\">\nFallbackResource /open/api/comedor.php\n</Directory>",
        &[("/nothing", Comedor), ("/open/api/comedor.php", Comedor)],
    ),
    (
        "<Directory \"FOLDER/docroot\">\nFallbackResource /cgi-bin/comedor\n</Directory>",
        &[
            ("/nothing", Server(403)),
            ("/open/api/comedor.php", Comedor),
        ],
    ),
    (
        "ErrorDocument 404 /open/api/comedor.php\nErrorDocument 403 /cgi-bin/comedor",
        &[
            ("/nothing", Comedor),
            ("/address/api/comedor.php", Server(403)),
            ("/.comedor/open/api/comedor.php", Server(403)),
        ],
    ),
    (
        "ErrorDocument 403 /.comedor/open/api/comedor.php\nErrorDocument 404 /.comedor/open/api/comedor.php",
        &[
            ("/nothing", Server(404)),
            ("/address/api/comedor.php", Server(403)),
        ],
    ),
    (
        "<Location \"/\">\nRequire all granted\n</Location>",
        &[
            ("/open/api/comedor.php", Comedor),
            ("/cgi-bin/comedor", Server(403)),
            ("/.comedor/open/api/comedor.php", Server(403)),
        ],
    ),
    (
        "<Location \"/\">\nRequire all denied\n</Location>\n<Location \"/open\">\nRequire all granted\n</Location>",
        &[
            ("/open/api/comedor.php", Comedor),
            ("/alias/api/comedor.php", Server(403)),
        ],
    ),
    (
        "Alias \"/\" \"FOLDER/docroot/\"",
        &[
            ("/open/api/comedor.php", Comedor),
            ("/ht/address/api/comedor.php", Server(403)),
            ("/cgi-bin/comedor", Server(403)),
        ],
    ),
];

#[test]
fn rewrites_error_pages_fallbacks_and_locations_of_a_site_neither_stop_the_program_nor_open_it() {
    for kind in KINDS {
        for (lines, requests) in &SITES {
            let folders = ["docroot/open", "docroot/address", "docroot/ht/address"];
            let mut site = Site::with_applications(&folders);
            site.modules = WITH_ACTIONS;
            site.write("docroot/ht/address/.htaccess", HTACCESS[0].1);
            let (_, address, _) = RULES[0];
            let all = format!(
                "{address}\nScriptAlias \"/cgi-bin/\" \"FOLDER/cgi/\"\n{}",
                OTHER_SITE.replace("LINES", lines)
            );
            site.start_with(CGI, kind, &all);
            for (path, expected) in *requests {
                let found = site.answer(&["-H", "Host: other.example"], path);
                assert_eq!(found, *expected, "{} {lines} {path}", kind.0);
            }
        }
    }
}

/// An unknown origin is allowed where this is set.
const SETTING: &str = "SetEnv COMEDOR_TRUSTED_ORIGINS https://menus.example";

#[test]
fn settings_by_setenv_in_a_site_location_folder_or_htaccess_arrive_and_the_innermost_counts() {
    for kind in KINDS {
        let folders = [
            "docroot/location", "docroot/folder", "docroot/ht", "docroot/none",
        ];
        let mut site = Site::with_applications(&folders);
        site.write("docroot/ht/.htaccess", SETTING);
        let lines = format!(
            "<Location \"/location\">\n{SETTING}\n</Location>
            <Directory \"FOLDER/docroot/folder\">\n{SETTING}\n</Directory>
            <VirtualHost *:PORT>\nServerName default.example\n</VirtualHost>
            <VirtualHost *:PORT>\nServerName site.example\n{SETTING}\n</VirtualHost>
            <VirtualHost *:PORT>
                ServerName inner.example
                SetEnv COMEDOR_TRUSTED_ORIGINS invalid
            </VirtualHost>"
        );
        site.start_with(CGI, kind, &lines);
        for (host, folder, status, is_set) in [
            ("default.example", "location", 400, true),
            ("default.example", "folder", 400, true),
            ("default.example", "ht", 400, true),
            ("default.example", "none", 400, false),
            ("site.example", "none", 400, true),
            ("inner.example", "location", 400, true),
            ("inner.example", "folder", 400, true),
            ("inner.example", "none", 500, false),
        ] {
            let host = format!("Host: {host}");
            let url = site.url(&format!("{folder}/api/comedor.php"));
            let (found, answer) = site.curl(&["-i", "-H", &host, &url]);
            assert_eq!(found, status, "{} {host} {folder} {answer}", kind.0);
            let has_header = answer.contains("Vary: Origin");
            assert_eq!(has_header, is_set, "{} {host} {folder} {answer}", kind.0);
        }
    }
}

#[test]
fn a_save_of_1_mib_by_http_2_arrives_through_the_action() {
    let mut site = Site::new();
    site.modules = &["actions", "http2"];
    site.start_with(CGI, KINDS[0], "Protocols h2c http/1.1");
    let jar = site.path().join("cookies");
    site.curl(&["-c", jar.to_str().unwrap(), &site.url("login.php")]);
    let body = r#"{"date":"2026-03-04","menu_type":"basal","plates":{"primero":{"name":"x"}}}"#;
    let padding = " ".repeat(1024 * 1024 - body.len());
    site.write("tmp/body", &format!("{body}{padding}"));
    let file = format!("@{}/tmp/body", site.path().display());
    let save = site.api("action=save_menu&aulario=aula1");
    let json = "Content-Type: application/json";
    let (status, answer) = site.curl(&[
        "--http2-prior-knowledge", "-i", "-H", json, "--data-binary", &file, &save,
    ]);
    assert_eq!(status, 200, "{answer}");
    assert!(answer.starts_with("HTTP/2 200"), "{answer}");
    assert_eq!(site.plates("aula1", "2026-03-04")["primero"]["name"], "x");
}

#[test]
fn without_cgi_the_script_answers_and_nothing_is_a_download() {
    for (mpm, php, _) in KINDS {
        for modules in [WITH_ACTIONS, WITHOUT_ACTIONS] {
            let mut site = Site::with_applications(&["docroot/open"]);
            site.modules = modules;
            let lines = "ScriptAlias \"/cgi-bin/\" \"FOLDER/cgi/\"";
            site.start_with(CGI, (mpm, php, NO_CGI), lines);
            assert_eq!(site.answer(&[], "/open/api/comedor.php"), Script);
            assert_eq!(site.answer(&[], "/open/api/comedor.php/x"), Script);
            for path in ["/cgi-bin/comedor", "/.comedor/open/api/comedor.php"] {
                let found = site.answer(&[], path);
                assert!(matches!(found, Server(403 | 404)), "{path} {found:?}");
            }
        }
    }
}

/// The states of a server after the upgrade of the package
#[test]
fn what_version_1_0_0_had_enabled_goes_on_working_after_an_upgrade() {
    for (file, modules) in [
        (CGI, WITHOUT_ACTIONS),
        (CGI, WITH_ACTIONS),
        // dpkg keeps a file that was edited.
        (VERSION_1_0_0, WITHOUT_ACTIONS),
        (VERSION_1_0_0, WITH_ACTIONS),
    ] {
        for kind in KINDS {
            for is_in_one_site in [false, true] {
                // The ProxyPassMatch of these tests is outside of the sites, before the file.
                if is_in_one_site && kind.1 == Php::FpmByProxyPassMatch {
                    continue;
                }
                let folders = ["docroot/open", "docroot/removed"];
                let mut site = Site::with_applications(&folders);
                site.modules = modules;
                fs::remove_dir_all(site.path().join("docroot/removed")).unwrap();
                let example = site.fill(file, Settings::File);
                let (all, one) = if is_in_one_site {
                    ("", &*example)
                } else {
                    (&*example, "")
                };
                let sites = format!(
                    "<VirtualHost *:PORT>\nServerName school.example\n{one}\n</VirtualHost>
                    <VirtualHost *:PORT>\nServerName other.example\n</VirtualHost>"
                );
                site.start_with_text(all, kind, &sites);
                let answer = |host, path| site.answer(&["-H", host], path);
                let case = format!("{file} {modules:?} {} {is_in_one_site}", kind.0);
                for path in [
                    "/open/api/comedor.php", "/open/api/comedor.php/x", "/removed/api/comedor.php",
                ] {
                    let found = answer("Host: school.example", path);
                    assert_eq!(found, Comedor, "{case} {path}");
                }
                let expected = if is_in_one_site { Script } else { Comedor };
                let found = answer("Host: other.example", "/open/api/comedor.php");
                assert_eq!(found, expected, "{case}");
            }
        }
    }
}

/// The password of `PASSWORDS`, as Caddy wants it
const BCRYPT: &str = "$2y$05$kRU4kfMQjFLzrkivsTehs.hEsoZLz5VBFtdFvTRrrOYZRPazLwu.G";
const ONLY_OTHERS: &str = "allow 192.0.2.0/24; deny all;";

#[track_caller]
fn assert_rule_holds(site: &Site, case: &str, expected: &Answer) {
    for path in [
        "/entreaulas/api/comedor.php", "/entreaulas/api/comedor.php/x",
        "/entreaulas//api/./comedor%2Ephp",
    ] {
        assert_eq!(site.answer(&[], path), *expected, "{case} {path}");
    }
    if *expected == Server(401) {
        for (login, expected) in [("profe:clave", Comedor), ("profe:otra", Server(401))] {
            let path = "/entreaulas/api/comedor.php";
            assert_eq!(site.answer(&["-u", login], path), expected, "{case}");
        }
    }
}

#[test]
fn rules_of_a_server_or_location_of_nginx_hold_if_the_include_is_inside() {
    let password = "auth_basic x; auth_basic_user_file FOLDER/passwords;";
    for (lines, expected) in [
        (format!("{ONLY_OTHERS} INCLUDE"), Server(403)),
        (
            format!("location /entreaulas/ {{ {ONLY_OTHERS} INCLUDE }}"),
            Server(403),
        ),
        (
            format!("location ^~ /entreaulas/ {{ {ONLY_OTHERS} INCLUDE }}"),
            Server(403),
        ),
        (
            format!("location /entreaulas/ {{ {password} INCLUDE }}"),
            Server(401),
        ),
        (
            format!(
                "location /entreaulas/api/ {{ alias FOLDER/docroot/entreaulas/api/; {password} INCLUDE }}"
            ),
            Server(401),
        ),
    ] {
        let mut site = Site::with_applications(&["docroot/entreaulas"]);
        site.write("passwords", PASSWORDS);
        let folder = site.path().display().to_string();
        let example = site.fill("examples/nginx.conf.example", Settings::File);
        let lines = lines
            .replace("INCLUDE", &example)
            .replace("FOLDER", &folder);
        site.start_responder();
        // The rules of `server` are not for the page that tells whether it has started.
        let login = "location = /login.php { allow all; return 200; }";
        site.start_nginx("", &format!("{login}\n{lines}"));
        assert_rule_holds(&site, &lines, &expected);
    }
}

#[test]
fn rules_of_lighttpd_that_name_the_path_hold() {
    let modules = "server.modules += ( \"mod_access\", \"mod_auth\", \"mod_authn_file\" )";
    for example in [crate::LIGHTTPD, crate::LIGHTTPD_FASTCGI] {
        for (lines, expected) in [
            (
                "$HTTP[\"url\"] =~ \"^/entreaulas/\" { url.access-deny = ( \"\" ) }",
                Server(403),
            ),
            (
                "$HTTP[\"remoteip\"] != \"192.0.2.0/24\" { $HTTP[\"url\"] =~ \"^/entreaulas/\" {\n\
                 url.access-deny = ( \"\" ) } }",
                Server(403),
            ),
            (
                "auth.backend = \"htpasswd\"\nauth.backend.htpasswd.userfile = \"FOLDER/passwords\"\n\
                 auth.require = ( \"/entreaulas/\" => ( \"method\" => \"basic\", \"realm\" => \"x\",\n\
                 \"require\" => \"valid-user\" ) )",
                Server(401),
            ),
        ] {
            let mut site = Site::with_applications(&["docroot/entreaulas"]);
            site.write("passwords", PASSWORDS);
            let folder = site.path().display().to_string();
            let shipped = site.fill(example, Settings::File);
            let lines = lines.replace("FOLDER", &folder);
            site.start_lighttpd("enable", &format!("{modules}\n{lines}\n{shipped}"));
            assert_rule_holds(&site, &format!("{example} {lines}"), &expected);
        }
    }
}

#[test]
fn a_password_of_a_site_of_caddy_holds_and_in_a_route_also_what_is_before_the_import() {
    for program in CADDIES {
        let route = format!(
            "route {{
                @outside {{
                    path /entreaulas/*
                    not remote_ip 192.0.2.0/24
                }}
                respond @outside 403
                {PAGES_OF_CADDY}
            }}"
        );
        let password = format!("{PAGES_OF_CADDY}\nbasicauth /entreaulas/* {{\nprofe {BCRYPT}\n}}");
        for (lines, expected) in [(password, Server(401)), (route, Server(403))] {
            let mut site = Site::with_applications(&["docroot/entreaulas"]);
            let address = format!("http://127.0.0.1:{}", site.port);
            site.start_caddy(program, &address, &lines, "");
            assert_rule_holds(&site, &format!("{program} {lines}"), &expected);
        }
    }
}

#[test]
fn lines_of_the_guide_for_caddy_admit_only_the_addresses_that_they_name() {
    let guide = text_of("docs/install.md");
    let (_, lines) = guide.split_once("```caddyfile\n").unwrap();
    let (lines, _) = lines.split_once("```").unwrap();
    let first = "handle @comedor {\n";
    for program in CADDIES {
        for (address, expected) in [("192.168.1.0/24", Server(403)), ("127.0.0.0/8", Comedor)] {
            let mut site = Site::with_applications(&["docroot/entreaulas"]);
            let example = text_of("examples/Caddyfile.example");
            assert!(example.contains(first) && lines.contains("192.168.1.0/24"));
            let lines = lines.replace("192.168.1.0/24", address);
            let examples = site.path().join("examples");
            fs::create_dir(&examples).unwrap();
            let example = example.replace(first, &format!("{first}{lines}"));
            fs::write(examples.join("Caddyfile.example"), example).unwrap();
            site.examples = Some(examples);
            let url = format!("http://127.0.0.1:{}", site.port);
            site.start_caddy(program, &url, PAGES_OF_CADDY, "");
            assert_rule_holds(&site, address, &expected);
        }
    }
}
