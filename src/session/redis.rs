//! PHP's sessions in Redis or Valkey, as phpredis stores them (redis_session.c): a key per session,
//! with the bytes of a session file. It is read and kept alive, but never created, written or deleted.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::addr::SocketAddrArg;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send, socket_with,
};

use super::{Address, Effect, RedisServer, Session, SessionConfig, SessionId};
use crate::error::Error;
use crate::sys::scoreboard::{self, PROMPT};
use crate::sys::shared_file::{self, MAX_SIZE};

/// The timeout for all commands of a request together
const TIMEOUT: Duration = Duration::from_secs(5);

/// An idle connection is closed after this time: a firewall may drop it without telling either side,
/// and a request on such a connection would get no answer.
const MAX_IDLE: Duration = Duration::from_secs(60);

/// The buffer for replies, and the maximum length of a line, such as an error
const BLOCK: usize = 4096;

/// The value of a key; `None` if it does not exist, and in the reply to any other command.
pub type Reply = Option<Vec<u8>>;

/// A connection that is logged in to its server.
struct Idle {
    server: RedisServer,
    socket: OwnedFd,
    since: Instant,
}

/// The connection of this process between two requests. It is kept only after the last reply: a late reply
/// would be taken for the session of another user.
static IDLE: Mutex<Option<Idle>> = Mutex::new(None);

/// Why a session could not be read from the server.
#[derive(Debug, thiserror::Error)]
pub enum RedisFault {
    #[error("{0}")]
    Io(io::Error),
    #[error("no answer within 5 seconds")]
    Timeout,
    #[error("too many requests wait for an answer")]
    Busy,
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

/// The session with this id. INTERNAL_ERROR if the server is too slow or refuses a command.
pub fn read(
    config: &SessionConfig,
    server: &RedisServer,
    id: &SessionId,
    effect: Effect,
) -> Result<Session, Error> {
    let unusable = |why: &dyn std::fmt::Display| {
        super::unusable(
            &format!("{}{} in Redis at {server}", server.prefix, id.shortened()),
            why,
        )
    };
    let seconds = (effect == Effect::KeepAlive).then_some(config.lifetime);
    let bytes = match get(server, id.as_str(), seconds) {
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
        let (reply, socket) = exchange(socket, &commands, deadline)?;
        if let Some(socket) = socket {
            let idle = Idle {
                server: server.clone(),
                socket,
                since: Instant::now(),
            };
            *IDLE.lock().unwrap_or_else(PoisonError::into_inner) = Some(idle);
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
    ask(open(&server.address, deadline)?, login(server))
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

/// Takes the idle connection, if it is usable and to `server`; else closes it.
fn idle(server: &RedisServer) -> Option<OwnedFd> {
    let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    let is_usable =
        idle.server == *server && idle.since.elapsed() < MAX_IDLE && is_idle(&idle.socket);
    is_usable.then_some(idle.socket)
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
            self.bytes
                .extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
        }
        self.replies.push(reply);
    }
}

/// Connects to the first address of the server that accepts.
fn open(address: &Address, deadline: Instant) -> Result<OwnedFd, RedisFault> {
    let (host, port) = match address {
        Address::Unix(path) => return open_one(&SocketAddrUnix::new(path)?, deadline),
        Address::Tcp { host, port } => (host, *port),
    };
    let mut failed = RedisFault::UnknownHost(host.clone());
    for ip in addresses(host) {
        match open_one(&SocketAddr::new(ip, port), deadline) {
            Ok(socket) => return Ok(socket),
            Err(fault) => failed = fault,
        }
    }
    Err(failed)
}

fn open_one(address: &impl SocketAddrArg, deadline: Instant) -> Result<OwnedFd, RedisFault> {
    let family = address.as_any().address_family();
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // The send timeout applies to connect(2) too (socket(7)).
    within(&socket, Timeout::Send, deadline, || {
        connect(&socket, address)
    })?;
    Ok(socket)
}

/// Whether the connection is open and has no unread bytes, which would be taken for the next reply.
fn is_idle(socket: &OwnedFd) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let peeked = retry_on_intr(|| recv(socket, &mut [0; 1], flags));
    peeked.is_err_and(|error| error == Errno::AGAIN)
}

/// Sends `commands` and waits for their replies, or the first error, after which a server may close the
/// connection. Returns the value among the replies, and the socket unless it has sent more. A reply of another
/// kind than that of its command is a fault: the server may have sent a surplus one, so that the others are late.
fn exchange(
    socket: OwnedFd,
    commands: &Commands,
    deadline: Instant,
) -> Result<(Reply, Option<OwnedFd>), RedisFault> {
    let mut rest = commands.bytes.as_slice();
    while !rest.is_empty() {
        let sent = within(&socket, Timeout::Send, deadline, || {
            match retry_on_intr(|| send(&socket, rest, SendFlags::NOSIGNAL)) {
                // The server has closed the connection; before that it may have said why.
                Err(Errno::PIPE) => Ok(rest.len()),
                sent => sent,
            }
        })?;
        rest = &rest[sent..];
    }
    let mut input = BufReader::with_capacity(
        BLOCK,
        Input {
            socket: &socket,
            deadline,
        },
    );
    let mut value = None;
    for &kind in &commands.replies {
        value = value.or(take(&mut input, kind)?);
    }
    let is_read = input.buffer().is_empty();
    Ok((value, is_read.then_some(socket)))
}

/// What a server sends until the deadline
struct Input<'s> {
    socket: &'s OwnedFd,
    deadline: Instant,
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = || retry_on_intr(|| rustix::io::read(self.socket, &mut *buffer));
        within(self.socket, Timeout::Recv, self.deadline, read)
    }
}

