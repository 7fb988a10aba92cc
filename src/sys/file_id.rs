//! Which file an open file, or the file at a path, is.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Device and inode, which identify a file whatever its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
}

impl FileId {
    /// The file at `path`, which can be a link to it.
    pub fn at(path: &Path) -> io::Result<FileId> {
        Ok(FileId::of(&fs::metadata(path)?))
    }

    pub fn of(metadata: &Metadata) -> FileId {
        FileId {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}
