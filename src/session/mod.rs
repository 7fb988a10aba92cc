//! The PHP session of a cookie: PHP's settings for it, where PHP keeps it, and its decoded content,
//! which is never written.

mod cookie;
mod lexer;
pub(crate) mod redis;
mod save_path;
mod session_file;
mod settings;
mod unserialize;

use std::fmt::Display;

use crate::error;
pub use cookie::{SessionId, session_id};
pub use save_path::{Address, RedisServer, SavePath, SessionFolder};
pub use session_file::files;
pub use settings::{Format, SessionConfig, parse_lifetime, parse_max_age, parse_name};
pub use unserialize::{PhpArray, PhpValue, Session};

/// What a read does to the lifetime of the session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lifetime {
    /// Extends it, as a PHP page would
    Extended,
    Unchanged,
}

/// Reads the session that the `Cookie` header names, as a PHP page would.
pub fn open(config: &SessionConfig, cookies: Option<&[u8]>) -> Result<Session, Error> {
    let id = session_id(cookies.unwrap_or_default(), &config.name).ok_or(Error::Unknown)?;
    read(config, &id, Lifetime::Extended)
}

/// Reads the session with this id.
pub fn read(config: &SessionConfig, id: &SessionId, lifetime: Lifetime) -> Result<Session, Error> {
    match &config.save_path {
        SavePath::Files(folder) => session_file::read(config, folder, id, lifetime),
        SavePath::Redis(server) => redis::read(config, server, id, lifetime),
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
    /// It exists, and PHP would not accept it
    #[error("{0}")]
    Unusable(String),
    /// Its folder, file or server cannot be reached, which the administrator can fix
    #[error("{0}")]
    Unreachable(String),
}

impl Error {
    /// `place` must not contain the whole id: a reader of the log could use it to act as the user.
    pub fn unusable(place: &str, why: &dyn Display) -> Error {
        Error::Unusable(format!("session {place}: {why}"))
    }
}

impl From<Error> for error::Error {
    fn from(error: Error) -> error::Error {
        match error {
            Error::Unknown => error::Error::not_logged_in(),
            Error::Busy => error::Error::busy(),
            Error::Unusable(cause) => error::Error::invalid_session(
                "The session is not usable; please log in again.",
                Some(cause),
            ),
            Error::Unreachable(cause) => error::Error::internal(cause),
        }
    }
}
