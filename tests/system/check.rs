//! The administrator's self-check.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::{Command, Stdio};

use crate::support::*;

/// Runs the check behind `before`, and gives its exit status and its findings as JSON.
fn check(school: &School, before: &[&str], options: &[&str], input: &str) -> (i32, Vec<Value>) {
    let words = [before, &[PROGRAM, "check", "--json"], options].concat();
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .env_clear()
        .env("COMEDOR_DATA_DIR", school.data())
        .env("COMEDOR_SESSION_DIR", school.sessions())
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let status = output.status.code().unwrap();
    assert_eq!(document["status"], status);
    (status, document["findings"].as_array().unwrap().clone())
}

/// Whether there is a finding of that level about a path or setting that ends so, with that text.
#[track_caller]
fn found(findings: &[Value], level: &str, about: &str, text: &str) {
    let is = |finding: &&Value| {
        finding["level"] == level
            && finding["about"].as_str().unwrap().ends_with(about)
            && finding["text"].as_str().unwrap().contains(text)
    };
    assert!(findings.iter().any(|finding| is(&finding)), "{level} {about} {text}: {findings:#?}");
}

#[test]
fn a_correct_installation_has_only_hints() {
    let school = School::new();
    school.save(json!({"date": DATE, "menu_type": "basal", "plates": {}}));
    let files = school.files();
    let (_, findings) = check(&school, &[], &[], "");
    let bad: Vec<_> = findings
        .iter()
        .filter(|finding| ["warning", "error"].contains(&finding["level"].as_str().unwrap()))
        .map(|finding| finding["about"].as_str().unwrap())
        .collect();
    // The test runs as root, and its school lies in /tmp.
    assert_eq!(bad, ["user", school.sessions().to_str().unwrap()], "{findings:#?}");
    found(&findings, "ok", "COMEDOR_DATA_DIR", "(from the environment)");
    found(&findings, "ok", "COMEDOR_SERVICE", "service (from the default)");
    found(&findings, "hint", "settings", "can't be seen from here");
    found(&findings, "ok", "today", "");
    found(&findings, "ok", "/Aularios", "can write here");
    found(&findings, "ok", "/data", "3 aularios and 1 saved days");
    assert_eq!(school.files(), files, "the check changes nothing");
}

