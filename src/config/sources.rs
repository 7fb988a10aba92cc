//! The values of the settings before they are parsed, and their sources: the environment, and
//! `comedor.conf` in the folder of the executable, else `/etc/comedor/comedor.conf`.
//!
//! The file also works if the program does not get the variables of the web server: suEXEC drops
//! those that are not on its list (Apache's support/suexec.c), rewrite rules rename them to
//! `REDIRECT_…`, and a shell does not have them.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Error, Setting, invalid};
use crate::sys::environment::environment;
use crate::sys::file_id::FileId;
use crate::sys::lock::{Pause, Retries};
use crate::sys::scoreboard;
use crate::sys::shared_file::{self, Fault};

/// Editors and cp truncate a file before they fill it, and some rename it away before they create it. If no
/// settings are in force, an empty or missing file is read again for this time, with these pauses.
const EDITOR_TIMEOUT: Duration = Duration::from_millis(250);
const PAUSE: Duration = Duration::from_millis(10);

/// Such a file would be a single line: one value, or a comment that hides all settings.
const CARRIAGE_RETURN: &str =
    "a line ends with a carriage return alone; save the file with Unix line ends";

/// The paths of the settings file. Found once per process: reading the path of the executable takes longer than
/// opening a file.
fn files() -> &'static [PathBuf] {
    static FILES: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FILES.get_or_init(|| {
        let beside = std::env::current_exe()
            .ok()
            .map(|exe| exe.with_file_name("comedor.conf"));
        beside
            .into_iter()
            .chain([PathBuf::from("/etc/comedor/comedor.conf")])
            .collect()
    })
}

/// The settings file: the first of the two that exists, else the one that would be created.
pub fn settings_file() -> &'static Path {
    let files = files();
    let existing = files.iter().find(|path| path.exists());
    existing.unwrap_or(&files[files.len() - 1])
}

/// The settings that are set. The environment takes precedence over the file. Without `Debug`: a value can
/// contain a password.
#[derive(Default)]
pub struct Settings(Vec<Set>);

/// A setting that is set.
struct Set {
    setting: &'static Setting,
    value: Vec<u8>,
    source: Source,
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

impl Settings {
    /// The environment of this process and the first of the two files that exists. Fails if that is
    /// unreadable or has an invalid line.
    pub fn load() -> Result<Settings, Error> {
        Settings::within(EDITOR_TIMEOUT)
    }

    /// The settings, with this timeout for a file that is being saved.
    pub fn within(timeout: Duration) -> Result<Settings, Error> {
        let set = environment().filter_map(|(name, value)| {
            let setting = Setting::find(name)?;
            Some(Set {
                setting,
                value: value.to_vec(),
                source: Source::Environment,
            })
        });
        let settings = Settings(set.collect());
        // Whether this process, or another worker of it, has seen the file there
        for (path, was_seen) in files().iter().zip(&scoreboard::knowledge().has_seen) {
            if let Some(bytes) = read(path, was_seen, timeout)? {
                return settings.with_file(path, &bytes);
            }
        }
        Ok(settings)
    }

    /// Adds the `NAME=value` lines of a file. Blank lines and lines that start with `#` are skipped.
    pub fn with_file(mut self, path: &Path, bytes: &[u8]) -> Result<Settings, Error> {
        for (line, text) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
            let fails = |problem| Error::File {
                path: path.to_owned(),
                problem: format!("line {line}: {problem}"),
            };
            let text = text.trim_ascii();
            if text.contains(&b'\r') {
                return Err(fails(CARRIAGE_RETURN.to_owned()));
            }
            if text.is_empty() || text.starts_with(b"#") {
                continue;
            }
            let (setting, value) = self.parse_line(text).map_err(fails)?;
            let source = Source::Line {
                path: path.to_owned(),
                line,
            };
            self.0.push(Set {
                setting,
                value: value.to_vec(),
                source,
            });
        }
        Ok(self)
    }

    fn parse_line<'l>(&self, line: &'l [u8]) -> Result<(&'static Setting, &'l [u8]), String> {
        if line.starts_with(b"\xef\xbb\xbf") {
            let problem = "the file starts with a byte order mark; save it as UTF-8 without one";
            return Err(problem.to_owned());
        }
        let equals = line
            .iter()
            .position(|&byte| byte == b'=')
            .ok_or("expected NAME=value")?;
        let (name, value) = (line[..equals].trim_ascii(), line[equals + 1..].trim_ascii());
        let setting = Setting::find(name)
            .ok_or_else(|| format!("unknown setting `{}`", String::from_utf8_lossy(name)))?;
        let name = setting.name;
        for earlier in &self.0 {
            if let Source::Line { line, .. } = earlier.source
                && earlier.setting.name == name
            {
                return Err(format!(
                    "duplicate setting `{name}` (first set in line {line})"
                ));
            }
        }
        if value.starts_with(b"\"") || value.starts_with(b"'") {
            return Err(format!("the value of {name} is in quotes; remove them"));
        }
        Ok((setting, value))
    }

    /// No setting has a use for one, and in a value it would be a part of a path or a name.
    pub fn refuse_control_characters(&self) -> Result<(), Error> {
        let has = |value: &[u8]| value.iter().any(u8::is_ascii_control);
        match self.0.iter().find(|set| has(&set.value)) {
            Some(set) => Err(invalid(set.setting, "must not contain control characters")),
            None => Ok(()),
        }
    }

    fn find(&self, setting: &Setting) -> Option<&Set> {
        self.0.iter().find(|set| set.setting.name == setting.name)
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
        let text = str::from_utf8(self.value(setting)).map_err(|_| "valid UTF-8");
        text.and_then(parse)
            .map_err(|expected| invalid(setting, format!("must be {expected}")))
    }
}

/// The content of the settings file at `path`; `None` if it does not exist and never did. Symbolic links are
/// followed: only the administrator can create it.
fn read(path: &Path, was_seen: &AtomicBool, timeout: Duration) -> Result<Option<Vec<u8>>, Error> {
    let mut retries = Retries::new(PAUSE, timeout);
    loop {
        let (id, problem) = match shared_file::read_followed(path) {
            Ok((bytes, metadata)) => {
                was_seen.store(true, Ordering::Relaxed);
                if !bytes.is_empty() {
                    return Ok(Some(bytes));
                }
                (
                    Some(FileId::of(&metadata)),
                    "is empty; write a comment line if nothing is to be set",
                )
            }
            Err(Fault::Io(error))
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                if !was_seen.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                (None, "was deleted; restore it, or restart this process")
            }
            Err(fault) => {
                return Err(Error::Unreadable {
                    path: path.to_owned(),
                    fault,
                });
            }
        };
        if retries.pause(id) != Pause::Ended {
            return Err(Error::BeingSaved {
                path: path.to_owned(),
                problem,
            });
        }
    }
}
