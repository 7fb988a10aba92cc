//! Rules of nginx, lighttpd and Caddy.

use super::*;
use crate::PAGES_OF_CADDY;
use crate::support::site::CADDIES;
use crate::support::text_of;

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
fn a_password_of_a_site_of_caddy_holds_and_in_a_block_what_is_before_the_import() {
    for program in CADDIES {
        let addresses = "@outside {
                path /entreaulas/*
                not remote_ip 192.0.2.0/24
            }
            respond @outside 403";
        let password = format!("basicauth /entreaulas/* {{\nprofe {BCRYPT}\n}}");
        // In the site the order of the lines does not count.
        let mut cases = vec![(format!("{PAGES_OF_CADDY}\n{password}"), Server(401))];
        for (start, rule, expected) in [
            ("handle", &*password, Server(401)),
            ("handle /entreaulas/*", &password, Server(401)),
            ("route", &password, Server(401)),
            ("route", addresses, Server(403)),
        ] {
            let block = format!("{start} {{\n{rule}\n{PAGES_OF_CADDY}\n}}");
            cases.push((block, expected));
        }
        for (lines, expected) in cases {
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
