//! Errors of network file systems, injected by strace. `lab/network/two-mounts` uses real ones.

use std::fs;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::support::writes::writes;
use crate::support::*;

/// The system calls of `request` on files of the school, by path or by descriptor, as strace's injections
/// without an error.
fn calls_on_files(school: &School, request: &Cgi, options: &[&str]) -> Vec<String> {
    let (answer, trace) = request.trace(&[&["-y"], options].concat());
    answer.ok();
    let school = school.data().parent().unwrap().to_str().unwrap().to_owned();
    let mut calls = calls(&trace);
    calls.retain(|(.., line)| line.contains(&school) && !line.contains("(INJECTED)"));
    assert!(calls.len() > 10, "{trace}");
    calls
        .iter()
        .map(|(call, time, _)| format!("inject={call}:when={time}"))
        .collect()
}

/// On a network file system: the file, or its folder, was replaced by another client.
#[test]
fn a_single_stale_file_handle_does_not_fail_a_request() {
    let (mut errors, mut unflushed) = (0, 0);
    for options in [&[][..], &["-e", "inject=renameat2:error=EINVAL"]] {
        for write in writes() {
            let (school, (_, new)) = (write.school(), write.old_and_new());
            for call in calls_on_files(&school, &write.request(&school), options) {
                let fault = format!("{call}:error=ESTALE");
                let school = write.school();
                let request = write.request(&school);
                let (answer, _) = request.trace(&[options, &["-e", &fault]].concat());
                let is_stored = write.content(&school) == new;
                if answer.log.contains("flush the folder") && is_stored {
                    answer.fails("INTERNAL_ERROR");
                    unflushed += 1;
                } else {
                    answer.ok();
                    assert!(is_stored, "{} {fault}", write.kind);
                }
                errors += 1;
            }
        }
    }
    println!("errors: {errors}, stored but not flushed: {unflushed}");
}

#[test]
fn read_of_a_file_that_was_replaced_after_its_open_is_repeated() {
    let school = School::with_menu("whole");
    let read = school
        .get("get_menu")
        .query("date", DATE)
        .query("menu", "basal");
    for call in calls_on_files(&school, &read, &[]) {
        let fault = format!("{call}:error=ESTALE");
        let (answer, _) = read.trace(&["-e", &fault]);
        let menu = answer.ok();
        assert_eq!(
            menu["menu"]["plates"]["primero"]["name"], "whole",
            "{fault}"
        );
    }
}

#[test]
fn a_data_file_that_stays_stale_is_logged_and_a_session_that_stays_stale_has_ended() {
    let school = School::with_menu("old");
    for (file, calls, code) in [
        (school.path(DAY), "/^open", "INTERNAL_ERROR"),
        (
            school.sessions().join("sess_admin"),
            "read",
            "INVALID_SESSION",
        ),
    ] {
        let fault = format!("inject={calls}:error=ESTALE");
        let options = ["-P", file.to_str().unwrap(), "-e", &fault];
        let (answer, _) = school.post("save_menu").json(&save("new")).trace(&options);
        answer.fails(code);
        assert_eq!(
            answer.log.contains("os error 116"),
            code == "INTERNAL_ERROR",
            "{}",
            answer.log
        );
        assert_eq!(
            school.menu("basal")["menu"]["plates"]["primero"]["name"],
            "old"
        );
    }
}

#[test]
fn a_failed_rename_that_the_server_has_done_is_a_success() {
    let school = School::new();
    let temporary = school.path("aula1/.Comedor-MenuTypes.json.tmp");
    let path = school.path(TYPES);
    let exchange = || renameat_with(CWD, &temporary, CWD, &path, RenameFlags::EXCHANGE).unwrap();
    for (id, error, make) in [
        (
            "linked",
            "EINVAL",
            &(|| fs::hard_link(&temporary, &path).unwrap()) as &dyn Fn(),
        ),
        ("renamed", "EINVAL", &|| {
            fs::rename(&temporary, &path).unwrap()
        }),
        ("exchanged", "EIO", &exchange),
    ] {
        let request = school
            .post("add_menu_type")
            .json(&json!({"id": id, "label": "L"}));
        // On NFS the answer to the first request may be lost; the second one fails.
        request
            .stopped(&format!("renameat2:error={error}:when=1"), |_| make())
            .ok();
        let types = school.get("get_menu_types").run().ok();
        assert_eq!(
            types["menu_types"].as_array().unwrap().last().unwrap()["id"],
            id
        );
        assert!(!school.files().iter().any(|path| path.ends_with(".tmp")));
    }
}

/// On NFS a rename waits for a lease on the file that it replaces, and first moves a file away that is
/// open.
#[test]
fn old_file_is_closed_before_a_rename_that_cannot_exchange() {
    let school = School::with_menu("old");
    let options = ["-y", "-e", "inject=renameat2:error=EINVAL"];
    let (answer, trace) = school.post("save_menu").json(&save("new")).trace(&options);
    answer.ok();
    let before = trace.split("\nrename(").next().unwrap();
    let (_, released) = before.rsplit_once("F_SETLEASE, F_UNLCK").expect("a lease");
    assert!(
        released.contains("close(") && released.contains("/_datos.json>)"),
        "{trace}"
    );
}
