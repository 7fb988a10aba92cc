//! Checks the menu types and the days of one aulario, and that the user can change them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access as may_access};
use rustix::io::Errno;

use super::data::{Survey, name};
use super::report::{Level, counted};
use crate::admin::accounts::user_name;
use crate::admin::guide;
use crate::model::{Day, MenuTypes};
use crate::php::json::Value;
use crate::store::access::{self, Ownership};
use crate::store::{self, layout};
use crate::sys::shared_file::Fault;

impl Survey<'_> {
    /// The types and days of the aulario whose data is in `folder`.
    pub fn aulario(&mut self, folder: &Path) {
        if !self.enters(folder) {
            return;
        }
        if self.needs(folder, may_change(folder)) {
            self.check_write(folder, "menus cannot be saved");
        }
        self.lock(&folder.join(layout::LOCK));
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
            let (user, error) = (user_name(self.user.uid), io::Error::from(error));
            let (paths, first) = (counted(count, "path"), first.display());
            let text = format!(
                "{user} cannot write to {paths} here, so menus cannot be saved; the first is {first} ({error})"
            );
            self.problem(Level::Error, folder, text, guide::help(&error));
        }
    }

    /// Notes that a save needs `path`, which the user may use or not.
    fn needs(&mut self, path: &Path, allowed: Result<(), Errno>) -> bool {
        if let Err(error) = allowed {
            self.closed.get_or_insert_with(|| (path.to_owned(), error, 0)).2 += 1;
        }
        allowed.is_ok()
    }

    fn lock(&mut self, path: &Path) {
        match fs::symlink_metadata(path) {
            Ok(file) if file.is_file() => {
                self.needs(path, may_access(path, Access::READ_OK | Access::WRITE_OK));
            }
            Ok(_) => {
                let text =
                    "is not a regular file, so menus cannot be saved; the next save creates it";
                self.problem(Level::Error, path, text, guide::DAMAGED);
            }
            Err(_) => {}
        }
    }

    /// The folders in `folder`, in which a save may have to create others.
    fn changeable_folders(&mut self, folder: &Path) -> Vec<PathBuf> {
        if folder.is_dir() {
            self.needs(folder, may_change(folder));
        }
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
        if read.as_ref().is_err_and(is_denied) {
            self.needs(path, Err(Errno::ACCESS));
            return None;
        }
        let (value, snapshot) = read.map_err(|error| self.fault(path, &error)).ok()?;
        if let Some(snapshot) = &snapshot {
            if value.is_none() {
                let text = "is empty, as after an interrupted save by PHP; it counts as absent";
                self.add(Level::Warning, path, text);
            }
            let replacement = || {
                let folder = Ownership::from(&fs::metadata(path.parent()?).ok()?);
                let old = snapshot.access();
                let acl = snapshot.attributes().ok()?.acl(old.mode)?;
                access::of_replacement(old, &acl, folder, self.user)
            };
            // PHP would lose access to a file that cannot keep its owner.
            let kept = replacement().map(drop).ok_or(Errno::PERM);
            self.needs(path, may_access(path, Access::WRITE_OK).and(kept));
        }
        let parsed = parse(value).map_err(|why| store::Error::unusable(path, why));
        parsed.map_err(|error| self.fault(path, &error)).ok()
    }
}

fn is_denied(error: &store::Error) -> bool {
    matches!(error, store::Error::Fault { source: Fault::Io(error), .. }
        if error.kind() == io::ErrorKind::PermissionDenied)
}

/// Whether files can be created in `folder`, according to its mode.
fn may_change(folder: &Path) -> Result<(), Errno> {
    may_access(folder, Access::WRITE_OK | Access::EXEC_OK)
}
