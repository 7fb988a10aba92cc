//! The administrator's self-check.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use crate::check_machine::check_with;
use crate::support::*;

/// Hides the web servers and PHP's processes of this machine.
pub const ALONE: &[&str] = &["unshare", "--pid", "--fork", "--mount-proc"];

/// Runs `comedor check` under the command `wrapper`, with `input` on standard input.
fn run(school: &School, wrapper: &[&str], options: &[&str], input: &str) -> Output {
    let words = [ALONE, wrapper, &[program(), "check"], options].concat();
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

/// Runs the check with `--json`; returns its exit status and its findings.
#[track_caller]
pub fn check(
    school: &School,
    wrapper: &[&str],
    options: &[&str],
    input: &str,
) -> (i32, Vec<Value>) {
    let output = run(school, wrapper, &[&["--json"], options].concat(), input);
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let status = output.status.code().unwrap();
    assert_eq!(document["status"], status);
    let findings = document["findings"].as_array().unwrap().clone();
    for (key, level) in [("errors", "error"), ("warnings", "warning")] {
        let count = findings.iter().filter(|finding| finding["level"] == level).count();
        assert_eq!(document[key], count);
    }
    (status, findings)
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

/// Runs the command of a finding as the user who sees it, in the shell of the system.
#[track_caller]
pub fn fix(wrapper: &[&str], finding: &Value) {
    let command = finding["fix"].as_str().unwrap_or_else(|| panic!("a command: {finding}"));
    let words = [wrapper, &["sh", "-c", command]].concat();
    output(Command::new(words[0]).args(&words[1..]), "sudo");
}

#[test]
fn correct_installation_has_only_hints() {
    let school = School::new();
    school.save(json!({"date": DATE, "menu_type": "basal", "plates": {}}));
    let files = school.files();
    let ini = format!("session.save_path = {}\ndate.timezone = UTC\n", school.sessions().display());
    let findings = check_with(&school, &[], &[("php/8.2/fpm/php.ini", &ini)], "true");
    // The temporary folder may be in memory or in a container.
    let is_file_system =
        |finding: &Value| finding["text"].as_str().unwrap().starts_with("the file system is ");
    let bad: Vec<_> = findings
        .iter()
        .filter(|finding| ["warning", "error"].contains(&finding["level"].as_str().unwrap()))
        .filter(|finding| !is_file_system(finding))
        .map(|finding| finding["about"].as_str().unwrap())
        .collect();
    // The test runs as root, and its session folder may be in /tmp.
    let sessions = school.sessions();
    let is_in_tmp = ["/tmp", "/var/tmp"].into_iter().any(|folder| sessions.starts_with(folder));
    let expected = [sessions.to_str().unwrap()];
    assert_eq!(bad, expected[..usize::from(is_in_tmp)], "{findings:#?}");
    found(
        &findings,
        "hint",
        "user",
        "once comedor is enabled in Apache or nginx, the check runs as the user",
    );
    let data_dir = format!("COMEDOR_DATA_DIR={} (the environment)", school.data().display());
    found(&findings, "ok", "settings", &data_dir);
    found(&findings, "ok", "settings", "the other settings have their defaults");
    found(&findings, "ok", "settings", "today is 20");
    found(&findings, "ok", "/Centros", "3 aularios and 1 saved day checked");
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
        ("aula1/.a'b\n\u{1}.tmp", "half"),
        ("aula1/._datos.json.tmp", "of a running writer"),
        ("aula1/Comedor-MenuTypes.json", r#"[{"id":"a"},{"id":"a"},{"id":""},5]"#),
        ("aula1/Comedor/2026-11/21/_datos.json", r#"{"menus":{"a":{"plates":{"primero":"x"}}}}"#),
        ("aula1/Comedor/2026-11/22/_datos.json", "{\"menus\""),
        ("aula1/Comedor/2026-11/23/_datos.json", ""),
        ("aula1/Comedor/2026-11/31/_datos.json", "{}"),
        ("aula2/Comedor-MenuTypes.json", "{"),
        ("compartida/Comedor-MenuTypes.json", "{"),
    ] {
        school.write(path, content);
    }
    for leftover in ["aula1/.Comedor-MenuTypes.json.tmp", "aula1/.a'b\n\u{1}.tmp"] {
        let file = fs::File::open(school.path(leftover)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(120)).unwrap();
    }
    let (status, findings) = check(&school, &[], &[], "");
    assert_eq!(status, 2);
    for (level, about, text) in [
        ("warning", "self.json", "shared_comedor_from is `self`, which is not another aulario"),
        (
            "warning",
            "nowhere.json",
            "shared_comedor_from is `missing`, which is not another aulario",
        ),
        (
            "warning",
            "chain.json",
            "shared_comedor_from is `compartida`, which has shared_comedor_from too",
        ),
        ("warning", "two words.json", "not a valid id"),
        ("error", "broken.json", "is damaged (invalid JSON: EOF"),
        ("hint", "orphan", "its configuration file, of the same name with .json, is missing"),
        ("warning", ".Comedor-MenuTypes.json.tmp", "killed"),
        (
            "warning",
            "Comedor-MenuTypes.json",
            "entries with an invalid or duplicate id, which no request can use: 2, 3, 4",
        ),
        ("error", "21/_datos.json", "menus.a.plates.primero is not a map"),
        ("error", "22/_datos.json", "EOF"),
        ("error", "22/_datos.json", "the day has no menus until the file is back"),
        (
            "error",
            "aula2/Comedor-MenuTypes.json",
            "the three default types apply, and menus of other types",
        ),
        ("warning", "23/_datos.json", "is empty"),
        ("hint", "11/31", "is not the folder of a day"),
        ("hint", "aula1", "1 menu of type basal, which was deleted"),
    ] {
        found(&findings, level, about, text);
    }
    let about = |is: fn(&str) -> bool| {
        findings.iter().filter(move |finding| is(finding["about"].as_str().unwrap()))
    };
    // An aulario that shares does not use its own data.
    assert_eq!(about(|path| path.contains("/compartida/")).count(), 0);
    // In another shell, a name with a quote could be another command.
    for finding in about(|path| path.ends_with(".tmp")) {
        match finding["about"].as_str().unwrap().ends_with(".Comedor-MenuTypes.json.tmp") {
            true => fix(&[], finding),
            false => assert_eq!(finding["fix"], Value::Null),
        }
    }
    let is_temporary = |path: &String| path.ends_with(".tmp");
    assert_eq!(
        school.files().into_iter().filter(is_temporary).collect::<Vec<_>>(),
        ["aula1/._datos.json.tmp", "aula1/.a'b\n\u{1}.tmp"]
    );

    // Damaged files are moved away, next to those of an earlier time.
    school.write("aula2/Comedor-MenuTypes.json.broken", "earlier");
    fix(&[], found(&findings, "error", "aula2/Comedor-MenuTypes.json", "damaged"));
    assert_eq!(school.read("aula2/Comedor-MenuTypes.json.broken"), "{");
    assert_eq!(school.read("aula2/Comedor-MenuTypes.json.broken.~1~"), "earlier");
}

/// strace delays the list of the aularios; their folders are not read any more.
#[test]
fn a_slow_disk_limits_the_check_to_a_part_of_the_data() {
    let school = School::new();
    school.save(json!({"date": DATE, "menu_type": "basal", "plates": {}}));
    let (folder, inject) = (school.aularios(), "inject=getdents64:delay_enter=11s:when=1");
    let slow = ["strace", "-f", "-o", "/dev/null", "-P", folder.to_str().unwrap(), "-e", inject];
    let (_, findings) = check(&school, &slow, &[], "");
    found(&findings, "warning", "/Centros", "not everything was checked in 10 seconds");
    found(&findings, "ok", "/Centros", " and 0 saved days checked");
}

#[test]
fn wrong_data_folder_is_reported_with_the_right_one() {
    let school = School::new();
    let data = school.data();
    for (setting, text) in [
        (data.join("Centros"), "/data contains it"),
        (data.parent().unwrap().to_owned(), "/data contains it"),
        (data.with_file_name("missing"), "/data contains it"),
        (data.join("x/y"), "must name the folder that contains Centros"),
    ] {
        let setting = format!("COMEDOR_DATA_DIR={}", setting.display());
        let (status, findings) = check(&school, &["env", &setting], &[], "");
        assert_eq!(status, 2);
        found(&findings, "error", "", text);
    }
    fs::create_dir_all(data.with_file_name("second").join("Centros")).unwrap();
    let setting = format!("COMEDOR_DATA_DIR={}", data.with_file_name("missing").display());
    let (_, findings) = check(&school, &["env", &setting], &[], "");
    let second = data.with_file_name("second");
    let each = format!("; {} contains it; {} contains it", data.display(), second.display());
    found(&findings, "error", "/missing", &each);
}

#[test]
fn output_has_one_ok_line_per_subject_then_the_problems_and_a_summary() {
    let school = School::new();
    for number in 0..64 {
        school.write(&format!("a{number}.json"), "{}");
        fs::create_dir(school.path(&format!("a{number}"))).unwrap();
    }
    school.write("broken.json", "{");
    school.write("bad\u{1b}[31m\n.json", "{}");
    school.write("orphan/x", "");
    let output = run(&school, &[], &[], "");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let (summary, lines) = lines.split_last().unwrap();
    // A command is below its finding.
    let findings = lines.iter().filter(|line| !line.starts_with("        "));
    let (levels, rest): (Vec<_>, Vec<_>) = findings.map(|line| line.split_at(8)).unzip();
    let order = ["ok      ", "hint    ", "warning ", "error   "];
    let place = |level: &&str| order.iter().position(|known| known == level).expect(&text);
    assert!(levels.is_sorted_by_key(place), "the worst is last: {text}");
    let count = |level| levels.iter().filter(|other| **other == level).count();
    // User, settings, sessions, data.
    assert_eq!((count("ok      "), count("error   ")), (4, 1), "{text}");
    assert_eq!(*summary, format!("1 error, {} warnings", count("warning ")));
    assert!(rest.iter().any(|line| line.ends_with(" 68 aularios and 0 saved days checked")));
    assert!(!text.contains('\u{1b}'));
    assert_eq!(output.stderr, b"");

    let nobody = run(&school, AS_NOBODY, &["--session"], "");
    assert!(nobody.stdout.ends_with(b"\n1 error\n"));
}

#[test]
fn invalid_setting_is_one_finding_with_its_value_and_place() {
    let school = School::new();
    for (setting, text) in [
        ("COMEDOR_SERVICE=../x", "COMEDOR_SERVICE=../x (the environment): COMEDOR_SERVICE must be"),
        (
            "COMEDOR_SESSION_FORMAT=x",
            "COMEDOR_SESSION_FORMAT=x (the environment): COMEDOR_SESSION_FORMAT must be php,",
        ),
        (
            "COMEDOR_SESSION_DIR=tls://h?auth=s3cret",
            "COMEDOR_SESSION_DIR=tls://… (the environment):",
        ),
        ("TZ=Mars", "TZ=Mars (the environment): TZ must name a time zone"),
    ] {
        let (status, findings) = check(&school, &["env", setting], &[], "");
        assert_eq!(status, 2);
        found(&findings, "error", "settings", text);
        assert_eq!(findings.iter().filter(|finding| finding["level"] == "error").count(), 1);
    }
}

#[test]
fn a_limit_on_processes_is_named() {
    let wrapper = [AS_NOBODY, &["prlimit", "--nproc=1"]].concat();
    let (status, findings) = check(&School::new(), &wrapper, &[], "");
    assert_eq!(status, 2);
    found(&findings, "error", "/", "cannot start a thread: Resource temporarily unavailable");
}

#[test]
fn a_program_with_a_set_user_id_bit_does_not_run() {
    // Debian 13 mounts /tmp with nosuid, where the bit has no effect.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = program_in(folder.path(), "");
    let run = |mode, gateway: &[(&str, &str)]| {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        let mut command = Command::new(AS_NOBODY[0]);
        command.args(&AS_NOBODY[1..]).arg(&program).arg("--version").env_clear();
        command.envs(gateway.iter().copied()).output().unwrap()
    };
    assert!(run(0o755, &[]).stdout.starts_with(b"comedor "));
    for mode in [0o4755, 0o2755] {
        for variables in [&[][..], &[("REQUEST_METHOD", "GET")]] {
            let output = run(mode, variables);
            assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
            assert!(output.stderr.starts_with(b"comedor: the program has a set-user-ID"));
        }
    }
}

#[test]
fn database_beside_the_data_is_a_warning() {
    let school = School::new();
    for name in ["menus.sqlite", "app.db", "notes.txt"] {
        fs::write(school.data().join(name), "").unwrap();
    }
    let (_, findings) = check(&school, &[], &[], "");
    for name in ["menus.sqlite", "app.db"] {
        found(&findings, "warning", name, "is a database beside Centros");
    }
    assert!(!format!("{findings:?}").contains("notes.txt"));
}
