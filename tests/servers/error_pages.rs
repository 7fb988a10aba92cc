//! Sites whose servers replace the errors of all pages by a page of their own: the program's JSON stays, by the
//! shipped configurations.

use crate::support::session;
use crate::support::site::{CADDIES, Php, Settings, Site};
use crate::{LIGHTTPD, LIGHTTPD_FASTCGI, PAGES_OF_CADDY};

const ERROR_PAGE: &str = "<h1>The page of the site</h1>";

/// A site with the error page, and a user who may only read.
fn site() -> Site {
    let site = Site::new();
    site.write("docroot/error.html", ERROR_PAGE);
    site.log_in("reader", &session(&["service:docente"]));
    site
}

/// The errors of PHP's pages are the site's page, those of the program its JSON.
#[track_caller]
fn assert_only_own_errors_stay(site: &Site) {
    let (status, page) = site.curl(&[&site.url("day.php?date=x")]);
    assert!(
        status == 403 && page == ERROR_PAGE,
        "switched on: {status} {page}"
    );
    assert_own_errors_stay(site);
}

#[track_caller]
fn assert_own_errors_stay(site: &Site) {
    let read = |query: &str| site.api(&format!("{query}&aulario=aula1"));
    let reader: &[&str] = &["-H", "Cookie: PHPSESSID=reader"];
    for (status, code, login, url) in [
        (400, "INVALID_SESSION", &[][..], read("action=get_menu")),
        (400, "INVALID_ACTION", reader, read("action=x")),
        (
            404,
            "NOT_FOUND",
            reader,
            site.api("action=get_menu&aulario=no"),
        ),
        (
            403,
            "FORBIDDEN",
            &["-H", "Cookie: PHPSESSID=reader", "-d", "id=x"],
            read("action=delete_menu_type"),
        ),
    ] {
        let (found, answer) = site.curl(&[login, &[&url]].concat());
        assert!(
            found == status && answer.contains(code),
            "{code}: {found} {answer}"
        );
    }
    site.write("cgi/comedor.conf", "COMEDOR_UNKNOWN=1\n");
    // By FastCGI within a second.
    site.wait_for("INTERNAL_ERROR");
}

#[test]
fn apache_replaces_no_errors_of_the_program() {
    let lines = "ErrorDocument 400 /error.html
        ErrorDocument 403 /error.html
        ErrorDocument 404 /error.html
        ErrorDocument 500 /error.html
        ProxyErrorOverride On
        ";
    for (php, example, cgi) in [
        (Php::Fpm, "apache.conf.example", "cgid"),
        (Php::Fpm, "apache.conf.example", "cgi"),
        (Php::Fpm, "examples/apache-fastcgi.conf.example", "cgid"),
        (
            Php::FpmByProxyPassMatch,
            "examples/apache-fastcgi.conf.example",
            "cgid",
        ),
    ] {
        let mut site = site();
        let example = site.fill(example, Settings::File);
        if example.contains("fcgi://comedor") {
            site.start_responder();
        }
        site.start_apache("event", php, cgi, &(lines.to_owned() + &example));
        assert_only_own_errors_stay(&site);
    }
}

#[test]
fn nginx_replaces_no_errors_of_the_program() {
    let lines = "fastcgi_intercept_errors on; error_page 400 403 404 500 /error.html;";
    let mut site = site();
    let example = site.fill("examples/nginx.conf.example", Settings::File);
    site.start_responder();
    site.start_nginx(lines, &example);
    assert_only_own_errors_stay(&site);
    let mut site = self::site();
    site.start_nginx_with_fcgiwrap(Settings::File, lines);
    assert_only_own_errors_stay(&site);
}

#[test]
fn lighttpd_replaces_no_errors_of_the_program() {
    for example in [LIGHTTPD, LIGHTTPD_FASTCGI] {
        let mut site = site();
        for status in [400, 403, 404, 500] {
            site.write(&format!("docroot/{status}.html"), ERROR_PAGE);
        }
        let prefix = format!(
            "server.errorfile-prefix = \"{}/docroot/\"",
            site.path().display()
        );
        let example = site.fill(example, Settings::File);
        let lines = format!("{prefix}\nserver.error-intercept = \"enable\"\n{example}");
        site.start_lighttpd("enable", &lines);
        assert_only_own_errors_stay(&site);
    }
}

#[test]
fn caddy_replaces_no_errors_of_the_program() {
    for program in CADDIES {
        let mut site = site();
        let lines = format!(
            "{PAGES_OF_CADDY}\n handle_errors {{\n rewrite * /error.html\n file_server\n }}"
        );
        site.start_caddy(
            program,
            &format!("http://127.0.0.1:{}", site.port),
            &lines,
            "",
        );
        assert_own_errors_stay(&site);
    }
}
