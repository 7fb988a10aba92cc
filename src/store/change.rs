//! Changing a document: read and changed without the lock of the aulario, and stored with it. If another writer was
//! there in the meantime, it is read and changed again, with the lock; so it is if a page has modified the file when it is
//! replaced ([`mod@super::replace`]).

use std::path::PathBuf;
use std::time::Duration;

use super::data_file::{looks_as_read, make_folders};
use super::layout::LOCK;
use super::replace::replace;
use super::write_lock::{self, WriteLock};
use super::{Aulario, Defect, Error, Stored};
use crate::model::DocumentError;
use crate::php::json::Value;
use crate::sys::shared_file::{MAX_SIZE, Snapshot};

/// The maximum number of retries if the file was modified in the meantime, or if another client of a network file
/// system deleted it or its folder. An attempt takes milliseconds, and pages save when a user does: a second attempt
/// is rare. After the last retry the client is told to repeat its request, which lets other writers of the aulario take
/// its lock.
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

/// A document that was changed in memory.
struct Changed<T> {
    path: PathBuf,
    /// What was read; `None` if the file does not exist
    snapshot: Option<Snapshot>,
    /// The changed document, as PHP would write it
    content: Vec<u8>,
    /// What the change returned
    answer: T,
}

impl<T> Changed<T> {
    fn is_up_to_date(&self) -> bool {
        looks_as_read(&self.path, self.snapshot.as_ref())
    }
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
        let mut changed = Some(self.read().map_err(Failure::into_error)?);
        let mut time = write_lock::TIMEOUT;
        let mut retries = 0;
        loop {
            match self.attempt(changed.take(), &mut time) {
                Err(Failure::Store(error)) if error.is_transient() && retries < RETRIES => {
                    retries += 1;
                }
                outcome => return outcome.map_err(Failure::into_error),
            }
        }
    }

    /// Reads the document and changes it in memory.
    fn read(&self) -> Result<Changed<T>, Failure<E>> {
        let Stored {
            mut document,
            path,
            snapshot,
        } = self.aulario.read(self.names, &self.parse)?;
        let answer = (self.change)(&mut document).map_err(Failure::Change)?;
        let content = document.into().to_php();
        if content.len() as u64 > MAX_SIZE {
            return Err(Error::unusable(&path, Defect::WouldBeTooLarge).into());
        }
        Ok(Changed {
            path,
            snapshot,
            content,
            answer,
        })
    }

    /// Stores the document with the lock of the aulario, for which it waits up to `time`. What was changed without the
    /// lock is stored if no other writer had it, nor seems to have modified the file; else the document is read and
    /// changed again.
    fn attempt(
        &self,
        mut unlocked: Option<Changed<T>>,
        time: &mut Duration,
    ) -> Result<T, Failure<E>> {
        let folder = &self.aulario.folder;
        // The writer that has the lock is about to replace the file, which is closed before the wait: if an NFS client
        // replaces a file that one of its processes has open, its path does not exist for an instant.
        let before_wait = || unlocked = None;
        let lock = WriteLock::acquire(folder, LOCK, time, self.aulario.waits, before_wait)?;
        let changed = match unlocked.filter(Changed::is_up_to_date) {
            Some(changed) => changed,
            None => self.read()?,
        };
        if changed.snapshot.is_none() {
            make_folders(folder, self.names)?;
        }
        replace(&changed.path, &changed.content, changed.snapshot, &lock)?;
        Ok(changed.answer)
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
        // The change without the lock, the first attempt with it, and its retries
        assert_eq!(saves.get(), 2 + RETRIES);
        assert_eq!(fs::read_to_string(path).unwrap(), "[]     ");
    }
}
