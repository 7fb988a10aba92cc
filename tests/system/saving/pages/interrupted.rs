//! Power cuts, kills and errors during the save of a page.

use super::*;
use crate::support::power_cuts::{bad_states, is_of_file, states_during};
use crate::support::tracer::{Stop, Tracer};
use crate::support::writes::{Write, writes};

/// Starts the page of a write under ptrace(2): it saves what the program would.
fn traced(write: &Write, school: &School, new: &str) -> Tracer {
    Tracer::start(&mut saving(school, write.file, new), &[])
}

#[test]
fn power_cut_after_any_system_call_of_a_page_leaves_the_old_or_the_new_and_the_new_after_the_save()
{
    let (mut count, mut without_flush) = (0, [0, 0]);
    for write in writes() {
        let new = write.old_and_new().1.unwrap();
        let states = |is_real: &dyn Fn(&Stop) -> bool| {
            let (states, output) =
                states_during(&write, |school| traced(&write, school, &new), is_real);
            assert!(said(&output).0);
            states
        };
        let all = states(&|_| true);
        if let Some(bad) = bad_states(&write, &all).next() {
            panic!("{bad}");
        }
        count += all.len();
        // So a flush that is missing would be found.
        let kinds: [&dyn Fn(&Stop) -> bool; 2] = [&|stop| !is_of_file(stop), &is_of_file];
        for (bad, is_real) in without_flush.iter_mut().zip(kinds) {
            *bad += usize::from(bad_states(&write, &states(is_real)).next().is_some());
        }
    }
    println!("power cuts while pages save: {count} states, 0 bad");
    assert_eq!(without_flush, [writes().len(); 2]);
}

/// What happens in place of a system call of a page.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    Error(i32),
}

/// Runs the page with a fault in place of the call of this number. Returns the names of its calls on files, from the
/// opening of `guardar.php` to the answer, and its output.
fn run(
    write: &Write,
    school: &School,
    new: &str,
    fault: Option<(usize, Fault)>,
) -> (Vec<&'static str>, Output) {
    let mut program = traced(write, school, new);
    let (mut calls, mut has_begun, mut is_over) = (Vec::new(), false, false);
    while let Some(stop) = program.next() {
        let name = stop.call.name();
        if let Some(result) = stop.result {
            has_begun |= name.starts_with("open")
                && fs::read_link(stop.descriptor(result))
                    .is_ok_and(|path| path.ends_with("guardar.php"));
            continue;
        }
        // The page says that it has saved.
        is_over |= name == "write" && stop.call.arguments[0] == 1;
        if !has_begun || is_over || name == "another call" {
            continue;
        }
        match fault {
            Some((number, Fault::Kill)) if number == calls.len() => program.kill(),
            Some((number, Fault::Error(error))) if number == calls.len() => {
                program.skip(-i64::from(error))
            }
            _ => {}
        }
        calls.push(name);
    }
    (calls, program.output())
}

/// Whether the page has saved and what it said, after the fault. The file must be the new one if it has saved, or the
/// old or the new one after a kill, else the old one. The next write by the program must succeed and leave nothing.
fn after_fault(write: &Write, call: &str, fault: (usize, Fault)) -> bool {
    let case = format!("{}: {fault:?} of {call}", write.kind);
    let (old, new) = write.old_and_new();
    let school = write.school();
    let (_, output) = run(write, &school, new.as_ref().unwrap(), Some(fault));
    let content = write.content(&school);
    let is_new = content == new;
    assert!(is_new || content == old, "{case}: {content:?}");
    match fault.1 {
        Fault::Kill => assert!(is_new || output.stdout.is_empty(), "{case}"),
        Fault::Error(_) => {
            let (is_saved, errors) = said(&output);
            assert_eq!(is_saved, is_new, "{case}: {errors}");
            let left = temporary_files(&school);
            assert!(
                left == 0 || call.starts_with("unlink"),
                "{case}: {left} temporary files"
            );
        }
    }
    write.next(&school).run().ok();
    assert_eq!(temporary_files(&school), 0, "{case}");
    is_new
}

#[test]
fn kill_at_any_system_call_of_a_page_leaves_the_old_or_the_new_file() {
    let (mut kills, mut stored) = (0, 0);
    for write in writes() {
        let new = write.old_and_new().1.unwrap();
        let (calls, _) = run(&write, &write.school(), &new, None);
        assert!(calls.len() > 30, "{calls:?}");
        for (number, call) in calls.iter().enumerate() {
            stored += usize::from(after_fault(&write, call, (number, Fault::Kill)));
            kills += 1;
        }
    }
    assert!(stored > 0 && stored < kills);
    println!("kills of pages: {kills}, losses: 0");
}

#[test]
fn page_reports_the_truth_after_an_error_of_any_system_call() {
    const KINDS: [&str; 3] = [
        "first save of an aulario", "a day replaced", "types replaced",
    ];
    #[rustfmt::skip]
    const CALLS: [&str; 17] = [
        "openat", "open", "write", "fsync", "rename", "renameat", "renameat2", "unlink", "unlinkat", "flock", "chmod",
        "fchmodat", "chown", "fchownat", "mkdir", "access", "faccessat",
    ];
    let (mut errors, mut stored) = (0, 0);
    for write in writes().iter().filter(|write| KINDS.contains(&write.kind)) {
        let new = write.old_and_new().1.unwrap();
        let (calls, _) = run(write, &write.school(), &new, None);
        let calls = calls
            .iter()
            .enumerate()
            .filter(|(_, call)| CALLS.contains(call));
        for (number, call) in calls {
            for error in [libc::EIO, libc::ENOSPC, libc::EACCES] {
                let fault = (number, Fault::Error(error));
                stored += usize::from(after_fault(write, call, fault));
                errors += 1;
            }
        }
    }
    assert!(stored > 0 && stored < errors);
    println!("errors of system calls of pages: {errors}, losses: 0");
}

#[test]
fn page_on_a_full_disk_leaves_the_old_file_and_says_so() {
    let school = School::new();
    let mut mount = Command::new("mount");
    mount
        .args(["-t", "tmpfs", "-o", "size=64k", "none"])
        .arg(school.data());
    output(&mut mount, "a run as root");
    let _mounted = Mounted(school.data());
    school.write("aula1.json", "{}");
    let old = json!({"date": DATE, "menus": {"basal": {"plates": {"primero": {"name": "old"}}}}})
        .to_string();
    school.write(DAY, &old);
    let long = json!({"menus": {"basal": {"plates": {"primero": {"name": "x".repeat(30_000)}}}}})
        .to_string();
    let filler = school.data().join("filler");
    fs::write(&filler, vec![b'x'; 40_000]).unwrap();
    fails(saving(&school, DAY, &long), "the disk must have room");
    assert_eq!(school.read(DAY), old);
    assert_eq!(temporary_files(&school), 0);
    fs::remove_file(filler).unwrap();
    saves(saving(&school, DAY, &long));
}
