//! The screen that `cgi-bin/demo` shows, and its server.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use super::*;
use crate::support::REPOSITORY;

/// At a terminal (script(1)); elsewhere it ends before.
#[test]
fn demo_shows_the_screen_and_answers_to_clients_until_enter_is_pressed() {
    let mut demo = Command::new("script");
    demo.args(["-qec", "cgi-bin/demo", "/dev/null"])
        .current_dir(REPOSITORY);
    demo.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut demo = demo.spawn().expect("script, of Debian's bsdutils");
    let lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let mut addresses = lines.map_while(Result::ok).filter_map(|line| {
        let start = line.find("http://127.0.0.1:")?;
        Some(line[start..].trim_end().to_owned())
    });
    let mut browser = Browser::new("es");
    browser.call(
        "Page.addScriptToEvaluateOnNewDocument",
        json!({"source": TIME}),
    );
    let [today, week, api] = [(); 3].map(|()| addresses.next().expect("an address"));
    for (address, count) in [(&today, 3), (&week, 15)] {
        browser.open(address);
        browser.evaluate("waits()");
        let lists = "document.querySelectorAll('#menus ul li:nth-child(3)').length";
        assert_eq!(browser.evaluate(lists), count, "{address}");
    }
    // At the path of generated clients.
    let save = format!("{api}/save_menu?action=save_menu&aulario=aula1");
    let body = r#"{"date":"2026-11-23","menu_type":"basal","plates":{}}"#;
    for (user, page, reason) in [
        ("nobody", "", json!("session")),
        ("teacher", "", json!("sysadmin")),
        ("administrator", "https://other.example/", json!("origin")),
        ("administrator", "", Value::Null),
    ] {
        let cookie = format!("PHPSESSID={user}");
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-b", &cookie, "-e", page, "-d", body, &save]);
        let answer = crate::output(&mut curl, "curl");
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!(answer["reason"], reason, "{user} {page}: {answer}");
        assert_eq!(answer["success"], reason.is_null(), "{answer}");
    }
    demo.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(addresses.next(), None);
    assert!(demo.wait().unwrap().success());
}
