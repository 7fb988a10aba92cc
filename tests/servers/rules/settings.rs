//! Settings by `SetEnv` in the configuration of Apache: those of a site, and of a folder as the guide says, arrive; those for
//! the script alone, as in `.htaccess`, are refused.

use std::net::TcpListener;

use super::*;
use crate::support::{files_below, text_of};

/// An unknown origin is allowed where this is set.
const SETTING: &str = "SetEnv COMEDOR_TRUSTED_ORIGINS https://menus.example";

/// The lines of this folder of a site, as docs/install.md shows them for two applications
fn of_folder(folder: &str, line: &str) -> String {
    let guide = text_of("docs/install.md");
    let [start, end] = [
        "<LocationMatch \"^(/comedor-cgi)?/otra/\">",
        "</LocationMatch>",
    ];
    assert!(guide.contains(&format!("`{start}` and `{end}`")));
    let start = start.replace("otra", folder);
    format!("{start}\n{line}\n{end}")
}

#[test]
fn settings_by_setenv_in_a_site_or_for_a_folder_as_the_guide_says_arrive_and_the_innermost_counts()
{
    for kind in KINDS {
        for modules in [WITH_ACTIONS, WITHOUT_ACTIONS] {
            let mut site = Site::with_applications(&["docroot/folder", "docroot/none"]);
            site.modules = modules;
            let lines = format!(
                "{}
                <VirtualHost *:PORT>\nServerName default.example\n</VirtualHost>
                <VirtualHost *:PORT>\nServerName site.example\n{SETTING}\n</VirtualHost>
                <VirtualHost *:PORT>
                    ServerName inner.example
                    SetEnv COMEDOR_TRUSTED_ORIGINS invalid
                </VirtualHost>",
                of_folder("folder", SETTING)
            );
            // Neither is .htaccess more specific.
            let htaccess = "SetEnv COMEDOR_TRUSTED_ORIGINS https://other.example";
            site.write("docroot/folder/.htaccess", htaccess);
            site.start_with(CGI, kind, &lines);
            for (host, folder, status, is_set) in [
                ("default.example", "folder", 400, true),
                ("default.example", "none", 400, false),
                ("site.example", "none", 400, true),
                ("inner.example", "folder", 400, true),
                ("inner.example", "none", 500, false),
            ] {
                let host = format!("Host: {host}");
                let url = site.url(&format!("{folder}/api/comedor.php"));
                let (found, answer) = site.curl(&["-i", "-H", &host, &url]);
                let case = format!("{} {modules:?} {host} {folder} {answer}", kind.0);
                assert_eq!(found, status, "{case}");
                assert_eq!(answer.contains("Vary: Origin"), is_set, "{case}");
            }
        }
    }
}

/// Lines of a `.htaccess` that would choose the sessions or the data. Whoever writes pages of any site may write one.
const CHOICES: [&str; 5] = [
    "SetEnv COMEDOR_SESSION_DIR tcp://127.0.0.1:REDIS",
    "SetEnvIf Request_URI ^ COMEDOR_SESSION_DIR=tcp://127.0.0.1:REDIS",
    "RewriteEngine On\nRewriteRule ^ - [E=COMEDOR_SESSION_DIR:tcp://127.0.0.1:REDIS]",
    "SetEnv COMEDOR_DATA_DIR /other",
    "SetEnv COMEDOR_SCRIPT /other/api/comedor.php",
];

#[test]
fn a_setting_for_the_script_alone_is_refused_under_apache_and_nothing_is_read_or_written() {
    let redis = TcpListener::bind("127.0.0.1:0").unwrap();
    redis.set_nonblocking(true).unwrap();
    let port = redis.local_addr().unwrap().port().to_string();
    let folders = [
        "docroot/0", "docroot/1", "docroot/2", "docroot/3", "docroot/4", "docroot/location",
        "docroot/folder",
    ];
    for kind in KINDS {
        let mut site = Site::with_applications(&folders);
        site.modules = WITH_ACTIONS;
        for (folder, lines) in folders.iter().zip(CHOICES) {
            let htaccess = format!("{folder}/.htaccess");
            site.write(&htaccess, &lines.replace("REDIS", &port));
        }
        let lines = format!(
            "<Location \"/location\">\n{SETTING}\n</Location>
            <Directory \"FOLDER/docroot/folder\">\n{SETTING}\n</Directory>"
        );
        site.start_with(CGI, kind, &lines);
        let jar = site.path().join("cookies");
        site.curl(&["-c", jar.to_str().unwrap(), &site.url("login.php")]);
        let data = site.path().join("data");
        let before = files_below(&data, &[]);
        for folder in folders {
            let path = folder.replace("docroot", "");
            let url = site.url(&format!(
                "{}/api/comedor.php?action=save_menu&aulario=aula1",
                &path[1..]
            ));
            let body =
                r#"{"date":"2026-03-04","menu_type":"basal","plates":{"primero":{"name":"x"}}}"#;
            let json = "Content-Type: application/json";
            let (status, answer) = site.curl(&["-H", json, "--data", body, &url]);
            assert_eq!(status, 500, "{} {folder} {answer}", kind.0);
            assert!(answer.contains("INTERNAL_ERROR"), "{answer}");
        }
        let log = fs::read_to_string(site.path().join("log/error.log")).unwrap();
        let lines = log.matches(" is set for the script, ").count();
        assert_eq!(lines, folders.len(), "{log}");
        assert_eq!(files_below(&data, &[]), before);
        assert!(redis.accept().is_err(), "{}", kind.0);
    }
}
