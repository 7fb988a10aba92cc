//! Which file an open file, or the file at a path, is.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Device and inode, which identify a file whatever its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
}

impl FileId {
    pub fn of(metadata: &Metadata) -> FileId {
        FileId {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}
