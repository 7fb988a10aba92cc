//! Checks every centre, aulario, menu type and day in the data folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Access, access as may_access};
use rustix::io::Errno;

use super::reach::{entries, try_to_write};
use super::report::{Level, Report, counted};
use super::user::{Command, User};
use crate::admin::accounts::user_name;
use crate::model::{Day, Id, MenuTypes};
use crate::php::json::Value;
use crate::store::access::{self, Ownership};
use crate::store::{self, Aulario, layout};
use crate::sys::shared_file::Fault;

/// A writer may still use a temporary file younger than this: it waits at most 10 s for a lock.
const WRITE_TIME: Duration = Duration::from_secs(60);

/// The data of a school takes a second. A disk may need longer for files that are not in memory; the process
/// that waits for the findings waits at most for [`PATIENCE`](crate::admin::inferred::PATIENCE).
const TIMEOUT: Duration = Duration::from_secs(10);

/// Reads the whole data folder and adds the findings to `report`.
pub fn check(data_dir: &Path, user: &User, report: &mut Report) {
    let end = Instant::now() + TIMEOUT;
    let (closed, is_late) = (Vec::new(), false);
    let mut survey = Survey { data_dir, user, report, closed, days: 0, aularios: 0, end, is_late };
    let centros = layout::centres(data_dir);
    for centre in survey.folders(&centros) {
        survey.centre(&centre);
    }
    let (aularios, days) = (counted(survey.aularios, "aulario"), counted(survey.days, "saved day"));
    if survey.is_late {
        let text = "not everything was checked in 10 seconds; run the check again";
        survey.add(Level::Warning, &centros, text);
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
    days: usize,
    aularios: usize,
    end: Instant,
    is_late: bool,
}

/// The aularios of a centre by id, each with its configuration file; `None` if that is damaged
type Aularios<'p> = BTreeMap<String, (&'p Path, Option<Aulario>)>;

