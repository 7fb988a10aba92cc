//! Whole sites of Apache: rewrites, HTTP/2, a missing module, an upgrade.

use super::folders::{HTACCESS, RULES};
use super::*;

const VERSION_1_0_0: &str = "tests/fixtures/version-1.0.0/apache.conf.example";

/// A module in the place of that for CGI
const NO_CGI: &str = "headers";

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
const SITES: [(&str, &[(&str, Answer)]); 12] = [
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
            ("/es/comedor-cgi/open/api/comedor.php", Server(403)),
        ],
    ),
    (
        "RewriteEngine On\nRewriteRule ^/es/(.*)$ /$1 [PT]",
        &[
            ("/es/open/api/comedor.php", Comedor),
            ("/es/cgi-bin/comedor", Server(403)),
            ("/es/comedor-cgi/open/api/comedor.php", Server(404)),
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
            ("/comedor-cgi/open/api/comedor.php", Server(403)),
        ],
    ),
    (
        "ErrorDocument 403 /comedor-cgi/open/api/comedor.php\nErrorDocument 404 /comedor-cgi/open/api/comedor.php",
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
            ("/comedor-cgi/open/api/comedor.php", Server(403)),
        ],
    ),
    (
        "<Location \"/\">\nRequire all denied\n</Location>\n<Location \"/open\">\nRequire all granted\n</Location>",
        &[
            ("/open/api/comedor.php", Comedor),
            ("/alias/api/comedor.php", Server(403)),
        ],
    ),
    // Rules that hide what begins with a dot, such as .git
    (
        "RedirectMatch 404 \"/\\.\"",
        &[
            ("/open/api/comedor.php", Comedor),
            ("/open/.git/config", Server(404)),
        ],
    ),
    (
        "RewriteEngine On\nRewriteRule \"(^|/)\\.\" - [F]",
        &[
            ("/open/api/comedor.php", Comedor),
            ("/open/.git/config", Server(403)),
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
            for path in ["/cgi-bin/comedor", "/comedor-cgi/open/api/comedor.php"] {
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
