//! The values of the settings before they are parsed, and their sources.

use std::fmt;
use std::path::PathBuf;

use super::settings_file::SettingsFile;
use super::{Error, Setting, invalid};
use crate::ffi::environment;

/// The values that are set. The environment takes precedence over the file. Without `Debug`, as
/// [`SettingsFile`]: a value can contain a password.
pub struct Settings {
    environment: Vec<(&'static str, &'static [u8])>,
    file: Option<SettingsFile>,
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
    /// The environment of this process and the settings file.
    pub fn load() -> Result<Settings, Error> {
        let set =
            environment().filter_map(|(name, value)| Some((Setting::find(name)?.name, value)));
        Ok(Settings { environment: set.collect(), file: SettingsFile::find()? })
    }

    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let set = self.environment.iter().find(|(known, _)| *known == name);
        let set = set.map(|(_, value)| *value);
        set.or_else(|| self.file.as_ref()?.get(name).map(|(_, value)| value))
    }

    pub fn source(&self, name: &str) -> Source {
        if self.environment.iter().any(|(known, _)| *known == name) {
            return Source::Environment;
        }
        match self.file.as_ref().and_then(|file| Some((&file.path, file.get(name)?))) {
            Some((path, (line, _))) => Source::Line { path: path.clone(), line },
            None => Source::Default,
        }
    }

    /// The value of `name`, else its default.
    pub fn value(&self, name: &str) -> &[u8] {
        self.get(name).unwrap_or_else(|| {
            Setting::find(name.as_bytes()).map_or("", |setting| setting.default).as_bytes()
        })
    }

    /// Parses the value of `name`, else its default, which must be UTF-8. The error says that it must
    /// be what is `expected`.
    pub fn parse<T>(
        &self,
        name: &'static str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Error> {
        let text = str::from_utf8(self.value(name)).ok();
        text.and_then(parse).ok_or_else(|| invalid(name, format!("must be {expected}")))
    }
}

#[cfg(any(test, fuzzing))]
impl Settings {
    /// The settings of `file` alone.
    pub fn of_file(file: SettingsFile) -> Settings {
        Settings { environment: Vec::new(), file: Some(file) }
    }
}
