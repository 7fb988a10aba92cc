//! Power cuts during a write: a program under ptrace(2), and after each of its system calls all that may then be on the
//! disk ([`disk`](super::disk)); and what comedor makes of each of these states.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Output;
use std::rc::Rc;

use super::disk::{Disk, Tree, restore};
use super::tracer::{Stop, Tracer};
use super::writes::Write;
use super::*;

/// The states of the disk during a write, and for each whether the write had been answered. The same state before and
/// after the answer counts twice.
pub type States = BTreeSet<(Tree, bool)>;

/// Runs what `start` starts, which makes this write and then answers on standard output. `is_real` tells which flushes
/// take effect. Returns the output too.
pub fn states_during(
    write: &Write,
    start: impl FnOnce(&School) -> Tracer,
    is_real: impl Fn(&Stop) -> bool,
) -> (States, Output) {
    let school = write.flushed_school();
    let mut disk = Disk::flushed(&school.data());
    write.add_unflushed(&school, || _ = disk.look());
    let mut states: States = disk
        .states()
        .into_iter()
        .map(|tree| (tree, false))
        .collect();
    let mut program = start(&school);
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
    assert!(was_answered, "no answer");
    (states, program.output())
}

/// Whether what is flushed at this stop is a file, not a folder.
pub fn is_of_file(stop: &Stop) -> bool {
    fs::metadata(stop.descriptor(stop.call.arguments[0]))
        .unwrap()
        .is_file()
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
pub fn bad_states(write: &Write, states: &States) -> impl Iterator<Item = String> {
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
