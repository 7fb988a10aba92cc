//! The lock that only one writer of an aulario can hold.

use std::fs::{self, File, Metadata, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Error;
use super::file::{create_folder, is_same};
use crate::files::{self, Lock};

/// The timeout of a writer that waits for other writers of the same aulario.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of retries if the lock file was deleted or replaced.
const RETRIES: usize = 3;

/// The exclusive lock (`flock`) on the lock file of an aulario; released when dropped.
#[derive(Debug)]
pub struct WriteLock {
    /// Keeps the lock as long as it is open
    _file: File,
    metadata: Metadata,
    path: PathBuf,
}

impl WriteLock {
    /// Locks the file `name` in `folder`, both created if missing.
    pub fn take(folder: &Path, name: &str) -> Result<WriteLock, Error> {
        let path = folder.join(name);
        for _ in 0..=RETRIES {
            let file = open(&path, folder)?;
            let is_locked =
                files::lock(&file, Lock::Exclusive, TIMEOUT).map_err(Error::io("lock", &path))?;
            if !is_locked {
                return Err(Error::Busy);
            }
            let metadata = file.metadata().map_err(Error::io("stat", &path))?;
            let lock = WriteLock { _file: file, metadata, path: path.clone() };
            if lock.is_held() {
                return Ok(lock);
            }
        }
        Err(Error::Busy)
    }

    /// Whether other writers still lock the same file. `false` if it was deleted or replaced.
    pub fn is_held(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|found| is_same(&found, &self.metadata))
    }
}

fn open(path: &Path, folder: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o660);
    match files::open(&mut options, path) {
        Err(fault) if fault.is_absent() => {
            // The new folder is flushed together with the first file in it.
            create_folder(folder)?;
            files::open(options.create(true), path)
        }
        opened => opened,
    }
    .map_err(Error::fault("open the lock file", path))
}
