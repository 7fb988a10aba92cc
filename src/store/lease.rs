//! A read lease on a data file (fcntl(2), F_SETLEASE).
//!
//! PHP takes no lock, but it must open a file to save it. Linux grants a read lease only if no
//! process has the file open for writing; from then on, a process that opens it for writing
//! waits in open(2) until the lease is released. Readers are not affected. The kernel breaks a lease
//! after `/proc/sys/fs/lease-break-time` (45 s), far longer than a replacement takes.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::time::Duration;

use rustix::fs::{NFS_SUPER_MAGIC, fstatfs};

use crate::sys::leases;
use crate::sys::lock::{FileId, Pause, Retries};

/// The timeout for another process to close the file.
const WRITER_TIMEOUT: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_millis(2);

/// A lease, or a placeholder if the file system or the owner of the file does not allow one.
#[derive(Debug)]
pub struct Lease<'f> {
    /// The file, if it has a lease
    held: Option<&'f File>,
}

impl<'f> Lease<'f> {
    /// Takes a lease on `file`, which is `id`. `None` if another process keeps it open for writing.
    pub fn take(file: &'f File, id: FileId) -> Option<Lease<'f>> {
        let mut retries = Retries::new(PAUSE, WRITER_TIMEOUT);
        loop {
            match leases::set_read_lease(file) {
                Ok(()) => return Some(Lease { held: Some(file) }),
                Err(error) if !is_being_written(file, &error) => return Some(Lease { held: None }),
                Err(_) if retries.pause(id) == Pause::Ended => {}
                Err(_) => return None,
            }
        }
    }

    /// Whether another process waits in open(2) to write the file.
    pub fn is_breaking(&self) -> bool {
        self.held.is_some_and(|file| !leases::has_read_lease(file))
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.held {
            leases::release_lease(file);
        }
    }
}

/// EAGAIN means that a process has the file open for writing. On NFS it means that the server has not
/// granted a delegation.
fn is_being_written(file: &File, error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
        && fstatfs(file).is_ok_and(|system| system.f_type != NFS_SUPER_MAGIC)
}
