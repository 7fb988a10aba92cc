//! What both the sessions and the store need of files that other programs write.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

/// The largest file that is read. A day or a list of types has a few KiB; a PHP page with a
/// session of about this size runs into its memory_limit (128 MiB).
pub const MAX_SIZE: u64 = 16 * 1024 * 1024;

/// How long to sleep between two tries for a lock. `flock` can wait by itself, but not up to
/// a deadline.
const PAUSE: Duration = Duration::from_millis(1);

/// Opens `path` as `options` say, but follows no symbolic link in its last part and does not
/// wait for the other end of a fifo.
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.custom_flags(flags.bits() as i32).open(path)
}

/// Reads a file of `length` bytes, and no more than [`MAX_SIZE`] of one that grows.
pub fn read(file: &File, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(length as usize + 1);
    file.take(MAX_SIZE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whom a lock keeps out.
#[derive(Clone, Copy, Debug)]
pub enum Lock {
    /// Writers
    Shared,
    /// Everybody
    Exclusive,
}

/// Takes a lock (`flock`) as soon as it is to be had, for as long as `file` is open; says whether
/// it was had before `deadline` had passed.
///
/// This and [`unlock`] are all that is used of fs2, by its full path: `File` has methods of the
/// same names.
pub fn lock(file: &File, lock: Lock, deadline: Duration) -> io::Result<bool> {
    let mut started = None;
    loop {
        let taken = match lock {
            Lock::Shared => fs2::FileExt::try_lock_shared(file),
            Lock::Exclusive => fs2::FileExt::try_lock_exclusive(file),
        };
        match taken {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if started.get_or_insert_with(Instant::now).elapsed() >= deadline {
                    return Ok(false);
                }
                sleep(PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Lets a lock go before the file is closed.
pub fn unlock(file: &File) -> io::Result<()> {
    fs2::FileExt::unlock(file)
}
