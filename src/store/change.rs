//! Changing a document: read, changed and stored with the lock of the aulario, again if another program modified
//! the file in the meantime.

use std::time::Duration;

use super::data_file::make_folders;
use super::layout::LOCK;
use super::replace::replace;
use super::write_lock::{self, WriteLock};
use super::{Aulario, Defect, Error, Stored};
use crate::model::DocumentError;
use crate::php::json::Value;
use crate::sys::shared_file::MAX_SIZE;

/// The maximum number of retries if the file was modified in the meantime, or if another client of a network file
/// system deleted it or its folder. An attempt takes milliseconds, and pages save when a user does: a second attempt
/// is rare. After the last one the client is told to retry, which lets other writers of the aulario take its lock.
const RETRIES: usize = 3;

/// A change of the document at `names` below the folder of `aulario`.
///
/// PHP does not take the lock of the aulario: see [`mod@super::replace`].
pub struct Change<'a, P, C> {
    pub aulario: &'a Aulario,
    pub names: &'a [&'a str],
    /// Parses the document; the file may be absent
    pub parse: P,
    /// Changes the document. It may run again, with new data from the file
    pub change: C,
}

/// A document that was changed in memory, and what the change returned.
struct Changed<D, T> {
    stored: Stored<D>,
    answer: T,
}

/// Why a change was not stored.
enum Failure<E> {
    /// It cannot be made in this document.
    Change(E),
    Store(Error),
}

impl<E> From<Error> for Failure<E> {
    fn from(error: Error) -> Failure<E> {
        Failure::Store(error)
    }
}

impl<E: From<Error>> Failure<E> {
    fn into_error(self) -> E {
        match self {
            Failure::Change(error) => error,
            Failure::Store(error) => error.into(),
        }
    }
}

impl<D, T, E, P, C> Change<'_, P, C>
where
    D: Into<Value>,
    E: From<Error>,
    P: Fn(Option<Value>) -> Result<D, DocumentError>,
    C: Fn(&mut D) -> Result<T, E>,
{
    /// Makes the change. After `Ok` it is on disk. If the change fails, no file is created.
    pub fn make(&self) -> Result<T, E> {
        // First without the lock: a change that fails, or a file that must be read again, does not delay other
        // writers.
        self.read().map_err(Failure::into_error)?;
        let mut time = write_lock::TIMEOUT;
        let mut retries = 0;
        loop {
            match self.attempt(&mut time) {
                Err(Failure::Store(error)) if error.is_transient() && retries < RETRIES => {
                    retries += 1;
                }
                outcome => return outcome.map_err(Failure::into_error),
            }
        }
    }

    /// Reads the document and changes it in memory.
    fn read(&self) -> Result<Changed<D, T>, Failure<E>> {
        let mut stored = self.aulario.read(self.names, &self.parse)?;
        let answer = (self.change)(&mut stored.document).map_err(Failure::Change)?;
        Ok(Changed { stored, answer })
    }

    /// Reads the document with the lock of the aulario, changes and stores it. Waits up to `time` for the lock.
    fn attempt(&self, time: &mut Duration) -> Result<T, Failure<E>> {
        let folder = &self.aulario.folder;
        let lock = WriteLock::acquire(folder, LOCK, time, self.aulario.waits)?;
        let Changed { stored, answer } = self.read()?;
        let content = stored.document.into().to_php();
        if content.len() as u64 > MAX_SIZE {
            return Err(Error::unusable(&stored.path, Defect::WouldBeTooLarge).into());
        }
        if stored.snapshot.is_none() {
            make_folders(folder, self.names)?;
        }
        replace(&stored.path, &content, stored.snapshot, &lock)?;
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;

    use crate::store::layout::TYPES;
    use crate::sys::waits::Waits;

    use super::*;

    #[test]
    fn a_page_that_saves_during_each_attempt_ends_a_change_after_the_last_retry() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(TYPES);
        let aulario = Aulario {
            folder: folder.path().to_owned(),
            is_shared: false,
            shared_comedor_from: None,
            being_written: None,
            waits: Waits::ALWAYS,
        };
        let saves = Cell::new(0);
        let changed: Result<(), Error> = aulario.change_menu_types(|_| {
            // Else a change that is repeated for ever would never end.
            if saves.get() < 100 {
                saves.set(saves.get() + 1);
                fs::write(&path, format!("[]{}", " ".repeat(saves.get()))).unwrap();
            }
            Ok(())
        });
        assert!(changed.is_err_and(|error| error.is_transient()));
        // One change without the lock, and that of the first attempt
        assert_eq!(saves.get(), 2 + RETRIES);
        assert_eq!(fs::read_to_string(path).unwrap(), "[]     ");
    }
}
