//! The settings: `COMEDOR_…` variables of the environment, each with a default.
//!
//! A setting that can't be used is an error that names the variable; it is never replaced
//! by a default. No setting is looked at on disk here.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cgi::Variables;
use crate::cgi::origin;
use crate::model;

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
    /// The enums that the application defines. PHP refuses a session with any other.
    pub enums: Vec<String>,
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

/// A setting that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("{variable} {problem}")]
pub struct Error {
    variable: &'static str,
    problem: &'static str,
}

impl Config {
    /// Reads the settings out of `variables`. Refuses the first that can't be used.
    pub fn from_variables(variables: &Variables) -> Result<Config, Error> {
        let setting = |variable: &'static str, default: &'static str| Setting {
            variable,
            value: variables.get(variable).unwrap_or(default.as_bytes()),
        };

        let service = setting("COMEDOR_SERVICE", "service").parse(
            "is no name of 1 to 64 characters A-Z a-z 0-9 . _ - that starts with no dot",
            |text| model::is_id(text).then(|| text.to_owned()),
        )?;
        let data_dir = match variables.get("COMEDOR_DATA_DIR") {
            None => Path::new("/DATA").join(&service),
            Some(b"") => return Err(setting("COMEDOR_DATA_DIR", "").error("is empty")),
            Some(folder) => PathBuf::from(OsStr::from_bytes(folder)),
        };
        let save_path = setting("COMEDOR_SESSION_DIR", "/var/lib/php/sessions");
        let session = SessionConfig {
            save_path: SavePath::parse(save_path.value).ok_or_else(|| {
                save_path.error("is no save_path (a folder, N;folder or N;MODE;folder)")
            })?,
            name: setting("COMEDOR_SESSION_NAME", "PHPSESSID")
                .parse("is no name that PHP takes for a session", session_name)?,
            format: setting("COMEDOR_SESSION_FORMAT", "php")
                .parse("is none of php, php_serialize, php_binary", Format::parse)?,
            enums: setting("COMEDOR_SESSION_ENUMS", "")
                .parse("is no UTF-8", |text| Some(comma_separated(text)))?,
            max_age: setting("COMEDOR_SESSION_MAX_AGE", "")
                .parse("is no number of seconds", max_age)?,
        };
        let trusted_origins = setting("COMEDOR_TRUSTED_ORIGINS", "").parse(
            "is no comma-separated list of origins like https://menus.example",
            |text| {
                let origins = comma_separated(text);
                origins.iter().map(|text| origin::normal(text)).collect()
            },
        )?;
        Ok(Config { service, data_dir, session, trusted_origins })
    }
}

struct Setting<'v> {
    variable: &'static str,
    value: &'v [u8],
}

impl Setting<'_> {
    fn error(&self, problem: &'static str) -> Error {
        Error { variable: self.variable, problem }
    }

    fn parse<T>(
        &self,
        problem: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Error> {
        str::from_utf8(self.value).ok().and_then(parse).ok_or_else(|| self.error(problem))
    }
}

impl SavePath {
    fn parse(value: &[u8]) -> Option<SavePath> {
        let mut parts = value.splitn(3, |&byte| byte == b';');
        let (depth, mode, folder) = match (parts.next(), parts.next(), parts.next()) {
            (Some(folder), None, None) => (b"0".as_slice(), b"0".as_slice(), folder),
            (Some(depth), Some(folder), None) => (depth, b"0".as_slice(), folder),
            (Some(depth), Some(mode), Some(folder)) => (depth, mode, folder),
            _ => return None,
        };
        let digits = |bytes, radix| u32::from_str_radix(str::from_utf8(bytes).ok()?, radix).ok();
        digits(mode, 8).filter(|&mode| mode <= 0o7777)?;
        if folder.is_empty() {
            return None;
        }
        Some(SavePath {
            depth: usize::try_from(digits(depth, 10)?).ok()?,
            folder: PathBuf::from(OsStr::from_bytes(folder)),
        })
    }
}

impl Format {
    fn parse(text: &str) -> Option<Format> {
        match text {
            "php" => Some(Format::Php),
            "php_serialize" => Some(Format::PhpSerialize),
            "php_binary" => Some(Format::PhpBinary),
            _ => None,
        }
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

fn comma_separated(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
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
        for bad in ["", "x;/p", "-1;/p", "2;", "1;0999;/p", "1;0600;", ";/p"] {
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
        ] {
            let variables = Variables::from_pairs([(name, value)]);
            let error = Config::from_variables(&variables).unwrap_err();
            assert!(error.to_string().starts_with(name), "{error}");
        }
    }
}
