//! Who can use the data: what the self-check finds about permissions, and the commands that it suggests.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::Path;
use std::process::Command;

use crate::check::{check, count, fix, found, make_old};
use crate::support::*;

/// Gives the data and the sessions of the school to `owner`.
fn give(school: &School, owner: &str) {
    let mut chown = Command::new("chown");
    output(chown.args(["-R", owner]).args([school.data(), school.sessions()]), "coreutils");
}

#[test]
fn missing_permissions_are_found_and_their_owner_gets_a_command() {
    let school = School::with_menu("");
    // Nobody but root can fix these; the command would follow what the user puts there.
    let findings = check(&school, AS_NOBODY, &[], "");
    found(&findings, "ok", "user", "nobody");
    found(&findings, "hint", "user", "checked as nobody; root can check more: sudo comedor check");
    found(&findings, "error", "/Aularios", "nobody cannot write here (Permission denied");
    found(&findings, "error", "/Aularios", "it belongs to root, mode 0755");
    found(&findings, "error", "/aula1", "nobody cannot write to 6 paths here");
    let of_sessions = "nobody cannot use any of the session files, which belong to root: comedor must run as PHP's user";
    found(&findings, "error", "/sessions", of_sessions);
    assert!(findings.iter().all(|finding| finding["fix"] == Value::Null), "{findings:#?}");

    give(&school, "nobody:nogroup");
    let errors = || count(&check(&school, AS_NOBODY, &[], ""), "error");
    assert_eq!(errors(), 0);
    let not_listed =
        "nobody cannot list this folder (Permission denied (os error 13)), so it is not checked";
    for (path, mode, level, about, text) in [
        (LOCK, 0o400, "error", "/aula1", "cannot write to 1 path here"),
        ("aula1/Comedor", 0o500, "error", "/aula1", "aula1/Comedor;"),
        ("aula1/Comedor/2026-11", 0o500, "error", "/aula1", "cannot write to 1 path here"),
        ("aula1.json", 0, "error", "aula1.json", "Permission denied"),
        ("", 0o500, "error", "/Aularios", "fails for aularios without a folder: aula2"),
        ("", 0o300, "warning", "/Aularios", not_listed),
        ("", 0o600, "error", "/Aularios", "nobody cannot enter this folder"),
        ("../..", 0, "error", "/Centros", "nobody needs execute permission"),
    ] {
        chmod(school.path(path), mode);
        let findings = check(&school, AS_NOBODY, &[], "");
        let finding = found(&findings, level, about, text);
        assert!(!finding["fix"].as_str().unwrap().contains("sudo"), "{finding}");
        fix(AS_NOBODY, finding);
        assert_eq!(errors(), 0, "{path} {mode:o}");
    }
    // The folder of the aularios needs to be writable only to create the folder of one.
    fs::create_dir(school.path("aula2")).unwrap();
    chmod(school.path("aula2"), 0o777);
    chmod(school.aularios(), 0o555);
    assert_eq!(errors(), 0);
}

#[test]
fn each_folder_is_checked_by_itself() {
    let school = School::new();
    give(&school, "nobody:nogroup");
    let closed = school.data().join("Centros/ceip1");
    fs::create_dir_all(closed.join("Aularios")).unwrap();
    chmod(closed, 0o700);
    school.write("aula2.json", "{");
    let findings = check(&school, AS_NOBODY, &[], "");
    let finding = found(&findings, "error", "/Centros/ceip1", "nobody cannot enter this");
    assert!(finding["text"].as_str().unwrap().ends_with("; it belongs to root, mode 0700"));
    found(&findings, "error", "aula2.json", "is damaged");
    assert!(!format!("{findings:?}").contains("ceip1/Aularios"), "{findings:#?}");
}

/// Between the check and the command, who can write a folder could put something else in its place.
#[test]
fn a_command_runs_as_the_user_who_can_change_what_is_there() {
    let school = School::new();
    give(&school, "nobody:nogroup");
    let (aula1, leftover) = (school.path("aula1"), school.path("aula1/.x y.tmp"));
    school.write("aula1/.x y.tmp", "half");
    make_old(&leftover);
    let own = |uid, gid| chown(&aula1, Some(uid), Some(gid)).unwrap();
    let command = |wrapper: &[&str]| {
        let findings = check(&school, wrapper, &[], "");
        found(&findings, "warning", ".x y.tmp", "is left over from a killed process")["fix"].clone()
    };
    let rm = format!("rm '{}'", fs::canonicalize(&leftover).unwrap().display());
    own(65534, 65534);
    assert_eq!(command(&[]), format!("sudo -u nobody {rm}"));
    assert_eq!(command(AS_NOBODY), rm);
    chmod(&aula1, 0o777);
    assert_eq!(command(&[]), Value::Null, "every user");
    chmod(&aula1, 0o755);
    own(1, 65534);
    assert_eq!(command(&[]), Value::Null, "two users");
    give(&school, "4242:0");
    assert_eq!(command(&[]), format!("sudo -u '#4242' {rm}"));
    chmod(&aula1, 0o775);
    give(&school, "games:games");
    assert_eq!(command(&[]), format!("sudo -u games {rm}"), "the only user of its group");
    give(&school, "games:nogroup");
    assert_eq!(command(&[]), Value::Null, "a group with other users");
    give(&school, "games:games");
    output(Command::new("setfacl").args(["-m", "u:33:rwx"]).arg(&aula1), "acl");
    assert_eq!(command(&[]), Value::Null, "a user in an access control list");
    output(Command::new("setfacl").arg("-b").arg(&aula1), "acl");
    give(&school, "root:root");
    assert_eq!(command(&[]), format!("sudo {rm}"));

    // The folder belongs to root, and a link to it to nobody, who could have made it.
    let (centres, aside) = (school.data().join("Centros"), school.data().join("aside"));
    fs::rename(&centres, &aside).unwrap();
    fs::create_dir(&centres).unwrap();
    chown(&centres, Some(65534), Some(65534)).unwrap();
    symlink(aside.join("centro1"), centres.join("centro1")).unwrap();
    let real = aside.join(leftover.strip_prefix(&centres).unwrap());
    let rm_of_link = format!("rm '{}'", fs::canonicalize(real).unwrap().display());
    assert_eq!(command(&[]), format!("sudo -u nobody {rm_of_link}"));
    // A link of root to that link.
    let of_nobody = school.data().join("nobody");
    fs::rename(&centres, &of_nobody).unwrap();
    fs::create_dir(&centres).unwrap();
    symlink(of_nobody.join("centro1"), centres.join("centro1")).unwrap();
    assert_eq!(command(&[]), format!("sudo -u nobody {rm_of_link}"));
    fs::remove_dir_all(&centres).unwrap();
    fs::rename(&aside, &centres).unwrap();
    fix(&[], &json!({"fix": command(&[])}));
    assert!(!leftover.exists());
}

