//! The administrator's self-check.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
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
        "when comedor is enabled in Apache or nginx, this check looks from",
    );
    let data_dir = format!("COMEDOR_DATA_DIR={} (the environment)", school.data().display());
    found(&findings, "ok", "settings", &data_dir);
    found(&findings, "ok", "settings", "any other setting has its default");
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
        ("hint", "orphan", "the configuration file of that name is missing"),
        ("warning", ".Comedor-MenuTypes.json.tmp", "killed"),
        (
            "warning",
            "Comedor-MenuTypes.json",
            "without a usable id or with that of an earlier one: 2, 3, 4",
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
        ("hint", "11/31", "is not a day"),
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
fn symbolic_links_are_named_and_never_moved() {
    let school = School::new();
    school.save(json!({"date": DATE, "menu_type": "basal", "plates": {}}));
    let link = |path| {
        let path = school.path(path);
        _ = fs::rename(&path, path.with_extension("target"));
        symlink(path.with_extension("target"), path).unwrap();
    };
    [LOCK, TYPES, DAY, "aula2.json"].into_iter().for_each(link);
    let (status, findings) = check(&school, &[], &[], "");
    assert_eq!(status, 2);
    for about in [TYPES, DAY, "aula2.json"] {
        let finding = found(&findings, "error", about, "is a symbolic link");
        assert_eq!(finding["fix"], Value::Null);
    }
    fix(&[], found(&findings, "error", LOCK, "is not a regular file, so menus cannot be saved"));
    assert!(!school.path(LOCK).is_symlink());
}

/// Opens the folder of the school to all users; its data and sessions belong to nobody.
fn of_nobody(school: &School) {
    let parent = school.data().parent().unwrap().to_owned();
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o755)).unwrap();
    for folder in [school.data(), school.sessions()] {
        output(Command::new("chown").args(["-R", "nobody:nogroup"]).arg(folder), "coreutils");
    }
}

#[test]
fn missing_permissions_are_found_and_their_owner_gets_a_command() {
    let school = School::new();
    school.save(json!({"date": DATE, "menu_type": "basal", "plates": {}}));
    let open = |path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    open(school.data().parent().unwrap().to_owned(), 0o755);
    // Nobody but root can fix these; the command would follow what the user puts there.
    let (status, findings) = check(&school, AS_NOBODY, &[], "");
    assert_eq!(status, 2);
    found(&findings, "ok", "user", "nobody");
    found(
        &findings,
        "hint",
        "user",
        "this is what nobody sees; root sees more: sudo comedor check",
    );
    found(&findings, "error", "/Aularios", "nobody cannot write here (Permission denied");
    found(&findings, "error", "/Aularios", "it belongs to root, mode 0755");
    found(&findings, "error", "/aula1", "nobody may not change 6 paths here");
    assert!(findings.iter().all(|finding| finding["fix"] == Value::Null), "{findings:#?}");

    of_nobody(&school);
    let (status, findings) = check(&school, AS_NOBODY, &[], "");
    assert_eq!(status, 1, "{findings:#?}");
    for (path, mode, about, text) in [
        (LOCK, 0o400, "/aula1", "may not change 1 path here"),
        ("aula1/Comedor", 0o500, "/aula1", "aula1/Comedor;"),
        ("aula1/Comedor/2026-11", 0o500, "/aula1", "may not change 1 path here"),
        ("aula1.json", 0, "aula1.json", "Permission denied"),
        ("", 0o500, "/Aularios", "fails for aularios without a folder: aula2"),
        ("", 0o300, "/Aularios", "cannot list this folder"),
        ("", 0o600, "/Aularios", "cannot open what is in this folder"),
        ("../..", 0, "/Centros", "nobody needs execute permission"),
    ] {
        open(school.path(path), mode);
        let (_, findings) = check(&school, AS_NOBODY, &[], "");
        let is =
            |finding: &&Value| ["error", "warning"].contains(&finding["level"].as_str().unwrap());
        let is_about = |finding: &&Value| finding["about"].as_str().unwrap().ends_with(about);
        let finding = findings.iter().filter(is).find(is_about).expect(text);
        assert!(finding["text"].as_str().unwrap().contains(text), "{findings:#?}");
        assert!(!finding["fix"].as_str().unwrap().contains("sudo"), "{finding}");
        fix(AS_NOBODY, finding);
        assert_eq!(check(&school, AS_NOBODY, &[], "").0, 1, "{path} {mode:o}");
    }
    // The folder of the aularios needs to be writable only to create the folder of one.
    fs::create_dir(school.path("aula2")).unwrap();
    open(school.path("aula2"), 0o777);
    open(school.aularios(), 0o555);
    assert_eq!(check(&school, AS_NOBODY, &[], "").0, 1);
}

