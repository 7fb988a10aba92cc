//! PHP's sessions in Redis or Valkey, as phpredis stores them (redis_session.c): a key per session,
//! with the bytes that a session file would have. A session is read and kept alive, but never
//! created, written or deleted.

mod connection;

use std::io;
use std::iter::from_fn;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Address, Effect, RedisServer, Session, SessionConfig, SessionId};
use crate::error::Error;
pub use connection::Reply;
#[cfg(any(test, fuzzing))]
pub use connection::take;

/// The timeout for all commands of a request together
const TIMEOUT: Duration = Duration::from_secs(5);

/// An idle connection is closed after this time: a firewall may drop it without telling either side,
/// and a request on such a connection would get no answer.
const MAX_IDLE: Duration = Duration::from_secs(60);

/// The idle connections of this process, each logged in to its server, and since when they are idle. One
/// request at a time uses a connection, and returns it only after the last reply: a late reply would be
/// taken for the session of another user.
static IDLE: Mutex<Vec<(RedisServer, OwnedFd, Instant)>> = Mutex::new(Vec::new());

/// Why a session could not be read from the server.
#[derive(Debug, thiserror::Error)]
pub enum RedisFault {
    #[error("{0}")]
    Io(io::Error),
    #[error("no answer within 5 seconds")]
    Timeout,
    #[error("{0}")]
    Refused(String),
    #[error("the answer is not that of a Redis server")]
    NotRedis,
    #[error("it is larger than 16 MiB")]
    TooLarge,
    #[error(
        "unknown host {0}: use an IP address or a name in /etc/hosts; names are not looked up in DNS"
    )]
    UnknownHost(String),
}

/// The session with this id. INTERNAL_ERROR if the server does not answer within five seconds or
/// refuses a command.
pub fn read(
    config: &SessionConfig,
    server: &RedisServer,
    id: &SessionId,
    effect: Effect,
) -> Result<Session, Error> {
    let unusable = |why: &dyn std::fmt::Display| {
        super::unusable(&format!("{}{} in Redis at {server}", server.prefix, id.shortened()), why)
    };
    let seconds = (effect == Effect::KeepAlive).then_some(config.lifetime);
    let bytes = match get(server, id.as_str(), seconds) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Err(Error::not_logged_in()),
        Err(fault @ RedisFault::TooLarge) => return Err(unusable(&fault)),
        Err(fault) => return Err(Error::internal(format!("Redis at {server}: {fault}"))),
    };
    Session::decode(bytes, config.format).map_err(|error| unusable(&error))
}

/// Sends the commands of a request, with a key that no session can have.
pub fn probe(server: &RedisServer, lifetime: u32) -> Result<(), RedisFault> {
    get(server, "comedor check", Some(lifetime)).map(drop)
}

/// The value of the session `id`. Extends its lifetime to `lifetime` seconds, and never shortens it:
/// PHP sends `EXPIRE` without `GT`, so a page with a smaller gc_maxlifetime shortens a session.
fn get(server: &RedisServer, id: &str, lifetime: Option<u32>) -> Result<Reply, RedisFault> {
    let deadline = Instant::now() + TIMEOUT;
    let key = [&server.prefix, id].concat();
    let ask = |socket, mut commands: Commands| {
        commands.push(b'$', &["GET", &key]);
        if let Some(lifetime) = lifetime {
            commands.push(b':', &["EXPIRE", &key, &lifetime.to_string(), "GT"]);
        }
        let (reply, socket) = connection::exchange(socket, &commands, deadline)?;
        if let Some(socket) = socket {
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            idle.push((server.clone(), socket, Instant::now()));
        }
        Ok(reply)
    };
    if let Some(socket) = idle(server) {
        match ask(socket, Commands::default()) {
            // The server was restarted. Sending both commands twice is harmless.
            Err(RedisFault::Io(_)) => {}
            reply => return reply,
        }
    }
    ask(connection::open(&server.address, deadline)?, login(server))
}

/// The commands that log in on a new connection
fn login(server: &RedisServer) -> Commands {
    let mut commands = Commands::default();
    if let Some(login) = &server.login {
        let words = ["AUTH"].into_iter().chain(login.iter().map(String::as_str));
        commands.push(b'+', &words.collect::<Vec<_>>());
    }
    if let Some(database) = server.database {
        commands.push(b'+', &["SELECT", &database.to_string()]);
    }
    commands
}

/// Takes an idle connection to `server`. Closes the connections that have expired, or are to another server.
fn idle(server: &RedisServer) -> Option<OwnedFd> {
    let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    idle.retain(|(known, _, since)| known == server && since.elapsed() < MAX_IDLE);
    from_fn(|| idle.pop()).map(|(_, socket, _)| socket).find(connection::is_idle)
}

impl RedisFault {
    /// An error reply without the arguments of the command, which some errors repeat: a password or an
    /// id.
    fn refused(text: &str) -> RedisFault {
        let text = text.split(", with args").next().unwrap_or_default().trim_end_matches('.');
        // Redis 6 does not support GT.
        let is_old = text == "ERR wrong number of arguments for 'expire' command";
        let hint = if is_old { "; it must be Redis 7 or Valkey 7.2, or later" } else { "" };
        RedisFault::Refused(format!("{text}{hint}"))
    }
}

/// Commands, and the first byte of the reply to each: `+` status, `:` integer, `$` value
#[derive(Default)]
struct Commands {
    bytes: Vec<u8>,
    replies: Vec<u8>,
}

impl Commands {
    fn push(&mut self, reply: u8, words: &[&str]) {
        self.bytes.extend(format!("*{}\r\n", words.len()).bytes());
        for word in words {
            self.bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
        }
        self.replies.push(reply);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn idle_connection_is_reused_for_a_minute() {
        let address = Address::Unix("/socket".into());
        let server = RedisServer { address, login: None, database: None, prefix: String::new() };
        for (seconds, is_usable) in [(0, true), (30, true), (60, false)] {
            let now = Instant::now();
            let (socket, _other_end) = UnixStream::pair().unwrap();
            let since = now.checked_sub(Duration::from_secs(seconds)).unwrap();
            IDLE.lock().unwrap().push((server.clone(), socket.into(), since));
            assert_eq!(idle(&server).is_some(), is_usable, "{seconds}");
        }
    }
}