#[test]
fn problems_in_the_data_are_found_with_file_and_position() {
    let school = School::new();
    school.save(json!({"date": DATE, "menu_type": "basal", "plates": {}}));
    for (path, content) in [
        ("self.json", r#"{"shared_comedor_from":"self"}"#),
        ("nowhere.json", r#"{"shared_comedor_from":"missing"}"#),
        ("chain.json", r#"{"shared_comedor_from":"compartida"}"#),
        ("two words.json", "{}"),
        ("broken.json", "{"),
        ("orphan/x", ""),
        ("aula1/.Comedor-MenuTypes.json.tmp", "half"),
        ("aula1/Comedor-MenuTypes.json", r#"[{"id":"a"},{"id":"a"},{"id":""},5]"#),
        ("aula1/Comedor/2026-11/21/_datos.json", r#"{"menus":{"a":{"plates":{"primero":"x"}}}}"#),
        ("aula1/Comedor/2026-11/22/_datos.json", "{\"menus\""),
        ("aula1/Comedor/2026-11/23/_datos.json", ""),
        ("aula1/Comedor/2026-11/31/_datos.json", "{}"),
    ] {
        school.write(path, content);
    }
    let (status, findings) = check(&school, &[], &[], "");
    assert_eq!(status, 2);
    for (level, about, text) in [
        ("warning", "self.json", "the aulario itself"),
        ("warning", "nowhere.json", "does not exist"),
        ("warning", "chain.json", "in turn"),
        ("warning", "two words.json", "no request can name"),
        ("error", "broken.json", "damaged (EOF"),
        ("hint", "orphan", "belongs to no aulario"),
        ("warning", ".Comedor-MenuTypes.json.tmp", "killed"),
        ("warning", "Comedor-MenuTypes.json", "the id a stands 2 times"),
        ("warning", "Comedor-MenuTypes.json", "2 entries have no usable id"),
        ("error", "21/_datos.json", "menus.a.plates.primero is no map"),
        ("error", "22/_datos.json", "EOF"),
        ("warning", "23/_datos.json", "is empty"),
        ("hint", "11/31", "is no day"),
        ("hint", "aula1", "1 days have menus of the type basal"),
    ] {
        found(&findings, level, about, text);
    }
}

#[test]
fn missing_permissions_are_found_with_a_command_that_fixes_them() {
    let school = School::new();
    school.save(json!({"date": DATE, "menu_type": "basal", "plates": {}}));
    let open = |path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    open(school.data().parent().unwrap().to_owned(), 0o755);
    let (status, findings) = check(&school, AS_NOBODY, &[], "");
    assert_eq!(status, 2);
    found(&findings, "ok", "user", "nobody");
    found(&findings, "error", "/Aularios", "nobody can't write here");
    found(&findings, "error", "/aula1", "nobody can't change 6 of the files and folders");
    for finding in findings.iter().filter(|finding| finding["level"] == "error") {
        let mend = finding["mend"].as_str().expect("a command");
        assert!(mend.starts_with("sudo chgrp "), "{mend}");
        output(Command::new("sh").args(["-c", &mend.replace("sudo ", "")]), "dash");
    }
    let (status, findings) = check(&school, AS_NOBODY, &[], "");
    assert_eq!(status, 1, "{findings:#?}");

    // One that has no other fault is found as well.
    for path in ["aula1/.comedor.lock", "aula1/Comedor", "aula1/Comedor/2026-11"] {
        let mode = fs::metadata(school.path(path)).unwrap().permissions();
        open(school.path(path), 0o500);
        let (status, findings) = check(&school, AS_NOBODY, &[], "");
        assert_eq!(status, 2, "{path}");
        found(&findings, "error", "/aula1", path);
        fs::set_permissions(school.path(path), mode).unwrap();
    }
    open(school.path("aula1.json"), 0o600);
    let (_, findings) = check(&school, AS_NOBODY, &[], "");
    found(&findings, "error", "aula1.json", "may not read");

    chown(school.data(), Some(1), None).unwrap();
    open(school.data(), 0o700);
    let (_, findings) = check(&school, AS_NOBODY, &[], "");
    found(&findings, "error", "/data", "may not enter");
}

#[test]
fn the_check_of_a_session_shows_only_centre_aularios_and_permissions() {
    let school = School::new();
    let secret = format!("secret|s:6:\"sesame\";{}", session(TEACHER));
    let path = school.log_in("secret", secret);
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    let (status, findings) = check(&school, &[], &["--session"], "secret\n");
    assert_eq!((status, findings.len()), (0, 5));
    found(&findings, "ok", "session", "its centre is centro1");
    found(&findings, "ok", "session", "every aulario");
    found(&findings, "ok", "session", "may read");
    found(&findings, "hint", "session", "lacks sysadmin:access");
    assert!(!format!("{findings:?}").contains("sesame"));
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before, "not kept alive");
    school.log_in("elsewhere", session_of("centro9", TEACHER));
    let (status, findings) = check(&school, &[], &["--session"], "elsewhere");
    assert_eq!(status, 2);
    found(&findings, "error", "session", "Centros/centro9 of its centre");
    school.log_in("garbage", "x");
    for (id, text) in [("no", "no session"), ("../x", "no session's id"), ("garbage", "byte 1")] {
        let (status, findings) = check(&school, &[], &["--session"], id);
        assert_eq!(status, 2);
        found(&findings, "error", "session", text);
    }
}

#[test]
fn output_to_a_file_is_one_line_per_finding_without_colours() {
    let school = School::new();
    school.write("bad\u{1b}[31m\n.json", "{}");
    let mut command = Command::new(PROGRAM);
    command.arg("check").env_clear().env("COMEDOR_DATA_DIR", school.data());
    let output = command.env("COMEDOR_SESSION_DIR", school.sessions()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().all(|line| {
        ["ok      ", "hint    ", "warning ", "error   "].iter().any(|level| line.starts_with(level))
    }));
    assert!(!text.contains('\u{1b}'));
    assert_eq!(output.stderr, b"");
    let mut wrong = Command::new(PROGRAM);
    assert_eq!(wrong.args(["check", "--x"]).env_clear().status().unwrap().code(), Some(2));
}

#[test]
fn invalid_settings_end_the_check() {
    let mut command = Command::new(PROGRAM);
    command.args(["check", "--json"]).env_clear().env("COMEDOR_SESSION_FORMAT", "x");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = document["findings"].as_array().unwrap();
    found(findings, "error", "settings", "COMEDOR_SESSION_FORMAT is none of");
}
