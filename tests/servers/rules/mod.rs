//! The rules of the script's folder hold for the program: under Apache, where no path goes around them, and elsewhere
//! as the guide says. What a site of Apache had enabled with version 1.0.0 goes on working.

mod folders;
mod others;
mod settings;
mod sites;

use std::fs;

use crate::support::site::{Php, Settings, Site};

const CGI: &str = "apache.conf.example";
const FASTCGI: &str = "examples/apache-fastcgi.conf.example";

/// How Apache runs PHP and CGI programs
const KINDS: [(&str, Php, &str); 3] = [
    ("event", Php::Fpm, "cgid"),
    ("event", Php::FpmByProxyPassMatch, "cgid"),
    ("prefork", Php::Module, "cgi"),
];

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

/// The user `profe` with the password `clave`
const PASSWORDS: &str = "profe:{SHA}iSe9dI8mpyWKAeMYp+HnWFRYoig=\n";
