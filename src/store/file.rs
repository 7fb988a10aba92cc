//! One data file: read as a whole, replaced as a whole.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use super::Error;
use crate::json::Value;
use crate::system;

/// PHP truncates a file and then fills it. What looks broken is read again this often, at
/// this distance: over 200 ms in all.
const READINGS: usize = 5;
const PAUSE: Duration = Duration::from_millis(50);

/// How long an empty file may still be one that PHP is about to fill.
const FILLING: Duration = Duration::from_secs(10);

/// A file as it was when it was read.
#[derive(Debug)]
pub struct Snapshot(Metadata);

impl Snapshot {
    /// Whether the file is empty and so young that somebody may be about to fill it.
    pub fn is_being_written(&self) -> bool {
        let modified = self.0.modified().ok();
        self.0.len() == 0
            && modified.is_some_and(|at| at.elapsed().map_or(true, |age| age < FILLING))
    }

    /// The file's attributes.
    pub fn metadata(&self) -> &Metadata {
        &self.0
    }

    fn is_still(&self, now: &Metadata) -> bool {
        let identity = |m: &Metadata| (m.dev(), m.ino(), m.size(), m.mtime(), m.mtime_nsec());
        identity(&self.0) == identity(now)
    }
}

/// Reads the JSON of a file. No value: the file is empty; no snapshot: there is none.
///
/// Refuses what is no regular file (symbolic links are not followed), over 16 MiB, or, after
/// some readings, malformed.
pub fn read(path: &Path) -> Result<(Option<Value>, Option<Snapshot>), Error> {
    let mut readings = 1;
    loop {
        let Some((bytes, snapshot)) = read_once(path)? else {
            return Ok((None, None));
        };
        let parsed = Value::parse(&bytes);
        match parsed {
            Ok(value) => return Ok((Some(value), Some(snapshot))),
            Err(_) if readings < READINGS => sleep(PAUSE),
            Err(_) if bytes.is_empty() => return Ok((None, Some(snapshot))),
            Err(error) => return Err(Error::unusable(path, error.to_string())),
        }
        readings += 1;
    }
}

fn read_once(path: &Path) -> Result<Option<(Vec<u8>, Snapshot)>, Error> {
    let file = match system::open(OpenOptions::new().read(true), path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("open", path)(error)),
    };
    let metadata = file.metadata().map_err(Error::io("look at", path))?;
    if !metadata.is_file() {
        return Err(Error::unusable(path, "is no regular file"));
    }
    if metadata.len() > system::MAX_SIZE {
        return Err(Error::unusable(path, "is over 16 MiB"));
    }
    let bytes = system::read(&file, metadata.len()).map_err(Error::io("read", path))?;
    Ok(Some((bytes, Snapshot(metadata))))
}

/// Makes `folder` and below it each of `inner` in the one before, those that are missing, and
/// makes sure that they survive a power cut; whoever made them may have been killed since.
pub fn make_folders(folder: &Path, inner: &[&str]) -> Result<(), Error> {
    let mut folder = folder.to_owned();
    make_folder(&folder)?;
    for name in inner {
        folder.push(name);
        make_folder(&folder)?;
    }
    Ok(())
}

fn make_folder(folder: &Path) -> Result<(), Error> {
    let is_new = match fs::DirBuilder::new().mode(0o777).create(folder) {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
        Err(error) => return Err(Error::io("make the folder", folder)(error)),
    };
    match flush_folder_of(folder) {
        // The folder around an old one may be closed to this user, who then has not made it.
        Err(error) if !is_new && error.kind() == ErrorKind::PermissionDenied => Ok(()),
        flushed => flushed.map_err(Error::io("flush the folder around", folder)),
    }
}

/// Replaces the file at `path` by one with `content`. `false`: it is no longer the one of
/// `snapshot`, and nothing was done.
///
/// When this returns `true` the content is in place, and once the folder is flushed
/// ([`flush_folder`]) it survives a power cut; at no moment was there anything but the old file or
/// the new one. The folder must exist. The caller holds the lock, so a temporary file that is
/// there was left by a writer that was killed.
pub fn replace(path: &Path, content: &[u8], snapshot: Option<&Snapshot>) -> Result<bool, Error> {
    let temporary = temporary(path);
    let mut file = create(&temporary, snapshot).map_err(Error::io("create", &temporary))?;
    let replaced = (|| {
        if let Some(Snapshot(old)) = snapshot {
            keep_access(&file, old, path)?;
        }
        file.write_all(content).map_err(Error::io("write", &temporary))?;
        file.sync_all().map_err(Error::io("flush", &temporary))?;
        if !is_unchanged(path, snapshot)? {
            return Ok(false);
        }
        fs::rename(&temporary, path).map_err(Error::io("rename into place", path))?;
        Ok(true)
    })();
    if !matches!(replaced, Ok(true)) {
        // Where even this fails, the next writer removes it.
        _ = fs::remove_file(&temporary);
    }
    replaced
}

/// Makes a replacement at `path` survive a power cut.
pub fn flush_folder(path: &Path) -> Result<(), Error> {
    flush_folder_of(path).map_err(|source| Error::Unflushed { path: path.to_owned(), source })
}

/// `.<name>.tmp` beside the file: on the same file system, and the same for every writer, so
/// that leftovers never pile up.
fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.tmp"))
}

fn create(temporary: &Path, snapshot: Option<&Snapshot>) -> io::Result<File> {
    // A file that replaces another gets its mode once it has its owner.
    let mode = if snapshot.is_some() { 0o600 } else { 0o666 };
    let create = || OpenOptions::new().write(true).create_new(true).mode(mode).open(temporary);
    match create() {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::remove_file(temporary)?;
            create()
        }
        created => created,
    }
}

fn is_unchanged(path: &Path, snapshot: Option<&Snapshot>) -> Result<bool, Error> {
    match (fs::symlink_metadata(path), snapshot) {
        (Ok(now), Some(then)) => Ok(then.is_still(&now)),
        (Ok(_), None) => Ok(false),
        (Err(error), snapshot) if error.kind() == ErrorKind::NotFound => Ok(snapshot.is_none()),
        (Err(error), _) => Err(Error::io("look at", path)(error)),
    }
}

/// Gives `file` the owner, group and mode of the `old` one. Where the owner can't be kept, the
/// group must be, and be able to write; otherwise the frontend would be locked out.
fn keep_access(file: &File, old: &Metadata, path: &Path) -> Result<(), Error> {
    let new = file.metadata().map_err(Error::io("look at the copy of", path))?;
    let mode = old.permissions().mode() & 0o7777;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        let kept = fchown(file, Some(old.uid()), Some(old.gid())).or_else(|error| {
            if new.uid() != old.uid() && mode & 0o020 == 0 {
                return Err(error);
            }
            if new.gid() == old.gid() { Ok(()) } else { fchown(file, None, Some(old.gid())) }
        });
        kept.map_err(Error::io("keep owner and group, or a group that may write, of", path))?;
    }
    file.set_permissions(Permissions::from_mode(mode)).map_err(Error::io("keep the mode of", path))
}

fn flush_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}
