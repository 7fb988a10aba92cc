//! Saves of which one system call fails, or was made although it reports an error.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::pages::{ATTRIBUTES, EXCHANGE, LINK, day_replaced, has, is_lease, whole};
use crate::store::replace::{ACCESS_LIST, acl};
use crate::support::tracer::Stop;
use crate::support::*;

/// Replaces the day of a school, whose file has this mode. The calls for which `is_failing` is true fail with this error.
fn save_with(school: &School, mode: u32, error: i32, is_failing: impl Fn(&Stop) -> bool) -> Answer {
    let write = day_replaced();
    write.reset(school);
    chmod(school.path(write.file), mode);
    let mut program = write.request(school).trace_calls();
    while let Some(stop) = program.next() {
        if stop.result.is_none() && is_failing(&stop) {
            program.skip(-i64::from(error));
        }
    }
    Answer::of_output(program.output())
}

#[test]
fn save_fails_and_the_old_file_stays_if_an_attribute_or_the_exchange_fails() {
    let school = School::in_memory();
    for (call, error) in [
        (ATTRIBUTES.0, libc::EIO),
        ("fchmod", libc::EPERM),
        (EXCHANGE.0, libc::EIO),
    ] {
        let answer = save_with(&school, 0o640, error, |stop| stop.call.name() == call);
        answer.fails("INTERNAL_ERROR");
        assert!(has(&whole(&school.path(DAY)), "old"), "{call}");
    }
}

/// Whether this call reads the day again: the only one that reads at an offset, and as much as the file has.
fn reads_again(stop: &Stop, length: usize) -> bool {
    stop.call.name() == "pread64" && stop.call.arguments[2] == length as u64
}

/// Saves a day. The folder of its month is missing, or was made by PHP. The flush of the folder above fails with this
/// error.
fn first_save_with(unflushed: &[&str], error: i32) -> Answer {
    let school = School::in_memory();
    for folder in unflushed {
        fs::create_dir(school.path(folder)).unwrap();
    }
    first_save(&school, |stop| {
        let folder = || fs::read_link(stop.descriptor(stop.call.arguments[0]));
        let is_above = || folder().is_ok_and(|path| path.ends_with("Comedor"));
        (stop.call.is_flush() && is_above()).then_some(error)
    })
}

/// Not if it only cannot be flushed at all, where PHP saves too.
#[test]
fn save_fails_if_the_flush_of_the_folder_above_another_one_fails() {
    let exists = &["aula1", "aula1/Comedor", "aula1/Comedor/2026-11"];
    for unflushed in [&exists[..], &exists[..2]] {
        for error in [libc::EACCES, libc::EINVAL, libc::EOPNOTSUPP, libc::EBADF] {
            first_save_with(unflushed, error).ok();
        }
        for error in [libc::EIO, libc::ENOSPC, libc::EROFS] {
            first_save_with(unflushed, error).fails("INTERNAL_ERROR");
        }
    }
}

/// An error of the disk is INTERNAL_ERROR. Only after a save by a page is the client told to retry.
#[test]
fn save_fails_and_the_old_file_stays_if_it_cannot_be_read_again() {
    let school = School::in_memory();
    day_replaced().reset(&school);
    let length = school.read(DAY).len();
    let answer = save_with(&school, 0o640, libc::EIO, |stop| reads_again(stop, length));
    answer.fails("INTERNAL_ERROR");
    assert!(has(&whole(&school.path(DAY)), "old"));
}

/// As on NFS, after another server has replaced it.
#[test]
fn save_is_repeated_if_the_file_is_stale_when_it_is_read_again() {
    let school = School::in_memory();
    day_replaced().reset(&school);
    let length = school.read(DAY).len();
    let is_first = Cell::new(true);
    let answer = save_with(&school, 0o640, libc::ESTALE, |stop| {
        reads_again(stop, length) && is_first.replace(false)
    });
    answer.ok();
    assert!(!is_first.get() && has(&whole(&school.path(DAY)), "new"));
}

#[test]
fn save_is_busy_if_the_file_is_truncated_while_it_is_read_again() {
    let school = School::in_memory();
    let write = day_replaced();
    write.reset(&school);
    let length = school.read(DAY).len();
    let mut program = write.request(&school).trace_calls();
    while let Some(stop) = program.next() {
        if stop.result.is_none() && is_lease(&stop) {
            // Else the page would wait.
            program.skip(-i64::from(libc::EINVAL));
        } else if stop.result.is_none() && reads_again(&stop, length) {
            fs::write(school.path(DAY), "").unwrap();
        }
    }
    Answer::of_output(program.output()).fails("BUSY");
    assert_eq!(school.read(DAY), "");
}

