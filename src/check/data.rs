//! Checks every centre, aulario, menu type and day in the data folder.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, access as may_access};

use super::reach::try_to_write;
use super::report::{Level, Report, counted};
use super::user::{User, is_within, quoted};
use crate::model::{Day, Document, Id, MenuTypes};
use crate::shared_file::Fault;
use crate::store::access::{self, Ownership};
use crate::store::{self, Aulario, layout};

/// A writer may still use a temporary file younger than this: it waits at most 10 s for a lock.
const WRITE_TIME: Duration = Duration::from_secs(60);

/// Reads the whole data folder and adds the findings to `report`.
pub fn check(data_dir: &Path, user: &User, report: &mut Report) {
    let mut survey =
        Survey { data_dir, user, report, closed: Vec::new(), skew: None, days: 0, aularios: 0 };
    let centros = layout::centres(data_dir);
    for centre in survey.folders(&centros) {
        survey.centre(&centre);
    }
    let (aularios, days) = (counted(survey.aularios, "aulario"), counted(survey.days, "saved day"));
    if let Some(skew) = survey.skew {
        let text = format!(
            "the time of a new file is {skew} this machine's clock: an empty file may count as being \
             written, and sessions expire too early or too late with COMEDOR_SESSION_MAX_AGE; \
             synchronise the clocks of all servers (NTP)"
        );
        report.add(Level::Warning, data_dir.display(), text);
    }
    report.add(Level::Ok, centros.display(), format!("{aularios} and {days} checked"));
}

/// Why no `user` of the API can use a name.
fn not_an_id(user: &str) -> String {
    format!("is not a valid id, so no {user} can use it: it must be {}", Id::EXPECTED)
}

struct Survey<'r> {
    data_dir: &'r Path,
    user: &'r User,
    report: &'r mut Report,
    /// The files and folders of the current aulario that a save needs and the user may not use
    closed: Vec<PathBuf>,
    /// The difference of the clocks, if a new file showed one
    skew: Option<String>,
    days: usize,
    aularios: usize,
}

