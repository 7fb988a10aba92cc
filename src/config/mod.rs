//! The settings: from the environment of the process, else from a file, each with a default.
//!
//! A CGI process reads them at its start; a responder's parent reads them again when the file has changed ([`Watched`]).
//! They are never taken from the variables of a request. An invalid setting is an error that names it; it is never
//! replaced by a default. Whether a configured folder exists is not checked here.

mod sources;
mod watched;
mod zone;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::cgi::{Origin, Script};
use crate::model::Id;
use crate::session::{self, Format, SavePath, SessionConfig};
use crate::sys::panics;
use crate::sys::scoreboard::MAX_WORKERS;
use crate::sys::shared_file::Fault;
use sources::{BadLine, EDITOR_TIMEOUT, NoContent};
pub(crate) use sources::{Files, Settings, Source};
pub use watched::Watched;
pub use zone::Zone;

/// A setting as the documentation lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    pub name: &'static str,
    /// The value if nothing is set; empty for none. `<service>` in it stands for the name of the service.
    pub default: &'static str,
    /// One line that explains it.
    pub summary: &'static str,
}

impl Setting {
    pub(crate) fn find(name: &[u8]) -> Option<&'static Setting> {
        SETTINGS
            .iter()
            .find(|setting| setting.name.as_bytes() == name)
    }

    /// A value without its password, to be shown: an address of a server may have one in any place.
    pub(crate) fn without_password(&self, value: &[u8]) -> String {
        let text = String::from_utf8_lossy(value).into_owned();
        if *self != SESSION_DIR {
            return text;
        }
        match SavePath::parse(value) {
            Ok(SavePath::Redis(server)) => return server.to_string(),
            Ok(SavePath::Files(_)) if !text.contains('?') => return text,
            _ => {}
        }
        // `tcp://a?auth=…, tcp://b` and `seed[]=…` of phpredis, `host=…` of other handlers
        match text
            .find("://")
            .map(|at| at + 3)
            .or_else(|| text.find('=').map(|at| at + 1))
        {
            Some(end) => format!("{}…", &text[..end]),
            None => text,
        }
    }
}

/// Defines a constant for each setting, and the table of all.
macro_rules! settings {
    ($($id:ident: $name:literal, default $default:literal, $summary:literal;)*) => {
        $(pub(crate) const $id: Setting =
            Setting { name: $name, default: $default, summary: $summary };)*

        /// Every setting.
        pub const SETTINGS: &[Setting] = &[$($id),*];
    };
}

settings! {
    SERVICE: "COMEDOR_SERVICE", default "service",
        "name of the service: a key of the session, its permission and its data folder";
    DATA_DIR: "COMEDOR_DATA_DIR", default "/DATA/<service>",
        "folder that contains Centros/";
    SESSION_DIR: "COMEDOR_SESSION_DIR", default "/var/lib/php/sessions",
        "PHP's session.save_path: a folder, N;folder, N;MODE;folder, tcp://… or unix://…";
    SESSION_NAME: "COMEDOR_SESSION_NAME", default "PHPSESSID",
        "PHP's session.name: the name of the cookie";
    SESSION_FORMAT: "COMEDOR_SESSION_FORMAT", default "php",
        "PHP's session.serialize_handler: php, php_serialize or php_binary";
    SESSION_LIFETIME: "COMEDOR_SESSION_LIFETIME", default "1440",
        "PHP's session.gc_maxlifetime: seconds since its last use until Redis deletes a session";
    ACCESS: "COMEDOR_ACCESS", default "centre",
        "listed: sessions need <service>:access and a list of aularios (aulas); centre: they do not";
    TRUSTED_ORIGINS: "COMEDOR_TRUSTED_ORIGINS", default "",
        "comma-separated origins (https://menus.example) whose pages may use the API from another site";
    WORKERS: "COMEDOR_WORKERS", default "64",
        "processes of a FastCGI responder, 1 to 512; read when it starts";
    SCRIPT: "COMEDOR_SCRIPT", default "",
        "absolute path of the script in whose place it answers; none: of every one";
    TZ: "TZ", default "",
        "time zone of \"today\", such as Europe/Madrid; none: the system's";
}

/// The settings of this program, checked.
#[derive(Debug)]
pub struct Config {
    /// The name of the service.
    pub(crate) service: Id,
    /// The folder that contains `Centros/`.
    pub(crate) data_dir: PathBuf,
    pub(crate) session: SessionConfig,
    pub(crate) access: Access,
    /// Origins whose pages may use the API from another site, as browsers spell them.
    pub(crate) trusted_origins: Vec<Origin>,
    /// The number of worker processes of a FastCGI responder.
    pub(crate) workers: usize,
    /// The script in whose place the program answers; `None`: of every one.
    pub(crate) script: Option<Script>,
    /// The time zone of "today".
    pub(crate) zone: Zone,
}

/// What a session must have besides the permission to read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Access {
    /// Nothing: a session without a list of aularios opens all of its centre.
    Centre,
    /// The permission `<service>:access`, and a list of aularios.
    Listed,
}

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{} {problem}", setting.name)]
    Setting {
        setting: &'static Setting,
        problem: BadValue,
    },
    #[error("{}: line {line}: {problem}", path.display())]
    Line {
        path: PathBuf,
        line: usize,
        problem: BadLine,
    },
    /// An editor is saving the file, so that what it had may come back.
    #[error("{}: {problem}", path.display())]
    BeingSaved { path: PathBuf, problem: NoContent },
    #[error("{}: {fault}", path.display())]
    Unreadable { path: PathBuf, fault: Fault },
    /// Without the value, which can contain a password.
    #[error(
        "{} is set for the script, as by SetEnv in <Location> or .htaccess, to another value than for comedor; see \
         \"Two applications on one server\" in docs/install.md",
        .0.name
    )]
    OfScript(&'static Setting),
    /// The message has the place in the source.
    #[error("the settings cannot be read: {0}")]
    Panicked(String),
}