#[test]
fn a_closed_folder_outside_of_the_data_is_an_error_without_a_command() {
    let school = School::new();
    let parent = school.data().parent().unwrap().to_owned();
    for (mode, start, end) in [
        (0o700, "nobody needs execute permission for this folder to reach", "must stay closed"),
        // As systemd's ProtectHome=yes does.
        (0o000, "is closed to nobody", "the service needs ProtectHome=no to reach"),
    ] {
        chmod(&parent, mode);
        let findings = check(&school, AS_NOBODY, &[], "");
        for what in ["data folder (COMEDOR_DATA_DIR", "session folder (COMEDOR_SESSION_DIR"] {
            let finding = found(&findings, "error", parent.to_str().unwrap(), what);
            let text = finding["text"].as_str().unwrap();
            assert!(text.starts_with(start) && text.contains(end), "{text}");
            assert_eq!(finding["fix"], Value::Null);
        }
    }
}

#[test]
fn no_command_follows_a_symbolic_link_out_of_the_data() {
    let school = School::new();
    let parent = school.data().parent().unwrap().to_owned();
    let closed = |path: &Path, mode| {
        fs::create_dir_all(path.join("2026-11")).unwrap();
        chmod(path, mode);
    };
    closed(&parent.join("unwritable"), 0o755);
    closed(&parent.join("unreadable"), 0o700);
    symlink(parent.join("unwritable"), school.path("aula1")).unwrap();
    fs::create_dir(school.path("aula2")).unwrap();
    symlink(parent.join("unreadable"), school.path("aula2/Comedor")).unwrap();
    fs::create_dir(school.data().join("Centros/centro2")).unwrap();
    symlink(parent.join("unwritable"), school.data().join("Centros/centro2/Aularios")).unwrap();
    fs::write(parent.join("unwritable/aula3.json"), "{}").unwrap();
    let findings = check(&school, AS_NOBODY, &[], "");
    for (level, about, text) in [
        ("error", "/aula1", "cannot write to"),
        ("error", "/aula2/Comedor", "cannot enter this folder"),
        ("error", "/centro2/Aularios", "cannot write here"),
    ] {
        assert_eq!(found(&findings, level, about, text)["fix"], Value::Null, "{about}");
    }

    fs::rename(school.data().join("Centros"), parent.join("unreadable/Centros")).unwrap();
    symlink(parent.join("unreadable"), school.data().join("Centros")).unwrap();
    let findings = check(&school, AS_NOBODY, &[], "");
    let finding = found(&findings, "error", "/Centros", "needs execute permission");
    assert_eq!(finding["fix"], Value::Null);
}

#[test]
fn symbolic_links_are_named_and_never_moved() {
    let school = School::with_menu("");
    let link = |path| {
        let path = school.path(path);
        _ = fs::rename(&path, path.with_extension("target"));
        symlink(path.with_extension("target"), path).unwrap();
    };
    [LOCK, TYPES, DAY, "aula2.json"].into_iter().for_each(link);
    let findings = check(&school, &[], &[], "");
    for about in [TYPES, DAY, "aula2.json"] {
        let finding = found(&findings, "error", about, "is a symbolic link");
        assert_eq!(finding["fix"], Value::Null);
    }
    fix(&[], found(&findings, "error", LOCK, "is not a regular file, so menus cannot be saved"));
    assert!(!school.path(LOCK).is_symlink());
}

#[test]
fn root_that_lacks_capabilities_cannot_save_files_of_others() {
    let school = School::new();
    let without = ["setpriv", "--bounding-set=-chown,-lease"];
    let text =
        "root lacks the capabilities CHOWN, LEASE (cap_add), so it cannot save files of www-data";
    let findings = check(&school, &without, &[], "");
    assert!(!format!("{findings:?}").contains("capabilities"), "{findings:#?}");
    chown(school.data().join("Centros"), Some(33), Some(33)).unwrap();
    found(&check(&school, &without, &[], ""), "error", "/Centros", text);
}