#[test]
fn each_folder_is_checked_by_itself() {
    let school = School::new();
    of_nobody(&school);
    let closed = school.data().join("Centros/ceip1");
    fs::create_dir_all(closed.join("Aularios")).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    school.write("aula2.json", "{");
    let (_, findings) = check(&school, AS_NOBODY, &[], "");
    let finding = found(&findings, "error", "/Centros/ceip1", "nobody cannot open what is in this");
    assert!(finding["text"].as_str().unwrap().ends_with("; it belongs to root, mode 0700"));
    found(&findings, "error", "aula2.json", "is damaged");
    assert!(!format!("{findings:?}").contains("ceip1/Aularios"), "{findings:#?}");
}

/// Between the check and the command, who can write a folder could put something else in its place.
#[test]
fn a_command_runs_as_the_user_who_can_change_what_is_there() {
    let school = School::new();
    of_nobody(&school);
    let leftover = school.path("aula1/.x y.tmp");
    school.write("aula1/.x y.tmp", "half");
    let old = SystemTime::now() - Duration::from_secs(120);
    fs::File::open(&leftover).unwrap().set_modified(old).unwrap();
    let own = |uid, gid| chown(school.path("aula1"), Some(uid), Some(gid)).unwrap();
    let mode = |mode| {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(school.path("aula1"), mode).unwrap();
    };
    let command = |wrapper: &[&str]| {
        let (_, findings) = check(&school, wrapper, &[], "");
        found(&findings, "warning", ".x y.tmp", "was left by a process")["fix"].clone()
    };
    let rm = format!("rm '{}'", fs::canonicalize(&leftover).unwrap().display());
    own(65534, 65534);
    assert_eq!(command(&[]), format!("sudo -u nobody {rm}"));
    assert_eq!(command(AS_NOBODY), rm);
    mode(0o777);
    assert_eq!(command(&[]), Value::Null, "every user");
    mode(0o755);
    own(1, 65534);
    assert_eq!(command(&[]), Value::Null, "two users");
    let own_all = |owner: &str| {
        output(Command::new("chown").args(["-R", owner]).arg(school.data()), "coreutils");
    };
    own_all("4242:0");
    assert_eq!(command(&[]), format!("sudo -u '#4242' {rm}"));
    mode(0o775);
    own_all("games:games");
    assert_eq!(command(&[]), format!("sudo -u games {rm}"), "the only user of its group");
    own_all("games:nogroup");
    assert_eq!(command(&[]), Value::Null, "a group with other users");
    own_all("games:games");
    output(Command::new("setfacl").args(["-m", "u:33:rwx"]).arg(school.path("aula1")), "acl");
    assert_eq!(command(&[]), Value::Null, "a user in an access control list");
    output(Command::new("setfacl").arg("-b").arg(school.path("aula1")), "acl");
    own_all("root:root");
    assert_eq!(command(&[]), format!("sudo {rm}"));
    fix(&[], &json!({"fix": command(&[])}));
    assert!(!leftover.exists());
}

#[test]
fn no_command_gives_access_to_a_folder_outside_of_the_data() {
    let school = School::new();
    let parent = school.data().parent().unwrap().to_owned();
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o700)).unwrap();
    let (status, findings) = check(&school, AS_NOBODY, &[], "");
    assert_eq!(status, 2);
    for what in ["data folder (COMEDOR_DATA_DIR)", "session folder (COMEDOR_SESSION_DIR)"] {
        let text = format!(
            "needs execute permission for this folder to reach the {what}; if the folder must stay closed"
        );
        let finding = found(&findings, "error", parent.to_str().unwrap(), &text);
        assert_eq!(finding["fix"], Value::Null);
    }
}

/// As systemd's ProtectHome=yes does.
#[test]
fn folder_that_systemd_hides_is_an_error() {
    let school = School::new();
    let parent = school.data().parent().unwrap().to_owned();
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o0)).unwrap();
    let (_, findings) = check(&school, AS_NOBODY, &[], "");
    let text = "the service needs ProtectHome=no to reach the data folder (COMEDOR_DATA_DIR";
    found(&findings, "error", parent.to_str().unwrap(), text);
}

#[test]
fn no_command_follows_a_symbolic_link_out_of_the_data() {
    let school = School::new();
    let parent = school.data().parent().unwrap().to_owned();
    let closed = |path: &std::path::Path, mode| {
        fs::create_dir_all(path.join("2026-11")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o755)).unwrap();
    closed(&parent.join("unwritable"), 0o755);
    closed(&parent.join("unreadable"), 0o700);
    symlink(parent.join("unwritable"), school.path("aula1")).unwrap();
    fs::create_dir(school.path("aula2")).unwrap();
    symlink(parent.join("unreadable"), school.path("aula2/Comedor")).unwrap();
    fs::create_dir(school.data().join("Centros/centro2")).unwrap();
    symlink(parent.join("unwritable"), school.data().join("Centros/centro2/Aularios")).unwrap();
    fs::write(parent.join("unwritable/aula3.json"), "{}").unwrap();
    let (_, findings) = check(&school, AS_NOBODY, &[], "");
    for (level, about, text) in [
        ("error", "/aula1", "may not change"),
        ("error", "/aula2/Comedor", "cannot open what is in this folder"),
        ("error", "/centro2/Aularios", "cannot write here"),
    ] {
        assert_eq!(found(&findings, level, about, text)["fix"], Value::Null, "{about}");
    }

    fs::rename(school.data().join("Centros"), parent.join("unreadable/Centros")).unwrap();
    symlink(parent.join("unreadable"), school.data().join("Centros")).unwrap();
    let (_, findings) = check(&school, AS_NOBODY, &[], "");
    let finding = found(&findings, "error", "/Centros", "needs execute permission");
    assert_eq!(finding["fix"], Value::Null);
}

