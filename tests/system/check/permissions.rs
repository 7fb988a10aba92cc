//! Who can use the data: what the self-check finds about permissions.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::process::Command;

use super::{check, count, found};
use crate::support::*;

#[test]
fn missing_permissions_are_found_with_the_owner_and_the_heading() {
    let school = School::with_menu("");
    let closed = school.data().join("Centros/ceip1");
    fs::create_dir_all(closed.join("Aularios")).unwrap();
    chmod(&closed, 0o700);
    let findings = check(&school, AS_NOBODY, &[], "");
    found(
        &findings, "error", "/Centros/ceip1", "nobody cannot enter this",
    );
    assert!(
        !format!("{findings:?}").contains("ceip1/Aularios"),
        "{findings:#?}"
    );
    found(&findings, "ok", "user", "nobody");
    found(
        &findings,
        "error",
        "/Aularios",
        "nobody cannot write here (Permission denied",
    );
    found(
        &findings, "error", "/Aularios", "it belongs to root, mode 0755",
    );
    found(
        &findings, "error", "/aula1", "nobody cannot write to 6 paths here",
    );

    let mut chown = Command::new("chown");
    output(
        chown.args(["-R", "nobody:nogroup"]).arg(school.folder()),
        "coreutils",
    );
    let errors = || count(&check(&school, AS_NOBODY, &[], ""), "error");
    assert_eq!(errors(), 0);
    let not_listed = "nobody cannot list this folder (Permission denied";
    for (path, mode, level, about, text) in [
        (
            LOCK, 0o400, "error", "/aula1", "cannot write to 1 path here",
        ),
        (
            "aula1/Comedor", 0o500, "error", "/aula1", "aula1/Comedor (Permission denied",
        ),
        ("aula1.json", 0, "error", "aula1.json", "Permission denied"),
        (
            "",
            0o500,
            "error",
            "/Aularios",
            "the first save in an aulario without a folder fails",
        ),
        ("", 0o300, "warning", "/Aularios", not_listed),
        (
            "", 0o600, "error", "/Aularios", "nobody cannot enter this folder",
        ),
    ] {
        let before = fs::metadata(school.path(path)).unwrap().permissions();
        chmod(school.path(path), mode);
        let findings = check(&school, AS_NOBODY, &[], "");
        let text_found = found(&findings, level, about, text)["text"]
            .as_str()
            .unwrap();
        let end = "see \"Permission denied\" in docs/troubleshooting.md";
        assert!(
            text_found.contains("; it belongs to nobody, mode 0"),
            "{text_found}"
        );
        assert!(text_found.ends_with(end), "{text_found}");
        fs::set_permissions(school.path(path), before).unwrap();
        assert_eq!(errors(), 0, "{path} {mode:o}");
    }
    // The folder of the aularios needs to be writable only to create the folder of one.
    fs::create_dir(school.path("aula2")).unwrap();
    chmod(school.path("aula2"), 0o777);
    chmod(school.aularios(), 0o555);
    assert_eq!(errors(), 0);
}

/// As after an edit by root. The folder's owner would mislead exactly where the owner is the cause.
#[test]
fn a_file_of_root_is_named_with_its_own_owner_by_the_check_and_in_the_log() {
    let school = School::with_menu("");
    let mut chown = Command::new("chown");
    output(
        chown.args(["-R", "nobody:nogroup"]).arg(school.folder()),
        "coreutils",
    );
    let root = Some(0);
    std::os::unix::fs::chown(school.path(DAY), root, root).unwrap();
    let denied = "Permission denied (os error 13)";
    for (mode, action) in [(0o600, "get_menu"), (0o644, "save_menu")] {
        chmod(school.path(DAY), mode);
        let owner = format!("it belongs to root, mode {mode:04o}");
        let findings = check(&school, AS_NOBODY, &[], "");
        let text = format!("{DAY} ({denied}); {owner}; see \"Permission denied\" in docs/");
        found(&findings, "error", "/aula1", &text);
        let request = match action {
            "get_menu" => school.get(action).query("date", DATE),
            _ => school.post(action).json(&save("new")),
        };
        let answer = request.under(AS_NOBODY).run();
        let log = &answer.fails("INTERNAL_ERROR").log;
        let text = format!("{denied}; comedor runs as user nobody (65534); {owner}\n");
        assert!(log.contains(&text), "{log}");
    }
}

#[test]
fn a_closed_folder_outside_of_the_data_is_an_error() {
    let school = School::new();
    let parent = school.data().parent().unwrap().to_owned();
    for (mode, help) in [
        (
            0o700,
            "; it belongs to root, mode 0700; see \"Permission denied\" in docs/",
        ),
        // As systemd's ProtectHome=yes does.
        (0o000, "; if systemd hides it, set ProtectHome=no (docs/"),
    ] {
        chmod(&parent, mode);
        let findings = check(&school, AS_NOBODY, &[], "");
        for what in [
            "Centros (COMEDOR_DATA_DIR): ", "session folder (COMEDOR_SESSION_DIR): ",
        ] {
            let finding = found(&findings, "error", parent.to_str().unwrap(), what);
            let text = finding["text"].as_str().unwrap();
            assert!(
                text.starts_with("nobody cannot reach the ") && text.contains(help),
                "{text}"
            );
        }
    }
}

