//! In whose place the program answers: what each web server says of the script of a request, by the shipped
//! configurations and by those of version 1.0.0, which schools have enabled.

use std::fs;

use crate::support::site::{CADDIES, Php, Settings, Site};
use crate::support::{free_port, text_of};
use crate::{LIGHTTPD, LIGHTTPD_FASTCGI, PAGES_OF_CADDY};

const APACHE: &str = "apache.conf.example";
const APACHE_FASTCGI: &str = "examples/apache-fastcgi.conf.example";
const NGINX: &str = "examples/nginx.conf.example";
const FCGIWRAP: &str = "examples/nginx-fcgiwrap.conf.example";
const CADDYFILE: &str = "examples/Caddyfile.example";
const HTACCESS: &str = "examples/htaccess.example";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Version {
    Shipped,
    /// 1.0.0, as the package of that version has it
    Old,
}
use Version::{Old, Shipped};

/// What the web server says of the script.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Says {
    /// Its path, so that a request for another script is refused
    Path,
    /// Nothing, so that the program answers for every script, as version 1.0.0 did
    Nothing,
}
use Says::{Nothing, Path as PathOf};

/// A site whose program answers in the place of `docroot/api/comedor.php`, beside another application in `otra/`.
fn site(version: Version) -> Site {
    let mut site = Site::new();
    if version == Old {
        site.examples = Some("tests/fixtures/version-1.0.0".into());
    }
    let folder = site.path().display().to_string();
    fs::create_dir_all(site.path().join("docroot/otra/api")).unwrap();
    fs::copy(
        site.path().join("docroot/api/comedor.php"),
        site.path().join("docroot/otra/api/comedor.php"),
    )
    .unwrap();
    site.write(
        "cgi/comedor.conf",
        &format!(
            "COMEDOR_DATA_DIR={folder}/data\nCOMEDOR_SESSION_DIR={folder}/sessions\n\
             COMEDOR_SCRIPT={folder}/docroot/api/comedor.php\n"
        ),
    );
    site
}

/// Each configuration that a school enables, in its web server.
fn start(site: &mut Site, example: &str) {
    let lines = |site: &Site| site.fill(example, Settings::File);
    match example {
        APACHE => site.start_apache("event", Php::Fpm, "cgid", &lines(site)),
        APACHE_FASTCGI => {
            site.start_responder();
            site.start_apache("event", Php::Fpm, "cgid", &lines(site));
        }
        HTACCESS => site.start_htaccess("prefork", Php::Module, "cgi", Settings::File),
        NGINX => {
            site.start_responder();
            site.start_nginx("", &lines(site));
        }
        FCGIWRAP => site.start_nginx_with_fcgiwrap(Settings::File, ""),
        LIGHTTPD | LIGHTTPD_FASTCGI => site.start_lighttpd("disable", &lines(site)),
        _ => {
            let address = format!("http://127.0.0.1:{}", site.port);
            site.start_caddy(example, &address, PAGES_OF_CADDY, "");
        }
    }
}