#[test]
fn folder_with_the_name_of_a_temporary_file_gets_no_command() {
    let school = School::new();
    school.write("aula1/.x.tmp/kept", "");
    let old = SystemTime::now() - Duration::from_secs(120);
    fs::File::open(school.path("aula1/.x.tmp")).unwrap().set_modified(old).unwrap();
    let (_, findings) = check(&school, &[], &[], "");
    assert!(!format!("{findings:?}").contains(".x.tmp"), "{findings:#?}");
}

#[test]
fn damaged_file_is_not_moved_into_a_folder() {
    let school = School::new();
    school.write(TYPES, "{");
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), school.path(&format!("{TYPES}.broken"))).unwrap();
    let (_, findings) = check(&school, &[], &[], "");
    fix(&[], found(&findings, "error", TYPES, "is damaged"));
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    assert_eq!(school.read(&format!("{TYPES}.broken")), "{");
}

#[test]
fn wrong_data_folder_is_reported_with_the_right_one() {
    let school = School::new();
    let data = school.data();
    for (setting, text) in [
        (data.join("Centros"), "/data does"),
        (data.parent().unwrap().to_owned(), "/data does"),
        (data.with_file_name("missing"), "/data does"),
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
    let each = format!("; {} does; {} does", data.display(), second.display());
    found(&findings, "error", "/missing", &each);
}

#[test]
fn check_of_a_session_shows_only_centre_aularios_and_permissions() {
    let school = School::new();
    let secret = format!("secret|s:6:\"sesame\";{}", session(TEACHER));
    let path = school.log_in("secret", secret);
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    for input in ["secret\n", "secret", "PHPSESSID=secret\n", "a=b; PHPSESSID=secret"] {
        let (status, findings) = check(&school, &[], &["--session"], input);
        assert_eq!((status, findings.len()), (0, 7), "{input}");
        found(&findings, "ok", "session", "the centre is centro1");
        found(&findings, "ok", "session", "every aulario");
        found(&findings, "ok", "session", "may read");
        found(&findings, "hint", "session", "sysadmin:access is missing");
        assert!(!format!("{findings:?}").contains("sesame"));
    }
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before, "not kept alive");
    school.log_in("elsewhere", session_of("centro9", TEACHER));
    school.log_in("named", session_of("Colegio San José", TEACHER));
    school.log_in("garbage", "x");
    school.log_in("out", "auth_ok|b:0;");
    let unit = "a:1:{s:6:\"centro\";s:1:\"c\";}";
    school.log_in("two", format!("auth_ok|b:1;auth_data|a:2:{{i:7;{unit}s:5:\"aulas\";{unit}}}"));
    school.log_in("none", "auth_ok|b:1;auth_data|a:1:{s:1:\"x\";a:0:{}}");
    for (wrapper, input, text) in [
        (&[][..], "elsewhere", "Centros/centro9 for the centre"),
        (
            &[],
            "named",
            "the session's centre \"Colegio San José\" is not a valid id: it must be 1 to 64",
        ),
        (&[], "no", "the request has no valid session"),
        (&[], "../x", "expected the value of the cookie PHPSESSID"),
        (&[], "", "expected the value of the cookie PHPSESSID"),
        (&[], "garbage", "byte 1"),
        (&[], "out", "not logged in"),
        (&[], "none", "under no other service"),
        (&[], "two", "but under `7`, `aulas`: set COMEDOR_SERVICE accordingly"),
        (
            &["env", "COMEDOR_SERVICE=menus"],
            "secret",
            "but under `service`: set COMEDOR_SERVICE accordingly",
        ),
        (&["env", "COMEDOR_SESSION_NAME=SID"], "PHPSESSID=secret", "value of the cookie SID"),
    ] {
        let (status, findings) = check(&school, wrapper, &["--session"], input);
        assert_eq!(status, 2, "{input}");
        found(&findings, "error", "session", text);
    }
    let folder = school.sessions().parent().unwrap().to_owned();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let (_, findings) = check(&school, AS_NOBODY, &["--session"], "secret");
    found(&findings, "error", "session", "user 65534 needs read and write permission");
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
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0), "{text}");
    assert!(text.contains("Value of the session cookie: "), "{text}");
    assert!(text.contains("may change menus"), "{text}");
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
fn a_program_with_a_set_user_id_bit_does_not_run() {
    let folder = tempfile::tempdir().unwrap();
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
