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
//! | `.<name>.tmp` beside types or menus | the new content before it replaces the file, or what a killed writer left |
//!
//! The PHP application writes the same files, truncating them in place, without a lock. So a read
//! may see a partial write and is repeated ([`data_file`]). A write replaces the file atomically,
//! unless the application modified it in the meantime ([`mod@replace`]).

pub(crate) mod access;
mod acl;
pub(crate) mod attributes;
mod change;
pub(crate) mod data_file;
mod error;
pub(crate) mod folder;
pub(crate) mod layout;
mod replace;
mod write_lock;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::model::{Date, Day, DocumentError, Id, MenuTypes};
use crate::php::json::Value;
use crate::sys::shared_file::Snapshot;
use crate::sys::waits::Waits;
use change::Change;
use data_file::{Content, Parts};
pub use error::{Defect, Error};
use layout::{TYPES, below};

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
    /// The folder of its data: its own folder, or the folder of the aulario in `shared_comedor_from`.
    folder: PathBuf,
    /// Whether the aulario shows the data of another one
    pub is_shared: bool,
    /// The value of `shared_comedor_from`, if it is set. It is ignored if it names this aulario, or an aulario
    /// that does not exist.
    pub shared_comedor_from: Option<String>,
    /// Its configuration, if PHP may be writing it
    being_written: Option<PathBuf>,
    /// Whether the request may wait for its files
    waits: Waits,
}

impl Aulario {
    /// The aulario `id` of `centro`, if it has a configuration file.
    pub fn find(
        data_dir: &Path,
        centro: &Id,
        id: &Id,
        waits: Waits,
    ) -> Result<Option<Aulario>, Error> {
        let aularios = layout::aularios_of(data_dir, centro);
        let path = layout::configuration(&aularios, id);
        let content = data_file::read(&path, waits)?;
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
            waits,
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

    pub fn read_menu_types(&self) -> Result<MenuTypes, Error> {
        Ok(self.read(&[TYPES], MenuTypes::from_json)?.document)
    }

    /// The day of `date`, to read the menu of the type `id`.
    pub fn read_day(&self, date: &Date, id: &str) -> Result<Day, Error> {
        Ok(self
            .read(&layout::day(date), |value| Day::from_json(value, Some(id)))?
            .document)
    }

    /// Changes the menu types, as [`Change::make`] does.
    pub fn change_menu_types<T, E: From<Error>>(
        &self,
        change: impl Fn(&mut MenuTypes) -> Result<T, E>,
    ) -> Result<T, E> {
        let change = Change {
            aulario: self,
            names: &[TYPES],
            parse: MenuTypes::from_json,
            change,
        };
        change.make()
    }

    /// Changes the menu of the type `id` on the day of `date`, as [`Change::make`] does.
    pub fn change_day<T, E: From<Error>>(
        &self,
        date: &Date,
        id: &str,
        change: impl Fn(&mut Day) -> Result<T, E>,
    ) -> Result<T, E> {
        let change = Change {
            aulario: self,
            names: &layout::day(date),
            parse: |value| Day::from_json(value, Some(id)),
            change,
        };
        change.make()
    }

    /// Reads a document, which has its default if the file does not exist, or has been empty for a while.
    fn read<D>(
        &self,
        names: &[&str],
        parse: impl Fn(Option<Value>) -> Result<D, DocumentError>,
    ) -> Result<Stored<D>, Error> {
        let path = below(&self.folder, names);
        let content = data_file::read(&path, self.waits)?;
        if content.is_being_written() {
            return Err(Error::in_use(&path, EMPTY));
        }
        let Parts { value, snapshot } = content.into_parts();
        let document = parse(value).map_err(|why| Error::unusable(&path, why))?;
        Ok(Stored {
            document,
            path,
            snapshot,
        })
    }
}

/// The aulario `name` in the folder `aularios`, which is the value of `shared_comedor_from` in `configuration`.
/// `None` if it does not exist.
///
/// An aulario that exists and cannot be used is an error: PHP's pages show its data, so the data of the aulario that
/// names it must not be shown or changed instead.
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
    let defect = match Id::parse(name) {
        Ok(id) if is_file => return Ok(Some(id)),
        Ok(_) => Defect::SharedNotRegular { shared: path },
        Err(expected) => Defect::SharedNotId {
            shared: path,
            expected,
        },
    };
    Err(Error::unusable(configuration, defect))
}

/// The value of `shared_comedor_from` in the configuration at `path`, if it is set.
fn shared_comedor_from(path: &Path, mut configuration: Value) -> Result<Option<String>, Error> {
    let settings = configuration
        .as_php_map()
        .ok_or_else(|| Error::unusable(path, DocumentError::NotMap))?;
    let setting = settings.get("shared_comedor_from").and_then(Value::as_str);
    Ok(setting
        .filter(|setting| !["", "none"].contains(setting))
        .map(str::to_owned))
}