impl Survey<'_> {
    fn centre(&mut self, centre: &Path) {
        let Ok(centro) = Id::parse(&name(centre)) else {
            return self.add(Level::Warning, centre, not_an_id("session"));
        };
        let folder = layout::aularios(centre);
        let Some(entries) = self.list(&folder) else { return };
        if entries.is_empty() {
            return self.add(Level::Hint, &folder, "contains no aulario");
        }
        let (folders, files): (Vec<_>, Vec<_>) = entries.into_iter().partition(|p| p.is_dir());
        // `None` if the configuration is damaged
        let mut aularios = BTreeMap::new();
        for path in &files {
            let name = name(path);
            let Some(id) = layout::configured(&name) else { continue };
            let Ok(id) = Id::parse(id) else {
                self.add(Level::Warning, path, not_an_id("request"));
                continue;
            };
            self.aularios += 1;
            let aulario = Aulario::find(self.data_dir, &centro, &id).unwrap_or_else(|error| {
                self.fault(path, &error, None);
                None
            });
            aularios.insert(id.as_str().to_owned(), (path, aulario));
        }
        let is_shared = |id: &str| aularios[id].1.as_ref().is_some_and(Aulario::is_shared);
        let needs_folder = |id: &&String| !is_shared(id) && !folders.contains(&folder.join(id));
        let missing: Vec<&str> = aularios.keys().filter(needs_folder).map(String::as_str).collect();
        if !missing.is_empty() {
            let consequence = format!(
                "the first save fails for aularios without a folder: {}",
                missing.join(", ")
            );
            self.check_write(&folder, &consequence);
        }
        for folder in &folders {
            match &*name(folder) {
                id if !aularios.contains_key(id) => {
                    let text = "belongs to no aulario: there is no configuration file of that name";
                    self.add(Level::Hint, folder, text);
                }
                // Its own data is not used.
                id if is_shared(id) => {}
                _ => self.aulario(folder),
            }
        }
        self.sharing(&aularios);
    }

    /// Reports values of `shared_comedor_from` that have no effect.
    fn sharing(&mut self, aularios: &BTreeMap<String, (&PathBuf, Option<Aulario>)>) {
        let setting = |id: &str| aularios.get(id)?.1.as_ref()?.shared_comedor_from();
        for (id, (path, aulario)) in aularios {
            let (Some(aulario), Some(source)) = (aulario, setting(id)) else { continue };
            let problem = match setting(source) {
                _ if source == id => "is the aulario itself; it shows its own menus",
                _ if !aulario.is_shared() => "does not exist; the aulario shows its own menus",
                Some(next) if next != source => {
                    "has shared_comedor_from too; that setting is ignored here"
                }
                _ => continue,
            };
            let text = format!("shared_comedor_from is `{source}`, which {problem}");
            self.add(Level::Warning, path, text);
        }
    }

    /// The types and days of the aulario whose data is in `folder`.
    fn aulario(&mut self, folder: &Path) {
        if self.needs(folder, may_change(folder)) {
            self.check_write(folder, "menus cannot be saved");
        }
        self.lock(&folder.join(layout::LOCK));
        self.list(folder);
        let types = folder.join(layout::TYPES);
        let absence = "the three default types apply, and menus of other types are not shown until \
                       the file is back";
        let known = self.document::<MenuTypes>(&types, absence);
        if let Some(known) = &known {
            self.types(&types, known);
        }
        let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
        for month in self.changeable_folders(&folder.join(layout::MONTHS)) {
            for day in self.changeable_folders(&month) {
                let ids = self.day(&name(&month), &day);
                let is_unknown =
                    |id: &String| known.as_ref().is_some_and(|types| types.find(id) != Ok(id));
                for id in ids.into_iter().filter(is_unknown) {
                    *unknown.entry(id).or_default() += 1;
                }
            }
        }
        for (id, days) in unknown {
            let (days, verb) = (counted(days, "day"), if days == 1 { "has" } else { "have" });
            let text = format!("{days} {verb} menus of type {id}, which was deleted");
            self.add(Level::Hint, folder, text);
        }
        self.closed_to_user(folder);
    }

    /// Notes that a save needs `path`, which the user may use or not.
    fn needs(&mut self, path: &Path, is_allowed: bool) -> bool {
        self.closed.extend((!is_allowed).then(|| path.to_owned()));
        is_allowed
    }

    /// Checks that the user can create files in `folder`. `consequence` is the effect if not.
    fn check_write(&mut self, folder: &Path, consequence: &str) {
        match try_to_write(folder) {
            Ok(skew) => self.skew = self.skew.take().or(skew),
            Err(error) => {
                let name = &self.user.name;
                let text = format!("{name} cannot write here ({error}), so {consequence}");
                let fix = self.user.grant(folder, "rwx", self.data_dir);
                self.report.add_with_fix(Level::Error, folder.display(), text, fix);
            }
        }
    }

    fn lock(&mut self, path: &Path) {
        let Ok(metadata) = fs::symlink_metadata(path) else { return };
        if metadata.is_file() {
            self.needs(path, may_access(path, Access::READ_OK | Access::WRITE_OK).is_ok());
            return;
        }
        let what = if metadata.is_symlink() { "a symbolic link" } else { "not a regular file" };
        let text = format!("is {what}, so menus cannot be saved; the next save creates it again");
        let fix = format!("sudo rm -d {}", quoted(path));
        self.report.add_with_fix(Level::Error, path.display(), text, fix);
    }

    /// The folders in `folder`, in which a save may have to create others.
    fn changeable_folders(&mut self, folder: &Path) -> Vec<PathBuf> {
        self.needs(folder, !folder.is_dir() || may_change(folder));
        self.folders(folder)
    }

    fn folders(&mut self, folder: &Path) -> Vec<PathBuf> {
        let entries = self.list(folder).unwrap_or_default();
        entries.into_iter().filter(|path| path.is_dir()).collect()
    }

    /// One finding with one command for all files and folders of an aulario without access
    fn closed_to_user(&mut self, folder: &Path) {
        let closed = std::mem::take(&mut self.closed);
        let Some(first) = closed.first() else { return };
        let text = format!(
            "{} may not change {} here, so menus cannot be saved; the first is {}",
            self.user.name,
            counted(closed.len(), "path"),
            first.display()
        );
        let (group, path) = (&self.user.group, quoted(folder));
        let fix = is_within(folder, self.data_dir)
            .then(|| format!("sudo chgrp -R {group} {path} && sudo chmod -R g+rwX {path}"));
        self.report.add_with_fix(Level::Error, folder.display(), text, fix);
    }

    fn types(&mut self, path: &Path, types: &MenuTypes) {
        let mut ids: Vec<&str> = types.ids().collect();
        match types.entries() - ids.len() {
            0 => {}
            1 => self.add(Level::Warning, path, "1 entry has no usable id and is not shown"),
            count => {
                let text = format!("{count} entries have no usable id and are not shown");
                self.add(Level::Warning, path, text);
            }
        }
        ids.sort_unstable();
        for same in ids.chunk_by(|a, b| a == b).filter(|same| same.len() > 1) {
            let text =
                format!("duplicate id {} ({} entries); the first is used", same[0], same.len());
            self.add(Level::Warning, path, text);
        }
    }

    /// Checks the folder of a day and returns the ids of the types that it has menus of.
    fn day(&mut self, month: &str, folder: &Path) -> Vec<String> {
        if layout::date(month, &name(folder)).is_none() {
            self.add(Level::Hint, folder, "is not a day; expected YYYY-MM/DD");
            return Vec::new();
        }
        self.days += 1;
        self.report.progress(self.days, "days");
        self.list(folder);
        self.needs(folder, may_change(folder));
        let absence = "the day has no menus until the file is back";
        let day = self.document::<Day>(&folder.join(layout::DAY), absence);
        day.map(|day| day.ids().map(str::to_owned).collect()).unwrap_or_default()
    }

    /// Reads a data file; an absent file is an empty document, which has the effect `absence`.
    fn document<D: Document>(&mut self, path: &Path, absence: &str) -> Option<D> {
        let read = store::data_file::read(path);
        if !self.needs(path, !read.as_ref().is_err_and(is_denied)) {
            return None;
        }
        let fault = |error| self.fault(path, &error, Some(absence));
        let (value, snapshot) = read.map_err(fault).ok()?;
        if let Some(snapshot) = &snapshot {
            if value.is_none() {
                let text = "is empty, as after an interrupted save by PHP; it counts as absent";
                self.add(Level::Warning, path, text);
            }
            let replacement = || {
                let folder = Ownership::from(&fs::metadata(path.parent()?).ok()?);
                let old = snapshot.access();
                let acl = snapshot.attributes().ok()?.acl(old.mode)?;
                access::of_replacement(old, &acl, folder, &self.user.credentials)
            };
            self.needs(path, replacement().is_some());
        }
        store::document(path, value).map_err(|error| self.fault(path, &error, Some(absence))).ok()
    }

    /// The entries of `folder`, sorted, without temporary files; those of killed writers are reported.
    /// Empty if the folder does not exist, `None` if it cannot be listed.
    fn list(&mut self, folder: &Path) -> Option<Vec<PathBuf>> {
        match fs::read_dir(folder) {
            Ok(entries) => {
                let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
                paths.sort();
                let (leftovers, paths): (Vec<_>, Vec<_>) =
                    paths.into_iter().partition(|path| layout::is_temporary(&name(path)));
                for path in leftovers.iter().filter(|path| !is_new(path)) {
                    let text = "was left by a process that was killed, and can be removed";
                    let fix = format!("sudo rm -d {}", quoted(path));
                    self.report.add_with_fix(Level::Warning, path.display(), text, fix);
                }
                Some(paths)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Some(Vec::new()),
            Err(error) => {
                let name = &self.user.name;
                // A request opens the files in it by their names.
                let (level, effect) = match may_access(folder, Access::EXEC_OK) {
                    Ok(()) => (Level::Warning, "so it is not checked"),
                    Err(_) => (Level::Error, "nor open files in it, so requests fail"),
                };
                let text = format!("{name} cannot list this folder ({error}), {effect}");
                let fix = self.user.grant(folder, "rx", self.data_dir);
                self.report.add_with_fix(level, folder.display(), text, fix);
                None
            }
        }
    }

    /// Reports a file that cannot be used. `absence` is the effect of moving it away, which is never the
    /// advice for a configuration: without it the aulario would not exist.
    fn fault(&mut self, path: &Path, error: &store::Error, absence: Option<&str>) {
        let (reason, is_damaged) = reason(error);
        let what = if absence.is_some() { "it" } else { "this aulario" };
        let mut text = format!("{reason}, so requests for {what} fail");
        let mut fix = None;
        if is_damaged {
            text += "; restore it from a backup";
            if let Some(absence) = absence {
                text += &format!(", or move it away: then {absence}");
                let from = quoted(path);
                // `--backup` keeps a file that was moved away earlier; with `-T` nothing is moved into a folder.
                fix = Some(format!("sudo mv -T --backup=numbered {from} {from}.broken"));
            }
        } else if is_denied(error) {
            fix = self.user.grant(path, "r", self.data_dir);
        }
        self.report.add_with_fix(Level::Error, path.display(), text, fix);
    }

    fn add(&mut self, level: Level, path: &Path, text: impl ToString) {
        self.report.add(level, path.display(), text);
    }
}

fn name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

fn is_denied(error: &store::Error) -> bool {
    matches!(error, store::Error::Fault { source, .. }
        if source.kind() == Some(ErrorKind::PermissionDenied))
}

/// What is wrong with a file, without its path, and whether its content is the problem, not access to it
fn reason(error: &store::Error) -> (String, bool) {
    match error {
        store::Error::Unusable { why, .. } => (format!("is damaged ({why})"), true),
        store::Error::Fault { source: Fault::SymbolicLink, .. } => {
            let advice = "replace it with a copy of its target";
            (format!("is a symbolic link, which is not followed ({advice})"), false)
        }
        store::Error::Fault { source, .. } => {
            let is_damaged = matches!(source, Fault::NotRegular | Fault::TooLarge);
            (format!("cannot be read ({source})"), is_damaged)
        }
        other => (other.to_string(), false),
    }
}

/// Whether a writer may still use the temporary file at `path`.
fn is_new(path: &Path) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    modified.ok().and_then(|time| time.elapsed().ok()).is_some_and(|age| age < WRITE_TIME)
}

/// Whether files can be created in `folder`, according to its mode.
fn may_change(folder: &Path) -> bool {
    may_access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}
