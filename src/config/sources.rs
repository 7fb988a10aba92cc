//! The values of the settings before they are parsed, and their sources: the environment, and
//! `comedor.conf` in the folder of the executable, else `/etc/comedor/comedor.conf`.
//!
//! The file also works if the program does not get the variables of the web server: suEXEC drops
//! those that are not on its list (Apache's support/suexec.c), rewrite rules rename them to
//! `REDIRECT_…`, and a shell does not have them.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{BadValue, Error, Setting, TZ};
use crate::cgi::ACTION;
use crate::sys::environment::environment;
use crate::sys::scoreboard;
use crate::sys::shared_file::{self, Fault};
use crate::sys::waits::Waits;

/// Editors and cp truncate a file before they fill it, and some rename it away before they create it. If no
/// settings are in force, an empty or missing file is read again for this time, with these pauses.
const EDITOR_TIMEOUT: Duration = Duration::from_millis(250);
const PAUSE: Duration = Duration::from_millis(10);

/// Where the settings file may be: the first that exists is read. Found once per process: reading the path of the
/// executable takes longer than opening a file.
#[derive(Debug)]
pub struct Files {
    beside_executable: Option<PathBuf>,
    of_system: PathBuf,
}

impl Files {
    pub fn find() -> Files {
        let executable = std::env::current_exe().ok();
        Files {
            beside_executable: executable.map(|path| path.with_file_name("comedor.conf")),
            of_system: PathBuf::from("/etc/comedor/comedor.conf"),
        }
    }

    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.beside_executable.iter().chain([&self.of_system])
    }

    /// The settings file: the one that exists, else the one that would be created.
    pub fn current(&self) -> &Path {
        let existing = self.paths().find(|path| path.exists());
        existing.unwrap_or(&self.of_system)
    }

    /// Reads the first that exists.
    fn read(&self, timeout: Duration) -> Result<Option<File<'_>>, Error> {
        // Whether this process, or another worker of it, has seen the file there
        for (path, was_seen) in self.paths().zip(&scoreboard::shared_flags().has_seen) {
            if let Some(bytes) = read(path, was_seen, timeout)? {
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
#[derive(Default)]
pub struct Settings {
    set: Vec<Set>,
    has_file: bool,
}

/// A setting that is set.
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
#[derive(Debug)]
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
    #[error("was deleted; restore it, or restart this process")]
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
        let settings = Settings {
            set: set_in_environment(),
            has_file: false,
        };
        match files.read(timeout)? {
            Some(file) => settings.with_file(file.path, &file.bytes),
            None => Ok(settings),
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

    /// A number that differs between settings with other values. Of a login too, which `Config` never shows.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for set in &self.set {
            set.setting.name.hash(&mut hasher);
            set.value.hash(&mut hasher);
        }
        hasher.finish()
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
///
/// With the `Action` of apache.conf.example Apache runs the program by an internal redirect, so what is set for the
/// folder of the script has the prefix `REDIRECT_` (http_request.c, `rename_original_env`). It is more specific than what
/// is set for the program.
fn set_in_environment() -> Vec<Set> {
    let mut is_action = false;
    let mut redirected = Vec::new();
    let mut own = Vec::new();
    for (name, value) in environment() {
        match name.strip_prefix(b"REDIRECT_") {
            Some(b"HANDLER") => is_action = value == ACTION,
            Some(name) => redirected.extend(Set::in_environment(name, value)),
            None => own.extend(Set::in_environment(name, value)),
        }
    }
    if is_action {
        redirected.append(&mut own);
        return redirected;
    }
    own
}

/// The content of the settings file at `path`; `None` if it does not exist and never did. Symbolic links are
/// followed: only the administrator can create it.
fn read(path: &Path, was_seen: &AtomicBool, timeout: Duration) -> Result<Option<Vec<u8>>, Error> {
    let deadline = Instant::now() + timeout;
    loop {
        let problem = match shared_file::read_followed(path, Waits::ALWAYS) {
            Ok(file) => {
                was_seen.store(true, Ordering::Relaxed);
                if !file.bytes.is_empty() {
                    return Ok(Some(file.bytes));
                }
                NoContent::Empty
            }
            Err(Fault::Io(error))
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                if !was_seen.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                NoContent::Deleted
            }
            Err(fault) => {
                return Err(Error::Unreadable {
                    path: path.to_owned(),
                    fault,
                });
            }
        };
        if Instant::now() >= deadline {
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

    /// A worker must not keep a password that another one has replaced.
    #[test]
    fn settings_with_another_password_have_another_fingerprint() {
        let fingerprint = |password: &str| {
            let line = format!("COMEDOR_SESSION_DIR=tcp://127.0.0.1?auth={password}\n");
            let settings = Settings::default().with_file(Path::new("file"), line.as_bytes());
            settings.unwrap().fingerprint()
        };
        assert_ne!(fingerprint("old"), fingerprint("new"));
        assert_eq!(fingerprint("old"), fingerprint("old"));
    }

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
            (variable(&super::super::SERVICE), false),
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
            let files = Files {
                beside_executable: Some(beside_executable.to_owned()),
                of_system: file.join("comedor.conf"),
            };
            Settings::load(&files)
        };
        let absent = load(&folder.path().join("no/comedor.conf")).unwrap();
        assert!(!absent.has_file);
        assert!(matches!(load(&is_loop), Err(Error::Unreadable { .. })));
    }
}