/// Settings that can be used, as they were set, and parsed.
pub(crate) struct Usable {
    pub settings: Settings,
    pub config: Config,
}

impl Usable {
    /// Reads them, with this timeout for a file that is being saved.
    fn read(files: &Files, timeout: Duration) -> Result<Usable, Error> {
        let read = || {
            let settings = Settings::within(timeout, files)?;
            let config = Config::from_settings(&settings)?;
            Ok(Usable { settings, config })
        };
        // A request is answered after a panic too, and the parent of the workers must not end.
        panics::catch(read).unwrap_or_else(|message| Err(Error::Panicked(message)))
    }
}

/// Why the value of a setting cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadValue {
    /// The parser of the value says what it must be.
    #[error("must be {0}")]
    Unexpected(&'static str),
    #[error("must start with a /")]
    RelativePath,
    /// No setting has a use for one, and in a value it would be a part of a path or a name.
    #[error("must not contain control characters")]
    ControlCharacter,
}

impl From<&Error> for crate::error::Error {
    fn from(error: &Error) -> crate::error::Error {
        match error {
            Error::Unreadable {
                fault: Fault::Leased,
                ..
            } => crate::error::Error::busy_because(error.to_string()),
            _ => crate::error::Error::internal(error.to_string()),
        }
    }
}

impl Config {
    /// The settings of this process. The error names the first invalid one.
    pub fn load() -> Result<Config, Error> {
        Usable::read(&Files::find(), EDITOR_TIMEOUT).map(|usable| usable.config)
    }

    pub(crate) fn from_settings(settings: &Settings) -> Result<Config, Error> {
        settings.refuse_control_characters()?;
        let service = settings.parse(&SERVICE, Id::parse)?;
        Ok(Config {
            data_dir: data_dir(settings)?,
            service,
            session: session_config(settings)?,
            access: settings.parse(&ACCESS, parse_access)?,
            trusted_origins: settings.parse(&TRUSTED_ORIGINS, parse_origins)?,
            workers: settings.parse(&WORKERS, parse_workers)?,
            script: settings.parse_bytes(&SCRIPT, parse_script)?,
            zone: settings.parse(&TZ, Zone::parse)?,
        })
    }
}

fn data_dir(settings: &Settings) -> Result<PathBuf, Error> {
    let folder = settings.in_force(&DATA_DIR);
    if folder.starts_with(b"/") {
        Ok(OsString::from_vec(folder).into())
    } else {
        Err(Error::Setting {
            setting: &DATA_DIR,
            problem: BadValue::RelativePath,
        })
    }
}

fn session_config(settings: &Settings) -> Result<SessionConfig, Error> {
    Ok(SessionConfig {
        save_path: settings.parse_bytes(&SESSION_DIR, SavePath::parse)?,
        name: settings.parse(&SESSION_NAME, session::parse_name)?,
        format: settings.parse(&SESSION_FORMAT, Format::parse)?,
        lifetime: settings.parse(&SESSION_LIFETIME, session::parse_lifetime)?,
    })
}

fn parse_access(text: &str) -> Result<Access, &'static str> {
    match text {
        "centre" => Ok(Access::Centre),
        "listed" => Ok(Access::Listed),
        _ => Err("centre or listed"),
    }
}

fn parse_origins(text: &str) -> Result<Vec<Origin>, &'static str> {
    let origins = text
        .split(',')
        .map(str::trim)
        .filter(|origin| !origin.is_empty());
    let origins: Option<_> = origins.map(Origin::of_setting).collect();
    origins.ok_or("a comma-separated list of origins like https://menus.example")
}

fn parse_workers(text: &str) -> Result<usize, &'static str> {
    // The sentence and the summary of the setting repeat it.
    const { assert!(MAX_WORKERS == 512) };
    match text.parse() {
        Ok(workers @ 1..=MAX_WORKERS) => Ok(workers),
        _ => Err("a number from 1 to 512"),
    }
}

fn parse_script(path: &[u8]) -> Result<Option<Script>, &'static str> {
    if path.is_empty() {
        return Ok(None);
    }
    Script::parse(path).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_shown_without_what_may_be_a_password() {
        for (value, shown) in [
            ("/srv/sessions", "/srv/sessions"),
            ("/srv/a=b", "/srv/a=b"),
            ("/srv/x?auth=secret", "/srv/x?auth=…"),
            ("tcp://a?auth=secret, tcp://b", "tcp://…"),
            ("seed[]=a:1&auth=secret", "seed[]=…"),
        ] {
            assert_eq!(SESSION_DIR.without_password(value.as_bytes()), shown);
        }
        let redis = SESSION_DIR.without_password(b"tcp://127.0.0.1:6379?auth=secret");
        assert!(redis.starts_with("tcp://127.0.0.1:6379"), "{redis}");
        assert!(!redis.contains("secret"), "{redis}");
        assert_eq!(SERVICE.without_password(b"a=b://c"), "a=b://c");
    }

    #[test]
    fn settings_that_another_program_holds_are_busy_and_other_faults_are_not() {
        for (fault, code) in [
            (Fault::Leased, "BUSY"),
            (Fault::NotRegular, "INTERNAL_ERROR"),
        ] {
            let path = PathBuf::from("file");
            let error = crate::error::Error::from(&Error::Unreadable { path, fault });
            assert_eq!(error.code, code);
        }
    }
}
