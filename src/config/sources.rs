//! The values of the settings before they are parsed, and their sources: the environment, and
//! `comedor.conf` in the folder of the executable, else `/etc/comedor/comedor.conf`.
//!
//! The file also works if the program does not get the variables of the web server: suEXEC drops
//! those that are not on its list (Apache's support/suexec.c), rewrite rules rename them to
//! `REDIRECT_…`, and a shell does not have them.

use std::cell::Cell;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use super::{BadValue, Error, SERVICE, Setting, TZ};
use crate::cgi::ACTION;
use crate::sys::environment::environment;
use crate::sys::file_id::FileId;
use crate::sys::shared_file::{self, Fault, names_nothing};
use crate::sys::waits::Waits;

/// Editors and cp truncate a file before they fill it, and some rename it away before they create it. If no
/// settings are in force, an empty or missing file is read again for this time, with these pauses.
pub const EDITOR_TIMEOUT: Duration = Duration::from_millis(250);
const PAUSE: Duration = Duration::from_millis(10);

/// For this time after its stamp, a file may change again without another stamp: FAT stores even seconds.
const RESOLUTION: Duration = Duration::from_secs(2);

/// Where the settings file may be: the first that exists is read. Found once per process: reading the path of the
/// executable takes longer than opening a file.
#[derive(Debug)]
pub struct Files(Vec<Place>);

#[derive(Debug)]
struct Place {
    path: PathBuf,
    /// Whether there was a file for this process, also one that it could not read
    was_seen: Cell<bool>,
}

/// What a file looks like from outside, if it exists and this process may look at it.
#[derive(Debug, PartialEq)]
struct Stamp {
    id: FileId,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Stamp> {
        let metadata = path.metadata().ok()?;
        Some(Stamp {
            id: FileId::of(&metadata),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

/// What the first file that exists looks like from outside, with the number of its place.
#[derive(Debug, PartialEq)]
pub struct Look(Option<(usize, Stamp)>);

impl Look {
    /// Whether the file may have changed again since, without another stamp. With a time in the future, of a wrong clock, it
    /// is read at every look.
    pub fn is_recent(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_secs() as i64);
        self.0.as_ref().is_some_and(|(_, stamp)| {
            let latest = stamp.modified.0.max(stamp.changed.0);
            now - latest <= RESOLUTION.as_secs() as i64
        })
    }
}

impl Files {
    pub fn find() -> Files {
        let executable = std::env::current_exe().ok();
        let beside = executable.map(|path| path.with_file_name("comedor.conf"));
        let of_system = PathBuf::from("/etc/comedor/comedor.conf");
        Files::at(beside.into_iter().chain([of_system]))
    }

    pub(super) fn at(paths: impl IntoIterator<Item = PathBuf>) -> Files {
        let place = |path| Place {
            path,
            was_seen: Cell::new(false),
        };
        Files(paths.into_iter().map(place).collect())
    }

    /// The settings file: the one that exists, else the one that would be created, which is the last one.
    pub fn current(&self) -> &Path {
        let mut paths = self.0.iter().map(|place| place.path.as_path());
        let existing = paths.clone().find(|path| path.exists());
        existing.or(paths.next_back()).expect("a place")
    }

    pub fn look(&self) -> Look {
        let stamp = |(number, place): (usize, &Place)| Some((number, Stamp::of(&place.path)?));
        Look(self.0.iter().enumerate().find_map(stamp))
    }

    /// Reads the first that exists.
    fn read(&self, timeout: Duration) -> Result<Option<File<'_>>, Error> {
        for place in &self.0 {
            if let Some(bytes) = read(place, timeout)? {
                let path = &place.path;
                return Ok(Some(File { path, bytes }));
            }
        }
        Ok(None)
    }
}

/// The settings file and its content.
struct File<'f> {
    path: &'f Path,
    bytes: Vec<u8>,
}

/// The settings that are set. The environment takes precedence over the file. Without `Debug`: a value can
/// contain a password.
#[derive(Default, PartialEq)]
pub struct Settings {
    set: Vec<Set>,
    has_file: bool,
}

/// A setting that is set.
#[derive(PartialEq)]
struct Set {
    setting: &'static Setting,
    value: Vec<u8>,
    source: Source,
}

impl Set {
    /// The variable, if it is a setting
    fn in_environment(name: &[u8], value: &[u8]) -> Option<Set> {
        Some(Set {
            setting: Setting::find(name)?,
            value: value.to_vec(),
            source: Source::Environment,
        })
    }
}

/// Where a setting was set.
#[derive(Debug, PartialEq)]
pub enum Source {
    Environment,
    Line { path: PathBuf, line: usize },
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Source::Environment => f.write_str("the environment"),
            Source::Line { path, line } => write!(f, "{} line {line}", path.display()),
            Source::Default => f.write_str("the default"),
        }
    }
}

