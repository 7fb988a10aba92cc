//! The administrator's self-check, and what it finds.

mod limits;
mod permissions;
mod redis;
mod script;
mod sessions;

use std::fs;
use std::io::Write;
use std::os::unix::fs::chown;
use std::process::{Command, Output, Stdio};

use crate::support::*;

/// Runs `comedor check` under the command `wrapper`, with `input` on standard input.
fn run(school: &School, wrapper: &[&str], options: &[&str], input: &str) -> Output {
    // Mounts end with the check.
    let alone = &["unshare", "--mount"][..];
    let words = [alone, wrapper, &[program(), "check"], options].concat();
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .env_clear()
        .env("COMEDOR_DATA_DIR", school.data())
        .env("COMEDOR_SESSION_DIR", school.sessions())
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may exit without reading it.
    _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// The findings of the check with `--json`. Its exit status says what the worst is.
#[track_caller]
pub fn check(school: &School, wrapper: &[&str], options: &[&str], input: &str) -> Vec<Value> {
    let output = run(school, wrapper, &[&["--json"], options].concat(), input);
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let findings = document["findings"].as_array().unwrap().clone();
    assert!(
        findings.iter().all(|finding| finding["code"].is_string()),
        "{findings:#?}"
    );
    let (errors, warnings) = (count(&findings, "error"), count(&findings, "warning"));
    let status = if errors > 0 {
        2
    } else {
        i32::from(warnings > 0)
    };
    assert_eq!(output.status.code(), Some(status));
    for (key, value) in [
        ("status", status as usize),
        ("errors", errors),
        ("warnings", warnings),
    ] {
        assert_eq!(document[key], value);
    }
    findings
}

pub fn count(findings: &[Value], level: &str) -> usize {
    findings
        .iter()
        .filter(|finding| finding["level"] == level)
        .count()
}

/// The finding of that level whose path or setting ends with `about`, with that text.
#[track_caller]
pub fn found<'f>(findings: &'f [Value], level: &str, about: &str, text: &str) -> &'f Value {
    let is = |finding: &&Value| {
        finding["level"] == level
            && finding["about"].as_str().unwrap().ends_with(about)
            && finding["text"].as_str().unwrap().contains(text)
    };
    let found = findings.iter().find(is);
    found.unwrap_or_else(|| panic!("{level} {about} {text}: {findings:#?}"))
}

#[test]
fn correct_installation_has_only_hints() {
    let school = School::with_menu("");
    let files = school.files();
    let findings = check(&school, &[], &[], "");
    for finding in &findings {
        let [level, text] = ["level", "text"].map(|key| finding[key].as_str().unwrap());
        // The temporary folder may be in memory or in a container.
        let is_file_system = text.starts_with("the file system is ");
        assert!(
            ["ok", "hint"].contains(&level) || is_file_system,
            "{finding}"
        );
    }
    found(
        &findings,
        "hint",
        "user",
        "checked as root, which can access everything; the data belongs to root",
    );
    found(&findings, "hint", "check", "not looked at: the web server");
    let data_dir = format!(
        "COMEDOR_DATA_DIR={} (the environment)",
        school.data().display()
    );
    found(&findings, "ok", "settings", &data_dir);
    found(
        &findings, "ok", "settings", "the other settings have their defaults",
    );
    found(&findings, "ok", "settings", "today is 20");
    found(
        &findings, "ok", "/Centros", "3 aularios and 1 saved day checked",
    );
    assert_eq!(school.files(), files, "the check changes nothing");
}

/// Without it no login has a centre, and every file is correct.
#[test]
fn a_service_that_was_forgotten_is_a_hint() {
    let school = School::new();
    let folder = school.folder().join("entreaulas");
    fs::rename(school.data(), &folder).unwrap();
    let data_dir = format!("COMEDOR_DATA_DIR={}", folder.display());
    let hint = "set COMEDOR_SERVICE=entreaulas, or no login has a centre";
    for (service, is_hint) in [
        ("COMEDOR_SERVICE=service", true),
        ("COMEDOR_SERVICE=entreaulas", false),
    ] {
        let findings = check(&school, &["env", &data_dir, service], &[], "");
        assert_eq!(count(&findings, "error"), 0, "{findings:#?}");
        if is_hint {
            let finding = found(&findings, "hint", "settings", hint);
            assert_eq!(finding["code"], "service-default");
        }
        assert_eq!(format!("{findings:?}").contains(hint), is_hint);
    }
}

