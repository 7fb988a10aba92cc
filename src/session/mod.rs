//! The PHP session of a cookie: PHP's settings for it, where PHP keeps it, and its content, never written.

mod cookie;
pub(crate) mod redis;
mod save_path;
mod session_file;

use std::fmt::Display;
use std::time::Duration;

use crate::error::Error;
pub use crate::php::session_settings::{Format, parse_lifetime, parse_name};
use crate::php::unserialize::MAX_LENGTH;
pub use crate::php::unserialize::{PhpArray, PhpValue, Session};
use crate::sys::shared_file::MAX_SIZE;
use crate::sys::waits::Waits;
pub use cookie::{SessionId, session_id};
pub use save_path::{Address, RedisServer, SavePath, SessionFolder};

/// The time that a request waits for its session: for a PHP page that holds the file, or for all replies of Redis
/// together. PHP waits for a page without limit; here the client is told that it may retry.
const TIMEOUT: Duration = Duration::from_secs(5);

/// PHP's session settings that are needed to read a session.
#[derive(Debug)]
pub struct SessionConfig {
    pub save_path: SavePath,
    /// `session.name`: the name of the cookie
    pub name: String,
    pub format: Format,
    /// `session.gc_maxlifetime` in seconds, which only sessions in Redis need.
    pub lifetime: u32,
}

/// What opening a session does to its lifetime.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lifetime {
    Extend,
    Keep,
}

/// Reads the session that the `Cookie` header names, and extends its lifetime, as a PHP page would.
pub fn open(
    config: &SessionConfig,
    cookies: Option<&[u8]>,
    waits: Waits,
) -> Result<Session, Error> {
    let id =
        session_id(cookies.unwrap_or_default(), &config.name).ok_or_else(Error::not_logged_in)?;
    open_with(config, &id, Lifetime::Extend, waits)
}

/// Reads the session with this id, and changes nothing.
pub fn read(config: &SessionConfig, id: &SessionId, waits: Waits) -> Result<Session, Error> {
    open_with(config, id, Lifetime::Keep, waits)
}

fn open_with(
    config: &SessionConfig,
    id: &SessionId,
    lifetime: Lifetime,
    waits: Waits,
) -> Result<Session, Error> {
    const { assert!(MAX_SIZE <= MAX_LENGTH as u64) };
    match &config.save_path {
        SavePath::Files(folder) => session_file::open(config, folder, id, lifetime, waits),
        SavePath::Redis(server) => redis::open(config, server, id, lifetime, waits),
    }
}

/// The error of a session that PHP would not accept either. `place` must not contain the whole id.
fn unusable(place: &str, why: &dyn Display) -> Error {
    Error::unusable_session(format!("session {place}: {why}"))
}