/// Why a line of a settings file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadLine {
    /// The file would be a single line: one value, or a comment that hides all settings.
    #[error("a line ends with a carriage return alone; save the file with Unix line ends")]
    CarriageReturn,
    #[error("the file starts with a byte order mark; save it as UTF-8 without one")]
    ByteOrderMark,
    #[error("expected NAME=value")]
    NoEquals,
    #[error("unknown setting `{0}`")]
    Unknown(String),
    #[error("duplicate setting `{name}` (first set in line {first})")]
    Duplicate { name: &'static str, first: usize },
    #[error("the value of {0} is in quotes; remove them")]
    Quoted(&'static str),
}

/// Why the settings file cannot be used now.
#[derive(Debug, thiserror::Error)]
pub enum NoContent {
    #[error("is empty; write a comment line if nothing is to be set")]
    Empty,
    #[error("was deleted; restore it, or write a comment line if nothing is to be set")]
    Deleted,
}

/// `NAME=value`
struct Assignment<'l> {
    setting: &'static Setting,
    value: &'l [u8],
}

impl Assignment<'_> {
    /// Parses a line; `None` if it is blank or a comment, which starts with `#`.
    fn parse(line: &[u8]) -> Result<Option<Assignment<'_>>, BadLine> {
        let line = line.trim_ascii();
        if line.contains(&b'\r') {
            return Err(BadLine::CarriageReturn);
        }
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(None);
        }
        if line.starts_with(b"\xef\xbb\xbf") {
            return Err(BadLine::ByteOrderMark);
        }
        let equals = line.iter().position(|&byte| byte == b'=');
        let equals = equals.ok_or(BadLine::NoEquals)?;
        let name = line[..equals].trim_ascii();
        let value = line[equals + 1..].trim_ascii();
        let unknown = || BadLine::Unknown(String::from_utf8_lossy(name).into_owned());
        let setting = Setting::find(name).ok_or_else(unknown)?;
        if value.starts_with(b"\"") || value.starts_with(b"'") {
            return Err(BadLine::Quoted(setting.name));
        }
        Ok(Some(Assignment { setting, value }))
    }
}

impl Settings {
    /// The environment of this process and the first of the two files that exists. Fails if that is
    /// unreadable or has an invalid line.
    pub fn load(files: &Files) -> Result<Settings, Error> {
        Settings::within(EDITOR_TIMEOUT, files)
    }

    /// The settings, with this timeout for a file that is being saved.
    pub fn within(timeout: Duration, files: &Files) -> Result<Settings, Error> {
        let environment = Environment::of_process();
        let mut settings = Settings {
            set: environment.own,
            has_file: false,
        };
        if let Some(file) = files.read(timeout)? {
            settings = settings.with_file(file.path, &file.bytes)?;
        }
        settings.refuse_others(&environment.of_script)?;
        Ok(settings)
    }

    /// Refuses what is set for the script, if it is not in force: in a `<Location>` it may be meant for another application,
    /// whose requests must not reach the files of this one; in `.htaccess` it is not the administrator's.
    fn refuse_others(&self, of_script: &[Set]) -> Result<(), Error> {
        let is_in_force = |set: &&Set| self.in_force(set.setting) == set.value;
        match of_script.iter().find(|set| !is_in_force(set)) {
            Some(Set { setting, .. }) => Err(Error::OfScript(setting)),
            None => Ok(()),
        }
    }

