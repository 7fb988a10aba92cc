//! The PHP session that a cookie names: found, locked, read and let go, never written.
//!
//! PHP holds an exclusive lock on the file while one of its pages runs
//! (ext/session/mod_files.c), so a shared lock is what makes sure of a whole file.

mod cookie;
mod lexer;
mod unserialize;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Timespec, Timestamps, UTIME_NOW, futimens};
use rustix::io::Errno;
use rustix::process::{geteuid, getuid};

pub use cookie::{SessionId, session_id};
pub use unserialize::{PhpArray, PhpValue, Session};

use crate::config::{SavePath, SessionConfig};
use crate::error::Error;
use crate::files::{self, Fault, Lock};

/// How long a PHP page may hold the session.
const LOCK_DEADLINE: Duration = Duration::from_secs(5);

/// The session that the `Cookie` header names; its file's times are set, which keeps it alive
/// as a PHP page would. Refuses what [`find`] refuses.
pub fn open(config: &SessionConfig, cookies: Option<&[u8]>) -> Result<Session, Error> {
    let id = session_id(cookies.unwrap_or_default(), &config.name);
    let found = find(config, &id.ok_or_else(Error::not_logged_in)?)?;
    // Fails where the file is another user's; then its own application keeps it alive.
    _ = futimens(&found.file, &NOW);
    Ok(found.session)
}

/// A session and the file that it was read from, unlocked again.
#[derive(Debug)]
pub struct Found {
    /// What it holds
    pub session: Session,
    file: File,
}

/// The session of that id.
///
/// Refuses with INVALID_SESSION what PHP would not take for a session, with BUSY a session that
/// a page holds for longer than five seconds, and with INTERNAL_ERROR a folder or file that
/// this user may not read.
pub fn find(config: &SessionConfig, id: &SessionId) -> Result<Found, Error> {
    let path = path(&config.save_path, id).ok_or_else(Error::not_logged_in)?;
    let unusable = |why: &dyn std::fmt::Display| {
        Error::invalid_session(
            "The session can't be used; please log in again.",
            Some(format!("session {}: {why}", shortened(&path))),
        )
    };

    let file = open_file(&path, config)?.map_err(|fault| unusable(&fault))?;
    let locked =
        files::lock(&file, Lock::Shared, LOCK_DEADLINE).map_err(|error| internal(&path, &error))?;
    if !locked {
        return Err(Error::busy());
    }
    let (bytes, metadata) = files::read(&file).map_err(|fault| match fault {
        Fault::Io(error) => internal(&path, &error),
        fault => unusable(&fault),
    })?;
    files::unlock(&file).map_err(|error| internal(&path, &error))?;
    if metadata.nlink() == 0 {
        // A logout between open and lock.
        return Err(Error::not_logged_in());
    }
    if !is_ours(metadata.uid()) {
        return Err(unusable(&"belongs to another user"));
    }
    if let (Some(max_age), Ok(modified)) = (config.max_age, metadata.modified())
        && modified.elapsed().is_ok_and(|age| age > max_age)
    {
        return Err(Error::not_logged_in());
    }

    let session = Session::decode(bytes, config.format).map_err(|error| unusable(&error))?;
    Ok(Found { session, file })
}

const NOW: Timestamps = {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    Timestamps { last_access: now, last_modification: now }
};

fn internal(path: &Path, error: &io::Error) -> Error {
    let user = geteuid().as_raw();
    Error::internal(format!("session {}: user {user}: {error}", shortened(path)))
}

/// The path without most of the id, with which whoever reads the log could pass for the user.
fn shortened(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match name.strip_prefix("sess_").and_then(|id| id.get(..4)) {
        Some(start) => path.with_file_name(format!("sess_{start}…")).display().to_string(),
        None => path.display().to_string(),
    }
}

/// Where the session `id` lies (`ps_files_path_create`): the id must be longer than the
/// folders above it are deep.
fn path(save_path: &SavePath, id: &SessionId) -> Option<PathBuf> {
    let id = id.as_str();
    if id.len() <= save_path.depth {
        return None;
    }
    let mut path = save_path.folder.clone();
    path.extend(id.split("").skip(1).take(save_path.depth));
    path.push(["sess_", id].concat());
    Some(path)
}

/// Opens as PHP does, but never creates and never waits for a fifo's other end. The inner
/// error says why what is there is no session file.
fn open_file(path: &Path, config: &SessionConfig) -> Result<Result<File, Fault>, Error> {
    let error = match files::open(OpenOptions::new().read(true), path) {
        Ok(file) => return Ok(Ok(file)),
        Err(Fault::Io(error)) => error,
        Err(fault) => return Ok(Err(fault)),
    };
    let folder = &config.save_path.folder;
    match Errno::from_io_error(&error) {
        Some(Errno::NAMETOOLONG) => Err(Error::not_logged_in()),
        // A missing folder is a fault of the settings; a missing file, or folder below it,
        // is a session that has ended.
        Some(Errno::NOENT) if folder.is_dir() => Err(Error::not_logged_in()),
        Some(Errno::NOENT) => Err(internal(folder, &error)),
        _ => Err(internal(path, &error)),
    }
}

/// The owners that PHP accepts (`ps_files_open`): root, this user, and any where this user
/// is root.
fn is_ours(owner: u32) -> bool {
    owner == 0 || owner == geteuid().as_raw() || [0, owner].contains(&getuid().as_raw())
}