/// A first save of a day. Before each call `at_call` may return its result, and then it is not made.
fn first_save(school: &School, mut at_call: impl FnMut(&Stop) -> Option<i32>) -> Answer {
    let request = school.post("save_menu").json(&save("new"));
    let mut program = request.trace_calls();
    while let Some(stop) = program.next() {
        if stop.result.is_none()
            && let Some(error) = at_call(&stop)
        {
            program.skip(-i64::from(error));
        }
    }
    Answer::of_output(program.output())
}

#[test]
fn first_save_fails_and_leaves_no_file_if_its_rename_link_or_last_look_fails() {
    for failing in [
        &[(EXCHANGE.0, libc::EIO)][..],
        &[EXCHANGE, (LINK.0, libc::EIO)],
        // The next call looks whether there is a file; its name depends on the C library.
        &[EXCHANGE, LINK, ("", libc::EIO)],
    ] {
        let school = School::in_memory();
        let mut next = 0;
        let answer = first_save(&school, |stop| {
            let (call, error) = *failing.get(next)?;
            ["", stop.call.name()].contains(&call).then(|| {
                next += 1;
                error
            })
        });
        answer.fails("INTERNAL_ERROR");
        assert_eq!(next, failing.len());
        assert_eq!(whole(&school.path(DAY)), None, "{failing:?}");
    }
}

/// A network file system may repeat a request whose answer was lost.
#[test]
fn save_succeeds_if_the_exchange_was_made_but_reports_an_error() {
    let school = School::in_memory();
    let write = day_replaced();
    write.reset(&school);
    let path = school.path(DAY);
    let mut program = write.request(&school).trace_calls();
    while let Some(stop) = program.next() {
        if stop.result.is_none() && stop.call.name() == EXCHANGE.0 {
            let temporary = path.with_file_name("._datos.json.tmp");
            renameat_with(CWD, temporary, CWD, &path, RenameFlags::EXCHANGE).unwrap();
            program.skip(-i64::from(libc::EIO));
        }
    }
    Answer::of_output(program.output()).ok();
    assert!(has(&whole(&path), "new"));
}

#[test]
fn first_save_succeeds_if_its_rename_was_made_but_reports_an_error() {
    let school = School::in_memory();
    let path = school.path(DAY);
    let answer = first_save(&school, |stop| {
        (stop.call.name() == EXCHANGE.0).then(|| {
            fs::rename(path.with_file_name("._datos.json.tmp"), &path).unwrap();
            libc::ENOENT
        })
    });
    answer.ok();
    assert!(has(&whole(&path), "new"));
}

#[test]
fn save_succeeds_without_an_attribute_that_cannot_be_kept_and_fails_without_the_list() {
    let school = School::new();
    let write = day_replaced();
    let save_without = |call: &str, name: &str, value: &[u8]| {
        write.reset(&school);
        let path = school.path(write.file);
        xattr::set(&path, name, value).expect("attributes (tmpfs has them since Linux 6.6)");
        let mut program = write.request(&school).trace_calls();
        while let Some(stop) = program.next() {
            if stop.result.is_none() && stop.call.name() == call {
                program.skip(-i64::from(libc::EACCES));
            }
        }
        let answer = Answer::of_output(program.output());
        (answer, whole(&path), xattr::get(&path, name).unwrap())
    };
    for call in ["fgetxattr", "fsetxattr"] {
        let (answer, content, note) = save_without(call, "user.note", b"x");
        answer.ok();
        assert!(has(&content, "new"), "{call}");
        assert_eq!(note, None, "{call}");

        let (answer, content, list) = save_without(call, ACCESS_LIST, &acl());
        answer.fails("INTERNAL_ERROR");
        assert!(has(&content, "old"), "{call}");
        assert_eq!(list, Some(acl()), "{call}");
    }
}

/// A service may not set the special bits, and on vfat all files have the same mode, which cannot be set.
#[test]
fn save_keeps_the_mode_as_far_as_it_can_be_set() {
    let school = School::in_memory();
    let is_special = |stop: &Stop| stop.call.name() == "fchmod" && stop.call.arguments[1] > 0o777;
    let is_any = |stop: &Stop| stop.call.name() == "fchmod";
    type Fails<'f> = &'f dyn Fn(&Stop) -> bool;
    let cases: [(u32, Fails, u32); 2] = [(0o2664, &is_special, 0o664), (0o600, &is_any, 0o600)];
    for (mode, is_failing, kept) in cases {
        save_with(&school, mode, libc::EPERM, is_failing).ok();
        let path = school.path(DAY);
        assert!(has(&whole(&path), "new"));
        assert_eq!(fs::metadata(path).unwrap().mode() & 0o7777, kept);
    }
}
