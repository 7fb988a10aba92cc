//! Checks every centre and aulario in the data folder.

use std::borrow::Cow;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{Access, access};
use rustix::process::geteuid;
use rustix::thread::gettid;

use super::file_system;
use super::folders::Survey;
use super::report::{Level, counted};
use crate::admin::accounts::owner_of;
use crate::admin::guide;
use crate::config::DATA_DIR;
use crate::model::Id;
use crate::store::{self, Aulario, layout};
use crate::sys::shared_file::{Fault, MAX_SIZE};

/// The maximum size of a file that is read, in bytes: a parsed file needs up to 64 times as much. A day has a
/// few hundred bytes.
const MAX_READ: u64 = 1024 * 1024;

/// The entries of a folder that are looked at: a school has some hundred aularios.
const MAX_ENTRIES: usize = 10_000;

impl Survey<'_> {
    /// Checks the data folder and what it contains, as far as time and room allow.
    pub fn data(&mut self) {
        let centros = layout::centres(&self.config.data_dir);
        if !self.reaches(&centros, "the data folder, which contains Centros", &DATA_DIR) {
            return;
        }
        file_system::check(&centros, true, self.report);
        self.capabilities(&centros);
        for centre in self.folders(&centros) {
            self.centre(&centre);
        }
        let (aularios, days) = (counted(self.aularios, "aulario"), counted(self.days, "saved day"));
        self.add(Level::Ok, &centros, format!("{aularios} and {days} checked"));
        if !self.goes_on() {
            let text = "not everything was checked: the time was over, or there are too many errors; fix these, and \
                        run the check again";
            self.add(Level::Warning, &centros, text);
        }
    }

    /// Whether there is time, and room for another error.
    pub fn goes_on(&self) -> bool {
        Instant::now() < self.end && self.report.has_room()
    }

    fn centre(&mut self, centre: &Path) {
        let Some(centro) = self.id(centre, &name(centre), "session") else { return };
        if !self.enters(centre) {
            return;
        }
        let folder = layout::aularios(centre);
        let mut has_all_folders = true;
        for path in self.list(&folder) {
            let name = name(&path);
            let Some(id) = layout::configured(&name) else {
                if path.is_dir() && !folder.join(format!("{name}.json")).exists() {
                    let text = "is not used: its configuration file, of the same name with .json, is missing";
                    self.add(Level::Hint, &path, text);
                }
                continue;
            };
            let Some(id) = self.id(&path, id, "request") else { continue };
            if !self.goes_on() || !self.may_read(&path) {
                continue;
            }
            self.aularios += 1;
            let aulario = Aulario::find(&self.config.data_dir, &centro, &id);
            let aulario = aulario.map_err(|error| self.fault(&path, &error)).ok().flatten();
            self.sharing(&path, &centro, aulario.as_ref());
            // An aulario that shows the menus of another one does not use its own folder.
            if !aulario.is_some_and(|aulario| aulario.is_shared) {
                match folder.join(id.as_str()) {
                    data if data.is_dir() => self.aulario(&data),
                    _ => has_all_folders = false,
                }
            }
        }
        if !has_all_folders {
            let effect = "the first save in an aulario without a folder fails";
            self.done(try_to_write(&folder), Level::Error, &folder, "write here", effect);
        }
    }

    /// The id in the name of `path`, which a `user` of the API needs.
    fn id(&mut self, path: &Path, name: &str, user: &str) -> Option<Id> {
        let id = Id::parse(name).ok();
        if id.is_none() {
            let expected = Id::EXPECTED;
            let text = format!("is not a valid id, so no {user} can use it: it must be {expected}");
            self.add(Level::Warning, path, text);
        }
        id
    }

    /// Warns about a `shared_comedor_from` that has another effect than it says.
    fn sharing(&mut self, path: &Path, centro: &Id, aulario: Option<&Aulario>) {
        let Some(aulario) = aulario else { return };
        let Some(source) = &aulario.shared_comedor_from else { return };
        let is_chain = || {
            let source = Id::parse(source).ok()?;
            Some(Aulario::find(&self.config.data_dir, centro, &source).ok()??.is_shared)
        };
        let problem = match aulario.is_shared {
            false => "is not another aulario of this centre; the aulario shows its own menus",
            true if is_chain() == Some(true) => {
                "has shared_comedor_from too; that setting is ignored here"
            }
            true => return,
        };
        let text = format!("shared_comedor_from is `{source}`, which {problem}");
        self.add(Level::Warning, path, text);
    }

    pub fn folders(&mut self, folder: &Path) -> Vec<PathBuf> {
        self.list(folder).into_iter().filter(|path| path.is_dir()).collect()
    }

    /// Whether the user can open what is in `folder`. Each folder is tested before those in it, so
    /// that the finding names the closed one.
    pub fn enters(&mut self, folder: &Path) -> bool {
        let entered = access(folder, Access::EXEC_OK).map_err(io::Error::from);
        self.done(entered, Level::Error, folder, "enter this folder", "requests fail").is_some()
    }

    /// The entries of `folder`, sorted.
    fn list(&mut self, folder: &Path) -> Vec<PathBuf> {
        if !self.goes_on() || !self.enters(folder) {
            return Vec::new();
        }
        let (what, effect) = ("list this folder", "it is not checked");
        let listed = self.done(fs::read_dir(folder), Level::Warning, folder, what, effect);
        let entries = listed.into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.take(MAX_ENTRIES + 1).map(|entry| entry.path()).collect();
        if paths.len() > MAX_ENTRIES {
            let text = format!("has more than {MAX_ENTRIES} entries; the others were not checked");
            self.add(Level::Warning, folder, text);
        }
        paths.sort();
        paths
    }

    /// The result, or reports that the user cannot do `what` with `folder`, with this `effect`. An absent folder
    /// is correct.
    fn done<T>(
        &mut self,
        result: io::Result<T>,
        level: Level,
        folder: &Path,
        what: &str,
        effect: &str,
    ) -> Option<T> {
        if let Err(error) = &result
            && error.kind() != ErrorKind::NotFound
        {
            let text = format!("{} cannot {what} ({error}), so {effect}", self.user);
            self.problem(level, folder, text, guide::help(error));
        }
        result.ok()
    }

    /// Whether the file at `path` is small enough to be read, or too large for requests too.
    pub fn may_read(&mut self, path: &Path) -> bool {
        let size = fs::symlink_metadata(path).map_or(0, |file| file.len());
        let is_large = (MAX_READ + 1..=MAX_SIZE).contains(&size);
        if is_large {
            self.add(Level::Warning, path, "is larger than 1 MiB and was not checked");
        }
        !is_large
    }

    /// Reports a file that cannot be used.
    pub fn fault(&mut self, path: &Path, error: &store::Error) {
        let (reason, help) = match error {
            store::Error::Unusable { why, .. } => (format!("is damaged ({why})"), guide::DAMAGED),
            store::Error::Fault { source, .. } => {
                let help = match source {
                    Fault::Io(error) => guide::help(error),
                    _ => guide::DAMAGED,
                };
                (format!("cannot be read ({source})"), help)
            }
            other => (other.to_string(), ""),
        };
        self.problem(Level::Error, path, format!("{reason}, so requests for it fail"), help);
    }

    /// Adds a finding about a file, with its owner and the heading that has the command.
    pub fn problem(&mut self, level: Level, path: &Path, text: impl ToString, help: &str) {
        self.add(level, path, text.to_string() + &owner_of(path) + help);
    }

    pub fn add(&mut self, level: Level, path: &Path, text: impl ToString) {
        self.report.add(level, path.display(), text);
    }
}

pub fn name(path: &Path) -> Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

/// Creates a file and removes it. It is named like a temporary file, with the number of this thread: a FastCGI
/// process may run two checks. Root only asks: a link in the data may lead anywhere.
pub fn try_to_write(folder: &Path) -> io::Result<()> {
    if geteuid().is_root() {
        return Ok(access(folder, Access::WRITE_OK)?);
    }
    let path = layout::temporary(&folder.join(format!("comedor.check.{}", gettid())));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    let written = file.write_all(b"comedor check\n").and_then(|()| file.sync_all());
    fs::remove_file(&path)?;
    written
}
