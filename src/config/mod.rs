//! The settings: from the environment of the process, else from a file, each with a default.
//!
//! They are read for each request, or by a process that stays in memory at most once a second ([`InForce`]),
//! before the request is parsed, and never from the variables of the request. An invalid setting is an error
//! that names it; it is never replaced by a default. Whether a configured folder exists is not checked here.

mod in_force;
mod sources;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::cgi::origin;
use crate::model::Id;
use crate::session::{self, Format, SavePath, SessionConfig};
use crate::sys::scoreboard::MAX_WORKERS;
use crate::sys::shared_file::Fault;
pub use in_force::InForce;
pub(crate) use sources::{Settings, Source, settings_file};

/// A setting as the documentation lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    pub name: &'static str,
    /// The value if nothing is set; empty for none.
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
    pub(crate) trusted_origins: Vec<String>,
    /// The number of worker processes of a FastCGI responder.
    pub(crate) workers: usize,
    /// The time zone of "today", as `TZ` names it; `None` is the system's. Its file is read by requests without
    /// a date only: by CGI that takes 30 µs of 400, and six system calls.
    pub(crate) zone: Option<String>,
}

/// What a session must have besides the permission to read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Access {
    /// Nothing: a session without a list of aularios opens all of its centre.
    Centre,
    /// The permission `<service>:access`, and a list of aularios.
    Listed,
}

/// Invalid settings.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{} {problem}", setting.name)]
    Setting {
        setting: &'static Setting,
        problem: String,
    },
    #[error("{}: {problem}", path.display())]
    File { path: PathBuf, problem: String },
    /// An editor is saving the file, so that what it had may come back.
    #[error("{}: {problem}", path.display())]
    BeingSaved {
        path: PathBuf,
        problem: &'static str,
    },
    #[error("{}: {fault}", path.display())]
    Unreadable { path: PathBuf, fault: Fault },
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
        Config::from_settings(&Settings::load()?)
    }

    pub(crate) fn from_settings(settings: &Settings) -> Result<Config, Error> {
        settings.refuse_control_characters()?;
        let service = settings.parse(&SERVICE, Id::parse)?;
        let data_dir = match settings.get(&DATA_DIR) {
            None => Path::new("/DATA").join(service.as_str()),
            Some(folder) if folder.starts_with(b"/") => PathBuf::from(OsStr::from_bytes(folder)),
            Some(_) => return Err(invalid(&DATA_DIR, "must start with a /")),
        };
        let session = SessionConfig {
            save_path: SavePath::parse(settings.value(&SESSION_DIR))
                .map_err(|expected| invalid(&SESSION_DIR, format!("must be {expected}")))?,
            name: settings.parse(&SESSION_NAME, session::parse_name)?,
            format: settings.parse(&SESSION_FORMAT, Format::parse)?,
            lifetime: settings.parse(&SESSION_LIFETIME, session::parse_lifetime)?,
        };
        let access = settings.parse(&ACCESS, |text| match text {
            "centre" => Ok(Access::Centre),
            "listed" => Ok(Access::Listed),
            _ => Err("centre or listed"),
        })?;
        let trusted_origins = settings.parse(&TRUSTED_ORIGINS, |text| {
            let origins = text
                .split(',')
                .map(str::trim)
                .filter(|origin| !origin.is_empty());
            let origins: Option<_> = origins.map(origin::of_setting).collect();
            origins.ok_or("a comma-separated list of origins like https://menus.example")
        })?;
        let workers = settings.parse(&WORKERS, |text| match text.parse() {
            Ok(workers @ 1..=MAX_WORKERS) => Ok(workers),
            _ => Err("a number from 1 to 512"),
        })?;
        let zone = settings.parse(&TZ, |text| Ok(text.to_owned()))?;
        let zone = Some(zone).filter(|zone| !zone.is_empty());
        Ok(Config {
            service,
            data_dir,
            session,
            access,
            trusted_origins,
            workers,
            zone,
        })
    }
}

/// The value of `setting` is invalid.
pub(crate) fn invalid(setting: &'static Setting, problem: impl Into<String>) -> Error {
    Error::Setting {
        setting,
        problem: problem.into(),
    }
}
