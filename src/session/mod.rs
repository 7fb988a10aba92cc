//! The PHP session of a cookie: PHP's settings for it, where PHP keeps it, and its decoded content,
//! which is never written.

mod cookie;
mod error;
mod lexer;
pub(crate) mod redis;
mod save_path;
mod session_file;
mod settings;
mod unserialize;

pub use cookie::{SessionId, session_id};
pub use error::Error;
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