#[test]
fn settings_that_were_never_written_are_a_hint() {
    let folder = open_folder();
    let program = program_in(folder.path(), NO_SETTINGS);
    let file = folder.path().join("comedor.conf");
    let check = |setting: &str| {
        // Without a settings file of this machine
        let script = "mount -t tmpfs none /etc && exec env -i \"$@\"";
        let mut alone = Command::new("unshare");
        alone.args(["--mount", "sh", "-c", script, "sh", setting]);
        let output = alone.arg(&program).arg("check").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let hint = "hint    settings: there is neither a settings file nor a variable COMEDOR_…; run `sudo comedor configure`\n";
    let text = check("TZ=UTC");
    assert!(!text.contains(hint), "{text}");
    fs::remove_file(file).unwrap();
    let text = check("TZ=UTC");
    assert!(text.contains(hint), "{text}");
    let text = check("COMEDOR_ACCESS=listed");
    assert!(!text.contains(hint), "{text}");
}

#[test]
fn problems_in_the_data_are_found_with_file_and_position() {
    let school = School::with_menu("");
    for (path, content) in [
        ("self.json", r#"{"shared_comedor_from":"self"}"#),
        ("chain.json", r#"{"shared_comedor_from":"compartida"}"#),
        ("two words.json", "{}"),
        ("aula1.sync-conflict-20261125-101112-ABCDEF7.json", "{}"),
        ("._aula1.json", "{}"),
        ("~$aula1.json", "{}"),
        ("../../.stfolder/x", ""),
        ("broken.json", "{"),
        ("orphan/x", ""),
        ("aula1/Comedor-MenuTypes.json", r#"[{"id":"a"}]"#),
        (
            "aula1/Comedor/2026-11/21/_datos.json",
            r#"{"menus":{"a":{"plates":{"primero":"x"}}}}"#,
        ),
        ("aula1/Comedor/2026-11/22/_datos.json", "{\"menus\""),
        ("aula1/Comedor/2026-11/23/_datos.json", ""),
        ("aula1/Comedor/2026-11/31/_datos.json", "{}"),
        ("aula2/Comedor-MenuTypes.json", &" ".repeat(2_000_000)),
        ("compartida/Comedor-MenuTypes.json", "{"),
    ] {
        school.write(path, content);
    }
    let findings = check(&school, &[], &[], "");
    let chain = "shared_comedor_from is `compartida`, which has shared_comedor_from too";
    let invalid = "EOF while parsing an object at line 1 column 8), so requests for it fail";
    let owner = "; it belongs to root, mode 0644; see \"Invalid JSON\" in docs/";
    for (level, about, text) in [
        (
            "warning",
            "self.json",
            "shared_comedor_from is `self`, which is not another aulario",
        ),
        ("warning", "chain.json", chain),
        ("warning", "two words.json", "not a valid id"),
        (
            "warning",
            "aula1.sync-conflict-20261125-101112-ABCDEF7.json",
            "it counts as an aulario",
        ),
        ("error", "broken.json", "is damaged (invalid JSON: EOF"),
        (
            "hint",
            "orphan",
            "its configuration file, of the same name with .json, is missing",
        ),
        (
            "error", "21/_datos.json", "menus.a.plates.primero is not a map",
        ),
        ("error", "22/_datos.json", invalid),
        ("error", "22/_datos.json", owner),
        ("warning", "23/_datos.json", "is empty"),
        (
            "warning",
            "aula2/Comedor-MenuTypes.json",
            "is larger than 1 MiB and was not checked",
        ),
        ("hint", "11/31", "is not the folder of a day"),
        (
            "hint",
            "aula1",
            "1 menu of types that were deleted; the first is basal",
        ),
    ] {
        found(&findings, level, about, text);
    }
    // An aulario that shares does not use its own data, and no page lists the other three.
    for absent in ["/compartida/", "/._aula1", "/~$aula1", "/.stfolder"] {
        assert!(
            !format!("{findings:?}").contains(absent),
            "{absent}: {findings:#?}"
        );
    }
}

/// strace delays the list of the aularios; their folders are not read any more.
#[test]
fn a_slow_disk_limits_the_check_to_a_part_of_the_data() {
    let school = School::with_menu("");
    let (folder, inject) = (
        school.aularios(),
        "inject=getdents64:delay_enter=11s:when=1",
    );
    let slow = [
        "strace",
        "-f",
        "-o",
        "/dev/null",
        "-P",
        folder.to_str().unwrap(),
        "-e",
        inject,
    ];
    let findings = check(&school, &slow, &[], "");
    found(
        &findings, "warning", "/Centros", "not everything was checked",
    );
    found(&findings, "ok", "/Centros", " and 0 saved days checked");
}

/// A file system in user space (fuse(4)) whose process does not answer, as a network file system without its server.
#[test]
fn a_folder_that_never_answers_ends_the_check() {
    let school = School::new();
    let sessions = school.sessions().display().to_string();
    let mount = format!(
        "exec 3<>/dev/fuse; mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 none {sessions}; exec \"$@\""
    );
    let findings = check(
        &school,
        &["unshare", "--mount", "sh", "-c", &mount, "sh"],
        &[],
        "",
    );
    let text = "no answer in time; what comes after it was not checked";
    found(&findings, "error", &sessions, text);
    found(&findings, "ok", "settings", "today is 20");
}

#[test]
fn root_is_told_which_user_should_check() {
    let school = School::new();
    let centros = school.data().join("Centros");
    for (data, sessions, text) in [
        (
            33,
            0,
            "check as the user of the requests: sudo -u www-data comedor check",
        ),
        (33, 33, "sudo -u www-data comedor check"),
        (65534, 0, "sudo -u nobody comedor check"),
        (
            33,
            65534,
            "belongs to www-data and the session folder to nobody: run the check as PHP's user",
        ),
    ] {
        chown(&centros, Some(data), None).unwrap();
        chown(school.sessions(), Some(sessions), None).unwrap();
        let findings = check(&school, &[], &[], "");
        let finding = found(&findings, "warning", "user", text);
        assert_eq!(finding["code"], "root");
    }
    fs::remove_dir_all(&centros).unwrap();
    chown(school.sessions(), Some(0), None).unwrap();
    found(
        &check(&school, &[], &[], ""),
        "warning",
        "user",
        "as PHP's user: sudo -u www-data",
    );
    let findings = check(&school, AS_NOBODY, &[], "");
    assert!(!format!("{findings:?}").contains("sudo"), "{findings:#?}");
}

#[test]
fn output_has_the_problems_then_what_is_ok_and_a_summary() {
    let school = School::with_menu("");
    school.write("broken.json", "{");
    school.write("bad\u{1b}[31m\n.json", "{}");
    school.write("orphan/x", "");
    let output = run(&school, &[], &[], "");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    // A temporary folder in memory, as Debian 13 has it, is another warning.
    let summary = lines.pop().unwrap();
    assert!(
        ["1 error, 1 warning", "1 error, 2 warnings"].contains(&summary),
        "{text}"
    );
    let mut levels: Vec<_> = lines.iter().map(|line| &line[..8]).collect();
    levels.dedup();
    assert_eq!(
        levels,
        ["error   ", "warning ", "hint    ", "ok      "],
        "{text}"
    );
    assert!(!text.contains('\u{1b}'));
    assert_eq!(output.stderr, b"");

    let nobody = run(&school, AS_NOBODY, &["--session"], "");
    assert!(nobody.stdout.ends_with(b"\n1 error\n"));
}

#[test]
fn invalid_setting_is_one_finding_with_its_value_and_place() {
    let school = School::new();
    for (setting, problem) in [
        ("COMEDOR_SERVICE=../x", "COMEDOR_SERVICE must be"),
        (
            "COMEDOR_SESSION_FORMAT=x", "COMEDOR_SESSION_FORMAT must be php,",
        ),
        (
            "COMEDOR_SESSION_DIR=tls://h?auth=s3cret",
            "COMEDOR_SESSION_DIR must ",
        ),
        ("TZ=Mars", "TZ must name a time zone"),
    ] {
        let shown = setting.replace("h?auth=s3cret", "…");
        let text = format!("{shown} (the environment): {problem}");
        let findings = check(&school, &["env", setting], &[], "");
        found(&findings, "error", "settings", &text);
        assert_eq!(count(&findings, "error"), 1);
    }
}

#[test]
fn a_limit_on_processes_is_named() {
    let wrapper = [AS_NOBODY, &["prlimit", "--nproc=1"]].concat();
    let findings = check(&School::new(), &wrapper, &[], "");
    found(
        &findings,
        "error",
        "check",
        "cannot start a thread: Resource temporarily unavailable",
    );
}

#[test]
fn a_program_with_a_set_user_id_bit_does_not_run() {
    // Debian 13 mounts /tmp with nosuid, where the bit has no effect.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    chmod(folder.path(), 0o755);
    let program = program_in(folder.path(), "");
    for (mode, runs) in [(0o755, true), (0o4755, false), (0o2755, false)] {
        chmod(&program, mode);
        for variables in [&[][..], &[("REQUEST_METHOD", "GET")]] {
            let mut command = Command::new(AS_NOBODY[0]);
            command
                .args(&AS_NOBODY[1..])
                .arg(&program)
                .arg("--version")
                .env_clear();
            let output = command.envs(variables.iter().copied()).output().unwrap();
            assert_eq!(!output.stdout.is_empty(), runs);
            let is_refused = output
                .stderr
                .starts_with(b"comedor: the program has a set-user-ID");
            assert_eq!(!is_refused, runs);
        }
    }
}
