//! One data file: read as a whole, replaced as a whole.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use super::Error;
use super::access::{self, Access, User};
use crate::json::Value;
use crate::system;

/// PHP truncates a file and then writes it. A file that does not parse is read this many times,
/// with this pause: over 200 ms in all.
const READINGS: usize = 5;
const PAUSE: Duration = Duration::from_millis(50);

/// How long an empty file may still be one that PHP is about to write.
const WRITE_TIME: Duration = Duration::from_secs(10);

/// A file as it was when it was read.
#[derive(Debug)]
pub struct Snapshot(Metadata);

impl Snapshot {
    /// Whether the file is empty and so new that a writer may be about to fill it.
    pub fn is_being_written(&self) -> bool {
        let modified = self.0.modified().ok();
        self.0.len() == 0
            && modified.is_some_and(|at| at.elapsed().map_or(true, |age| age < WRITE_TIME))
    }

    pub fn access(&self) -> Access {
        (&self.0).into()
    }

    fn is_still(&self, now: &Metadata) -> bool {
        let identity = |m: &Metadata| (m.dev(), m.ino(), m.size(), m.mtime(), m.mtime_nsec());
        identity(&self.0) == identity(now)
    }
}

/// Reads the JSON of a file. Without a value the file is empty; without a snapshot there is none.
///
/// Refuses a file that is not regular (symbolic links are not followed), larger than 16 MiB, or still
/// malformed after several readings.
pub fn read(path: &Path) -> Result<(Option<Value>, Option<Snapshot>), Error> {
    let mut readings = 1;
    loop {
        let Some((bytes, snapshot)) = read_once(path)? else {
            return Ok((None, None));
        };
        match Value::parse(&bytes) {
            Ok(value) => return Ok((Some(value), Some(snapshot))),
            Err(_) if readings < READINGS => sleep(PAUSE),
            Err(_) if bytes.is_empty() => return Ok((None, Some(snapshot))),
            Err(error) => return Err(Error::unusable(path, format!("invalid JSON: {error}"))),
        }
        readings += 1;
    }
}

fn read_once(path: &Path) -> Result<Option<(Vec<u8>, Snapshot)>, Error> {
    let read =
        system::open(OpenOptions::new().read(true), path).and_then(|file| system::read(&file));
    match read {
        Ok((bytes, metadata)) => Ok(Some((bytes, Snapshot(metadata)))),
        Err(fault) if fault.is_absent() => Ok(None),
        Err(fault) => Err(Error::fault("read", path)(fault)),
    }
}

/// Creates `folder`, and below it each of `inner` inside the one before, if they are missing, and
/// flushes them: they may exist because a writer created them and was killed.
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
        Err(error) => return Err(Error::io("create folder", folder)(error)),
    };
    match flush_parent(folder) {
        // This user may lack access to the parent of a folder that they have not created.
        Err(error) if !is_new && error.kind() == ErrorKind::PermissionDenied => Ok(()),
        flushed => flushed.map_err(Error::io("flush the parent of folder", folder)),
    }
}

/// Replaces the file at `path` by one with `content`. `false`: it is no longer the file of
/// `snapshot`, and nothing was done.
///
/// When this returns `true` the content is in place, and once the folder is flushed
/// ([`flush_folder`]) it survives a power cut; at every moment there is the old file or the new
/// one. The folder must exist. The caller holds the lock, so an existing temporary file is from a
/// writer that was killed.
pub fn replace(path: &Path, content: &[u8], snapshot: Option<&Snapshot>) -> Result<bool, Error> {
    let temporary = temporary(path);
    let mut file = create(&temporary, snapshot).map_err(Error::io("create", &temporary))?;
    let replaced = (|| {
        if let Some(snapshot) = snapshot {
            keep_access(&file, snapshot.access(), path)?;
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
        // If even this fails, the next writer removes it.
        _ = fs::remove_file(&temporary);
    }
    replaced
}

/// Makes a replacement at `path` survive a power cut.
pub fn flush_folder(path: &Path) -> Result<(), Error> {
    flush_parent(path).map_err(|source| Error::Unflushed { path: path.to_owned(), source })
}

/// `.<name>.tmp` beside the file: on the same file system, and the same for every writer, so
/// that leftovers never accumulate.
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
        (Err(error), _) => Err(Error::io("stat", path)(error)),
    }
}

/// Gives `file` the access of the `old` file at `path`, see [`access::of_replacement`].
fn keep_access(file: &File, old: Access, path: &Path) -> Result<(), Error> {
    let folder = fs::metadata(parent(path)).map_err(Error::io("stat the folder of", path))?;
    let user = User::of_process();
    let Some(access) = access::of_replacement(old, (&folder).into(), &user) else {
        let why = format!(
            "user {} cannot replace it without locking out its owner: it must belong to the same \
             user, or to a group that can write it and that this user is a member of",
            user.uid
        );
        return Err(Error::unusable(path, why));
    };
    let created = file.metadata().map_err(Error::io("stat the copy of", path))?;
    if (created.uid(), created.gid()) != (access.uid, access.gid) {
        fchown(file, Some(access.uid), Some(access.gid))
            .map_err(Error::io("keep the owner and group of", path))?;
    }
    file.set_permissions(Permissions::from_mode(access.mode))
        .map_err(Error::io("keep the mode of", path))
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

fn flush_parent(path: &Path) -> io::Result<()> {
    File::open(parent(path))?.sync_all()
}
