//! Checks every centre and aulario in the data folder, and that the user can change the menus.

use std::borrow::Cow;
use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind};
use std::mem;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::folders::{Closed, Counted, Purpose, Survey};
use super::guide::Heading;
use super::kinds::Kind;
use super::report::counted;
use crate::config::DATA_DIR;
use crate::model::{Day, DocumentError, Id, MenuTypes};
use crate::php::json::Value;
use crate::store::access::{Old, Owners, Refusal};
use crate::store::attributes::Attributes;
use crate::store::data_file::Parts;
use crate::store::{self, Aulario, layout};
use crate::sys::accounts::owner_of;
use crate::sys::process::have_numbers;
use crate::sys::shared_file::{Fault, MAX_SIZE, Snapshot};
use crate::sys::waits::Waits;

/// The maximum size of a file that is read: a parsed file needs up to 64 times as much. A day has some 300 bytes.
const MAX_READ: u64 = 1024 * 1024;

/// The entries of a folder that are looked at: a school has some hundred aularios.
const MAX_ENTRIES: usize = 10_000;

/// The access to a folder in which files can be created
const CHANGE: Access = Access::WRITE_OK.union(Access::EXEC_OK);

impl Survey<'_> {
    /// Checks the data folder and what it contains, as far as time and room allow.
    pub fn data(&mut self) {
        let centros = layout::centres(&self.config.data_dir);
        if !self.reaches(
            &centros,
            "the data folder, which contains Centros",
            &DATA_DIR,
        ) {
            return;
        }
        self.file_system(&centros, Purpose::Data);
        self.capabilities(&centros);
        for centre in self.folders(&centros, |centre| layout::aularios(centre).is_dir()) {
            self.centre(&centre);
        }
        if let Some(text) = self.modes.problem() {
            self.add(Kind::UmaskDiffers, &centros, text);
        }
        let aularios = counted(self.aularios, "aulario");
        let days = counted(self.days, "saved day");
        self.add(
            Kind::Data,
            &centros,
            format!("{aularios} and {days} checked"),
        );
        if !self.goes_on() {
            let text = "not everything was checked, because of the time or of too many errors: correct the errors, and \
                        run the check again";
            self.add(Kind::DataNotChecked, &centros, text);
        }
    }

    /// Whether there is time, and room for another error.
    fn goes_on(&self) -> bool {
        Instant::now() < self.end && self.report.has_room()
    }

    fn centre(&mut self, centre: &Path) {
        let Some(centro) = self.id(centre, &name(centre)) else {
            return;
        };
        if !self.enters(centre) {
            return;
        }
        let folder = layout::aularios(centre);
        let mut lacks_folder = false;
        for path in self.list(&folder, |path| layout::configured(&name(path)).is_some()) {
            match self.entry(&centro, &path) {
                Some(data) if data.is_dir() => self.aulario(&data),
                Some(_) => lacks_folder = true,
                None => {}
            }
        }
        if lacks_folder {
            let effect = "the first save in an aulario without a folder fails";
            let kind = Kind::FolderClosed;
            self.or_report(may_change(&folder), kind, &folder, "write here", effect);
        }
    }

    /// Checks `path`, an entry of the folder of the aularios. If it is the configuration of an aulario that shows its
    /// own menus, returns the folder of its data, which may not exist yet.
    fn entry(&mut self, centro: &Id, path: &Path) -> Option<PathBuf> {
        let name = name(path);
        let Some(id) = layout::configured(&name) else {
            self.unconfigured(path);
            return None;
        };
        let id = self.id(path, id)?;
        if id.as_str().contains(".sync-conflict-") {
            let text = "is Syncthing's copy of a file that two computers changed; it counts as an aulario: compare \
                        both, and delete one";
            self.add(Kind::AularioCopied, path, text);
        }
        if !self.goes_on() || !self.may_read(path) {
            return None;
        }
        self.aularios += 1;
        let data = path.with_file_name(id.as_str());
        match Aulario::find(&self.config.data_dir, centro, &id, Waits::ALWAYS) {
            Ok(Some(aulario)) => {
                self.sharing(path, centro, &aulario);
                (!aulario.is_shared).then_some(data)
            }
            Ok(None) => Some(data),
            Err(error) => {
                self.fault(path, &error);
                Some(data)
            }
        }
    }

    /// Reports a folder of an aulario without configuration.
    fn unconfigured(&mut self, path: &Path) {
        let configuration = path.with_file_name(format!("{}.json", name(path)));
        if path.is_dir() && !configuration.exists() {
            let text =
                "is not used: its configuration file, of the same name with .json, is missing";
            self.add(Kind::AularioUnused, path, text);
        }
    }

    /// The types and days of the aulario whose data is in `folder`.
    fn aulario(&mut self, folder: &Path) {
        if !self.enters(folder) {
            return;
        }
        self.needs_to_change(folder);
        self.lock(&folder.join(layout::LOCK));
        let types = self.document(&folder.join(layout::TYPES), MenuTypes::from_json);
        let mut deleted = Counted::default();
        let is_month = |month: &Path| layout::date(&name(month), "01").is_some();
        for month in self.changeable_folders(&folder.join(layout::MONTHS), is_month) {
            let is_day = |day: &Path| layout::date(&name(&month), &name(day)).is_some();
            for day in self.changeable_folders(&month, is_day) {
                let day = self.day(&name(&month), &day);
                if let (Some(day), Some(types)) = (day, &types) {
                    let is_deleted = |id: &&str| types.find(id).as_deref() != Some(*id);
                    for id in day.ids().filter(is_deleted) {
                        deleted.add(id.to_owned());
                    }
                }
            }
        }
        if let Some(first) = deleted.first {
            let menus = counted(deleted.count, "menu");
            let text = format!("{menus} of types that were deleted; the first is {first}");
            self.add(Kind::TypesDeleted, folder, text);
        }
        self.report_closed(folder);
    }

    fn lock(&mut self, lock: &Path) {
        self.needs(lock, access(lock, Access::READ_OK | Access::WRITE_OK));
        if fs::symlink_metadata(lock).is_ok_and(|file| !file.is_file()) {
            let text = "is not a regular file, so menus cannot be saved: remove it; the next save creates a new one";
            self.problem(Kind::LockUnusable, lock, text, None);
        }
    }

    /// Reports what a save in the aulario needs and the user may not use.
    fn report_closed(&mut self, folder: &Path) {
        let closed = mem::take(&mut self.closed);
        let Some(Closed { path, why, heading }) = closed.first else {
            return;
        };
        let user = &self.user;
        let paths = counted(closed.count, "path");
        let first = path.display();
        let owner = owner_of(&path);
        let heading = after_sentence(heading);
        let text = format!(
            "{user} cannot write to {paths} here, so menus cannot be saved; the first is {first} ({why}){owner}{heading}"
        );
        self.add(Kind::NotWritable, folder, text);
    }

    /// Notes that a save needs `path`, which the user may use or not. An absent path is correct.
    fn needs(&mut self, path: &Path, allowed: Result<(), impl Into<io::Error>>) {
        if let Err(error) = allowed.map_err(Into::into)
            && error.kind() != ErrorKind::NotFound
        {
            self.closes(path, &error, Heading::for_error(&error));
        }
    }

    /// Notes that a save needs to create files in `folder`.
    fn needs_to_change(&mut self, folder: &Path) {
        self.needs(folder, access(folder, CHANGE));
        if access(folder, Access::READ_OK) == Err(Errno::ACCESS) {
            self.flushes(folder);
        }
    }

    /// Notes that a save needs to replace the file at `path`, by the rule of requests.
    fn needs_replacement(&mut self, path: &Path, old: &Snapshot) {
        match may_replace(path, old) {
            Ok(Ok(())) => {}
            Ok(Err(refusal)) => self.closes(path, &refusal, Some(Heading::from(&refusal))),
            Err(error) => self.needs(path, Err::<(), _>(error)),
        }
    }

    fn closes(&mut self, path: &Path, why: impl Display, heading: Option<Heading>) {
        self.closed.add(Closed {
            path: path.to_owned(),
            why: why.to_string(),
            heading,
        });
    }

    /// The folders in `folder`, in which a save may have to create others.
    fn changeable_folders(
        &mut self,
        folder: &Path,
        comes_first: impl Fn(&Path) -> bool,
    ) -> Vec<PathBuf> {
        self.needs_to_change(folder);
        self.folders(folder, comes_first)
    }

    /// Checks the folder of a day and reads its menus.
    fn day(&mut self, month: &str, folder: &Path) -> Option<Day> {
        if layout::date(month, &name(folder)).is_none() {
            self.add(
                Kind::DayNameInvalid,
                folder,
                "is not the folder of a day; expected YYYY-MM/DD",
            );
            return None;
        }
        self.days += usize::from(self.goes_on());
        self.needs_to_change(folder);
        self.modes.note(&folder.join(layout::DAY));
        self.document(&folder.join(layout::DAY), |value| {
            Day::from_json(value, None)
        })
    }

    /// Reads a data file; an absent file is an empty document.
    fn document<D>(
        &mut self,
        path: &Path,
        parse: impl Fn(Option<Value>) -> Result<D, DocumentError>,
    ) -> Option<D> {
        if !self.goes_on() || !self.may_read(path) {
            return None;
        }
        if access(path, Access::READ_OK) == Err(Errno::ACCESS) {
            self.needs(path, Err(Errno::ACCESS));
            return None;
        }
        let read = store::data_file::read(path, Waits::ALWAYS);
        let content = read.map_err(|error| self.fault(path, &error)).ok()?;
        let Parts { value, snapshot } = content.into_parts();
        if let Some(snapshot) = &snapshot {
            if value.is_none() {
                let text = "is empty, as after an interrupted save by PHP; it counts as absent";
                self.add(Kind::FileEmpty, path, text);
            }
            self.needs_replacement(path, snapshot);
        }
        parse(value)
            .map_err(|why| self.fault(path, &store::Error::unusable(path, why)))
            .ok()
    }

    /// The id in the name of `path`.
    fn id(&mut self, path: &Path, name: &str) -> Option<Id> {
        let id = Id::parse(name).ok();
        if id.is_none() {
            let text = format!(
                "is not a valid id, so no request can use it: it must be {}",
                Id::EXPECTED
            );
            self.add(Kind::IdInvalid, path, text);
        }
        id
    }

    /// Warns about a `shared_comedor_from` that has another effect than it says.
    fn sharing(&mut self, path: &Path, centro: &Id, aulario: &Aulario) {
        let Some(source) = &aulario.shared_comedor_from else {
            return;
        };
        let problem = if !aulario.is_shared {
            "is not another aulario of this centre; the aulario shows its own menus"
        } else if self.is_shared(centro, source) {
            "has shared_comedor_from too; that setting is ignored here"
        } else {
            return;
        };
        let text = format!("shared_comedor_from is `{source}`, which {problem}");
        self.add(Kind::SharingIgnored, path, text);
    }

    /// Whether the aulario `name` shows the menus of another one.
    fn is_shared(&self, centro: &Id, name: &str) -> bool {
        let Ok(id) = Id::parse(name) else {
            return false;
        };
        let aulario = Aulario::find(&self.config.data_dir, centro, &id, Waits::ALWAYS);
        matches!(aulario, Ok(Some(aulario)) if aulario.is_shared)
    }

    fn folders(&mut self, folder: &Path, comes_first: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        self.list(folder, comes_first)
            .into_iter()
            .filter(|path| path.is_dir())
            .collect()
    }

    /// Whether the user can open what is in `folder`, tested before what is in it: the finding names the closed one.
    fn enters(&mut self, folder: &Path) -> bool {
        self.report.looks_at(folder);
        let entered = access(folder, Access::EXEC_OK).map_err(io::Error::from);
        let kind = Kind::FolderClosed;
        self.or_report(entered, kind, folder, "enter this folder", "requests fail")
            .is_some()
    }

    /// The entries of `folder` that a page lists, sorted: not the files of macOS (`._x`), Office (`~$x`) and Syncthing.
    /// The school's own entries come first (`comes_first`), so that they are checked among any number of others.
    fn list(&mut self, folder: &Path, comes_first: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        if !self.goes_on() || !self.enters(folder) {
            return Vec::new();
        }
        let listed = fs::read_dir(folder);
        let effect = "it is not checked";
        let kind = Kind::NotListed;
        let listed = self.or_report(listed, kind, folder, "list this folder", effect);
        let paths = listed
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        let paths = paths.filter(|path| !name(path).starts_with(['.', '~']));
        let mut first = Vec::new();
        let mut others = Vec::new();
        let mut has_more = false;
        for path in paths.take_while(|_| self.goes_on()) {
            let kept = if comes_first(&path) {
                &mut first
            } else {
                &mut others
            };
            if kept.len() < MAX_ENTRIES {
                kept.push(path);
            } else {
                has_more = true;
            }
        }
        if has_more {
            let text = format!("has more than {MAX_ENTRIES} entries; the others were not checked");
            self.add(Kind::EntriesNotChecked, folder, text);
        }
        first.sort();
        others.sort();
        first.append(&mut others);
        first
    }

    /// The result, or reports that the user cannot do `what` with `folder`, and the `effect`. It may be absent.
    fn or_report<T>(
        &mut self,
        result: io::Result<T>,
        kind: Kind,
        folder: &Path,
        what: &str,
        effect: &str,
    ) -> Option<T> {
        if let Err(error) = &result
            && error.kind() != ErrorKind::NotFound
        {
            let text = format!("{} cannot {what} ({error}), so {effect}", self.user);
            self.problem(kind, folder, text, Heading::for_error(error));
        }
        result.ok()
    }

    /// Whether the file at `path` is small enough to be read, or too large for requests too.
    fn may_read(&mut self, path: &Path) -> bool {
        self.report.looks_at(path);
        let size = fs::symlink_metadata(path).map_or(0, |file| file.len());
        let is_large = (MAX_READ + 1..=MAX_SIZE).contains(&size);
        if is_large {
            let text = format!("is larger than {} MiB and was not checked", MAX_READ >> 20);
            self.add(Kind::FileNotChecked, path, text);
        }
        !is_large
    }

    /// Reports a file that cannot be used.
    fn fault(&mut self, path: &Path, error: &store::Error) {
        let effect = "so requests for it fail";
        match error {
            store::Error::Unusable { why, .. } => {
                let text = format!("is damaged ({why}), {effect}");
                self.problem(Kind::FileDamaged, path, text, Some(Heading::InvalidJson));
            }
            store::Error::Fault { source, .. } => {
                let heading = match source {
                    Fault::Io(error) => Heading::for_error(error),
                    _ => Some(Heading::InvalidJson),
                };
                let text = format!("cannot be read ({source}), {effect}");
                self.problem(Kind::FileUnreadable, path, text, heading);
            }
            other => {
                let text = format!("{other}, {effect}");
                self.problem(Kind::FileUnreadable, path, text, None);
            }
        }
    }

    /// Adds a finding about a file, with its owner and the heading that has the command.
    fn problem(&self, kind: Kind, path: &Path, text: impl Display, heading: Option<Heading>) {
        let owner = owner_of(path);
        let heading = after_sentence(heading);
        self.add(kind, path, format!("{text}{owner}{heading}"));
    }
}

fn name(path: &Path) -> Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

fn after_sentence(heading: Option<Heading>) -> String {
    heading
        .map(|heading| heading.to_string())
        .unwrap_or_default()
}

/// Whether a save by this user replaces the file at `path`.
fn may_replace(path: &Path, old: &Snapshot) -> io::Result<Result<(), Refusal>> {
    access(path, Access::WRITE_OK)?;
    let attributes = Attributes::of(&old.file)?;
    let folder = fs::metadata(layout::folder_of(path))?;
    let created = Owners::of_new_file(&folder);
    let old = Old {
        file: &old.metadata,
        attributes: &attributes,
        folder: &folder,
    };
    Ok(old.choose_owners(created, |owners| have_numbers(owners.uid, owners.gid)))
}

/// Whether the user can create files in `folder`.
fn may_change(folder: &Path) -> io::Result<()> {
    Ok(access(folder, CHANGE)?)
}
