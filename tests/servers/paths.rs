//! The configurations for Apache, which are used without an edit: which paths the program answers, on every site.

use std::fs;

use crate::support::site::{Php, Settings, Site};
use crate::support::text_of;

/// Apache with this example, and the application also at `/entreaulas` of three sites: the default one, one that
/// gives PHP-FPM all its scripts, and one with pages of its own for every error.
fn three_sites(example: &str) -> Site {
    let mut site = Site::new();
    let folder = site.path().display().to_string();
    let port = site.port;
    let application = site.path().join("docroot/entreaulas/api");
    fs::create_dir_all(&application).unwrap();
    fs::copy(
        site.path().join("docroot/api/comedor.php"),
        application.join("comedor.php"),
    )
    .unwrap();
    let lines = site.fill(example, Settings::File);
    let others = format!(
        "<VirtualHost *:{port}>
            ServerName default.example
        </VirtualHost>
        <VirtualHost *:{port}>
            ServerName fpm.example
            ProxyPassMatch \"^/(.*\\.php(/.*)?)$\" \"unix:{folder}/fpm.sock|fcgi://fpm{folder}/docroot\"
        </VirtualHost>
        <VirtualHost *:{port}>
            ServerName pages.example
            ProxyErrorOverride On
            ErrorDocument 400 \"a page of the site\"
            ErrorDocument 404 \"a page of the site\"
        </VirtualHost>"
    );
    site.start_responder();
    site.start_apache("event", Php::Fpm, "cgid", &format!("{lines}\n{others}"));
    site
}

#[test]
fn apache_gives_the_program_the_script_in_every_folder_of_every_site_and_no_other_path() {
    for example in [
        "apache.conf.example", "examples/apache-fastcgi.conf.example",
    ] {
        let site = three_sites(example);
        for host in ["default.example", "fpm.example", "pages.example"] {
            let answer = |path: &str| {
                let host = format!("Host: {host}");
                site.curl(&["--path-as-is", "-H", &host, &site.url(path)])
            };
            for path in [
                "api/comedor.php?action=get_menu_types&aulario=aula1",
                "entreaulas/api/comedor.php",
                "entreaulas/api/comedor.php/",
                "entreaulas/api/comedor.php/x.php",
                "entreaulas/api/comedor%2Ephp",
                "/entreaulas//api/./comedor.php",
                // There is no such file.
                "otra/api/comedor.php",
            ] {
                let (status, body) = answer(path);
                assert!(
                    status == 400 && body.contains("INVALID_SESSION"),
                    "{host} {path} {body}"
                );
            }
            for path in [
                "entreaulas/api/comedor.phpx", "miapi/comedor.php", "api/comedor-setup.php",
            ] {
                let (status, body) = answer(path);
                assert!(
                    status == 404 && !body.contains("INVALID"),
                    "{host} {path} {body}"
                );
            }
            assert_eq!(answer("login.php").0, 200);
        }
    }
}

/// Debian enables `serve-cgi-bin.conf`, which serves everything in the folder of the program.
#[test]
fn apache_denies_the_program_at_the_path_of_debians_serve_cgi_bin() {
    let serve_cgi_bin = text_of("/etc/apache2/conf-available/serve-cgi-bin.conf");
    for example in [
        "apache.conf.example", "examples/apache-fastcgi.conf.example",
    ] {
        for is_enabled in [true, false] {
            let mut site = Site::new();
            let folder = site.path().join("cgi").display().to_string();
            let lines = site.fill(example, Settings::File);
            let lines = if is_enabled { &*lines } else { "" };
            let debian = serve_cgi_bin.replace("/usr/lib/cgi-bin", &folder);
            site.start_responder();
            let port = site.port;
            let other = format!(
                "<VirtualHost *:{port}>
                    ServerName other.example
                    <Location \"/\">
                        Require all granted
                    </Location>
                </VirtualHost>"
            );
            let all = format!("{lines}\n{debian}\n<VirtualHost *:{port}>\n</VirtualHost>\n{other}");
            site.start_apache("event", Php::Fpm, "cgid", &all);
            // Without the configuration it would answer there.
            let expected = if is_enabled { 403 } else { 400 };
            for path in [
                "cgi-bin/comedor", "cgi-bin/comedor/", "cgi-bin/comedor/x", "cgi-bin/comedor?x",
                "cgi-bin//comedor", "cgi-bin/./comedor", "cgi-bin/%63omedor",
                "/cgi-bin/x/../comedor",
            ] {
                for host in ["Host: school.example", "Host: other.example"] {
                    let arguments = ["--path-as-is", "-H", host, &site.url(path)];
                    let (status, body) = site.curl(&arguments);
                    assert_eq!(status, expected, "{example} {host} {path} {body}");
                }
            }
        }
    }
}
