//! Checks the menu types and the days of one aulario, and that the user can change them.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::data::{name, try_to_write};
use super::folders::Survey;
use super::report::{Level, counted};
use crate::admin::guide;
use crate::model::{Day, MenuTypes};
use crate::php::json::Value;
use crate::store::attributes::Attributes;
use crate::store::{self, access::of_replacement, layout};
use crate::sys::shared_file::Fault;

impl Survey<'_> {
    /// The types and days of the aulario whose data is in `folder`.
    pub fn aulario(&mut self, folder: &Path) {
        if !self.enters(folder) {
            return;
        }
        self.needs(folder, try_to_write(folder));
        let lock = folder.join(layout::LOCK);
        self.needs(&lock, access(&lock, Access::READ_OK | Access::WRITE_OK));
        if fs::symlink_metadata(&lock).is_ok_and(|file| !file.is_file()) {
            let text = "is not a regular file, so menus cannot be saved; the next save creates it";
            self.problem(Level::Error, &lock, text, guide::DAMAGED);
        }
        let known = self.document(&folder.join(layout::TYPES), MenuTypes::of_file);
        let mut deleted: Option<(String, usize)> = None;
        for month in self.changeable_folders(&folder.join(layout::MONTHS)) {
            for day in self.changeable_folders(&month) {
                let Some((day, types)) = self.day(&name(&month), &day).zip(known.as_ref()) else {
                    continue;
                };
                for id in day.ids().filter(|id| types.find(id).as_deref() != Some(*id)) {
                    deleted.get_or_insert_with(|| (id.to_owned(), 0)).1 += 1;
                }
            }
        }
        if let Some((first, menus)) = deleted {
            let menus = counted(menus, "menu");
            let text = format!("{menus} of types that were deleted; the first is {first}");
            self.add(Level::Hint, folder, text);
        }
        if let Some((first, error, count)) = self.closed.take() {
            let (user, paths, first) = (&self.user, counted(count, "path"), first.display());
            let text = format!(
                "{user} cannot write to {paths} here, so menus cannot be saved; the first is {first} ({error})"
            );
            self.problem(Level::Error, folder, text, guide::help(&error));
        }
    }

    /// Notes that a save needs `path`, which the user may use or not. An absent path is correct.
    fn needs(&mut self, path: &Path, allowed: Result<(), impl Into<io::Error>>) {
        if let Err(error) = allowed.map_err(Into::into)
            && error.kind() != ErrorKind::NotFound
        {
            self.closed.get_or_insert_with(|| (path.to_owned(), error, 0)).2 += 1;
        }
    }

    /// The folders in `folder`, in which a save may have to create others.
    fn changeable_folders(&mut self, folder: &Path) -> Vec<PathBuf> {
        self.needs(folder, may_change(folder));
        self.folders(folder)
    }

    /// Checks the folder of a day and reads its menus.
    fn day(&mut self, month: &str, folder: &Path) -> Option<Day> {
        if layout::date(month, &name(folder)).is_none() {
            self.add(Level::Hint, folder, "is not the folder of a day; expected YYYY-MM/DD");
            return None;
        }
        self.days += usize::from(self.goes_on());
        self.needs(folder, may_change(folder));
        self.document(&folder.join(layout::DAY), |value| Day::of_file(value, None))
    }

    /// Reads a data file; an absent file is an empty document.
    fn document<D>(
        &mut self,
        path: &Path,
        parse: impl Fn(Option<Value>) -> Result<D, String>,
    ) -> Option<D> {
        if !self.goes_on() || !self.may_read(path) {
            return None;
        }
        let read = store::data_file::read(path);
        if let Err(store::Error::Fault { source: Fault::Io(error), .. }) = &read
            && error.kind() == ErrorKind::PermissionDenied
        {
            self.needs(path, Err(Errno::ACCESS));
            return None;
        }
        let (value, snapshot) = read.map_err(|error| self.fault(path, &error)).ok()?;
        if let Some(snapshot) = &snapshot {
            if value.is_none() {
                let text = "is empty, as after an interrupted save by PHP; it counts as absent";
                self.add(Level::Warning, path, text);
            }
            // PHP would lose access to a file that cannot keep its owner.
            let attributes = Attributes::of(&snapshot.file).ok();
            let kept = attributes.and_then(|it| of_replacement(&snapshot.metadata, &it, path).ok());
            self.needs(path, access(path, Access::WRITE_OK).and(kept.map(drop).ok_or(Errno::PERM)));
        }
        parse(value).map_err(|why| self.fault(path, &store::Error::unusable(path, why))).ok()
    }
}

/// Whether files can be created in `folder`, according to its mode.
fn may_change(folder: &Path) -> Result<(), Errno> {
    access(folder, Access::WRITE_OK | Access::EXEC_OK)
}
