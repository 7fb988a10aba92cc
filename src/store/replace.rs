//! Replacing a data file atomically, while other processes of this program, and PHP, which takes no
//! lock, write the same file.
//!
//! Holding the aulario's lock, the new content is written to `.<name>.tmp` in the same folder and
//! flushed. Then:
//!
//! 1. A read lease keeps PHP from opening the old file for writing ([`Lease`]).
//! 2. The file must still be the one that was read, with the same content, owner, group and mode.
//! 3. The two files exchange their names, so that the old file always has a name.
//! 4. If a PHP page looked the path up before the exchange, it now waits for the lease: then the names
//!    are exchanged back, and the change is repeated after the page has saved. Else the folder is
//!    flushed, and the lease is checked again.
//! 5. The old file, under the temporary name, is removed.
//!
//! A crash at any point leaves the old or the new file in place, complete. Without a lease, a save by PHP
//! between steps 2 and 3 is lost; the time between them is some microseconds. There is none on some file systems, and on
//! a file of another user ([`Lease`]).
//!
//! NFS and most FUSE file systems cannot exchange names, nor rename without replacing. There step 3 is a plain
//! rename or a link, and the same save is lost if it falls into the time from step 2 to the end of step 3, on NFS a few
//! milliseconds.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, RenameFlags, linkat, renameat_with};
use rustix::io::Errno;

use super::access::{Old, Owners};
use super::attributes::Attributes;
use super::data_file::is_at;
use super::folder::Folder;
use super::write_lock::WriteLock;
use super::{Error, layout};
use crate::sys::file_id::FileId;
use crate::sys::lease::Lease;
use crate::sys::shared_file::Snapshot;
use crate::sys::waits::Waits;

/// Replaces the file at `path`, which was read as `snapshot`, with `content`; without a snapshot,
/// creates it. The folder must exist. After `Ok` the change is on disk.
pub fn replace(
    path: &Path,
    content: &[u8],
    snapshot: Option<Snapshot>,
    lock: &WriteLock,
) -> Result<(), Error> {
    let mut temporary = Temporary::create(path, snapshot.as_ref())?;
    temporary
        .file
        .write_all(content)
        .map_err(Error::fault("write", &temporary.path))?;
    temporary
        .file
        .sync_all()
        .map_err(Error::fault("flush", &temporary.path))?;
    match snapshot {
        Some(snapshot) => replace_old(path, &temporary, snapshot, lock),
        None => put_new(path, &temporary, lock),
    }
}

/// Replaces the old file by the steps in the header of this module.
fn replace_old(
    path: &Path,
    temporary: &Temporary,
    snapshot: Snapshot,
    lock: &WriteLock,
) -> Result<(), Error> {
    // Step 1: the lease
    let lease = Lease::take_if_allowed(&snapshot.file, snapshot.id(), lock.waits)
        .ok_or_else(|| Error::in_use(path, "another program has it open for writing"))?;
    // Step 2: the comparison with what was read
    if !may_exchange(path, temporary, &snapshot, &lease, lock)? {
        return Err(Error::modified(path));
    }
    // Step 3: the exchange
    match temporary.put_in_place(path) {
        Ok(()) => {}
        // A file system without exchanges, such as NFS. There a rename waits for a lease on the old file, even
        // for a lease of the same process. And if the old file is open, the client of NFS first gives it another
        // name: until the client has renamed the new file too, `path` does not exist.
        Err(error) if is_unsupported(error) => {
            drop(lease);
            drop(snapshot);
            return rename(path, temporary);
        }
        Err(error) => {
            return Err(Error::displaced_or("exchange with the new file", path)(
                error.into(),
            ));
        }
    }
    // Step 4: the page that may wait, the flush, and such a page again
    if !is_undisturbed(path, temporary, &snapshot, &lease, lock.waits) {
        return exchange_back(path, temporary);
    }
    let flushed = temporary.flush_folder(path);
    if lease.is_breaking() {
        return exchange_back(path, temporary);
    }
    // Step 5: the removal
    drop(lease);
    // If the removal fails, the next writer removes the file.
    _ = fs::remove_file(&temporary.path);
    flushed
}