#[test]
fn a_session_folder_that_exposes_sessions_is_a_warning() {
    let school = School::new();
    let replace = "all users of this machine can replace session files here";
    let list = "all users of this machine can list the session ids here, which work like passwords";
    for (mode, expected) in [
        (0o700, None),
        (0o755, None),
        (0o770, None),
        // Debian's
        (0o1733, None),
        (0o777, Some(replace)),
        (0o733, Some(replace)),
        // As /tmp
        (0o1777, Some(list)),
    ] {
        chmod(school.sessions(), mode);
        let findings = check(&school, &[], &[], "");
        if let Some(text) = expected {
            let finding = found(&findings, "warning", "/sessions", text);
            assert_eq!(finding["code"], "sessions-exposed");
            let text = finding["text"].as_str().unwrap();
            assert!(
                text.ends_with("see \"Session folder\" in docs/troubleshooting.md"),
                "{text}"
            );
        }
        let is_found = format!("{findings:?}").contains("sessions-exposed");
        assert_eq!(is_found, expected.is_some(), "{mode:o}: {findings:#?}");
    }
    // A container of the released image has no other users.
    let without_accounts = ["sh", "-c", "mount -t tmpfs none /etc && exec \"$@\"", "sh"];
    let findings = format!("{:?}", check(&school, &without_accounts, &[], ""));
    assert!(!findings.contains("sessions-exposed"), "{findings}");
}

/// As if PHP had saved the days.
#[test]
fn a_umask_that_gives_new_files_another_mode_than_most_days_have_is_a_hint() {
    let school = School::with_menu("");
    let days = [
        DAY, "aula1/Comedor/2026-11/21/_datos.json", "aula1/Comedor/2026-11/22/_datos.json",
    ];
    days.iter().for_each(|day| school.write(day, "{}"));
    for (modes, umask, expected) in [
        ([0o644, 0o644, 0o664], "0022", ""),
        (
            [0o644, 0o664, 0o664],
            "0022",
            "a new day has the mode 0644, but 2 of 3 saved days have 0664: ",
        ),
        ([0o644, 0o664, 0o664], "0002", ""),
        (
            [0o600, 0o600, 0o600],
            "0022",
            "a new day has the mode 0644, but 3 of 3 saved days have 0600: ",
        ),
        ([0o600, 0o600, 0o600], "0077", ""),
        ([0o600, 0o640, 0o664], "0022", ""),
    ] {
        days.iter()
            .zip(modes)
            .for_each(|(day, mode)| chmod(school.path(day), mode));
        let script = format!("umask {umask}; exec \"$@\"");
        let findings = check(&school, &["sh", "-c", &script, "sh"], &[], "");
        if !expected.is_empty() {
            let text = format!("with the umask {umask} of this process {expected}");
            let finding = found(&findings, "hint", "/Centros", &text);
            assert_eq!(finding["code"], "umask-differs");
        }
        let is_found = format!("{findings:?}").contains("umask-differs");
        assert_eq!(is_found, !expected.is_empty(), "{modes:?}: {findings:#?}");
    }
    // A list determines the mode, whatever the umask is.
    days.iter().for_each(|day| {
        chmod(school.path(day), 0o600);
        let mut setfacl = Command::new("setfacl");
        output(setfacl.args(["-m", "u:7:rw"]).arg(school.path(day)), "acl");
    });
    let findings = format!("{:?}", check(&school, &[], &[], ""));
    assert!(!findings.contains("umask-differs"), "{findings}");
}

#[test]
fn symbolic_links_are_named() {
    let school = School::with_menu("");
    let link = |path| {
        let path = school.path(path);
        _ = fs::rename(&path, path.with_extension("target"));
        symlink(path.with_extension("target"), path).unwrap();
    };
    [LOCK, TYPES, DAY, "aula2.json"].into_iter().for_each(link);
    let findings = check(&school, &[], &[], "");
    for about in [TYPES, DAY, "aula2.json"] {
        found(&findings, "error", about, "is a symbolic link");
    }
    found(
        &findings,
        "error",
        LOCK,
        "is not a regular file, so menus cannot be saved",
    );
}

#[test]
fn root_that_lacks_capabilities_cannot_save_files_of_others() {
    let school = School::new();
    let without = ["setpriv", "--bounding-set=-chown,-lease"];
    let text = "LEASE (cap_add), so it cannot save files of www-data";
    let findings = check(&school, &without, &[], "");
    assert!(
        !format!("{findings:?}").contains("capabilities"),
        "{findings:#?}"
    );
    chown(school.data().join("Centros"), Some(33), Some(33)).unwrap();
    found(
        &check(&school, &without, &[], ""),
        "error",
        "/Centros",
        text,
    );
}
