//! A write of the program beside another one, which has the lock of the aulario first.

use std::fs;

use crate::pages::{has, opened_in, whole};
use crate::support::tracer::Stop;
use crate::support::writes::{Write, writes};
use crate::support::*;

/// How often a write has read the file, and flushed a new one
#[derive(Debug, PartialEq)]
struct Counts {
    reads: usize,
    flushes: usize,
}

/// Runs a write under ptrace(2), and the `other` one after this number of calls since the program has opened one of the
/// data. `None` if the program has the lock before.
fn counts_of(write: &Write, school: &School, mut other: Option<(usize, Cgi)>) -> Option<Counts> {
    write.reset(school);
    let path = school.path(write.file);
    let file_of = |stop: &Stop| fs::read_link(stop.descriptor(stop.call.arguments[0]));
    let mut counts = Counts {
        reads: 0,
        flushes: 0,
    };
    let mut has_begun = false;
    let mut program = write.request(school).trace_calls();
    while let Some(stop) = program.next() {
        if stop.result.is_none() {
            continue;
        }
        let (call, file) = (stop.call.name(), file_of(&stop).unwrap_or_default());
        if call == "flock" && file.ends_with(LOCK) && other.is_some() {
            return None;
        }
        counts.reads += usize::from(call == "read" && file == path);
        counts.flushes +=
            usize::from(stop.call.is_flush() && file.to_string_lossy().ends_with(".tmp"));
        has_begun |= opened_in(&stop, &school.aularios());
        match &mut other {
            Some((0, request)) if has_begun => {
                request.run().ok();
                other = None;
            }
            Some((calls, _)) => *calls -= usize::from(has_begun),
            None => {}
        }
    }
    Answer::of_output(program.output()).ok();
    Some(counts)
}

/// It has read the file then, and looks at it again before a new one is written.
#[test]
fn another_write_at_any_call_before_the_lock_is_not_lost_and_no_file_is_flushed_in_vain() {
    let school = School::in_memory();
    let mut count = 0;
    for write in writes()
        .iter()
        .filter(|write| write.action != "delete_menu_type")
    {
        let begin = count;
        let beside = |calls| counts_of(write, &school, Some((calls, write.next(&school))));
        for (calls, counts) in (0..).map_while(beside).enumerate() {
            let after = whole(&school.path(write.file));
            let are_both = has(&after, "new") && has(&after, "next");
            assert!(are_both, "{}, {calls}: {after:?}", write.kind);
            assert_eq!(counts.flushes, 1, "{}, {calls}", write.kind);
            count += 1;
        }
        assert!(count > begin + 5, "{}: {}", write.kind, count - begin);
    }
    println!("other writes at one call before the lock of a write: {count}, losses: 0");
}

#[test]
fn a_write_that_meets_no_other_reads_its_file_once() {
    let school = School::in_memory();
    for write in writes() {
        let reads = usize::from(write.old_and_new().0.is_some());
        let counts = counts_of(&write, &school, None);
        assert_eq!(counts, Some(Counts { reads, flushes: 1 }), "{}", write.kind);
    }
}

/// The other writer is about to replace the file. An NFS client keeps a file that is open under another name, and its
/// path does not exist for an instant.
#[test]
fn a_write_that_waits_for_another_one_has_closed_the_file_and_reads_it_again() {
    let school = School::with_menu("first");
    let other = fs::File::open(school.path(LOCK)).unwrap();
    other.lock().unwrap();
    let write = school.post("save_menu").json(&save("second")).start();
    let waits = until_waiting(&school.path(LOCK), 1);
    let files = fs::read_dir(format!("/proc/{}/fd", waits[0])).unwrap();
    let mut files = files.filter_map(|file| fs::read_link(file.unwrap().path()).ok());
    assert!(!files.any(|file| file == school.path(DAY)));
    let day = school
        .read(DAY)
        .replace("\"menus\"", "\"note\":\"other\",\"menus\"");
    school.write(DAY, day);
    other.unlock().unwrap();
    Answer::of(write).ok();
    let after = whole(&school.path(DAY));
    assert!(has(&after, "second") && has(&after, "other"), "{after:?}");
}