    /// Adds the `NAME=value` lines of a file.
    pub fn with_file(mut self, path: &Path, bytes: &[u8]) -> Result<Settings, Error> {
        self.has_file = true;
        for (line, text) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
            self.add_line(path, line, text)
                .map_err(|problem| Error::Line {
                    path: path.to_owned(),
                    line,
                    problem,
                })?;
        }
        Ok(self)
    }

    fn add_line(&mut self, path: &Path, line: usize, text: &[u8]) -> Result<(), BadLine> {
        let Some(Assignment { setting, value }) = Assignment::parse(text)? else {
            return Ok(());
        };
        if let Some(first) = self.line_of(setting) {
            let name = setting.name;
            return Err(BadLine::Duplicate { name, first });
        }
        self.set.push(Set {
            setting,
            value: value.to_vec(),
            source: Source::Line {
                path: path.to_owned(),
                line,
            },
        });
        Ok(())
    }

    /// The line that sets `setting`. A variable of the environment may have the same name.
    fn line_of(&self, setting: &Setting) -> Option<usize> {
        self.set.iter().find_map(|set| match set.source {
            Source::Line { line, .. } if set.setting.name == setting.name => Some(line),
            _ => None,
        })
    }

    pub fn refuse_control_characters(&self) -> Result<(), Error> {
        let has = |value: &[u8]| value.iter().any(u8::is_ascii_control);
        match self.set.iter().find(|set| has(&set.value)) {
            Some(set) => Err(Error::Setting {
                setting: set.setting,
                problem: BadValue::ControlCharacter,
            }),
            None => Ok(()),
        }
    }

    fn find(&self, setting: &Setting) -> Option<&Set> {
        self.set.iter().find(|set| set.setting.name == setting.name)
    }

    /// Whether there is neither a file nor a variable `COMEDOR_…`. `TZ` is a variable of many programs.
    pub fn are_defaults(&self) -> bool {
        !self.has_file && self.set.iter().all(|set| set.setting.name == TZ.name)
    }

    pub fn get(&self, setting: &Setting) -> Option<&[u8]> {
        self.find(setting).map(|set| set.value.as_slice())
    }

    pub fn source(&self, setting: &Setting) -> &Source {
        self.find(setting)
            .map_or(&Source::Default, |set| &set.source)
    }

    /// The value of `setting`, else its default.
    pub fn value(&self, setting: &'static Setting) -> &[u8] {
        self.get(setting).unwrap_or(setting.default.as_bytes())
    }

    /// The value of `setting`, else its default, with the name of the service in place of `<service>`.
    pub fn in_force(&self, setting: &'static Setting) -> Vec<u8> {
        match self.get(setting) {
            Some(value) => value.to_vec(),
            None => {
                let service = String::from_utf8_lossy(self.value(&SERVICE));
                setting.default.replace("<service>", &service).into_bytes()
            }
        }
    }

    /// Parses the value of `setting`, else its default. The error of `parse` is what the value must be.
    pub fn parse<T>(
        &self,
        setting: &'static Setting,
        parse: impl FnOnce(&str) -> Result<T, &'static str>,
    ) -> Result<T, Error> {
        self.parse_bytes(setting, |value| {
            parse(str::from_utf8(value).map_err(|_| "valid UTF-8")?)
        })
    }

    /// The same for a value that may not be UTF-8.
    pub fn parse_bytes<T>(
        &self,
        setting: &'static Setting,
        parse: impl FnOnce(&[u8]) -> Result<T, &'static str>,
    ) -> Result<T, Error> {
        parse(self.value(setting)).map_err(|expected| Error::Setting {
            setting,
            problem: BadValue::Unexpected(expected),
        })
    }
}

/// The settings in the environment of this process. The first of duplicates counts.
struct Environment {
    own: Vec<Set>,
    /// What is set for the script, if Apache runs the program by the `Action` of apache.conf.example: an internal redirect
    /// gives it the prefix `REDIRECT_` (http_request.c, `rename_original_env`). It can come from any `.htaccess`. `TZ` is
    /// left out: applications set it for PHP.
    of_script: Vec<Set>,
}

