//! The lock that only one writer of an aulario can hold.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use super::Error;
use super::data_file::{create_folder, is_at};
use crate::sys::file_id::FileId;
use crate::sys::lock::Lock;
use crate::sys::shared_file::{self, Fault};
use crate::sys::waits::Waits;

/// The time for which a change waits for other writers of the same aulario, in all its attempts together. With the wait
/// for a session it is less than the 60 s after which Apache and nginx give up an answer: the client is told that it may
/// retry.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of attempts, if the lock file is missing, or was deleted or replaced during the wait. The first
/// save needs two. No program deletes the file; a synchronisation or a backup that is restored may replace it.
const ATTEMPTS: usize = 5;

/// The exclusive lock (`flock`) on the lock file of an aulario; released when dropped.
#[derive(Debug)]
pub struct WriteLock {
    /// The lock file, which keeps the lock as long as it is open
    _file: File,
    id: FileId,
    path: PathBuf,
    pub waits: Waits,
}

impl WriteLock {
    /// Locks the file `name` in `folder`, both created if missing. If another writer has the lock, calls `before_wait`,
    /// waits up to `time`, and subtracts the wait from it.
    pub fn acquire(
        folder: &Path,
        name: &str,
        time: &mut Duration,
        waits: Waits,
        mut before_wait: impl FnMut(),
    ) -> Result<WriteLock, Error> {
        let path = folder.join(name);
        let mut flags = OFlags::RDWR;
        for _ in 0..ATTEMPTS {
            let locked = shared_file::open_and(flags, &path, waits, |file| {
                if !Lock::Exclusive.try_take(&file)? {
                    before_wait();
                    if !Lock::Exclusive.acquire(&file, time, waits)? {
                        return Ok(None);
                    }
                }
                let id = FileId::of(&file.metadata()?);
                Ok(Some(WriteLock {
                    _file: file,
                    id,
                    path: path.clone(),
                    waits,
                }))
            });
            if locked.as_ref().is_err_and(Fault::is_absent) {
                // The new folder is flushed together with the first file in it.
                create_folder(folder)?;
                flags |= OFlags::CREATE;
                continue;
            }
            let lock = locked
                .map_err(Error::fault("open and lock", &path))?
                .ok_or(Error::Busy)?;
            // The check comes before anything is written: the leftovers that this writer would remove may be the files
            // of a writer that has locked the other file with this name.
            if lock.is_held()? {
                return Ok(lock);
            }
        }
        Err(Error::in_use(
            &path,
            "it was deleted or replaced during each attempt to lock it",
        ))
    }

    /// Whether other writers still lock the same file. `false` if it was deleted or replaced.
    pub fn is_held(&self) -> Result<bool, Error> {
        is_at(&self.path, self.id, self.waits)
    }
}
