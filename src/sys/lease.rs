//! A read lease on a data file (fcntl(2), F_SETLEASE).
//!
//! PHP takes no lock, but it must open a file to save it. Linux grants a read lease only if no
//! process has the file open for writing; from then on, a process that opens it for writing
//! waits in open(2) until the lease is released. Readers are not affected. The kernel breaks a lease
//! after `/proc/sys/fs/lease-break-time` (45 s), far longer than a replacement takes.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::time::Duration;

use rustix::fs::{FsWord, NFS_SUPER_MAGIC, StatFs, fstatfs};

use super::file_id::FileId;
use super::lock::{Pause, Retries};
use super::or_errno;
use super::waits::Waits;

/// The timeout for another process to close the file. A page has it open only while it writes.
const WRITER_TIMEOUT: Duration = Duration::from_millis(200);

/// The pause between two attempts. It is short because other writers of the aulario wait meanwhile.
const PAUSE: Duration = Duration::from_millis(2);

/// A lease, or a placeholder if the file system or the owner of the file does not allow one.
#[derive(Debug)]
pub struct Lease<'f> {
    /// The file, if it has a lease
    held: Option<&'f File>,
}

impl<'f> Lease<'f> {
    /// Takes a lease on `file`, which is `id` and open for reading only. `None` if another process keeps it
    /// open for writing.
    pub fn take_if_allowed(file: &'f File, id: FileId, waits: Waits) -> Option<Lease<'f>> {
        let mut retries = Retries::new(waits, PAUSE, WRITER_TIMEOUT);
        // A process that opens the file for writing makes the kernel send SIGIO, whose default ends the
        // process. SIGURG is ignored by default.
        let set = || {
            fcntl(file, F_SETSIG, libc::SIGURG)?;
            fcntl(file, libc::F_SETLEASE, libc::F_RDLCK)
        };
        loop {
            match set() {
                Ok(_) => return Some(Lease { held: Some(file) }),
                Err(error) if !is_being_written(file, &error) => return Some(Lease { held: None }),
                Err(_) => {}
            }
            if retries.pause(id) != Pause::Ended {
                return None;
            }
        }
    }

    /// Whether another process waits in open(2) to write the file.
    pub fn is_breaking(&self) -> bool {
        let is_whole = |file| fcntl(file, libc::F_GETLEASE, 0).is_ok_and(|it| it == libc::F_RDLCK);
        self.held.is_some_and(|file| !is_whole(file))
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.held {
            _ = fcntl(file, libc::F_SETLEASE, libc::F_UNLCK);
        }
    }
}

/// EAGAIN means that a process has the file open for writing. On NFS and CIFS it means that the server has not
/// granted a delegation or an oplock.
fn is_being_written(file: &File, error: &io::Error) -> bool {
    let is_local = |system: StatFs| ![NFS_SUPER_MAGIC, CIFS, SMB2].contains(&system.f_type);
    error.kind() == ErrorKind::WouldBlock && fstatfs(file).is_ok_and(is_local)
}

/// From Linux's `linux/magic.h`; rustix does not have them.
const CIFS: FsWord = 0xff53_4d42;
const SMB2: FsWord = 0xfe53_4d42;

/// From Linux's `asm-generic/fcntl.h`; libc does not have it.
const F_SETSIG: libc::c_int = 10;

fn fcntl(file: &File, command: libc::c_int, argument: libc::c_int) -> io::Result<libc::c_int> {
    // SAFETY: the descriptor is open, and these commands take and return integers.
    or_errno(unsafe { libc::fcntl(file.as_raw_fd(), command, argument) })
}
