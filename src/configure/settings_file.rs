//! The settings file: what it has, and its atomic replacement.
//!
//! One command at a time: its folder is locked from the start, before anything is asked, to the end. The lock leaves no
//! file, and ends with the process. Any user who can list the folder could hold it too, and only delay the command,
//! whose error says how to find them.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::config::{Files, SETTINGS, Setting, Settings};
use crate::store::layout::{folder_of, temporary};
use crate::sys::accounts::group_id;
use crate::sys::lock::Lock;
use crate::sys::log::log;

/// PHP's group in Debian
const GROUP: &str = "www-data";

/// The file that requests read, or will read when it exists.
#[derive(Debug)]
pub struct SettingsFile {
    pub path: PathBuf,
    pub content: Vec<u8>,
    metadata: Option<Metadata>,
    /// Its folder, locked
    folder: File,
}

/// Why the file cannot be read or replaced.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: {source}; use sudo", path.display())]
    NotPermitted { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not a regular file", path.display())]
    NotRegular { path: PathBuf },
    #[error("unknown group `{0}`; name PHP's group by --group")]
    UnknownGroup(String),
    #[error(
        "another `comedor configure` is running; `sudo lslocks` shows which process locks {}",
        folder.display()
    )]
    Running { folder: PathBuf },
    /// It may have been edited during the question.
    #[error("{} has changed in the meantime", path.display())]
    Changed { path: PathBuf },
}

impl Error {
    fn io(path: &Path) -> impl Fn(io::Error) -> Error {
        move |source| {
            let path = path.to_owned();
            match source.kind() {
                ErrorKind::PermissionDenied => Error::NotPermitted { path, source },
                _ => Error::Io { path, source },
            }
        }
    }
}

impl SettingsFile {
    /// Locks the folder, which is created if it is missing, and reads the file. Fails if this user cannot replace it, or
    /// while another command runs.
    pub fn open() -> Result<SettingsFile, Error> {
        let path = Files::find().current().to_owned();
        let folder = lock_folder(&path)?;
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io(&path)(error)),
        };
        if metadata.as_ref().is_some_and(|file| !file.is_file()) {
            return Err(Error::NotRegular { path });
        }
        let content = if metadata.is_some() {
            fs::read(&path).map_err(Error::io(&path))?
        } else {
            Vec::new()
        };
        Ok(SettingsFile {
            path,
            content,
            metadata,
            folder,
        })
    }

    /// The content with the pasted settings in the lines of the old ones, the others at the end.
    pub fn with(&self, pasted: &Settings) -> Vec<u8> {
        let mut content = Vec::new();
        let mut rest: Vec<&Setting> = SETTINGS
            .iter()
            .filter(|setting| pasted.get(setting).is_some())
            .collect();
        for line in self.content.split_inclusive(|&byte| byte == b'\n') {
            let name = line
                .split(|&byte| byte == b'=')
                .next()
                .unwrap_or_default()
                .trim_ascii();
            match rest
                .iter()
                .position(|setting| setting.name.as_bytes() == name)
            {
                Some(at) => push_line(&mut content, rest.remove(at), pasted),
                None => content.extend(line),
            }
        }
        if !rest.is_empty() && content.last().is_some_and(|&byte| byte != b'\n') {
            content.push(b'\n');
        }
        for setting in rest {
            push_line(&mut content, setting, pasted);
        }
        content
    }

    /// For a file without a password: every user, unless the old file is closed to them. A comment of that may have a
    /// password.
    pub fn as_before(&self) -> Readers {
        let is_closed = self.metadata.as_ref().is_some_and(is_closed);
        let mode = if is_closed { 0o640 } else { 0o644 };
        Readers {
            gid: self.metadata.as_ref().map(Metadata::gid),
            mode,
        }
    }

    /// For a file with a password, which only its owner and a group can read: the group `name`, or the
    /// group of the old file, or PHP's group in Debian.
    pub fn only_group(&self, name: Option<&str>) -> Result<Readers, Error> {
        let closed = self.metadata.as_ref().filter(|file| is_closed(file));
        let gid = match (name, closed) {
            (None, Some(file)) if file.gid() != 0 => file.gid(),
            (name, _) => {
                let name = name.unwrap_or(GROUP);
                group_id(name).ok_or_else(|| Error::UnknownGroup(name.to_owned()))?
            }
        };
        Ok(Readers {
            gid: Some(gid),
            mode: 0o640,
        })
    }

    /// Replaces the file atomically, by a rename. Of the old file the group stays, and that it is closed; not its owner,
    /// access control list or other attributes. Fails if it is not the one that was read.
    pub fn replace(&self, content: &[u8], readers: &Readers) -> Result<(), Error> {
        let temporary = temporary(&self.path);
        let new = create(&temporary).map_err(Error::io(&self.path))?;
        self.check_unchanged()
            .and_then(|()| write(&new, content, readers).map_err(Error::io(&self.path)))
            .and_then(|()| fs::rename(&temporary, &self.path).map_err(Error::io(&self.path)))
            .inspect_err(|_| _ = fs::remove_file(&temporary))?;
        if let Err(error) = self.folder.sync_all() {
            log(&format!(
                "{}: {error}: a power cut may undo this change",
                folder_of(&self.path).display()
            ));
        }
        Ok(())
    }

    fn check_unchanged(&self) -> Result<(), Error> {
        if fs::read(&self.path).unwrap_or_default() == self.content {
            Ok(())
        } else {
            Err(Error::Changed {
                path: self.path.clone(),
            })
        }
    }
}

/// Whether not every user can read the file.
fn is_closed(file: &Metadata) -> bool {
    file.mode() & 0o004 == 0
}

/// Who can read the new file
#[derive(Debug)]
pub struct Readers {
    gid: Option<u32>,
    mode: u32,
}

fn push_line(content: &mut Vec<u8>, setting: &Setting, settings: &Settings) {
    let value = settings.get(setting).unwrap_or_default();
    content.extend([setting.name.as_bytes(), b"=", value, b"\n"].concat());
}

/// Locks the folder of the file at `path`, in which this user must be able to replace it.
fn lock_folder(path: &Path) -> Result<File, Error> {
    let folder = folder_of(path);
    let open = || {
        create_folder(folder)?;
        access(folder, Access::WRITE_OK)?;
        let opened = File::open(folder)?;
        let is_locked = Lock::Exclusive.try_take(&opened)?;
        Ok(is_locked.then_some(opened))
    };
    open()
        .map_err(Error::io(path))?
        .ok_or_else(|| Error::Running {
            folder: folder.to_owned(),
        })
}

/// Creates the folder, which every user can enter, whatever the umask is.
fn create_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o755).create(folder) {
        Ok(()) => fs::set_permissions(folder, Permissions::from_mode(0o755)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Creates the new file under its `temporary` name. What a command that was killed has left there is removed: another
/// user may have it open.
fn create(temporary: &Path) -> io::Result<File> {
    match fs::remove_file(temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(temporary)
}

/// Writes the new file.
fn write(mut file: &File, content: &[u8], readers: &Readers) -> io::Result<()> {
    let gid = file.metadata()?.gid();
    if readers.gid.is_some_and(|wanted| wanted != gid) {
        fchown(file, None, readers.gid)?;
    }
    file.set_permissions(Permissions::from_mode(readers.mode))?;
    file.write_all(content)?;
    file.sync_all()
}