/// Calls `call`, which uses `socket`, until it is done or the deadline has passed. If it is not done at once, the
/// scoreboard says whether this request may wait.
fn within<T>(
    socket: &OwnedFd,
    timeout: Timeout,
    deadline: Instant,
    mut call: impl FnMut() -> Result<T, Errno>,
) -> io::Result<T> {
    let rest = || deadline.saturating_duration_since(Instant::now());
    let mut limited = |time: Duration| {
        if time.is_zero() {
            return Err(Errno::AGAIN);
        }
        set_socket_timeout(socket, timeout, Some(time))?;
        call()
    };
    // connect(2) over TCP fails with EINPROGRESS, and goes on if it is called again.
    match limited(rest().min(PROMPT)) {
        Err(Errno::AGAIN | Errno::INPROGRESS) => {}
        done => return Ok(done?),
    }
    let _waiting = scoreboard::wait(None).ok_or(ErrorKind::ResourceBusy)?;
    match limited(rest()) {
        Err(Errno::AGAIN | Errno::INPROGRESS) => Err(ErrorKind::TimedOut.into()),
        done => Ok(done?),
    }
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

/// Reads a reply (RESP2, <https://redis.io/docs/latest/develop/reference/protocol-spec/>): `+` status,
/// `:` integer or `$` value, as `kind` says, or an error. No reply to the commands in use is an array.
/// Allocates at most a block for a length that the server only claims.
pub fn take(input: &mut impl BufRead, kind: u8) -> Result<Reply, RedisFault> {
    let cut = || io::Error::from(io::ErrorKind::UnexpectedEof).into();
    let first = *input.fill_buf()?.first().ok_or_else(cut)?;
    if first != kind && first != b'-' {
        return Err(RedisFault::NotRedis);
    }
    let mut line = Vec::new();
    input.take(BLOCK as u64).read_until(b'\n', &mut line)?;
    if !line.ends_with(b"\n") && line.len() < BLOCK {
        return Err(cut());
    }
    let text = line[1..]
        .strip_suffix(b"\r\n")
        .ok_or(RedisFault::NotRedis)?;
    let text = String::from_utf8_lossy(text);
    if first == b'-' {
        return Err(RedisFault::refused(&text));
    }
    if first != b'$' || text == "-1" {
        return Ok(None);
    }
    let length: u64 = text.parse().map_err(|_| RedisFault::NotRedis)?;
    if length > MAX_SIZE {
        return Err(RedisFault::TooLarge);
    }
    let mut value = Vec::with_capacity(BLOCK.min(length as usize + 2));
    if (input.take(length + 2).read_to_end(&mut value)? as u64) < length + 2 {
        return Err(cut());
    }
    if !value.ends_with(b"\r\n") {
        return Err(RedisFault::NotRedis);
    }
    value.truncate(length as usize);
    Ok(Some(value))
}

/// The addresses of `host`: itself, or those in `/etc/hosts`. The name services of glibc are plug-ins
/// (nsswitch.conf(5)), which a static executable cannot rely on.
fn addresses(host: &str) -> Vec<IpAddr> {
    if let Ok(address) = host.parse() {
        return vec![address];
    }
    let hosts = shared_file::read_followed(Path::new("/etc/hosts"));
    let hosts = hosts.map(|(bytes, _)| bytes).unwrap_or_default();
    let found = find(&String::from_utf8_lossy(&hosts), host);
    if found.is_empty() && host.eq_ignore_ascii_case("localhost") {
        return vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    }
    found
}

/// The addresses of `host` in the text of `/etc/hosts` (hosts(5)).
fn find(hosts: &str, host: &str) -> Vec<IpAddr> {
    let entries = hosts.lines().filter_map(|line| {
        let mut fields = line.split('#').next()?.split_ascii_whitespace();
        let address = fields.next()?.parse().ok()?;
        fields
            .any(|name| name.eq_ignore_ascii_case(host))
            .then_some(address)
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn names_are_found_in_etc_hosts() {
        let hosts = "127.0.0.1 localhost\n# 10.0.0.1 cache\n10.0.0.2\tcache.example cache # the cache\n\
                     ::1 localhost ip6-localhost\nx cache\n\n10.0.0.3 Cache\r\n10.0.0.4 mycache";
        for (host, addresses) in [
            ("localhost", ["127.0.0.1", "::1"].as_slice()),
            ("CACHE", &["10.0.0.2", "10.0.0.3"]),
            ("cache.example", &["10.0.0.2"]),
            ("10.0.0.2", &[]),
            ("the", &[]),
            ("", &[]),
        ] {
            let addresses: Vec<IpAddr> = addresses.iter().map(|ip| ip.parse().unwrap()).collect();
            assert_eq!(find(hosts, host), addresses, "{host}");
        }
        assert_eq!(addresses("::1"), ["::1".parse::<IpAddr>().unwrap()]);
        assert!(!addresses("localhost").is_empty());
    }

    #[test]
    fn refusal_is_read_if_the_server_has_already_closed_the_connection() {
        let (socket, mut server) = UnixStream::pair().unwrap();
        server
            .write_all(b"-ERR max number of clients reached\r\n")
            .unwrap();
        drop(server);
        let mut commands = Commands::default();
        commands.push(b'+', &["PING"]);
        let fault = exchange(socket.into(), &commands, Instant::now() + TIMEOUT).unwrap_err();
        assert_eq!(fault.to_string(), "ERR max number of clients reached");
    }

    #[test]
    fn idle_connection_is_reused_for_a_minute() {
        let address = Address::Unix("/socket".into());
        let server = RedisServer {
            address,
            login: None,
            database: None,
            prefix: String::new(),
        };
        for (seconds, is_usable) in [(0, true), (30, true), (60, false)] {
            let now = Instant::now();
            let (socket, _other_end) = UnixStream::pair().unwrap();
            let since = now.checked_sub(Duration::from_secs(seconds)).unwrap();
            let kept = Idle {
                server: server.clone(),
                socket: socket.into(),
                since,
            };
            *IDLE.lock().unwrap() = Some(kept);
            assert_eq!(idle(&server).is_some(), is_usable, "{seconds}");
        }
    }
}
