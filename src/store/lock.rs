//! The lock that keeps the writers of an aulario apart.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Error;
use super::file::{create_folder, is_same};
use crate::files::{self, Lock};

/// How long a writer waits for the other writers of its aulario.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How often the lock is taken again because its file was deleted or replaced.
const RETRIES: usize = 3;

/// The exclusive lock (`flock`) on the lock file of an aulario; released when dropped.
#[derive(Debug)]
pub struct WriteLock {
    file: File,
    path: PathBuf,
}

impl WriteLock {
    /// Locks the file `name` in `folder`, both created if missing.
    pub fn take(folder: &Path, name: &str) -> Result<WriteLock, Error> {
        let path = folder.join(name);
        for _ in 0..=RETRIES {
            let lock = WriteLock { file: open(&path, folder)?, path: path.clone() };
            let is_locked = files::lock(&lock.file, Lock::Exclusive, TIMEOUT)
                .map_err(Error::io("lock", &path))?;
            if !is_locked {
                return Err(Error::Busy);
            }
            if lock.is_held() {
                return Ok(lock);
            }
        }
        Err(Error::Busy)
    }

    /// Whether the locked file is still the one that other writers lock. It is not if the file was
    /// deleted or replaced.
    pub fn is_held(&self) -> bool {
        let check = || -> io::Result<bool> {
            Ok(is_same(&self.file.metadata()?, &fs::symlink_metadata(&self.path)?))
        };
        check().unwrap_or(false)
    }
}

fn open(path: &Path, folder: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o660);
    match files::open(&mut options, path) {
        Err(fault) if fault.is_absent() => {
            // It is flushed with the first file in it.
            create_folder(folder)?;
            files::open(options.create(true), path)
        }
        opened => opened,
    }
    .map_err(Error::fault("open the lock file", path))
}
