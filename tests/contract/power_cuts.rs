//! Power cuts: the program under ptrace(2), and after each of its system calls all that may then be on the disk
//! (tests/support/power_cuts.rs). What these tests print is in tests/results.md.

use std::fs;

use crate::support::disk::Disk;
use crate::support::power_cuts::{States, bad_states, is_of_file, states_during};
use crate::support::tracer::Stop;
use crate::support::writes::{Write, writes};
use crate::support::*;

/// The states of the disk during a write by the program. `is_real` tells which flushes take effect.
fn states_of(write: &Write, is_real: impl Fn(&Stop) -> bool) -> States {
    let start = |school: &School| write.request(school).trace_calls();
    let (states, output) = states_during(write, start, is_real);
    Answer::of_output(output).ok();
    states
}

/// The states of the disk during a save by a script that saves as the original did: `mkdir`, and
/// `file_put_contents`.
fn states_of_script(write: &Write, new: &str) -> States {
    let school = write.flushed_school();
    let mut disk = Disk::flushed(&school.data());
    let mut states = States::new();
    let mut look = |is_answered| {
        disk.look();
        states.extend(disk.states().into_iter().map(|tree| (tree, is_answered)));
    };
    write.add_unflushed(&school, || look(false));
    let path = school.path(write.file);
    let mut folders: Vec<_> = path
        .ancestors()
        .skip(1)
        .take_while(|path| !path.exists())
        .collect();
    while let Some(folder) = folders.pop() {
        fs::create_dir(folder).unwrap();
        look(false);
    }
    fs::write(&path, "").unwrap();
    look(false);
    fs::write(&path, new).unwrap();
    look(false);
    look(true);
    states
}

#[test]
fn power_cut_after_any_system_call_leaves_the_old_or_the_new_and_the_new_after_the_answer() {
    let mut count = 0;
    for write in writes() {
        let states = states_of(&write, |_| true);
        if let Some(bad) = bad_states(&write, &states).next() {
            panic!("{bad}");
        }
        println!("{}: {} states", write.kind, states.len());
        count += states.len();
    }
    println!("power cuts: {count} states, 0 bad");
}

/// So the test above would find a flush that is missing.
#[test]
fn power_cut_loses_writes_without_the_flushes_of_files_or_of_folders_and_those_of_the_script() {
    type Maker<'m> = &'m dyn Fn(&Write) -> States;
    let kinds: [(&str, Maker); 3] = [
        ("without the flush of files", &|write| {
            states_of(write, |stop| !is_of_file(stop))
        }),
        ("without the flush of folders", &|write| {
            states_of(write, is_of_file)
        }),
        ("of the script", &|write| {
            states_of_script(write, &write.old_and_new().1.unwrap())
        }),
    ];
    // In a bad state the program waits for a page that may be saving.
    let limit = if std::env::var("COMEDOR_BAD_STATES").is_ok() {
        usize::MAX
    } else {
        1
    };
    for (kind, states_of) in kinds {
        let (mut count, mut bad) = (0, 0);
        for write in writes() {
            let states = states_of(&write);
            let found = bad_states(&write, &states).take(limit).count();
            assert!(found > 0, "{kind}: {}", write.kind);
            count += states.len();
            bad += found;
        }
        println!("power cuts {kind}: {count} states, at least {bad} bad");
    }
}