/// Step 2: whether the lock and both files are still what they were, and no page waits to write the old one.
fn may_exchange(
    path: &Path,
    temporary: &Temporary,
    snapshot: &Snapshot,
    lease: &Lease,
    lock: &WriteLock,
) -> Result<bool, Error> {
    // Only an open file is up to date with the server of NFS (close-to-open consistency, nfs(5)).
    Ok(is_at(path, snapshot.id(), lock.waits)?
        && snapshot
            .is_as_read_with_ctime()
            .map_err(Error::fault("read again", path))?
        && lock.is_held()?
        && temporary.is_at(&temporary.path)
        && !lease.is_breaking()
        // Again: a page that saves by a rename does not wait for the lease.
        && is_at(path, snapshot.id(), lock.waits)?)
}

/// Step 4: whether no page has looked the path up before the exchange, to write the old file. This comes before the
/// flush: until the names are exchanged back, another page may save to the new file, and lose what it saves. An
/// error counts as a modification: the names can still be exchanged back.
fn is_undisturbed(
    path: &Path,
    temporary: &Temporary,
    snapshot: &Snapshot,
    lease: &Lease,
    waits: Waits,
) -> bool {
    !lease.is_breaking()
        && temporary.is_at(path)
        && is_at(&temporary.path, snapshot.id(), waits).unwrap_or(false)
        && snapshot.is_as_read().unwrap_or(false)
}

/// Step 4, if a page writes the old file. If another program has replaced or deleted the new file, its change stays.
fn exchange_back(path: &Path, temporary: &Temporary) -> Result<(), Error> {
    if temporary.is_at(path) {
        temporary
            .put_back(path)
            .map_err(|error| Error::unflushed("exchange back", path)(error.into()))?;
    }
    Err(Error::modified(path))
}

/// Gives the new file its name. Fails if another file has it.
fn put_new(path: &Path, temporary: &Temporary, lock: &WriteLock) -> Result<(), Error> {
    if !(lock.is_held()? && temporary.is_at(&temporary.path)) {
        return Err(Error::modified(path));
    }
    match renameat_with(CWD, &temporary.path, CWD, path, RenameFlags::NOREPLACE) {
        Err(error) if is_unsupported(error) => {}
        moved => return settle("rename to", moved, path, temporary),
    }
    // NFS cannot rename without replacing, but a link never replaces.
    match linkat(CWD, &temporary.path, CWD, path, AtFlags::empty()) {
        // Some drivers of FUSE answer as if all were read-only.
        Err(error) if is_unsupported(error) || [Errno::PERM, Errno::ROFS].contains(&error) => {}
        linked => return settle("link to", linked, path, temporary),
    }
    // A FUSE file system may not support hard links.
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => rename(path, temporary),
        Err(error) => Err(Error::fault("stat", path)(error)),
        Ok(_) => Err(Error::modified(path)),
    }
}

/// Gives the new file the name `path`, and replaces what has it.
fn rename(path: &Path, temporary: &Temporary) -> Result<(), Error> {
    let renamed = fs::rename(&temporary.path, path);
    settle("rename to", renamed, path, temporary)
}

/// Whether the file system lacks the kind of rename, or links.
fn is_unsupported(error: Errno) -> bool {
    [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP].contains(&error)
}

/// The outcome of a rename or link to `path`, the `operation`. It may fail although the new file exists: an
/// NFS client repeats a request that was not answered.
fn settle<E: Into<io::Error>>(
    operation: &'static str,
    moved: Result<(), E>,
    path: &Path,
    temporary: &Temporary,
) -> Result<(), Error> {
    match moved {
        Err(error) if !temporary.is_at(path) => {
            Err(Error::displaced_or(operation, path)(error.into()))
        }
        _ => temporary.flush_folder(path),
    }
}

/// Removes what has the temporary name: the file of a writer that was killed, because this writer has the lock of the
/// aulario, or an empty folder, which would make every save fail.
fn remove_leftover(path: &Path) -> io::Result<()> {
    fs::remove_file(path).or_else(|error| match error.kind() {
        ErrorKind::IsADirectory => fs::remove_dir(path),
        _ => Err(error),
    })
}

/// The new file under its temporary name. It is on the same file system as the file that it replaces.
/// Every writer uses the same name, so that leftovers do not accumulate. Removed when dropped.
struct Temporary {
    path: PathBuf,
    file: File,
    id: FileId,
    folder: Folder,
}

