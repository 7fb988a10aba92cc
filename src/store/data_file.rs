//! Reading one data file, looking later whether it is still what was read, and creating its folders.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

use super::Error;
use super::folder::Folder;
use super::layout::folder_of;
use crate::model::known_key;
use crate::php::json::Value;
use crate::sys::file_id::FileId;
use crate::sys::lock::{Pause, Retries};
use crate::sys::shared_file::{self, Fault, Snapshot};
use crate::sys::waits::Waits;

/// PHP truncates a file and then writes it. A file that does not parse is read again for this time, with
/// these pauses. Longer ones met the rhythm of a page that saves without a pause.
const WRITER_TIMEOUT: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_millis(10);

/// The same for an empty file that PHP may be writing: on ext4 a file stays empty while `open` truncates it.
const EMPTY_TIMEOUT: Duration = Duration::from_secs(1);

/// For this time after its last modification, an empty file is treated as a file that PHP is writing. A time
/// further than this in the future is from a wrong clock.
const PHP_SAVE_TIME: Duration = Duration::from_secs(10);

/// What a file contains.
#[derive(Debug)]
pub enum Content {
    /// There is no such file.
    Absent,
    /// No bytes: PHP was killed after it had truncated the file, or is still writing it.
    Empty(Snapshot),
    Json(Value, Snapshot),
}

impl Content {
    /// Whether the file is empty and so new that PHP may be writing it.
    pub fn is_being_written(&self) -> bool {
        matches!(self, Content::Empty(snapshot) if is_being_written(snapshot))
    }

    pub fn into_parts(self) -> Parts {
        match self {
            Content::Absent => Parts::default(),
            Content::Empty(snapshot) => Parts {
                value: None,
                snapshot: Some(snapshot),
            },
            Content::Json(value, snapshot) => Parts {
                value: Some(value),
                snapshot: Some(snapshot),
            },
        }
    }
}

/// What a parser needs of a [`Content`], and what replaces the file.
#[derive(Default)]
pub struct Parts {
    pub value: Option<Value>,
    pub snapshot: Option<Snapshot>,
}

/// Whether the file is empty and so new that PHP may be writing it.
fn is_being_written(snapshot: &Snapshot) -> bool {
    snapshot.bytes.is_empty()
        && snapshot.metadata.modified().is_ok_and(|modified| {
            let now = SystemTime::now();
            let age = now
                .duration_since(modified)
                .unwrap_or_else(|ahead| ahead.duration());
            age < PHP_SAVE_TIME
        })
}

/// Whether `path` looks as it was read: the same file, or still none. It is a quick look, for which a network file
/// system may use its cache. Only [`Snapshot::is_as_read_with_ctime`] is certain, which compares the content.
pub fn looks_as_read(path: &Path, snapshot: Option<&Snapshot>) -> bool {
    match (fs::symlink_metadata(path), snapshot) {
        (Ok(now), Some(snapshot)) => snapshot.looks_like(&now),
        (Err(error), None) => error.kind() == ErrorKind::NotFound,
        _ => false,
    }
}

/// Whether `path` is the file `id`. The path is opened, because a network file system may answer a stat
/// from its cache.
pub fn is_at(path: &Path, id: FileId, waits: Waits) -> Result<bool, Error> {
    let id_of = |file: File| Ok(FileId::of(&file.metadata()?));
    let found = open_and(path, "open again", waits, id_of)?;
    Ok(found == Some(id))
}

/// Opens `path` and passes the file to `step`; `None` if it does not exist.
fn open_and<T>(
    path: &Path,
    operation: &'static str,
    waits: Waits,
    step: impl FnMut(File) -> Result<T, Fault>,
) -> Result<Option<T>, Error> {
    match shared_file::open_and(OFlags::RDONLY, path, waits, step) {
        Err(fault) if fault.is_absent() => Ok(None),
        done => done.map(Some).map_err(Error::fault(operation, path)),
    }
}

/// Reads the JSON of a file, again while PHP may be writing it.
///
/// Fails if a folder of `path` is a symbolic link without a target, if the file is not regular (symbolic
/// links are not followed), larger than [`shared_file::MAX_SIZE`], or still malformed after several attempts.
pub fn read(path: &Path, waits: Waits) -> Result<Content, Error> {
    let mut while_malformed = Retries::new(waits, PAUSE, WRITER_TIMEOUT);
    let mut while_empty = Retries::new(waits, PAUSE, EMPTY_TIMEOUT);
    loop {
        let Some(snapshot) = open_and(path, "read", waits, shared_file::read)? else {
            return absent(path);
        };
        let error = match Value::parse_with(known_key, usize::MAX, &snapshot.bytes) {
            Ok(value) => return Ok(Content::Json(value, snapshot)),
            Err(error) => error,
        };
        let is_empty = snapshot.bytes.is_empty();
        let retries = if is_being_written(&snapshot) {
            &mut while_empty
        } else {
            &mut while_malformed
        };
        match retries.pause(snapshot.id()) {
            Pause::Ended => {}
            Pause::Refused => return Err(Error::Busy),
            Pause::TimedOut if is_empty => return Ok(Content::Empty(snapshot)),
            Pause::TimedOut => return Err(Error::unusable(path, error)),
        }
    }
}

/// [`Content::Absent`], or an error if a folder of `path` is a symbolic link without a target: the file may exist
/// on a disk that is not mounted.
fn absent(path: &Path) -> Result<Content, Error> {
    let existing = path.ancestors().skip(1).find_map(|folder| {
        let metadata = folder.symlink_metadata().ok()?;
        Some((folder, metadata.is_symlink()))
    });
    if let Some((folder, true)) = existing {
        fs::metadata(folder).map_err(Error::fault("follow the symbolic link", folder))?;
    }
    Ok(Content::Absent)
}

/// Creates `folder` and the folders of the file `names` below it, if they are missing. Flushes existing
/// folders too: PHP may have created them, or a writer that was killed before the flush.
///
/// On ext4, XFS and Btrfs the flush of a file's folder also makes the new folders above it durable:
/// simulated power cuts lost nothing without the flushes here. fsync(2) does not guarantee it, and
/// the flushes are needed only for the first file in a folder.
pub fn make_folders(folder: &Path, names: &[&str]) -> Result<(), Error> {
    let mut path = folder.to_owned();
    for name in names {
        create_folder(&path)?;
        Folder::open(folder_of(&path))
            .and_then(|parent| parent.flush())
            .map_err(Error::displaced_or("flush the parent of folder", &path))?;
        path.push(name);
    }
    Ok(())
}

/// Creates `folder` if it is missing.
pub fn create_folder(folder: &Path) -> Result<(), Error> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(Error::displaced_or("create folder", folder)(error))
        }
        _ => Ok(()),
    }
}
