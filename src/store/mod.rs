//! The data files of the dining halls: their paths, reading and writing.
//!
//! Below the data folder, in `Centros/<centro>/Aularios`:
//!
//! | path | content |
//! |---|---|
//! | `<aulario>.json` | the aulario's configuration; only read |
//! | `<aulario>/Comedor-MenuTypes.json` | its menu types |
//! | `<aulario>/Comedor/<YYYY-MM>/<DD>/_datos.json` | the menus of a day |
//! | `<aulario>/.comedor.lock` | locked by a writer; never deleted or replaced |
//!
//! The PHP application writes the same files, truncating them in place, without a lock. So a read
//! may see a partial write and is repeated ([`data_file`]). A write replaces the file atomically,
//! unless the application modified it in the meantime ([`mod@replace`]).

pub(crate) mod access;
mod acl;
pub(crate) mod attributes;
pub(crate) mod data_file;
pub(crate) mod layout;
mod replace;
mod write_lock;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::model::{Date, Day, Id, MenuTypes};
use crate::php::json::Value;
use crate::sys::shared_file::{self, Fault};
use data_file::{Content, Snapshot};
use layout::{LOCK, TYPES, below};
use write_lock::WriteLock;

/// The maximum number of retries of a change if the file was modified in the meantime, or if another
/// client of a network file system deleted it or its folder.
const RETRIES: usize = 3;

/// The error of a read or write. The path is for the log.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: {operation}: {source}", path.display())]
    Fault {
        operation: &'static str,
        path: PathBuf,
        source: Fault,
    },
    /// The file cannot be used. It is not changed.
    #[error("{}: {why}", path.display())]
    Unusable { path: PathBuf, why: String },
    /// The file was replaced, but a later step failed.
    #[error("{}: {operation}, after the replacement: {source}", path.display())]
    Unflushed {
        operation: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// Another request holds the lock, or too many requests wait. This is not logged.
    #[error("busy")]
    Busy,
    /// Another program writes the file, or replaces it again and again.
    #[error("{}: {why}", path.display())]
    InUse { path: PathBuf, why: &'static str },
    /// Another program modified the file before it was replaced, or deleted its folder.
    #[error("{}: {why}", path.display())]
    Modified { path: PathBuf, why: String },
}

impl Error {
    fn fault<E: Into<Fault>>(operation: &'static str, path: &Path) -> impl FnOnce(E) -> Error {
        move |source| Error::Fault {
            operation,
            path: path.to_owned(),
            source: source.into(),
        }
    }

    /// The error of a step that fails if another program creates or deletes the file, or its folder.
    fn modified_or(operation: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        move |error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::AlreadyExists => Error::Modified {
                path: path.to_owned(),
                why: format!("{operation}: {error}"),
            },
            _ => Error::fault(operation, path)(error),
        }
    }

    fn modified(path: &Path) -> Error {
        let why = "another program modified it during the change".to_owned();
        Error::Modified {
            path: path.to_owned(),
            why,
        }
    }

    fn in_use(path: &Path, why: &'static str) -> Error {
        Error::InUse {
            path: path.to_owned(),
            why,
        }
    }

    fn unflushed(operation: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        move |source| Error::Unflushed {
            operation,
            path: path.to_owned(),
            source,
        }
    }

    /// Whether the file may be read and changed again.
    fn is_transient(&self) -> bool {
        matches!(self, Error::Modified { .. })
            || matches!(self, Error::Fault { source, .. } if source.is_stale())
    }

    pub(crate) fn unusable(path: &Path, why: impl Into<String>) -> Error {
        Error::Unusable {
            path: path.to_owned(),
            why: why.into(),
        }
    }
}

impl From<Error> for crate::error::Error {
    fn from(error: Error) -> crate::error::Error {
        let cause = error.to_string();
        match error {
            Error::Busy => crate::error::Error::busy(),
            Error::InUse { .. }
            | Error::Modified { .. }
            | Error::Fault {
                source: Fault::Leased,
                ..
            } => crate::error::Error::busy_because(cause),
            Error::Unflushed { .. } => crate::error::Error::perhaps_stored(cause),
            Error::Fault { .. } | Error::Unusable { .. } => crate::error::Error::internal(cause),
        }
    }
}

/// Why an empty file is not used.
const EMPTY: &str = "it is empty, and so new that another program may be writing it";

/// A document, and the file that has it.
struct Stored<D> {
    document: D,
    path: PathBuf,
    /// `None` if the file does not exist
    snapshot: Option<Snapshot>,
}

/// An existing aulario.
#[derive(Debug)]
pub struct Aulario {
    /// The folder of its data: its own, or that of the aulario in `shared_comedor_from`.
    folder: PathBuf,
    /// Whether the aulario shows the data of another one
    pub is_shared: bool,
    /// The value of `shared_comedor_from`, if it is set. It is ignored if it names this aulario, or one
    /// that does not exist.
    pub shared_comedor_from: Option<String>,
    /// Its configuration, if PHP may be writing it
    being_written: Option<PathBuf>,
}

impl Aulario {
    /// The aulario `id` of `centro`, if it has a configuration file.
    pub fn find(data_dir: &Path, centro: &Id, id: &Id) -> Result<Option<Aulario>, Error> {
        let aularios = layout::aularios_of(data_dir, centro);
        let path = layout::configuration(&aularios, id);
        let content = data_file::read(&path)?;
        let is_being_written = content.is_being_written();
        let setting = match content {
            Content::Absent => {
                // If the data folder is missing, this is an error of the server, not an unknown aulario.
                fs::metadata(data_dir).map_err(Error::fault("stat the data folder", data_dir))?;
                return Ok(None);
            }
            Content::Empty(_) => None,
            Content::Json(value, _) => shared_comedor_from(&path, value)?,
        };
        let source = match setting.as_deref().filter(|source| *source != id.as_str()) {
            Some(source) => find_source(&path, &aularios, source)?,
            None => None,
        };
        Ok(Some(Aulario {
            folder: below(&aularios, &[source.as_ref().unwrap_or(id).as_str()]),
            is_shared: source.is_some(),
            shared_comedor_from: setting,
            being_written: is_being_written.then_some(path),
        }))
    }

