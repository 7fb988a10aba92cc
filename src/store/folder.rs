//! Flushing a folder (fsync(2)), so that the names in it survive a power cut, where that is possible.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::io::Errno;

/// A folder to flush, open because another program may delete it
pub struct Folder(Option<File>);

impl Folder {
    /// Opens the folder at `path`, unless it cannot be flushed.
    pub fn open(path: &Path) -> io::Result<Folder> {
        match File::open(path) {
            Err(error) if is_impossible(&error) => Ok(Folder(None)),
            opened => Ok(Folder(Some(opened?))),
        }
    }

    /// Flushes it, and returns whether that is possible. If not, PHP saves there too.
    pub fn flush(&self) -> io::Result<bool> {
        match self.0.as_ref().map(File::sync_all) {
            None => Ok(false),
            Some(Err(error)) if is_impossible(&error) => Ok(false),
            Some(flushed) => flushed.map(|()| true),
        }
    }
}

/// Whether the error means that the folder can be changed, but not flushed. A user may enter and change a folder that they
/// cannot list (mode 0733, EACCES). Where a file system has no flush of folders, fsync(2) is EINVAL, as on VirtualBox's
/// shared folders and older CIFS, and by drivers of FUSE also EOPNOTSUPP or EBADF.
fn is_impossible(error: &io::Error) -> bool {
    const ERRORS: [Errno; 4] = [Errno::ACCESS, Errno::INVAL, Errno::OPNOTSUPP, Errno::BADF];
    Errno::from_io_error(error).is_some_and(|errno| ERRORS.contains(&errno))
}