impl Temporary {
    /// Creates the new file with the owner, group, mode and attributes of the file of `snapshot`.
    fn create(path: &Path, snapshot: Option<&Snapshot>) -> Result<Temporary, Error> {
        let folder = Folder::open(layout::folder_of(path))
            .map_err(Error::displaced_or("open the folder of", path))?;
        let temporary_path = layout::temporary(path);
        // The mode of the old file is set after the owner.
        let mode = if snapshot.is_some() { 0o600 } else { 0o666 };
        let open_new = || {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(&temporary_path)
        };
        let file = open_new()
            .or_else(|error| match error.kind() {
                ErrorKind::AlreadyExists => {
                    remove_leftover(&temporary_path).and_then(|()| open_new())
                }
                _ => Err(error),
            })
            .map_err(Error::displaced_or("create", &temporary_path))?;
        let metadata = file
            .metadata()
            .map_err(Error::fault("stat", &temporary_path))?;
        let temporary = Temporary {
            path: temporary_path,
            file,
            id: FileId::of(&metadata),
            folder,
        };
        if let Some(snapshot) = snapshot {
            temporary.keep_access(snapshot, Owners::of(&metadata), path)?;
        }
        Ok(temporary)
    }

    /// Sets the owners, attributes and mode of the old file at `path`. Until then the file belongs to `owners`.
    fn keep_access(&self, old: &Snapshot, owners: Owners, path: &Path) -> Result<(), Error> {
        // If not, PHP could not save it either.
        rustix::fs::access(path, Access::WRITE_OK)
            .map_err(|error| Error::displaced_or("write", path)(error.into()))?;
        let attributes =
            Attributes::of(&old.file).map_err(Error::fault("read the attributes of", path))?;
        // Most files belong to the user of this process: they save a system call.
        if Owners::of(&old.metadata) != owners {
            let folder = fs::metadata(layout::folder_of(path))
                .map_err(Error::displaced_or("stat the folder of", path))?;
            let old = Old {
                file: &old.metadata,
                attributes: &attributes,
                folder: &folder,
            };
            let give = |to: Owners| fchown(&self.file, Some(to.uid), Some(to.gid)).is_ok();
            old.choose_owners(owners, give)
                .map_err(|refusal| Error::unusable(path, refusal))?;
        }
        attributes
            .set(&self.file)
            .map_err(Error::fault("keep the access control list of", path))?;
        self.keep_mode(old.metadata.mode())
            .map_err(Error::fault("keep the mode of", path))
    }

    /// Sets the mode, unless the file has it: vfat and others fail if the mode cannot be set, but all their files have
    /// the same mode.
    fn keep_mode(&self, mode: u32) -> io::Result<()> {
        let current = self.file.metadata()?.mode() & 0o7777;
        let set_mode = |mode| {
            if mode == current {
                Ok(())
            } else {
                self.file.set_permissions(Permissions::from_mode(mode))
            }
        };
        set_mode(mode & 0o7777).or_else(|error| match error.kind() {
            // A service may not set the special bits (RestrictSUIDSGID, systemd.exec(5)).
            ErrorKind::PermissionDenied => set_mode(mode & 0o777),
            _ => Err(error),
        })
    }

    /// Exchanges the names of this file and the old file, so that this file is at `path`.
    fn put_in_place(&self, path: &Path) -> Result<(), Errno> {
        self.exchange(path, path)
    }

    /// Exchanges the names back, so that the old file is at `path`.
    fn put_back(&self, path: &Path) -> Result<(), Errno> {
        self.exchange(path, &self.path)
    }

    /// Exchanges the names, so that this file is at `target`. The exchange may report an error although it was made,
    /// as a rename ([`settle`]).
    fn exchange(&self, path: &Path, target: &Path) -> Result<(), Errno> {
        match renameat_with(CWD, &self.path, CWD, path, RenameFlags::EXCHANGE) {
            Err(error) if is_unsupported(error) || !self.is_at(target) => Err(error),
            _ => Ok(()),
        }
    }

    /// Flushes the folder, so that the replacement of `path` survives a power cut.
    fn flush_folder(&self, path: &Path) -> Result<(), Error> {
        self.folder
            .flush()
            .map(|_| ())
            .map_err(Error::unflushed("flush the folder", path))
    }

    /// Whether `path` is this file.
    fn is_at(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|found| FileId::of(&found) == self.id)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // If the removal fails, the next writer removes the file.
        if self.is_at(&self.path) {
            _ = fs::remove_file(&self.path);
        }
    }
}
