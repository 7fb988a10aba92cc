//! Every centre, aulario, type and day in the data folder.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access as may_access};

use super::report::{Level, Report};
use super::settings::{may_enter, may_write};
use super::user::{User, quoted};
use crate::model::{Date, Day, Document, Id, MenuTypes};
use crate::store::access::{self, Access as FileAccess};
use crate::store::{self, TYPES};

/// Walks the data folder and reports what it finds.
pub fn check(data_dir: &Path, user: &User, report: &mut Report) {
    let centros = data_dir.join("Centros");
    if !may_enter(("the data folder", "COMEDOR_DATA_DIR"), &centros, user, report) {
        return;
    }
    let mut survey = Survey { user, report, closed: Vec::new(), days: 0, aularios: 0 };
    let entries = survey.list(&centros);
    for centro in entries.iter().filter(|entry| is_folder(entry)) {
        survey.centro(&centro.path());
    }
    let (days, aularios) = (survey.days, survey.aularios);
    let text = format!("{aularios} aularios and {days} saved days were looked at");
    report.add(Level::Ok, data_dir.display().to_string(), text, None);
}

struct Survey<'r> {
    user: &'r User,
    report: &'r mut Report,
    /// What of the aulario at hand its user may not use as a save needs it
    closed: Vec<PathBuf>,
    days: usize,
    aularios: usize,
}

