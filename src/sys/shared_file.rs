//! Opening and reading files that other programs write too, and comparing them later: sessions, settings and data.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::sys::accounts;
use crate::sys::file_id::FileId;
use crate::sys::lock::{Pause, Retries};
use crate::sys::waits::Waits;

/// The maximum size of a file that is read. A day or a list of types has a few KiB; a PHP page with a
/// session of about this size exceeds its memory_limit (128 MiB).
pub const MAX_SIZE: u64 = 16 * 1024 * 1024;

/// The maximum number of times that a file is opened if other clients of a network file system replace
/// it. Each opening finds the newest file; the maximum ends a request beside a client that never pauses.
const OPENINGS: usize = 10;

/// The timeout for another program, such as Samba or the NFS server of the kernel, to release a lease (fcntl(2),
/// F_SETLEASE) on a file that is opened. PHP waits for that. One that does not release it is forced to by the kernel
/// after 45 s (`/proc/sys/fs/lease-break-time`), longer than a request should take.
const LEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// The pause between two attempts, of which the timeout has 400
const LEASE_PAUSE: Duration = Duration::from_millis(5);

/// An open file, with its content and attributes at the time of reading.
#[derive(Debug)]
pub struct Snapshot {
    pub file: File,
    pub metadata: Metadata,
    pub bytes: Vec<u8>,
}

impl Snapshot {
    pub fn id(&self) -> FileId {
        FileId::of(&self.metadata)
    }

    /// Whether `now` can be the metadata of this file, not modified: device, inode, size and time of change are equal.
    pub fn looks_like(&self, now: &Metadata) -> bool {
        let looks = |m: &Metadata| (FileId::of(m), m.len(), m.ctime(), m.ctime_nsec());
        looks(now) == looks(&self.metadata)
    }

    /// Whether content, owner, group, mode and access control list are unchanged, the list by the time of
    /// change. An exchange of names alters that time too.
    pub fn is_as_read_with_ctime(&self) -> io::Result<bool> {
        let change = |m: &Metadata| (m.ctime(), m.ctime_nsec());
        let now = self.file.metadata()?;
        Ok(change(&now) == change(&self.metadata) && self.is_equal(&now)?)
    }

    /// Whether content, owner, group and mode are unchanged.
    pub fn is_as_read(&self) -> io::Result<bool> {
        self.is_equal(&self.file.metadata()?)
    }

    /// Times of modification are not compared, because their resolution can be coarse.
    fn is_equal(&self, now: &Metadata) -> io::Result<bool> {
        let attributes = |m: &Metadata| (m.uid(), m.gid(), m.mode());
        let length = self.bytes.len();
        if attributes(now) != attributes(&self.metadata) || now.len() != length as u64 {
            return Ok(false);
        }
        let mut bytes = vec![0; length];
        match self.file.read_exact_at(&mut bytes, 0) {
            Ok(()) => Ok(bytes == self.bytes),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is a symbolic link, and links are not followed")]
    SymbolicLink,
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it is larger than {}", size(*.0))]
    TooLarge(u64),
    #[error("it belongs to another user, {}", accounts::user(*.0))]
    OfAnotherUser(u32),
    #[error("another program holds a lease on it")]
    Leased,
}

/// Whether a path names no file: a part of it does not exist, or a part before the last is not a folder.
pub fn names_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// A limit as a message shows it.
fn size(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{} KiB", bytes >> 10),
        mebibytes => format!("{mebibytes} MiB"),
    }
}

impl Fault {
    /// Whether the file, or a folder on its path, does not exist.
    pub fn is_absent(&self) -> bool {
        matches!(self, Fault::Io(error) if error.kind() == ErrorKind::NotFound)
    }

    /// Whether another client of a network file system deleted or replaced the file, or a folder on
    /// its path (ESTALE).
    pub fn is_stale(&self) -> bool {
        matches!(self, Fault::Io(error) if error.kind() == ErrorKind::StaleNetworkFileHandle)
    }
}

/// Opens `path` with `flags` and passes the file to `step`. A file that `CREATE` creates has at most the
/// mode 0660. Rejects a symbolic link in the last part of `path`. Does not block on a FIFO.
///
/// If the file is stale, opens its folder, so that the client asks the server for the entries again, and
/// starts over. Otherwise it may take the same file from its cache (nfs(5), "Directory entry caching").
pub fn open_and<T>(
    flags: OFlags,
    path: &Path,
    waits: Waits,
    mut step: impl FnMut(File) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let mut openings = 1;
    loop {
        match open_with(flags | OFlags::NOFOLLOW, path, waits).and_then(&mut step) {
            Err(fault) if fault.is_stale() && openings < OPENINGS => openings += 1,
            done => return done,
        }
        _ = path.parent().map(File::open);
    }
}

/// Reads the file at `path`, through symbolic links. See [`read`].
pub fn read_followed(path: &Path, waits: Waits) -> Result<Snapshot, Fault> {
    read(open_with(OFlags::RDONLY, path, waits)?)
}

/// The same for a file of at most `max_size` bytes.
pub fn read_small(path: &Path, max_size: u64) -> Result<Snapshot, Fault> {
    read_within(open_with(OFlags::RDONLY, path, Waits::ALWAYS)?, max_size)
}

/// Opens a file without the standard library: musl's `open` sets `CLOEXEC` by another system call again.
fn open_with(flags: OFlags, path: &Path, waits: Waits) -> Result<File, Fault> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut while_leased = Retries::new(waits, LEASE_PAUSE, LEASE_TIMEOUT);
    loop {
        match retry_on_intr(|| rustix::fs::open(path, flags, Mode::from(0o660))) {
            Ok(file) => return Ok(file.into()),
            Err(Errno::AGAIN) => {
                let id = FileId::of(&path.metadata()?);
                if while_leased.pause(id) != Pause::Ended {
                    return Err(Fault::Leased);
                }
            }
            Err(Errno::LOOP) if flags.contains(OFlags::NOFOLLOW) => {
                return Err(Fault::SymbolicLink);
            }
            // A socket, or a fifo without a reader.
            Err(Errno::NXIO) => return Err(Fault::NotRegular),
            Err(error) => return Err(Fault::Io(error.into())),
        }
    }
}

/// Whether a file may be read: it must be regular, and not larger than [`MAX_SIZE`].
pub fn check(metadata: &Metadata) -> Result<(), Fault> {
    check_within(metadata, MAX_SIZE)
}

fn check_within(metadata: &Metadata, max_size: u64) -> Result<(), Fault> {
    match metadata {
        it if !it.is_file() => Err(Fault::NotRegular),
        it if it.len() > max_size => Err(Fault::TooLarge(max_size)),
        _ => Ok(()),
    }
}

/// Reads `file`, which must pass [`check`].
pub fn read(file: File) -> Result<Snapshot, Fault> {
    read_within(file, MAX_SIZE)
}

fn read_within(file: File, max_size: u64) -> Result<Snapshot, Fault> {
    let metadata = file.metadata()?;
    check_within(&metadata, max_size)?;
    let mut bytes = Vec::with_capacity(metadata.len() as usize + 1);
    let count = retry_on_intr(|| rustix::io::read(&file, spare_capacity(&mut bytes)));
    // As many bytes as the file has, into a buffer with room for more, are all of them. Otherwise it has
    // changed meanwhile, or a network file system returns it in parts.
    if count.map_err(io::Error::from)? as u64 != metadata.len() {
        (&file)
            .take(max_size.saturating_sub(bytes.len() as u64))
            .read_to_end(&mut bytes)?;
    }
    Ok(Snapshot {
        file,
        metadata,
        bytes,
    })
}
