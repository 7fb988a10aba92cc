//! Leases, which tell whether another process opens a file (fcntl(2)).
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use super::check;

/// Places a read lease on `file`, which must be open for reading only (F_SETLEASE).
pub fn set_read_lease(file: &File) -> io::Result<()> {
    // A process that opens the file for writing makes the kernel send SIGIO, whose default ends the
    // process. SIGURG is ignored by default.
    fcntl(file, F_SETSIG, libc::SIGURG)?;
    fcntl(file, libc::F_SETLEASE, libc::F_RDLCK).map(drop)
}

/// Whether the lease on `file` holds and no other process waits for its release (F_GETLEASE).
pub fn has_read_lease(file: &File) -> bool {
    fcntl(file, libc::F_GETLEASE, 0).is_ok_and(|lease| lease == libc::F_RDLCK)
}

/// Releases the lease on `file`.
pub fn release_lease(file: &File) {
    _ = fcntl(file, libc::F_SETLEASE, libc::F_UNLCK);
}

/// From Linux's `asm-generic/fcntl.h`; libc does not have it.
const F_SETSIG: libc::c_int = 10;

fn fcntl(file: &File, command: libc::c_int, argument: libc::c_int) -> io::Result<libc::c_int> {
    // SAFETY: the descriptor is open, and these commands take and return integers.
    check(unsafe { libc::fcntl(file.as_raw_fd(), command, argument) })
}