#[test]
fn each_configuration_answers_for_its_own_script_and_refuses_another_one_if_the_server_says_which_it_is()
 {
    let table = [
        (APACHE, Shipped, PathOf),
        (APACHE, Old, Nothing),
        (APACHE_FASTCGI, Shipped, PathOf),
        (APACHE_FASTCGI, Old, PathOf),
        // Its folder is that of the script.
        (HTACCESS, Shipped, Nothing),
        (HTACCESS, Old, Nothing),
        (NGINX, Shipped, PathOf),
        (NGINX, Old, Nothing),
        (FCGIWRAP, Shipped, PathOf),
        (FCGIWRAP, Old, Nothing),
        (CADDIES[0], Shipped, PathOf),
        (CADDIES[0], Old, PathOf),
        (CADDIES[1], Shipped, PathOf),
        (CADDIES[1], Old, PathOf),
        (LIGHTTPD, Shipped, PathOf),
        (LIGHTTPD, Old, PathOf),
        (LIGHTTPD_FASTCGI, Shipped, PathOf),
        (LIGHTTPD_FASTCGI, Old, PathOf),
    ];
    let mut wrong = Vec::new();
    for (example, version, says) in table {
        let mut site = site(version);
        start(&mut site, example);
        for rest in ["", "/get_menu_types"] {
            for (folder, is_refused) in [("", false), ("otra/", says == PathOf)] {
                let query = "?action=get_menu_types&aulario=aula1";
                let url = site.url(&format!("{folder}api/comedor.php{rest}{query}"));
                let (status, answer) = site.curl(&[&url]);
                let (expected, text) = if is_refused {
                    (500, "comedor answers for another script of this server")
                } else {
                    (400, "INVALID_SESSION")
                };
                if status != expected || !answer.contains(text) {
                    wrong.push(format!("{version:?} {example}: {url} {status} {answer}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// As the guide says, at the end of "Two applications on one server"
#[test]
fn caddy_and_lighttpd_with_the_path_of_one_application_leave_another_one_to_its_script() {
    let lighttpd = ["\"/api/comedor", "\"^/api/comedor"];
    let caddy = ["*/api/comedor", "/api/comedor"];
    for (example, file, [from, to]) in [
        (LIGHTTPD, LIGHTTPD, lighttpd),
        (LIGHTTPD_FASTCGI, LIGHTTPD_FASTCGI, lighttpd),
        (CADDIES[0], CADDYFILE, caddy),
        (CADDIES[1], CADDYFILE, caddy),
    ] {
        let mut site = site(Shipped);
        let text = text_of(file);
        assert!(text.contains(from), "{file}");
        let examples = site.path().join("examples");
        fs::create_dir(&examples).unwrap();
        let name = file.strip_prefix("examples/").unwrap();
        fs::write(examples.join(name), text.replace(from, to)).unwrap();
        site.examples = Some(examples);
        start(&mut site, example);
        let query = "?action=get_menu_types&aulario=aula1";
        for (folder, expected) in [("", "INVALID_SESSION"), ("otra/", "OLD PHP SCRIPT")] {
            let (_, answer) = site.curl(&[&site.url(&format!("{folder}api/comedor.php{query}"))]);
            assert!(answer.contains(expected), "{example} {folder}: {answer}");
        }
    }
}

/// Rules of the script's folder would not hold there.
#[test]
fn shipped_configurations_that_name_the_script_answer_at_no_path_without_a_script() {
    for example in [
        APACHE, APACHE_FASTCGI, NGINX, FCGIWRAP, CADDIES[0], CADDIES[1], LIGHTTPD, LIGHTTPD_FASTCGI,
    ] {
        let mut site = site(Shipped);
        fs::remove_file(site.path().join("docroot/otra/api/comedor.php")).unwrap();
        site.write("docroot/page.html", "");
        start(&mut site, example);
        for path in [
            "otra/api/comedor.php",
            "otra/api/comedor.php/x",
            "nothing/api/comedor.php",
            "nothing/api/comedor.php/x",
            "api/api/comedor.php",
            "api/comedor.php/../../otra/api/comedor.php",
            "api/comedor.php/%2e%2e/%2e%2e/nothing/api/comedor.php",
            // Other names for the program, but not for some servers
            "nothing/api/comedor.php%0a",
            "otra/api/COMEDOR.php",
            "api/COMEDOR.php",
            "nothing/API/Comedor.php/y",
            "otra/api/comedor.php.",
            "otra/api/comedor.php%20",
            // Another file, and the rest of the path
            "login.php/api/comedor.php",
            "page.html/api/comedor.php",
            "page.html/x/api/comedor.php/y",
        ] {
            let (status, answer) = site.curl(&["-i", "--path-as-is", &site.url(path)]);
            // Or the server does not give it to the program.
            let is_refused = !answer.contains("X-Powered-By: comedor")
                || answer.contains("another script of this server");
            assert!(is_refused, "{example}: {path} {status} {answer}");
        }
    }
}

#[test]
fn include_inside_the_location_that_has_the_root_of_nginx_names_the_script() {
    let expected = [
        ("INCLUDE location / { ROOT }", 500),
        ("location / { ROOT INCLUDE }", 400),
        ("location /api/ { alias FOLDER/docroot/api/; INCLUDE }", 400),
    ];
    for (lines, status) in expected {
        let mut site = site(Shipped);
        let folder = site.path().display().to_string();
        let example = site.fill(NGINX, Settings::File);
        site.start_responder();
        // The root of `start_nginx` is that of the server, so this is another server of the same nginx.
        let port = free_port();
        let lines = lines
            .replace("INCLUDE", &example)
            .replace("ROOT", "root FOLDER/docroot;")
            .replace("FOLDER", &folder);
        let server = format!("server {{ listen 127.0.0.1:{port}; {lines} }}");
        site.start_nginx(&server, "");
        let url = format!("http://127.0.0.1:{port}/api/comedor.php");
        let (found, answer) = site.curl(&[&url]);
        assert_eq!(found, status, "{lines} {answer}");
    }
}