impl Environment {
    fn of_process() -> Environment {
        let mut is_action = false;
        let mut own = Vec::new();
        let mut of_script = Vec::new();
        for (name, value) in environment() {
            match name.strip_prefix(b"REDIRECT_") {
                Some(b"HANDLER") => is_action = value == ACTION,
                Some(name) => {
                    let name = before_redirects(name);
                    if name.starts_with(b"COMEDOR_") {
                        of_script.extend(Set::in_environment(name, value));
                    }
                }
                None => own.extend(Set::in_environment(name, value)),
            }
        }
        if !is_action {
            of_script.clear();
        }
        Environment { own, of_script }
    }
}

/// The name that a variable had before all internal redirects. A rewrite rule of `.htaccess` can make one before `Action`
/// does.
fn before_redirects(mut name: &[u8]) -> &[u8] {
    while let Some(before) = name.strip_prefix(b"REDIRECT_") {
        name = before;
    }
    name
}

/// The content of the settings file at this place; `None` if it does not exist and never did. Symbolic links are
/// followed: only the administrator can create it.
fn read(place: &Place, timeout: Duration) -> Result<Option<Vec<u8>>, Error> {
    let Place { path, was_seen } = place;
    // A request that finds the file needs no time, which costs 500 instructions with musl.
    let mut deadline = None;
    loop {
        let problem = match shared_file::read_followed(path, Waits::ALWAYS) {
            Err(Fault::Io(error)) if names_nothing(&error) => {
                if !was_seen.get() {
                    return Ok(None);
                }
                NoContent::Deleted
            }
            Ok(file) => {
                was_seen.set(true);
                if !file.bytes.is_empty() {
                    return Ok(Some(file.bytes));
                }
                NoContent::Empty
            }
            Err(fault) => {
                // The fault does not say it: a folder of the path may deny access, or file descriptors lack.
                was_seen.set(was_seen.get() || path.symlink_metadata().is_ok());
                return Err(Error::Unreadable {
                    path: path.to_owned(),
                    fault,
                });
            }
        };
        let now = Instant::now();
        if now >= *deadline.get_or_insert(now + timeout) {
            return Err(Error::BeingSaved {
                path: path.to_owned(),
                problem,
            });
        }
        sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_defaults_without_a_file_and_without_a_variable_but_tz() {
        let variable = |setting| Settings {
            set: vec![Set {
                setting,
                value: b"x".to_vec(),
                source: Source::Environment,
            }],
            has_file: false,
        };
        let file = Settings::default().with_file(Path::new("file"), b"# Nothing\n");
        for (settings, are_defaults) in [
            (Settings::default(), true),
            (variable(&TZ), true),
            (variable(&SERVICE), false),
            (file.unwrap(), false),
        ] {
            assert_eq!(settings.are_defaults(), are_defaults);
        }
    }

    /// A file that cannot be read is an error: the defaults name another service and other folders.
    #[test]
    fn without_a_settings_file_the_defaults_apply_and_an_unreadable_one_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let is_loop = folder.path().join("loop");
        std::os::unix::fs::symlink(&is_loop, &is_loop).unwrap();
        let load = |beside_executable: &Path| {
            let paths = [beside_executable.to_owned(), file.join("comedor.conf")];
            Settings::load(&Files::at(paths))
        };
        let absent = load(&folder.path().join("no/comedor.conf")).unwrap();
        assert!(!absent.has_file);
        assert!(matches!(load(&is_loop), Err(Error::Unreadable { .. })));
    }

    #[test]
    fn a_setting_for_the_script_may_repeat_the_default() {
        let file = b"COMEDOR_SERVICE=entreaulas\n";
        let settings = Settings::default()
            .with_file(Path::new("file"), file)
            .unwrap();
        for (name, value, is_refused) in [
            ("COMEDOR_DATA_DIR", "/DATA/entreaulas", false),
            ("COMEDOR_DATA_DIR", "/DATA/service", true),
            ("COMEDOR_ACCESS", "centre", false),
            ("COMEDOR_ACCESS", "listed", true),
        ] {
            let set = Set::in_environment(name.as_bytes(), value.as_bytes()).unwrap();
            let outcome = settings.refuse_others(&[set]);
            assert_eq!(outcome.is_err(), is_refused, "{name}={value}");
        }
    }
}