    /// Busy if PHP may be writing its configuration: a change could go to a folder that the aulario
    /// does not show.
    pub fn may_change(&self) -> Result<(), Error> {
        match &self.being_written {
            Some(path) => Err(Error::in_use(path, EMPTY)),
            None => Ok(()),
        }
    }

    pub fn menu_types(&self) -> Result<MenuTypes, Error> {
        Ok(self.read(&[TYPES], MenuTypes::of_file)?.document)
    }

    /// The day of `date`, to read the menu of the type `id`.
    pub fn day(&self, date: &Date, id: &str) -> Result<Day, Error> {
        Ok(self
            .read(&layout::day(date), |value| Day::of_file(value, Some(id)))?
            .document)
    }

    /// See [`Aulario::change`].
    pub fn change_menu_types<T, E: From<Error>>(
        &self,
        change: impl Fn(&mut MenuTypes) -> Result<T, E>,
    ) -> Result<T, E> {
        self.change(&[TYPES], MenuTypes::of_file, change)
    }

    /// See [`Aulario::change`].
    pub fn change_day<T, E: From<Error>>(
        &self,
        date: &Date,
        id: &str,
        change: impl Fn(&mut Day) -> Result<T, E>,
    ) -> Result<T, E> {
        self.change(
            &layout::day(date),
            |value| Day::of_file(value, Some(id)),
            change,
        )
    }

    /// Reads a document, which has its default if the file does not exist, or has been empty for a while.
    fn read<D>(
        &self,
        names: &[&str],
        parse: impl Fn(Option<Value>) -> Result<D, String>,
    ) -> Result<Stored<D>, Error> {
        let path = below(&self.folder, names);
        let content = data_file::read(&path)?;
        if content.is_being_written() {
            return Err(Error::in_use(&path, EMPTY));
        }
        let (value, snapshot) = content.into_parts();
        let document = parse(value).map_err(|why| Error::unusable(&path, why))?;
        Ok(Stored {
            document,
            path,
            snapshot,
        })
    }

    /// Reads a document, applies `change` and stores it, with the lock of the aulario. PHP does not
    /// take this lock: see [`mod@replace`]. After `Ok` the change is on disk. If `change` fails, no
    /// file is created. `change` may run again, with new data from the file.
    fn change<D: Into<Value>, T, E: From<Error>>(
        &self,
        names: &[&str],
        parse: impl Fn(Option<Value>) -> Result<D, String>,
        change: impl Fn(&mut D) -> Result<T, E>,
    ) -> Result<T, E> {
        let attempt = || {
            let lock = WriteLock::take(&self.folder, LOCK)?;
            let Stored {
                mut document,
                path,
                snapshot,
            } = self.read(names, &parse)?;
            let outcome = change(&mut document);
            if outcome.is_err() {
                return Ok(outcome);
            }
            let bytes = document.into().to_php();
            if bytes.len() as u64 > shared_file::MAX_SIZE {
                return Err(Error::unusable(&path, "would become larger than 16 MiB"));
            }
            if snapshot.is_none() {
                data_file::make_folders(&self.folder, names)?;
            }
            replace::replace(&path, &bytes, snapshot, &lock)?;
            Ok(outcome)
        };
        // First without the lock: a change that is refused, or a file that must be read again, does
        // not delay other writers.
        change(&mut self.read(names, &parse)?.document)?;
        let mut retries = 0..RETRIES;
        loop {
            match attempt() {
                Err(error) if error.is_transient() && retries.next().is_some() => {}
                outcome => return outcome?,
            }
        }
    }
}

/// The aulario `name` in the folder `aularios`, which is the value of `shared_comedor_from` in `configuration`.
/// `None` if it does not exist.
///
/// One that exists and cannot be used is an error: PHP's pages show its data, so that of the other aulario must not
/// be shown or changed in its place.
fn find_source(configuration: &Path, aularios: &Path, name: &str) -> Result<Option<Id>, Error> {
    let Some(path) = layout::configuration_named(aularios, name) else {
        return Ok(None);
    };
    let is_file = match fs::symlink_metadata(&path) {
        Ok(metadata) => metadata.is_file(),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::InvalidFilename
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(Error::fault("stat", &path)(error)),
    };
    let why = match Id::parse(name) {
        Ok(id) if is_file => return Ok(Some(id)),
        Ok(_) => "which is not a regular file".to_owned(),
        Err(expected) => format!("whose name must be {expected}"),
    };
    let why = format!("shared_comedor_from names {}, {why}", path.display());
    Err(Error::unusable(configuration, why))
}

/// The value of `shared_comedor_from` in the configuration at `path`, if it is set.
fn shared_comedor_from(path: &Path, mut configuration: Value) -> Result<Option<String>, Error> {
    let settings = configuration
        .as_php_map()
        .ok_or_else(|| Error::unusable(path, "the document is not a map"))?;
    let setting = settings.get("shared_comedor_from").and_then(Value::as_str);
    Ok(setting
        .filter(|setting| !["", "none"].contains(setting))
        .map(str::to_owned))
}
