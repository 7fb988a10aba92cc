//! Rules of folders of Apache, and spellings of the path.

use super::*;

/// Each way to write a rule, and how a request without a password and from another address is answered
pub const RULES: [(&str, &str, Answer); 5] = [
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
pub const HTACCESS: [(&str, &str, Answer); 4] = [
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
    "/FOLDER/api/comedor.php/comedor-cgi/x",
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
    "/comedor-cgi/FOLDER/api/comedor.php",
    "/comedor-cgi/x/../../FOLDER/api/comedor.php",
    "/%63omedor-cgi/FOLDER/api/comedor.php",
    "//comedor-cgi/FOLDER/api/comedor.php",
    "/comedor-cgi/comedor-cgi/FOLDER/api/comedor.php",
    "/x/comedor-cgi/../../FOLDER/api/comedor.php",
    "/comedor-cgi/../comedor-cgi/FOLDER/api/comedor.php",
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
