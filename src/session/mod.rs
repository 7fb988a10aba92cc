//! The PHP session of a cookie: PHP's settings for it, where PHP keeps it, and its decoded content,
//! which is never written.

mod cookie;
mod lexer;
mod php_ini;
pub(crate) mod redis;
mod save_path;
mod session_file;
mod unserialize;

use std::fmt::Display;
use std::time::Duration;

use crate::error;
pub use cookie::{SessionId, session_id};
pub use php_ini::{Format, parse_lifetime, parse_max_age, parse_name};
pub use save_path::{Address, RedisServer, SavePath, SessionFolder};
pub use session_file::{files, path};
pub use unserialize::{PhpArray, PhpValue, Session};

/// PHP's session settings that are needed to read a session.
#[derive(Debug)]
pub struct SessionConfig {
    pub save_path: SavePath,
    /// `session.name`: the name of the cookie
    pub name: String,
    pub format: Format,
    /// The time since its last use after which a session is rejected.
    pub max_age: Option<Duration>,
    /// `session.gc_maxlifetime` in seconds, which only sessions in Redis need.
    pub lifetime: u32,
}

/// What a read does to the session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// Extends its lifetime, as a PHP page would
    KeepAlive,
    Nothing,
}

/// Reads the session that the `Cookie` header names, as a PHP page would.
pub fn open(config: &SessionConfig, cookies: Option<&[u8]>) -> Result<Session, Error> {
    let id = session_id(cookies.unwrap_or_default(), &config.name).ok_or(Error::Unknown)?;
    read(config, &id, Effect::KeepAlive)
}

/// Reads the session with this id.
pub fn read(config: &SessionConfig, id: &SessionId, effect: Effect) -> Result<Session, Error> {
    match &config.save_path {
        SavePath::Files(folder) => session_file::read(config, folder, id, effect),
        SavePath::Redis(server) => redis::read(config, server, id, effect),
    }
}

/// Why there is no usable session.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Unknown, ended by a logout, or expired
    #[error("unknown session")]
    Unknown,
    /// A PHP page has held it for too long
    #[error("a PHP page has held the session for 5 seconds")]
    Busy,
    /// Another program holds a lease on it
    #[error("{0}")]
    Leased(String),
    /// It exists, and PHP would not accept it
    #[error("{0}")]
    Unusable(String),
    /// Its folder, file or server cannot be reached, which the administrator can fix
    #[error("{0}")]
    Unreachable(String),
}

impl Error {
    /// `place` must not contain the whole id.
    pub fn unusable(place: &str, why: &dyn Display) -> Error {
        Error::Unusable(format!("session {place}: {why}"))
    }
}

impl From<Error> for error::Error {
    fn from(error: Error) -> error::Error {
        match error {
            Error::Unknown => error::Error::not_logged_in(),
            Error::Busy => error::Error::busy(),
            Error::Leased(cause) => error::Error::busy_because(cause),
            Error::Unusable(cause) => error::Error::invalid_session(
                "The session is not usable; please log in again.",
                Some(cause),
            ),
            Error::Unreachable(cause) => error::Error::internal(cause),
        }
    }
}
