//! What the self-check finds about sessions: one whose cookie it gets, and the folder of all.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use super::{check, count, found};
use crate::support::*;

#[test]
fn check_of_a_session_shows_only_centre_aularios_and_permissions() {
    let school = School::new();
    let secret = format!("secret|s:6:\"sesame\";{}", session(TEACHER));
    let path = school.log_in("secret", secret);
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    for input in [
        "secret\n", "secret", "PHPSESSID=secret\n", "a=b; PHPSESSID=secret",
    ] {
        let findings = check(&school, &[], &["--session"], input);
        let problems = count(&findings, "error") + count(&findings, "warning");
        assert_eq!((problems, findings.len()), (0, 8), "{input}");
        found(&findings, "ok", "session", "the centre is centro1");
        found(&findings, "ok", "session", "every aulario");
        found(&findings, "ok", "session", "may read");
        found(&findings, "hint", "session", "sysadmin:access is missing");
        assert!(!format!("{findings:?}").contains("sesame"));
    }
    assert_eq!(
        fs::metadata(&path).unwrap().modified().unwrap(),
        before,
        "not kept alive"
    );
    let findings = check(
        &school,
        &["env", "COMEDOR_ACCESS=listed"],
        &["--session"],
        "secret",
    );
    found(&findings, "warning", "session", "service:access is missing");
    let no_list = "no list of aularios (aulas), which COMEDOR_ACCESS=listed requires";
    found(&findings, "warning", "session", no_list);
    school.log_in("elsewhere", session_of("centro9", TEACHER));
    school.log_in("named", session_of("Colegio San José", TEACHER));
    school.log_in("garbage", "x");
    school.log_in("out", "auth_ok|b:0;");
    let unit = "a:1:{s:6:\"centro\";s:1:\"c\";}";
    school.log_in(
        "two",
        format!("auth_ok|b:1;auth_data|a:2:{{i:7;{unit}s:5:\"aulas\";{unit}}}"),
    );
    school.log_in("none", "auth_ok|b:1;auth_data|a:1:{s:1:\"x\";a:0:{}}");
    let not_an_id = "the session's centre must be 1 to 250 characters A-Z a-z 0-9 . _ - and must not start with a dot; it is \"Colegio San José\"";
    let service = "found under `service`: set COMEDOR_SERVICE accordingly";
    for (wrapper, input, text) in [
        (&[][..], "elsewhere", "Centros/centro9 does not exist"),
        (&[], "named", not_an_id),
        (&[], "no", "the request has no valid session"),
        (&[], "", "expected the value of the cookie PHPSESSID"),
        (&[], "garbage", "byte 1"),
        (&[], "out", "not logged in"),
        (&[], "none", "nor under another service"),
        (
            &[],
            "two",
            "found under `7`, `aulas`: set COMEDOR_SERVICE accordingly",
        ),
        (&["env", "COMEDOR_SERVICE=menus"], "secret", service),
        (
            &["env", "COMEDOR_SESSION_NAME=SID"],
            "PHPSESSID=secret",
            "value of the cookie SID",
        ),
    ] {
        let findings = check(&school, wrapper, &["--session"], input);
        found(&findings, "error", "session", text);
    }
    let findings = check(&school, AS_NOBODY, &["--session"], "secret");
    found(
        &findings,
        "error",
        "session",
        "user nobody (65534) needs read and write permission",
    );
}

#[test]
fn session_check_prompts_at_a_terminal_and_reads_one_line() {
    let school = School::new();
    let line = format!("{} check --session", program());
    let mut child = Command::new("script")
        .args(["-q", "-e", "-c", &line, "/dev/null"])
        .env_clear()
        .env("SHELL", "/bin/sh")
        .env("COMEDOR_DATA_DIR", school.data())
        .env("COMEDOR_SESSION_DIR", school.sessions())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script; apt-get install bsdutils");
    // Standard input stays open: the check must not wait for its end.
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"admin\n").unwrap();
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0), "{text}");
    assert!(text.contains("Value of the session cookie: "), "{text}");
    assert!(text.contains("may change menus"), "{text}");
}