impl Survey<'_> {
    fn centre(&mut self, centre: &Path) {
        let Ok(centro) = Id::parse(&name(centre)) else {
            return self.add(Level::Warning, centre, not_an_id("session"));
        };
        if !self.enters(centre) {
            return;
        }
        let folder = layout::aularios(centre);
        let entries = self.list(&folder).into_iter();
        let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
        let aularios = self.configured(&centro, &files);
        for folder in folders.iter().filter(|folder| !aularios.contains_key(&*name(folder))) {
            let text =
                "is not used: its configuration file, of the same name with .json, is missing";
            self.add(Level::Hint, folder, text);
        }
        self.sharing(&aularios);
        // An aulario that shows the menus of another one does not use its own folder.
        let is_own =
            |aulario: &Option<Aulario>| !aulario.as_ref().is_some_and(|aulario| aulario.is_shared);
        let own = aularios.iter().filter(|(_, (_, aulario))| is_own(aulario)).map(|(id, _)| id);
        let (present, missing): (Vec<&String>, Vec<_>) =
            own.partition(|id| folder.join(id).is_dir());
        for id in present {
            self.aulario(&folder.join(id));
        }
        if !missing.is_empty() {
            let missing: Vec<_> = missing.into_iter().map(String::as_str).collect();
            let missing = missing.join(", ");
            let effect = format!("the first save fails for aularios without a folder: {missing}");
            self.check_write(&folder, &effect);
        }
    }

    /// Reads the configuration files among `files`.
    fn configured<'p>(&mut self, centro: &Id, files: &'p [PathBuf]) -> Aularios<'p> {
        let mut aularios = Aularios::new();
        for path in files {
            let name = name(path);
            let Some(id) = layout::configured(&name) else { continue };
            let Ok(id) = Id::parse(id) else {
                self.add(Level::Warning, path, not_an_id("request"));
                continue;
            };
            self.aularios += 1;
            let aulario = Aulario::find(self.data_dir, centro, &id).unwrap_or_else(|error| {
                self.fault(path, &error, None);
                None
            });
            aularios.insert(id.as_str().to_owned(), (path, aulario));
        }
        aularios
    }

    /// Warns about each `shared_comedor_from` that has another effect than it says.
    fn sharing(&mut self, aularios: &Aularios) {
        let source_of = |id: &str| aularios.get(id)?.1.as_ref()?.shared_comedor_from.as_ref();
        for (path, aulario) in aularios.values() {
            let Some(aulario) = aulario else { continue };
            let Some(source) = &aulario.shared_comedor_from else { continue };
            let problem = if !aulario.is_shared {
                "is not another aulario of this centre; the aulario shows its own menus"
            } else if source_of(source).is_some_and(|next| next != source) {
                "has shared_comedor_from too; that setting is ignored here"
            } else {
                continue;
            };
            let text = format!("shared_comedor_from is `{source}`, which {problem}");
            self.add(Level::Warning, path, text);
        }
    }

    /// The types and days of the aulario whose data is in `folder`.
    fn aulario(&mut self, folder: &Path) {
        if !self.enters(folder) {
            return;
        }
        if self.needs(folder, may_change(folder)) {
            self.check_write(folder, "menus cannot be saved");
        }
        self.lock(&folder.join(layout::LOCK));
        self.list(folder);
        let types = folder.join(layout::TYPES);
        let absence = "the three default types apply, and menus of other types are not shown until \
                       the file is back";
        let known = self.document(&types, absence, MenuTypes::of_file);
        let mut ids = BTreeSet::new();
        let entries = (1..).zip(known.iter().flat_map(MenuTypes::entries));
        let useless = entries.filter(|(_, id)| !id.clone().is_some_and(|id| ids.insert(id)));
        let useless: Vec<_> = useless.map(|(number, _): (usize, _)| number.to_string()).collect();
        if !useless.is_empty() {
            let text = format!(
                "entries with an invalid or duplicate id, which no request can use: {}",
                useless.join(", ")
            );
            self.add(Level::Warning, &types, text);
        }
        let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
        for month in self.changeable_folders(&folder.join(layout::MONTHS)) {
            for day in self.changeable_folders(&month) {
                let Some(day) = self.day(&name(&month), &day) else { continue };
                let Some(types) = &known else { continue };
                for id in day.ids().filter(|id| types.find(id).ok().as_deref() != Some(id)) {
                    *unknown.entry(id.to_owned()).or_default() += 1;
                }
            }
        }
        for (id, menus) in unknown {
            let text = format!("{} of type {id}, which was deleted", counted(menus, "menu"));
            self.add(Level::Hint, folder, text);
        }
        self.closed_to_user(folder);
    }

    /// Notes that a save needs `path`, which the user may use or not.
    fn needs(&mut self, path: &Path, is_allowed: bool) -> bool {
        self.closed.extend((!is_allowed).then(|| path.to_owned()));
        is_allowed
    }

    /// Checks that the user can create files in `folder`. Otherwise it has this `effect`.
    fn check_write(&mut self, folder: &Path, effect: &str) {
        if let Err(error) = try_to_write(folder) {
            let text = format!(
                "{} cannot write here ({error}), so {effect}{}",
                self.user.name,
                owner_of(folder)
            );
            let fix = Command::permit(folder, "rwx");
            self.report.add_with_fix(Level::Error, folder.display(), text, fix);
        }
    }

    fn lock(&mut self, path: &Path) {
        let Ok(metadata) = fs::symlink_metadata(path) else { return };
        if metadata.is_file() {
            self.needs(path, may_access(path, Access::READ_OK | Access::WRITE_OK).is_ok());
            return;
        }
        let text = "is not a regular file, so menus cannot be saved; move it away, and the next save creates it";
        let fix = move_away(path);
        self.report.add_with_fix(Level::Error, path.display(), text, fix);
    }

    /// The folders in `folder`, in which a save may have to create others.
    fn changeable_folders(&mut self, folder: &Path) -> Vec<PathBuf> {
        self.needs(folder, !folder.is_dir() || may_change(folder));
        self.folders(folder)
    }

    fn folders(&mut self, folder: &Path) -> Vec<PathBuf> {
        self.list(folder).into_iter().filter(|path| path.is_dir()).collect()
    }

    /// One finding with one command for all files and folders of an aulario without access
    fn closed_to_user(&mut self, folder: &Path) {
        let closed = std::mem::take(&mut self.closed);
        let Some(first) = closed.first() else { return };
        let text = format!(
            "{} cannot write to {} here, so menus cannot be saved; the first is {}{}",
            self.user.name,
            counted(closed.len(), "path"),
            first.display(),
            owner_of(first)
        );
        let fix = Command::permit(first, "rwX");
        self.report.add_with_fix(Level::Error, folder.display(), text, fix);
    }

    /// Checks the folder of a day and reads its menus.
    fn day(&mut self, month: &str, folder: &Path) -> Option<Day> {
        if layout::date(month, &name(folder)).is_none() {
            self.add(Level::Hint, folder, "is not the folder of a day; expected YYYY-MM/DD");
            return None;
        }
        self.days += 1;
        self.list(folder);
        self.needs(folder, may_change(folder));
        let absence = "the day has no menus until the file is back";
        self.document(&folder.join(layout::DAY), absence, Day::complete)
    }

    /// Reads a data file; an absent file is an empty document, which has the effect `absence`.
    fn document<D>(
        &mut self,
        path: &Path,
        absence: &str,
        parse: fn(Option<Value>) -> Result<D, String>,
    ) -> Option<D> {
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
            let may_write = may_access(path, Access::WRITE_OK).is_ok();
            self.needs(path, may_write && replacement().is_some());
        }
        let parsed = parse(value).map_err(|why| store::Error::unusable(path, why));
        parsed.map_err(|error| self.fault(path, &error, Some(absence))).ok()
    }

    /// Whether the user can open what is in `folder`, if it exists. Each folder is tested before those in
    /// it, so that the finding names the closed one.
    fn enters(&mut self, folder: &Path) -> bool {
        let Err(error) = may_access(folder, Access::EXEC_OK) else { return true };
        if error == Errno::NOENT {
            return true;
        }
        let text = format!(
            "{} cannot enter this folder ({error}), so requests fail{}",
            self.user.name,
            owner_of(folder)
        );
        let fix = Command::permit(folder, "rx");
        self.report.add_with_fix(Level::Error, folder.display(), text, fix);
        false
    }

    /// The entries of `folder`, sorted, without temporary files; those of killed writers are reported.
    fn list(&mut self, folder: &Path) -> Vec<PathBuf> {
        self.is_late |= Instant::now() > self.end;
        if self.is_late || !self.enters(folder) {
            return Vec::new();
        }
        if let Err(error) = fs::read_dir(folder)
            && error.kind() != ErrorKind::NotFound
        {
            let name = &self.user.name;
            let text = format!("{name} cannot list this folder ({error}), so it is not checked");
            let fix = Command::permit(folder, "r");
            self.report.add_with_fix(Level::Warning, folder.display(), text, fix);
        }
        let mut paths = entries(folder);
        paths.retain(|path| {
            // A writer creates no folders under such names.
            let is_temporary = layout::is_temporary(&name(path)) && !path.is_dir();
            if is_temporary && !is_new(path) {
                let text = "is left over from a killed process, and can be removed";
                let fix = Command::on(path, |path| format!("rm {path}"));
                self.report.add_with_fix(Level::Warning, path.display(), text, fix);
            }
            !is_temporary
        });
        paths
    }

    /// Reports a file that cannot be used. `absence` is the effect of moving it away, which is never the
    /// advice for a configuration: without it the aulario would not exist.
    fn fault(&mut self, path: &Path, error: &store::Error, absence: Option<&str>) {
        // What is wrong, without the path, and whether it is the content, not access to it
        let (reason, is_damaged) = match error {
            store::Error::Unusable { why, .. } => (format!("is damaged ({why})"), true),
            store::Error::Fault { source, .. } => {
                let is_damaged = matches!(source, Fault::NotRegular | Fault::TooLarge);
                (format!("cannot be read ({source})"), is_damaged)
            }
            other => (other.to_string(), false),
        };
        let what = if absence.is_some() { "it" } else { "this aulario" };
        let mut text = format!("{reason}, so requests for {what} fail");
        let mut fix = None;
        if is_damaged {
            text += "; restore it from a backup";
            if let Some(absence) = absence {
                text += &format!(", or move it away: then {absence}");
                fix = move_away(path);
            }
        } else if is_denied(error) {
            text += &owner_of(path);
            fix = Command::permit(path, "r");
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
    matches!(error, store::Error::Fault { source: Fault::Io(error), .. }
        if error.kind() == ErrorKind::PermissionDenied)
}

/// `--backup` keeps a file that was moved away earlier; with `-T` nothing is moved into a folder.
fn move_away(path: &Path) -> Option<Command> {
    Command::on(path, |path| format!("mv -T --backup=numbered {path} {path}.broken"))
}

/// Whose `path` is: only that user, or root, can change its permissions.
fn owner_of(path: &Path) -> String {
    let Ok(file) = fs::symlink_metadata(path) else { return String::new() };
    format!("; it belongs to {}, mode {:04o}", user_name(file.uid()), file.mode() & 0o7777)
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
