//! PHP's session files: finding, locking and reading one. The content is never written.
//!
//! PHP holds an exclusive lock on the file while one of its pages runs
//! (ext/session/mod_files.c), so the file is complete while this program holds a shared lock.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, Timespec, Timestamps, UTIME_NOW, futimens};
use rustix::io::Errno;
use rustix::process::{geteuid, getuid};

use super::{Lifetime, Session, SessionConfig, SessionFolder, SessionId, TIMEOUT, unusable};
use crate::error::Error;
use crate::sys::accounts;
use crate::sys::lock::Lock;
use crate::sys::shared_file::{self, Fault};
use crate::sys::waits::Waits;

/// Reads the session with this id. [`Lifetime::Extend`] sets the file's times.
pub(super) fn open(
    config: &SessionConfig,
    folder: &SessionFolder,
    id: &SessionId,
    lifetime: Lifetime,
    waits: Waits,
) -> Result<Session, Error> {
    let path = path_of(folder, id).ok_or_else(Error::not_logged_in)?;
    let place = || shortened(&path, id);

    let mut time = TIMEOUT;
    // The file is opened for reading and writing, as in PHP, but not created.
    let opened = shared_file::open_and(OFlags::RDWR, &path, waits, |file| {
        if !Lock::Shared.try_take(&file)? {
            // What is refused anyway is not waited for: any user can make and lock such a file.
            check(&file.metadata()?)?;
            if !Lock::Shared.acquire(&file, &mut time, waits)? {
                return Ok(None);
            }
        }
        let snapshot = shared_file::read(file)?;
        // Before the session is parsed: PHP's pages wait for this lock. It ends with the file, if not here.
        _ = fs2::FileExt::unlock(&snapshot.file);
        Ok(Some(snapshot))
    });
    let unusable_file = |fault| error_of_fault(fault, &place(), &folder.folder);
    let snapshot = opened.map_err(unusable_file)?.ok_or_else(Error::busy)?;

    // A logout between open and lock deletes the file.
    if snapshot.metadata.nlink() == 0 {
        return Err(Error::not_logged_in());
    }
    check(&snapshot.metadata).map_err(unusable_file)?;
    let session = Session::decode(snapshot.bytes, config.format)
        .map_err(|error| unusable(&place(), &error))?;
    if lifetime == Lifetime::Extend {
        // An error is ignored, as in PHP.
        _ = futimens(&snapshot.file, &NOW);
    }
    Ok(session)
}

const NOW: Timestamps = {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    Timestamps {
        last_access: now,
        last_modification: now,
    }
};

/// The path of the session file for the log, with a shortened id.
fn shortened(path: &Path, id: &SessionId) -> String {
    path.with_file_name(format!("sess_{}", id.shortened()))
        .display()
        .to_string()
}

/// The path of the session `id` (`ps_files_path_create`). The first characters of the id are names of
/// folders; `None` if the id is not longer than their number.
fn path_of(save_path: &SessionFolder, id: &SessionId) -> Option<PathBuf> {
    let id = id.as_str();
    if id.len() <= save_path.depth {
        return None;
    }
    let mut path = save_path.folder.clone();
    path.extend(id.chars().take(save_path.depth).map(String::from));
    path.push(["sess_", id].concat());
    Some(path)
}

/// The error for a file at `place` that cannot be opened, locked or read. `folder` is the folder of the setting.
fn error_of_fault(fault: Fault, place: &str, folder: &Path) -> Error {
    let error = match fault {
        Fault::Io(error) => error,
        Fault::Leased => return Error::busy_because(format!("session {place}: {fault}")),
        fault => return unusable(place, &fault),
    };
    match Errno::from_io_error(&error) {
        // A folder can only be opened for reading.
        Some(Errno::ISDIR) => unusable(place, &Fault::NotRegular),
        // PHP on another server deleted the file before each retry.
        Some(Errno::STALE | Errno::NAMETOOLONG) => Error::not_logged_in(),
        // If the folder of the setting is missing, the setting is wrong. If only the file is missing, or one of the
        // folders named by the first characters of the id, the session has ended.
        Some(Errno::NOENT) if folder.is_dir() => Error::not_logged_in(),
        Some(Errno::NOENT) => inaccessible(
            &folder.to_string_lossy(),
            &format!("cannot use it: {error}"),
        ),
        Some(Errno::ACCESS) => inaccessible(
            place,
            "needs read and write permission for the file, as PHP does, and execute permission for its folder",
        ),
        _ => inaccessible(place, &format!("cannot use it: {error}")),
    }
}

/// INTERNAL_ERROR for what the user of this process cannot use at `place`.
fn inaccessible(place: &str, problem: &str) -> Error {
    let user = accounts::user(geteuid().as_raw());
    Error::internal(format!("session {place}: user {user} {problem}"))
}

/// Whether a file with these attributes can be a session.
fn check(metadata: &Metadata) -> Result<(), Fault> {
    shared_file::check(metadata)?;
    let owner = metadata.uid();
    if is_accepted(owner, geteuid().as_raw(), || getuid().as_raw()) {
        Ok(())
    } else {
        Err(Fault::OfAnotherUser(owner))
    }
}

/// Whether PHP accepts this owner (`ps_files_open`): root, the effective or the real user, and any if the real user is
/// root. The real user is asked for only if it matters, a system call less for most requests.
fn is_accepted(owner: u32, effective: u32, real: impl FnOnce() -> u32) -> bool {
    [0, effective].contains(&owner) || [0, owner].contains(&real())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_user_is_accepted_from_root_and_by_root() {
        for (owner, effective, real, accepted) in [
            (33, 33, 33, true),
            (0, 33, 33, true),
            (34, 33, 33, false),
            (34, 0, 0, true),
            (34, 33, 0, true),
            (34, 33, 34, true),
            (34, 0, 33, false),
        ] {
            let numbers = format!("{owner} {effective} {real}");
            assert_eq!(
                is_accepted(owner, effective, || real),
                accepted,
                "{numbers}"
            );
        }
    }

    #[test]
    fn only_what_is_missing_or_no_file_is_no_session() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let missing_text = missing.to_str().unwrap();
        for (errno, folder, code, cause) in [
            (Errno::NOENT, folder.path(), "INVALID_SESSION", None),
            (Errno::STALE, folder.path(), "INVALID_SESSION", None),
            (Errno::NAMETOOLONG, folder.path(), "INVALID_SESSION", None),
            (
                Errno::ISDIR,
                folder.path(),
                "INVALID_SESSION",
                Some("not a regular file"),
            ),
            (Errno::NOENT, &missing, "INTERNAL_ERROR", Some(missing_text)),
            (
                Errno::ACCESS,
                folder.path(),
                "INTERNAL_ERROR",
                Some("needs read and write"),
            ),
            (
                Errno::IO,
                folder.path(),
                "INTERNAL_ERROR",
                Some("cannot use it: Input/output"),
            ),
        ] {
            let error = error_of_fault(Fault::Io(errno.into()), "the file", folder);
            assert_eq!(error.code, code, "{errno}");
            let has_cause = |text| error.cause.as_ref().is_some_and(|it| it.contains(text));
            assert!(cause.map_or(error.cause.is_none(), has_cause), "{error:?}");
        }
    }
}