impl Survey<'_> {
    fn centro(&mut self, centro: &Path) {
        if Id::parse(&name(centro)).is_err() {
            let text = "no session can name this centre: an id is 1 to 64 of A-Z a-z 0-9 . _ -";
            return self.add(Level::Warning, centro, text, None);
        }
        let aularios = centro.join("Aularios");
        let entries = self.list(&aularios);
        if entries.is_empty() {
            return self.add(Level::Hint, &aularios, "there is no aulario here", None);
        }
        may_write(&aularios, self.user, self.report);

        let files = entries.iter().filter(|entry| !is_folder(entry)).map(DirEntry::path);
        let (configurations, others): (Vec<PathBuf>, Vec<PathBuf>) =
            files.partition(|path| path.extension().is_some_and(|extension| extension == "json"));
        self.leftovers(&others);
        // What each aulario shares, where it shares something.
        let mut shared = BTreeMap::new();
        for path in &configurations {
            let id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if Id::parse(&id).is_err() {
                let text =
                    "no request can name this aulario: an id is 1 to 64 of A-Z a-z 0-9 . _ -";
                self.add(Level::Warning, path, text, None);
                continue;
            }
            self.aularios += 1;
            match store::shared_with(path) {
                Ok(source) => shared.insert(id, source.flatten()),
                Err(error) => {
                    self.configuration_fault(path, &error);
                    shared.insert(id, None)
                }
            };
        }
        self.sharing(&aularios, &shared);
        for folder in entries.iter().filter(|entry| is_folder(entry)).map(DirEntry::path) {
            if shared.contains_key(&*name(&folder)) {
                self.aulario(&folder);
            } else {
                let text = "belongs to no aulario: there is no configuration of that name";
                self.add(Level::Hint, &folder, text, None);
            }
        }
    }

    fn sharing(&mut self, aularios: &Path, shared: &BTreeMap<String, Option<String>>) {
        let source = |id: &String| shared.get(id).and_then(Option::as_ref);
        let names_another = |text: &&String| !text.is_empty() && *text != "none";
        for id in shared.keys() {
            let Some(other) = source(id).filter(names_another) else { continue };
            let path = aularios.join(format!("{id}.json"));
            let problem = if other == id {
                "names the aulario itself in shared_comedor_from; it shows its own menus"
            } else if !shared.contains_key(other) {
                "names an aulario in shared_comedor_from that does not exist; it shows its own menus"
            } else if source(other).is_some_and(|next| names_another(&next) && next != other) {
                "names an aulario in shared_comedor_from that shares in turn; only one step is followed"
            } else {
                continue;
            };
            self.add(Level::Warning, &path, problem, None);
        }
    }

    /// The types and days of the aulario whose data is in `folder`.
    fn aulario(&mut self, folder: &Path) {
        if may_change(folder) {
            may_write(folder, self.user, self.report);
        } else {
            self.closed.push(folder.to_owned());
        }
        let lock = folder.join(store::LOCK);
        if lock.exists() && may_access(&lock, Access::READ_OK | Access::WRITE_OK).is_err() {
            self.closed.push(lock);
        }
        let entries = self.list(folder);
        self.leftovers(&entries.iter().map(DirEntry::path).collect::<Vec<_>>());
        let types = folder.join(TYPES);
        let known = self.document::<MenuTypes>(&types);
        if let Some(known) = &known {
            self.types(&types, known);
        }
        let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
        for month in self.folders(&folder.join("Comedor")) {
            for day in self.folders(&month) {
                let ids = self.day(&name(&month), &day);
                let gone =
                    |id: &String| known.as_ref().is_some_and(|types| types.find(id) != Ok(id));
                for id in ids.into_iter().filter(gone) {
                    *unknown.entry(id).or_default() += 1;
                }
            }
        }
        for (id, days) in unknown {
            let text = format!("{days} days have menus of the type {id}, which there is no more");
            self.add(Level::Hint, folder, text, None);
        }
        self.closed_to_user(folder);
    }

    /// The folders in `folder`, in which others must be able to be made.
    fn folders(&mut self, folder: &Path) -> Vec<PathBuf> {
        if folder.is_dir() && !may_change(folder) {
            self.closed.push(folder.to_owned());
        }
        let entries = self.list(folder);
        entries.iter().filter(|entry| is_folder(entry)).map(DirEntry::path).collect()
    }

    /// One finding for all that is closed in an aulario, with one command.
    fn closed_to_user(&mut self, folder: &Path) {
        let closed = std::mem::take(&mut self.closed);
        let Some(first) = closed.first() else { return };
        let (user, count) = (&self.user.name, closed.len());
        let text = format!(
            "{user} can't change {count} of the files and folders here ({} is the first), so that \
             menus can't be saved",
            first.display()
        );
        let (group, path) = (&self.user.group, quoted(folder));
        let mend = format!("sudo chgrp -R {group} {path} && sudo chmod -R g+rwX {path}");
        self.add(Level::Error, folder, text, Some(mend));
    }

    fn types(&mut self, path: &Path, types: &MenuTypes) {
        let mut ids: Vec<&str> = types.ids().collect();
        let unusable = types.entries() - ids.len();
        if unusable > 0 {
            let text = format!("{unusable} entries have no usable id and are not shown");
            self.add(Level::Warning, path, text, None);
        }
        ids.sort_unstable();
        for same in ids.chunk_by(|a, b| a == b).filter(|same| same.len() > 1) {
            let text = format!("the id {} stands {} times; the first counts", same[0], same.len());
            self.add(Level::Warning, path, text, None);
        }
    }

    /// Looks at the folder of a day and gives the ids of the types that it has menus of.
    fn day(&mut self, month: &str, folder: &Path) -> Vec<String> {
        if Date::parse(&format!("{month}-{}", name(folder))).is_err() {
            self.add(Level::Hint, folder, "is no day: it should be YYYY-MM/DD", None);
            return Vec::new();
        }
        self.days += 1;
        self.report.progress(self.days, "days");
        let paths: Vec<PathBuf> = self.list(folder).iter().map(DirEntry::path).collect();
        self.leftovers(&paths);
        if !may_change(folder) {
            self.closed.push(folder.to_owned());
        }
        let day = self.document::<Day>(&folder.join(store::DAY));
        day.map(|day| day.ids().map(str::to_owned).collect()).unwrap_or_default()
    }

    /// Reads a data file; one that is not there is as good as an empty one.
    fn document<D: Document>(&mut self, path: &Path) -> Option<D> {
        let (value, snapshot) = match store::file::read(path) {
            Ok(read) => read,
            Err(store::Error::Fault { source, .. })
                if source.kind() == Some(ErrorKind::PermissionDenied) =>
            {
                self.closed.push(path.to_owned());
                return None;
            }
            Err(error) => {
                self.fault(path, &error);
                return None;
            }
        };
        if let Some(snapshot) = &snapshot {
            if value.is_none() {
                let text = "is empty: PHP was interrupted while saving it; it counts as absent";
                self.add(Level::Warning, path, text, None);
            }
            let folder = path.parent().and_then(|folder| fs::metadata(folder).ok());
            let may_replace = folder.is_some_and(|folder| {
                let folder = FileAccess::from(&folder);
                access::of_replacement(snapshot.access(), folder, &self.user.ids).is_some()
            });
            if !may_replace {
                self.closed.push(path.to_owned());
            }
        }
        store::document(path, value).map_err(|error| self.fault(path, &error)).ok()
    }

    /// Reports the temporary files of writers that were killed.
    fn leftovers(&mut self, paths: &[PathBuf]) {
        for path in paths.iter().filter(|path| {
            let name = name(path);
            name.starts_with('.') && name.ends_with(".tmp")
        }) {
            let text =
                "was left by a writer that was killed; the next save of that file removes it";
            self.add(Level::Warning, path, text, Some(format!("sudo rm {}", quoted(path))));
        }
    }

    /// What is in a folder, in order; nothing where there is no such folder.
    fn list(&mut self, folder: &Path) -> Vec<DirEntry> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
            Err(error) => {
                let text = format!("{} can't look into this folder: {error}", self.user.name);
                self.add(Level::Error, folder, text, Some(self.user.admit(folder, "rx")));
                return Vec::new();
            }
        };
        let mut entries: Vec<DirEntry> = entries.flatten().collect();
        entries.sort_by_key(DirEntry::file_name);
        entries
    }

    /// A data file that can't be used; out of the way it counts as absent, and is not lost.
    fn fault(&mut self, path: &Path, error: &store::Error) {
        let text = format!("is damaged ({}): put a copy back, or move it away", reason(error));
        let from = quoted(path);
        self.add(Level::Error, path, text, Some(format!("sudo mv {from} {from}.broken")));
    }

    /// A configuration that can't be used: without it there would be no aulario.
    fn configuration_fault(&mut self, path: &Path, error: &store::Error) {
        match error {
            store::Error::Fault { source, .. }
                if source.kind() == Some(ErrorKind::PermissionDenied) =>
            {
                let text = format!("{} may not read the aulario's configuration", self.user.name);
                self.add(Level::Error, path, text, Some(self.user.admit(path, "r")));
            }
            _ => {
                let text = format!("is damaged ({}): put a copy back", reason(error));
                self.add(Level::Error, path, text, None);
            }
        }
    }

    fn add(&mut self, level: Level, path: &Path, text: impl Into<String>, mend: Option<String>) {
        self.report.add(level, path.display().to_string(), text, mend);
    }
}

fn name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

/// What is wrong with a file, without its path.
fn reason(error: &store::Error) -> String {
    match error {
        store::Error::Unusable { why, .. } => why.clone(),
        store::Error::Fault { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

/// Whether files can be made in `folder`, as far as its mode says.
fn may_change(folder: &Path) -> bool {
    may_access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.path().is_dir()
}
