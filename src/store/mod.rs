//! Where the data of the dining halls lies, and how it is read and changed.
//!
//! Below the data folder, in `Centros/<centre>/Aularios`:
//!
//! | path | content |
//! |---|---|
//! | `<aulario>.json` | the aulario's configuration; read only |
//! | `<aulario>/Comedor-MenuTypes.json` | its menu types |
//! | `<aulario>/Comedor/<YYYY-MM>/<DD>/_datos.json` | the menus of a day |
//! | `<aulario>/.comedor.lock` | held by whoever writes; never deleted or replaced |
//!
//! The frontend writes the same files, without a lock and truncating them in place. So what is
//! read may be half of something and is read again ([`file::read`]), and what is written
//! replaces the file as a whole, unless the frontend was there in between ([`file::replace`]).

pub(crate) mod file;

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::json::{self, Value};
use crate::model::{self, Day, Document, MenuTypes};
use crate::system::{self, Lock};
use file::Snapshot;

/// How long a writer waits for the others of its aulario.
const LOCK_DEADLINE: Duration = Duration::from_secs(10);

/// How often a change is made anew because the frontend wrote the file in between.
const RETRIES: usize = 3;

/// Why something could not be read or stored. The path is for the log.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused
    #[error("{}: {doing}: {source}", path.display())]
    Io {
        /// What was tried
        doing: &'static str,
        /// with which file
        path: PathBuf,
        /// and what came of it
        source: std::io::Error,
    },
    /// The file can't be used as it is; it is left so.
    #[error("{}: {why}", path.display())]
    Unusable {
        /// Which file
        path: PathBuf,
        /// What is wrong with it
        why: String,
    },
    /// Everything is in place, but the folder could not be flushed.
    #[error("{}: flush of the folder after the replacement: {source}", path.display())]
    Unflushed {
        /// Which file
        path: PathBuf,
        /// What came of the flush
        source: std::io::Error,
    },
    /// Somebody else is writing
    #[error("busy")]
    Busy,
}

impl Error {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        move |source| Error::Io { doing, path: path.to_owned(), source }
    }

    fn unusable(path: &Path, why: impl Into<String>) -> Error {
        Error::Unusable { path: path.to_owned(), why: why.into() }
    }
}

/// An aulario that exists.
#[derive(Debug)]
pub struct Aulario {
    /// The folder of the aulario whose dining hall this one shows: its own, or that of the
    /// aulario it shares with.
    folder: PathBuf,
    is_shared: bool,
}

impl Aulario {
    /// The aulario `id` of `centro`. `None` where there is no configuration of it. Both must
    /// be ids, see [`model::is_id`].
    pub fn find(data_dir: &Path, centro: &str, id: &str) -> Result<Option<Aulario>, Error> {
        let aularios: PathBuf =
            [data_dir, "Centros".as_ref(), centro.as_ref(), "Aularios".as_ref()].iter().collect();
        let configuration = |id: &str| aularios.join([id, ".json"].concat());
        let Some(source) = shared_with(&configuration(id))? else {
            // Without the data folder itself no aulario of anybody is found.
            fs::metadata(data_dir).map_err(Error::io("find the data folder", data_dir))?;
            return Ok(None);
        };
        let source = source.filter(|source| {
            source != id
                && source != "none"
                && model::is_id(source)
                && is_file(&configuration(source))
        });
        Ok(Some(Aulario {
            folder: aularios.join(source.as_deref().unwrap_or(id)),
            is_shared: source.is_some(),
        }))
    }

    /// Whether it shows the dining hall of another aulario.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Its menu types.
    pub fn menu_types(&self) -> Result<MenuTypes, Error> {
        self.read(&[], TYPES)
    }

    /// Its menus of `date`, a date of the calendar.
    pub fn day(&self, date: &str) -> Result<Day, Error> {
        self.read(&day_folder(date), DAY)
    }

    /// Changes its menu types by `change`, as [`Aulario::change`].
    pub fn change_menu_types<T, E: From<Error>>(
        &self,
        change: impl Fn(&mut MenuTypes) -> Result<T, E>,
    ) -> Result<T, E> {
        self.change(&[], TYPES, change)
    }

    /// Changes its menus of `date` by `change`, as [`Aulario::change`].
    pub fn change_day<T, E: From<Error>>(
        &self,
        date: &str,
        change: impl Fn(&mut Day) -> Result<T, E>,
    ) -> Result<T, E> {
        self.change(&day_folder(date), DAY, change)
    }

