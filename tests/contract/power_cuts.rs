//! Power cuts: the program under ptrace(2), and after each of its system calls all that may then be on the disk
//! (tests/support/disk.rs). What these tests print is in tests/results.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use crate::support::disk::{Disk, Tree, restore};
use crate::support::tracer::Stop;
use crate::support::writes::{Write, writes};
use crate::support::*;

/// The states of the disk during a write, and for each whether the write had been answered. The same state before and
/// after the answer counts twice.
type States = BTreeSet<(Tree, bool)>;

/// Runs the program for this write. `is_real` tells which flushes take effect.
fn states_of(write: &Write, is_real: impl Fn(&Stop) -> bool) -> States {
    let school = write.flushed_school();
    let mut disk = Disk::flushed(&school.data());
    write.add_unflushed(&school, || _ = disk.look());
    let mut states: States = disk
        .states()
        .into_iter()
        .map(|tree| (tree, false))
        .collect();
    let mut program = write.request(&school).trace_calls();
    let mut was_answered = false;
    while let Some(stop) = program.next() {
        let Some(result) = stop.result else { continue };
        let has_changed = disk.look();
        let has_flushed = result == 0 && stop.call.is_flush() && is_real(&stop);
        if has_flushed {
            disk.flush(&stop.descriptor(stop.call.arguments[0]));
        }
        let is_answered = program.has_answered();
        if has_changed || has_flushed || is_answered != was_answered {
            states.extend(disk.states().into_iter().map(|tree| (tree, is_answered)));
        }
        was_answered = is_answered;
    }
    Answer::of_output(program.output()).ok();
    assert!(was_answered);
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

/// What a user sees, and the files after their next write, if a write was not made, and if it was.
struct Expected {
    old: Outcome,
    new: Outcome,
}

#[derive(PartialEq)]
struct Outcome {
    /// The answer to a read
    seen: Vec<u8>,
    /// After the next write
    files: BTreeMap<String, Vec<u8>>,
}

impl Outcome {
    /// What is so in this school. Fails if a request does.
    fn of(write: &Write, school: &School) -> Result<Outcome, String> {
        let read = write.read(school).run();
        if read.status != 200 {
            return Err(read.log);
        }
        let next = write.next(school).run();
        match next.status {
            200 => Ok(Outcome {
                seen: read.body,
                files: files(school),
            }),
            _ => Err(next.log),
        }
    }
}

/// The files of a school with their content.
fn files(school: &School) -> BTreeMap<String, Vec<u8>> {
    let files = files_below(&school.data(), &["-type", "f"]);
    files
        .into_iter()
        .map(|path| (path.clone(), fs::read(school.data().join(path)).unwrap()))
        .collect()
}

impl Expected {
    fn of(write: &Write) -> Expected {
        let school = write.school();
        let old = Outcome::of(write, &school).unwrap();
        let school = write.school();
        write.request(&school).run().ok();
        Expected {
            old,
            new: Outcome::of(write, &school).unwrap(),
        }
    }
}

/// What is wrong in which of the states: there, after the machine has started again, a user must see the old or the
/// new, the new if the write was answered; and the next write must succeed, lose nothing and leave nothing
/// behind.
fn bad_states(write: &Write, states: &States) -> impl Iterator<Item = String> {
    let (school, expected) = (School::in_memory(), Expected::of(write));
    states.iter().filter_map(move |(tree, is_answered)| {
        restore(tree, &school.data());
        let found = Outcome::of(write, &school);
        let is_good =
            |found: &Outcome| *found == expected.new || !is_answered && *found == expected.old;
        if found.as_ref().is_ok_and(is_good) {
            return None;
        }
        let file = |(path, content): (&PathBuf, &Option<Rc<[u8]>>)| {
            Some(format!(
                "{}: {}",
                path.display(),
                content.as_ref()?.escape_ascii()
            ))
        };
        let files: Vec<String> = tree.iter().filter_map(file).collect();
        let errors = found.err().unwrap_or_default();
        Some(format!(
            "{}, answered: {is_answered}: {errors}{files:#?}",
            write.kind
        ))
    })
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
    let is_file = |stop: &Stop| {
        fs::metadata(stop.descriptor(stop.call.arguments[0]))
            .unwrap()
            .is_file()
    };
    type Maker<'m> = &'m dyn Fn(&Write) -> States;
    let kinds: [(&str, Maker); 3] = [
        ("without the flush of files", &|write| {
            states_of(write, |stop| !is_file(stop))
        }),
        ("without the flush of folders", &|write| {
            states_of(write, is_file)
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
