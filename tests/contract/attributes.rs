//! Mode and access control list of a file that are changed during a save, at each call of the program.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::pages::{day_replaced, has, whole};
use crate::store::replace::{ACCESS_LIST, acl};
use crate::support::*;

/// Replaces the day of a school, and makes this change to the file at this stop since the flush of the new one. Returns
/// whether there was such a stop.
fn save_during(school: &School, moment: usize, change: impl Fn(&Path)) -> bool {
    let (write, mut number) = (day_replaced(), None);
    let path = school.path(write.file);
    let mut program = write.request(school).trace_calls();
    while let Some(stop) = program.next() {
        if stop.call.is_flush() || number.is_some() {
            let next = number.map_or(0, |number| number + 1);
            if next == moment {
                change(&path);
            }
            number = Some(next);
        }
    }
    Answer::of_output(program.output()).ok();
    assert!(has(&whole(&path), "new"));
    number >= Some(moment)
}

#[test]
fn mode_that_is_changed_at_any_call_of_a_save_is_kept() {
    let (write, school) = (day_replaced(), School::in_memory());
    for moment in 0.. {
        write.reset(&school);
        if !save_during(&school, moment, |path| chmod(path, 0o640)) {
            assert!(moment > 20, "{moment}");
            break;
        }
        let metadata = fs::metadata(school.path(write.file)).unwrap();
        assert_eq!(metadata.mode() & 0o7777, 0o640, "{moment}");
    }
}

#[test]
fn access_control_list_that_is_changed_during_a_save_is_kept() {
    let (write, school) = (day_replaced(), School::new());
    write.reset(&school);
    // That of the list, so that the mode does not show the change.
    chmod(school.path(write.file), 0o660);
    save_during(&school, 0, |path| {
        xattr::set(path, ACCESS_LIST, &acl()).expect("access control lists");
    });
    let list = xattr::get(school.path(write.file), ACCESS_LIST).unwrap();
    assert_eq!(list, Some(acl()));
}