    fn path(&self, folders: &[&str], name: &str) -> PathBuf {
        let mut path = self.folder.clone();
        path.extend(folders);
        path.push(name);
        path
    }

    fn read<D: Document>(&self, folders: &[&str], name: &str) -> Result<D, Error> {
        let path = self.path(folders, name);
        let (value, _) = file::read(&path)?;
        document(&path, value)
    }

    /// Reads a document, lets `change` change it and stores it, with all other writers of the
    /// aulario kept out. When this returns `Ok` the change is on disk. What `change` refuses
    /// creates nothing. `change` may be asked more than once, of the document as it is then.
    fn change<D: Document, T, E: From<Error>>(
        &self,
        folders: &[&str],
        name: &str,
        change: impl Fn(&mut D) -> Result<T, E>,
    ) -> Result<T, E> {
        let path = self.path(folders, name);
        let lock_path = self.folder.join(LOCK);
        let lock = match lock_file(&lock_path, false)? {
            Some(lock) => Some(lock),
            None => {
                change(&mut to_change(&path)?.0)?;
                file::make_folders(&self.folder, &[])?;
                lock_file(&lock_path, true)?
            }
        };
        let lock = lock.ok_or(Error::Busy)?;
        let locked = system::lock(&lock, Lock::Exclusive, LOCK_DEADLINE)
            .map_err(Error::io("lock", &lock_path))?;
        if !locked {
            return Err(Error::Busy.into());
        }

        for _ in 0..=RETRIES {
            let (mut document, snapshot) = to_change(&path)?;
            let outcome = change(&mut document)?;
            let bytes = document.into_file().to_php();
            if bytes.len() as u64 > system::MAX_SIZE {
                return Err(Error::unusable(&path, "would be over 16 MiB").into());
            }
            if snapshot.is_none() {
                file::make_folders(&self.folder, folders)?;
            }
            if file::replace(&path, &bytes, snapshot.as_ref())? {
                // The caller alone needs this flush: whoever changes the same file next flushes the
                // folder himself.
                drop(lock);
                file::flush_folder(&path)?;
                return Ok(outcome);
            }
        }
        Err(Error::Busy.into())
    }
}

/// The file of an aulario's menu types.
pub(crate) const TYPES: &str = "Comedor-MenuTypes.json";
/// The file that writers lock.
pub(crate) const LOCK: &str = ".comedor.lock";
/// The file of a day's menus.
pub(crate) const DAY: &str = "_datos.json";

fn day_folder(date: &str) -> [&str; 3] {
    let (month, day) = date.split_at(7);
    ["Comedor", month, &day[1..]]
}

/// Reads a document that is to be changed, unless somebody is about to fill it.
fn to_change<D: Document>(path: &Path) -> Result<(D, Option<Snapshot>), Error> {
    let (value, snapshot) = file::read(path)?;
    if snapshot.as_ref().is_some_and(Snapshot::is_being_written) {
        return Err(Error::Busy);
    }
    Ok((document(path, value)?, snapshot))
}

/// Takes the value that was read at `path` for a document.
pub(crate) fn document<D: Document>(path: &Path, value: Option<Value>) -> Result<D, Error> {
    D::from_file(value).map_err(|misshapen| Error::unusable(path, misshapen.to_string()))
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// What `shared_comedor_from` says in the configuration at `path`; the outer `None` is a
/// configuration that is not there.
pub(crate) fn shared_with(path: &Path) -> Result<Option<Option<String>>, Error> {
    let (value, snapshot) = file::read(path)?;
    if snapshot.is_none() {
        return Ok(None);
    }
    let Some(value) = value else {
        return Ok(Some(None));
    };
    let settings = value.into_map().map_err(|_| Error::unusable(path, "the whole is no map"))?;
    let source = json::get(&settings, "shared_comedor_from").and_then(Value::as_str);
    Ok(Some(source.map(str::to_owned)))
}

/// Opens the lock file; `None` where it is not there and should not be created.
fn lock_file(path: &Path, create: bool) -> Result<Option<fs::File>, Error> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(create).mode(0o660);
    match system::open(&mut options, path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound && !create => Ok(None),
        Err(error) => Err(Error::io("open the lock", path)(error)),
    }
}
