//! Locks (flock(2)) on files that other programs lock too, with a timeout.
//!
//! The first attempt does not block. Only if it fails does the thread wait, in the kernel's queue, as
//! PHP's pages do: a program that polls gets its turn after all of them. `flock` has no timeout, so a
//! timer interrupts it.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use crate::fastcgi;
use crate::ffi::Interruptions;
use crate::shared_file::FileId;

/// The two kinds of lock.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Shared,
    Exclusive,
}

/// Waits up to `timeout` for a lock on `file`, which holds until the file is closed. Returns whether it
/// was taken; `false` at once if it may not wait.
pub fn take(file: &File, kind: Kind, timeout: Duration) -> io::Result<bool> {
    match attempt(file, kind, false) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
        attempt => return attempt.map(|()| true),
    }
    let FileId(id) = FileId::of(&file.metadata()?);
    let Some(_waiting) = fastcgi::wait(id) else { return Ok(false) };
    let deadline = Instant::now() + timeout;
    let _interruptions = Interruptions::after(timeout)?;
    loop {
        match attempt(file, kind, true) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            Err(_) if Instant::now() < deadline => {}
            attempt => return Ok(attempt.is_ok()),
        }
    }
}

/// Not as methods: `File` has others of the same names.
fn attempt(file: &File, kind: Kind, is_blocking: bool) -> io::Result<()> {
    match (kind, is_blocking) {
        (Kind::Shared, false) => fs2::FileExt::try_lock_shared(file),
        (Kind::Shared, true) => fs2::FileExt::lock_shared(file),
        (Kind::Exclusive, false) => fs2::FileExt::try_lock_exclusive(file),
        (Kind::Exclusive, true) => fs2::FileExt::lock_exclusive(file),
    }
}
