//! Locks (flock(2)) on files that other programs lock too, with a timeout.
//!
//! The first attempt does not block. Only if it fails does the thread wait, in the kernel's queue, as
//! PHP's pages do: a program that polls gets its turn after all of them. `flock` has no timeout, so a
//! timer interrupts it.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use crate::ffi::Interruptions;

/// The two kinds of lock.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Shared,
    Exclusive,
}

/// Waits up to `timeout` for a lock on `file`, which holds until the file is closed or unlocked.
/// Returns whether it was taken.
///
/// fs2 is called by its full path, here and in [`release`]: `File` has methods of the same names.
pub fn take(file: &File, kind: Kind, timeout: Duration) -> io::Result<bool> {
    loop {
        let attempt = match kind {
            Kind::Shared => fs2::FileExt::try_lock_shared(file),
            Kind::Exclusive => fs2::FileExt::try_lock_exclusive(file),
        };
        match attempt {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    let deadline = Instant::now() + timeout;
    let _interruptions = Interruptions::after(timeout)?;
    loop {
        let attempt = match kind {
            Kind::Shared => fs2::FileExt::lock_shared(file),
            Kind::Exclusive => fs2::FileExt::lock_exclusive(file),
        };
        match attempt {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            Err(_) if Instant::now() < deadline => {}
            attempt => return Ok(attempt.is_ok()),
        }
    }
}

/// Releases a lock before its file is closed.
pub fn release(file: &File) -> io::Result<()> {
    fs2::FileExt::unlock(file)
}
