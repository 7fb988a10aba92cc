//! The settings: variables of the environment, else of a file, each with a default.
//!
//! A setting that can't be used is an error that names it; it is never replaced by a default.
//! Whether a folder that is set exists is not looked at here.

mod file;

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cgi::Variables;
use crate::cgi::origin;
use crate::model;
pub use file::SettingsFile;

/// Every setting and its default; the data folder's depends on the service.
pub const SETTINGS: [(&str, &str); 9] = [
    ("COMEDOR_SERVICE", "service"),
    ("COMEDOR_DATA_DIR", "/DATA/<service>"),
    ("COMEDOR_SESSION_DIR", "/var/lib/php/sessions"),
    ("COMEDOR_SESSION_NAME", "PHPSESSID"),
    ("COMEDOR_SESSION_FORMAT", "php"),
    ("COMEDOR_SESSION_MAX_AGE", ""),
    ("COMEDOR_TRUSTED_ORIGINS", ""),
    ("COMEDOR_LEAVE_EARLY", "on"),
    ("TZ", ""),
];

/// Everything an administrator can set.
#[derive(Debug)]
pub struct Config {
    /// Name of the service inside the application: a key of the session, the first half of
    /// the permission `<service>:docente`, a part of the default data folder.
    pub service: String,
    /// The folder that holds `Centros/`.
    pub data_dir: PathBuf,
    /// Where and how PHP keeps its sessions.
    pub session: SessionConfig,
    /// Origins that may write from another site, lower-cased.
    pub trusted_origins: Vec<String>,
    /// The zone of "today", as `TZ` names it; `None` is the system's.
    pub zone: Option<String>,
}

/// PHP's own settings of its sessions, as far as a reader needs them.
#[derive(Debug)]
pub struct SessionConfig {
    /// `session.save_path`
    pub save_path: SavePath,
    /// `session.name`: the cookie
    pub name: String,
    /// `session.serialize_handler`
    pub format: Format,
    /// How long after its last use a session is refused.
    pub max_age: Option<Duration>,
}

/// PHP's `session.save_path`: `folder`, `N;folder` or `N;MODE;folder`
/// (ext/session/mod_files.c, `PS_OPEN_FUNC(files)`).
#[derive(Debug, PartialEq)]
pub struct SavePath {
    /// How many folders, each named by one character of the id, lie above a session file.
    pub depth: usize,
    /// The folder itself.
    pub folder: PathBuf,
}

/// PHP's `session.serialize_handler`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Format {
    /// `php`, the default: `key|value` …
    Php,
    /// `php_serialize`: one serialized array
    PhpSerialize,
    /// `php_binary`: a byte of length, key, value …
    PhpBinary,
}

/// Settings that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting, wherever it was set
    #[error("{name} {problem}")]
    Setting {
        /// Its name
        name: &'static str,
        /// What is wrong with it
        problem: &'static str,
    },
    /// A line of the settings file
    #[error("{}:{line}: the line {problem}", path.display())]
    Line {
        /// The file
        path: PathBuf,
        /// The number of the line
        line: usize,
        /// What is wrong with it
        problem: &'static str,
    },
    /// A settings file that is there and can't be read
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file
        path: PathBuf,
        /// Why
        source: io::Error,
    },
}

impl Error {
    /// The setting `name` can't be used.
    pub fn setting(name: &'static str, problem: &'static str) -> Error {
        Error::Setting { name, problem }
    }
}

impl Config {
    /// Reads the settings out of `variables`. Refuses the first that can't be used.
    pub fn from_variables(variables: &Variables) -> Result<Config, Error> {
        let settings = Settings(variables);
        let service = settings.text(
            "COMEDOR_SERVICE",
            "is no name of 1 to 64 characters A-Z a-z 0-9 . _ - that starts with no dot",
            |text| model::is_id(text).then(|| text.to_owned()),
        )?;
        let data_dir = match variables.get("COMEDOR_DATA_DIR") {
            None => Path::new("/DATA").join(&service),
            Some(folder) if folder.starts_with(b"/") => PathBuf::from(OsStr::from_bytes(folder)),
            Some(_) => return Err(Error::setting("COMEDOR_DATA_DIR", "does not begin with a /")),
        };
        let session = SessionConfig {
            save_path: settings.value(
                "COMEDOR_SESSION_DIR",
                "is no save_path (/folder, N;/folder or N;MODE;/folder)",
                SavePath::parse,
            )?,
            name: settings.text(
                "COMEDOR_SESSION_NAME",
                "is no name that PHP takes for a session",
                session_name,
            )?,
            format: settings.text(
                "COMEDOR_SESSION_FORMAT",
                "is none of php, php_serialize, php_binary",
                Format::parse,
            )?,
            max_age: settings.text(
                "COMEDOR_SESSION_MAX_AGE",
                "is no number of seconds",
                max_age,
            )?,
        };
        let trusted_origins = settings.text(
            "COMEDOR_TRUSTED_ORIGINS",
            "is no comma-separated list of origins like https://menus.example",
            |text| comma_separated(text).map(origin::normal).collect(),
        )?;
        // Asked for at the end of a request, in the module `leave`.
        settings.text("COMEDOR_LEAVE_EARLY", "is neither on nor off", |text| {
            matches!(text, "on" | "off").then_some(())
        })?;
        let zone = settings.text("TZ", "is no UTF-8", |text| Some(text.to_owned()))?;
        let zone = Some(zone).filter(|zone| !zone.is_empty());
        Ok(Config { service, data_dir, session, trusted_origins, zone })
    }
}

