//! PHP's sessions in Redis or Valkey, as phpredis stores them (redis_session.c): a key per session,
//! with the bytes of a session file. It is read and kept alive, but never created, written or deleted.

mod connection;
mod hosts;
pub(crate) mod protocol;

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::time::Instant;

use super::{Lifetime, RedisServer, Session, SessionConfig, SessionId, TIMEOUT};
use crate::error::Error;
use crate::sys::shared_file::MAX_SIZE;
use crate::sys::waits::{Awaited, Waits};
use connection::{Allowed, Connection};
use protocol::{Commands, Kind};

/// Why a session could not be read from the server.
#[derive(Debug, thiserror::Error)]
pub enum RedisFault {
    #[error("{0}")]
    Io(io::Error),
    #[error("no answer within {} seconds", TIMEOUT.as_secs())]
    Timeout,
    #[error("too many requests wait for an answer")]
    Busy,
    /// The text of an error reply
    #[error("{0}")]
    Refused(String),
    #[error("the answer is not that of a Redis server")]
    NotRedis,
    #[error("it is larger than {} MiB", MAX_SIZE >> 20)]
    TooLarge,
    #[error(
        "unknown host {0}: use an IP address or a name in /etc/hosts; names are not looked up in DNS"
    )]
    UnknownHost(String),
}

impl<E: Into<io::Error>> From<E> for RedisFault {
    fn from(error: E) -> RedisFault {
        let error = error.into();
        match error.kind() {
            ErrorKind::TimedOut => RedisFault::Timeout,
            ErrorKind::ResourceBusy => RedisFault::Busy,
            _ => RedisFault::Io(error),
        }
    }
}

impl RedisFault {
    /// An error reply without the command's arguments, which some errors repeat: a password or an id.
    fn refused(text: &str) -> RedisFault {
        let text = text
            .split(", with args")
            .next()
            .unwrap_or_default()
            .trim_end_matches('.');
        // Redis 6 does not support GT.
        let is_old = text == "ERR wrong number of arguments for 'expire' command";
        let hint = if is_old {
            "; it must be Redis 7 or Valkey 7.2, or later"
        } else {
            ""
        };
        RedisFault::Refused(format!("{text}{hint}"))
    }
}

/// Reads the session with this id. INTERNAL_ERROR if the server is too slow or refuses a command.
pub(super) fn open(
    config: &SessionConfig,
    server: &RedisServer,
    id: &SessionId,
    lifetime: Lifetime,
    waits: Waits,
) -> Result<Session, Error> {
    let unusable = |why: &dyn Display| {
        super::unusable(
            &format!("{}{} in Redis at {server}", server.prefix, id.shortened()),
            why,
        )
    };
    let extended = (lifetime == Lifetime::Extend).then_some(config.lifetime);
    let bytes = match request(server, id.as_str(), extended, waits) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Err(Error::not_logged_in()),
        Err(RedisFault::Busy) => return Err(Error::busy()),
        Err(fault @ RedisFault::TooLarge) => return Err(unusable(&fault)),
        Err(fault) => return Err(Error::internal(format!("Redis at {server}: {fault}"))),
    };
    Session::decode(bytes, config.format).map_err(|error| unusable(&error))
}

/// Sends the commands of a request, with a key that no session can have.
pub fn probe(server: &RedisServer, lifetime: u32) -> Result<(), RedisFault> {
    request(server, "comedor check", Some(lifetime), Waits::ALWAYS).map(drop)
}

/// Sends the commands of a request for the session `id`. Returns its value; `None` if it does not exist.
fn request(
    server: &RedisServer,
    id: &str,
    lifetime: Option<u32>,
    waits: Waits,
) -> Result<Option<Vec<u8>>, RedisFault> {
    let allowed = Allowed {
        deadline: Instant::now() + TIMEOUT,
        waits,
    };
    let key = [&server.prefix, id].concat();
    let exchange = |connection: Connection, mut commands: Commands, allowed| {
        commands.push(Kind::BulkString, &["GET", &key]);
        if let Some(lifetime) = lifetime {
            push_expire(&mut commands, &key, lifetime);
        }
        let replies = connection.exchange(&commands, allowed)?;
        if let Some(connection) = replies.connection {
            connection.keep(server);
        }
        Ok(replies.value)
    };
    if let Some(connection) = Connection::take_idle(server) {
        match exchange(connection, Commands::default(), allowed) {
            // The server was restarted. Sending both commands twice is harmless.
            Err(RedisFault::Io(_)) => {}
            outcome => return outcome,
        }
    }
    // A server that does not answer gets no connection of a request that could not wait for it.
    let place = waits.place(Awaited::Redis).ok_or(RedisFault::Busy)?;
    let allowed = Allowed {
        waits: place.waits(),
        ..allowed
    };
    let connection = Connection::open(&server.address, allowed)?;
    exchange(connection, login(server), allowed)
}

/// The command that extends the lifetime of `key` to `lifetime` seconds, and never shortens it: PHP sends `EXPIRE`
/// without `GT`, so a page with a smaller gc_maxlifetime shortens a session.
fn push_expire(commands: &mut Commands, key: &str, lifetime: u32) {
    let words = ["EXPIRE", key, &lifetime.to_string(), "GT"];
    commands.push(Kind::Integer, &words);
}

/// The commands that log in on a new connection
fn login(server: &RedisServer) -> Commands {
    let mut commands = Commands::default();
    if let Some(login) = &server.login {
        let words = ["AUTH"].into_iter().chain(login.iter().map(String::as_str));
        commands.push(Kind::SimpleString, &words.collect::<Vec<_>>());
    }
    if let Some(database) = server.database {
        commands.push(Kind::SimpleString, &["SELECT", &database.to_string()]);
    }
    commands
}
