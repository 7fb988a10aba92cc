//! The exit status of `comedor check`, which a script looks at. What it finds: tests/system/check/.

use std::fs::File;
use std::io::Write;
use std::process::Command;

use crate::support::*;

/// The exit status and the lines of `comedor check` with these options and this input.
fn findings(school: &School, options: &[&str], input: &str) -> (Option<i32>, String) {
    let mut command = school.get("").set("TZ", "UTC").responder();
    let mut child = command.arg("check").args(options).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), lines)
}

/// The exit status and the last line.
fn check(school: &School, options: &[&str], input: &str) -> (Option<i32>, String) {
    let (status, lines) = findings(school, options, input);
    (status, lines.lines().last().unwrap().to_owned())
}

/// As by a PHP page that does not end.
#[test]
fn check_of_a_session_ends_while_it_is_held() {
    let school = School::new();
    let session = File::open(school.sessions().join("sess_admin")).unwrap();
    session.lock().unwrap();
    let (status, _) = check(&school, &["--session"], "admin");
    assert_eq!(status, Some(2));
}

#[test]
fn check_of_a_session_names_the_aularios_of_the_user() {
    let school = School::new();
    for (aulas, line) in [
        (None, "every aulario of the centre"),
        (
            Some("a:2:{i:0;s:5:\"aula1\";i:1;i:7;}"),
            "the aularios aula1, 7",
        ),
    ] {
        let mut content = session(&["service:docente"]);
        if let Some(aulas) = aulas {
            let unit = "a:1:{s:6:\"centro\";s:7:\"centro1\";";
            assert!(content.contains(unit));
            let listed = unit.replacen("a:1", "a:2", 1) + "s:5:\"aulas\";" + aulas;
            content = content.replace(unit, &listed);
        }
        school.log_in("listed", content);
        let (_, lines) = findings(&school, &["--session"], "listed");
        assert!(
            lines.contains(&format!("the user may use {line}\n")),
            "{lines}"
        );
    }
}

#[test]
fn the_exit_status_of_check_is_0_without_problems_1_with_warnings_and_2_with_errors() {
    let school = School::new();
    school.log_in("nobody", session(&[]));
    for (id, status, last) in [
        ("admin", 0, "no problems found"),
        ("teacher", 0, "no problems found"),
        ("nobody", 1, "1 warning"),
        ("missing", 2, "1 error"),
    ] {
        let checked = check(&school, &["--session"], id);
        assert_eq!(checked, (Some(status), last.to_owned()), "{id}");
    }
    school.write("Sala de música.json", "{}");
    let (status, last) = check(&school, &[], "");
    assert_eq!(status, Some(1), "{last}");
    school.write("aula1/Comedor-MenuTypes.json", "[");
    let (status, last) = check(&school, &[], "");
    assert_eq!(status, Some(2), "{last}");
    assert!(last.starts_with("1 error, "), "{last}");
}

#[test]
fn check_counts_saved_days_and_names_folders_that_are_no_date() {
    let school = School::with_menu("x");
    school.write("aula1/Comedor/2026-11/31/_datos.json", "{}");
    let (_, lines) = findings(&school, &[], "");
    assert!(lines.contains(" and 1 saved day checked"), "{lines}");
    let hint = "/aula1/Comedor/2026-11/31: is not the folder of a day";
    assert!(lines.contains(hint), "{lines}");
}

#[test]
fn check_names_where_each_setting_was_set_and_whether_none_was() {
    let folder = tempfile::tempdir().unwrap();
    let hint = "there is neither a settings file nor a variable COMEDOR_…";
    for (settings, line) in [
        ("# Nothing is set.\n", "TZ=UTC (the environment)"),
        (
            "# One is.\nCOMEDOR_SERVICE=x\n",
            "COMEDOR_SERVICE=x (FOLDER/comedor.conf line 2)",
        ),
    ] {
        let program = program_in(folder.path(), settings);
        let mut check = Command::new(program);
        check.arg("check").env_clear().env("TZ", "UTC");
        let lines = String::from_utf8(check.output().unwrap().stdout).unwrap();
        let line = line.replace("FOLDER", folder.path().to_str().unwrap());
        assert!(lines.contains(&line), "{lines}");
        assert!(!lines.contains(hint), "{lines}");
    }
}