/// The settings' values: as set, else their defaults.
struct Settings<'v>(&'v Variables);

impl Settings<'_> {
    fn value<T>(
        &self,
        name: &'static str,
        problem: &'static str,
        parse: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<T, Error> {
        let default = SETTINGS.iter().find(|(known, _)| *known == name);
        let default = default.map_or("", |(_, default)| default);
        parse(self.0.get(name).unwrap_or(default.as_bytes()))
            .ok_or(Error::Setting { name, problem })
    }

    fn text<T>(
        &self,
        name: &'static str,
        problem: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Error> {
        self.value(name, problem, |bytes| parse(str::from_utf8(bytes).ok()?))
    }
}

impl SavePath {
    /// Takes PHP's setting; relative to a page's folder, as PHP would have it, it means nothing here.
    pub fn parse(value: &[u8]) -> Option<SavePath> {
        let mut parts = value.splitn(3, |&byte| byte == b';');
        let (depth, mode, folder) = match (parts.next(), parts.next(), parts.next()) {
            (Some(folder), None, None) => (b"0".as_slice(), b"0".as_slice(), folder),
            (Some(depth), Some(folder), None) => (depth, b"0".as_slice(), folder),
            (Some(depth), Some(mode), Some(folder)) => (depth, mode, folder),
            _ => return None,
        };
        let digits = |bytes, radix| u32::from_str_radix(str::from_utf8(bytes).ok()?, radix).ok();
        digits(mode, 8).filter(|&mode| mode <= 0o7777)?;
        if !folder.starts_with(b"/") {
            return None;
        }
        Some(SavePath {
            depth: usize::try_from(digits(depth, 10)?).ok()?,
            folder: PathBuf::from(OsStr::from_bytes(folder)),
        })
    }
}

impl Format {
    /// Its name in PHP's settings.
    pub fn name(self) -> &'static str {
        match self {
            Format::Php => "php",
            Format::PhpSerialize => "php_serialize",
            Format::PhpBinary => "php_binary",
        }
    }

    fn parse(text: &str) -> Option<Format> {
        let formats = [Format::Php, Format::PhpSerialize, Format::PhpBinary];
        formats.into_iter().find(|format| format.name() == text)
    }
}

/// PHP takes no name that is a number, nor one with a character that a cookie's name can't
/// hold (ext/session/session.c, `OnUpdateName`).
fn session_name(text: &str) -> Option<String> {
    let refused = |c| matches!(c, '=' | ',' | ';' | '.' | '[' | ' ' | '\t'..='\r');
    (text.contains(|c: char| !c.is_ascii_digit()) && !text.contains(refused))
        .then(|| text.to_owned())
}

fn max_age(text: &str) -> Option<Option<Duration>> {
    if text.is_empty() {
        return Some(None);
    }
    text.parse().ok().map(|s| Some(Duration::from_secs(s)))
}

fn comma_separated(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_save_path_is_read_as_php_reads_it() {
        for (value, depth, folder) in
            [("/p", 0, "/p"), ("2;/p", 2, "/p"), ("1;0600;/p", 1, "/p"), ("1;600;/p;q", 1, "/p;q")]
        {
            let folder = PathBuf::from(folder);
            assert_eq!(
                SavePath::parse(value.as_bytes()),
                Some(SavePath { depth, folder }),
                "{value}"
            );
        }
        for bad in ["", "x;/p", "-1;/p", "2;", "p", "2;p", "1;0999;/p", "1;0600;", ";/p"] {
            assert_eq!(SavePath::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_setting_that_cannot_be_used_is_named() {
        for (name, value) in [
            ("COMEDOR_SERVICE", "../x"),
            ("COMEDOR_DATA_DIR", ""),
            ("COMEDOR_SESSION_DIR", "x;y"),
            ("COMEDOR_SESSION_NAME", "12"),
            ("COMEDOR_SESSION_NAME", "a.b"),
            ("COMEDOR_SESSION_FORMAT", "PHP"),
            ("COMEDOR_SESSION_MAX_AGE", "1h"),
            ("COMEDOR_TRUSTED_ORIGINS", "menus.example"),
            ("COMEDOR_LEAVE_EARLY", "no"),
        ] {
            let variables = Variables::from_pairs([(name, value)]);
            let error = Config::from_variables(&variables).unwrap_err();
            assert!(error.to_string().starts_with(name), "{error}");
        }
    }
}
