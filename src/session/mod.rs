//! The PHP session of a cookie: where PHP keeps it, and its decoded content, which is never written.

mod cookie;
mod file;
mod lexer;
pub(crate) mod redis;
mod unserialize;

use std::fmt::Display;

pub use cookie::{SessionId, session_id};
pub use unserialize::{PhpArray, PhpValue, Session};

use crate::config::{SavePath, SessionConfig};
use crate::error::Error;

/// The session that the `Cookie` header names. Keeps it alive as a PHP page would. Fails as [`find`]
/// does.
pub fn open(config: &SessionConfig, cookies: Option<&[u8]>) -> Result<Session, Error> {
    let id = session_id(cookies.unwrap_or_default(), &config.name);
    let id = id.ok_or_else(Error::not_logged_in)?;
    match &config.save_path {
        SavePath::Files(folder) => file::open(config, folder, &id),
        SavePath::Redis(server) => redis::open(config, server, &id),
    }
}

/// The session with this id. Fails with INVALID_SESSION if PHP would not accept it, with BUSY if it
/// is locked for too long, and with INTERNAL_ERROR if it cannot be reached.
pub fn find(config: &SessionConfig, id: &SessionId) -> Result<Session, Error> {
    match &config.save_path {
        SavePath::Files(folder) => file::find(config, folder, id).map(|found| found.session),
        SavePath::Redis(server) => redis::find(config, server, id),
    }
}

/// INVALID_SESSION for the existing session at `place`. `place` must not contain the whole id: a
/// reader of the log could use it to act as the user.
fn unusable(place: &str, why: &dyn Display) -> Error {
    Error::invalid_session(
        "The session is not usable; please log in again.",
        Some(format!("session {place}: {why}")),
    )
}
