//! Pages of other origins in Chromium, which decides which cookies it sends and what a page may read.

use std::fs;

use crate::PAGES_OF_CADDY;
use crate::chromium::chromium;
use crate::support::site::{CADDIES, Site, wait_until};
use crate::support::{Value, free_port, json, output};

/// What docs/api.md says for pages of another site. Without quotes, None is empty in PHP's settings.
const FOR_OTHER_SITES: &str = "php_admin_value[session.cookie_samesite] = \"None\"\n\
    php_admin_value[session.cookie_secure] = 1";

/// A success, as [`PAGE`] shows it
const OK: &str = "200 success";

/// Logs the browser in and goes on to another page.
const LOGIN: &str = "<?php require 'login.php'; header('Location: ' . $_GET['page']);";

/// Reads, writes JSON, for which a browser asks first, and writes text, for which it does not. Shows
/// for each the status and code, or the error of `fetch`.
const PAGE: &str = r#"<pre></pre><script>
    async function call(action, type, fields) {
        const options = { credentials: "include" };
        if (type) {
            options.method = "POST";
            options.headers = { "Content-Type": type };
            options.body = JSON.stringify(fields);
        }
        try {
            const response = await fetch("API?aulario=aula1&action=" + action, options);
            const answer = await response.json();
            return `${response.status} ${answer.code ?? "success"}`;
        } catch (error) {
            return error.name;
        }
    }
    (async () => {
        const results = [
            await call("get_menu_types"),
            await call("add_menu_type", "application/json", { id: "json", label: "JSON" }),
            await call("add_menu_type", "text/plain", { id: "text", label: "Text" }),
        ];
        document.querySelector("pre").textContent = JSON.stringify(results);
    })();
</script>"#;

/// The browser's setting for third-party cookies, `cookie_controls_mode`.
const ALLOWED: u8 = 0;
const BLOCKED: u8 = 1;

/// The application at `https://school.example`, and [`PAGE`] at three origins: on another port, which
/// is the same site, and on two other sites. The first two are trusted.
fn school(php_settings: &'static str) -> (Site, [String; 3]) {
    let mut site = Site::new();
    site.fpm_settings = php_settings;
    let port = free_port();
    let origins = ["school", "menus", "evil"].map(|name| format!("https://{name}.example:{port}"));
    let application = application(&site);
    let api = format!("{application}/api/comedor.php");
    site.write("docroot/start.php", LOGIN);
    fs::create_dir(site.path().join("pages")).unwrap();
    site.write("pages/index.html", &PAGE.replace("API", &api));
    let pages = format!(
        "{} {{
            root * {}/pages
            file_server
        }}",
        origins.join(" "),
        site.path().display()
    );
    site.start_caddy(CADDIES[1], &application, PAGES_OF_CADDY, &pages);
    site.trust(&origins[..2]);
    // A process looks at its settings at most once a second.
    wait_until("the trusted origins", || {
        let (_, answer) = site.curl(&["-i", "-H", &format!("Origin: {}", origins[1]), &api]);
        answer
            .to_lowercase()
            .contains("access-control-allow-origin")
    });
    (site, origins)
}

fn application(site: &Site) -> String {
    format!("https://school.example:{}", site.port)
}

/// What the page at `origin` gets in a browser that has logged in, and sends cookies to other sites
/// or not.
#[track_caller]
fn visit(site: &Site, origin: &str, cookies: u8) -> Value {
    let profile = tempfile::tempdir().unwrap();
    let preferences = profile.path().join("Default/Preferences");
    fs::create_dir(preferences.parent().unwrap()).unwrap();
    let setting = json!({"profile": {"cookie_controls_mode": cookies}});
    fs::write(preferences, setting.to_string()).unwrap();
    let mut chromium = chromium(&profile);
    chromium
        // Time passes only while nothing is being loaded, so that this waits for the answers.
        .args(["--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("{}/start.php?page={origin}/", application(site)));
    let page = String::from_utf8(output(&mut chromium, "chromium")).unwrap();
    let results = page.split(['<', '>']).find(|text| text.starts_with('['));
    let results = results.unwrap_or_else(|| panic!("{origin}: {page}"));
    serde_json::from_str(results).expect("JSON")
}

#[test]
fn page_of_another_port_uses_the_api_in_chromium() {
    let (site, [port, ..]) = school("");
    assert_eq!(visit(&site, &port, BLOCKED), json!([OK, OK, OK]));
}

#[test]
fn page_of_another_site_uses_the_api_in_chromium_if_it_sends_the_cookie() {
    let (site, [_, trusted, _]) = school(FOR_OTHER_SITES);
    let not_sent = "400 INVALID_SESSION";
    let without = json!([not_sent, not_sent, not_sent]);
    assert_eq!(visit(&site, &trusted, BLOCKED), without);
    assert_eq!(visit(&site, &trusted, ALLOWED), json!([OK, OK, OK]));
    let (site, [_, trusted, _]) = school("");
    assert_eq!(visit(&site, &trusted, ALLOWED), without);
}

#[test]
fn page_of_a_site_that_is_not_trusted_reads_and_writes_nothing_in_chromium() {
    let (site, [.., other]) = school(FOR_OTHER_SITES);
    let error = "TypeError";
    assert_eq!(visit(&site, &other, ALLOWED), json!([error, error, error]));
    assert!(
        !site
            .path()
            .join("data/Centros/centro1/Aularios/aula1")
            .exists()
    );
}
