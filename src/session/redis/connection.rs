//! A connection to a server, on which each call ends at a deadline, and the one that is kept between two requests.

use std::io::{self, BufReader, ErrorKind, Read};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::addr::SocketAddrArg;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send, socket_with,
};

use super::RedisFault;
use super::hosts::addresses;
use super::protocol::{BLOCK, Commands, Reply};
use crate::session::{Address, RedisServer};
use crate::sys::waits::{Awaited, Waits};

/// A connection that was idle for so long is closed instead of used: a firewall may have dropped it without telling either
/// side, and a request on such a connection would get no answer.
const MAX_IDLE: Duration = Duration::from_secs(60);

/// The idle connection of this process between two requests.
static IDLE: Mutex<Option<Idle>> = Mutex::new(None);

struct Idle {
    /// The server to which the connection is logged in
    server: RedisServer,
    connection: Connection,
    since: Instant,
}

/// A connection to a server.
pub struct Connection {
    socket: OwnedFd,
}

/// The replies to commands.
pub struct Replies {
    /// The value among them, if there is one
    pub value: Option<Vec<u8>>,
    /// The connection, unless the server has sent more
    pub connection: Option<Connection>,
}

impl Connection {
    /// Takes the idle connection, if it is usable and to `server`; else closes it.
    pub fn take_idle(server: &RedisServer) -> Option<Connection> {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let is_usable =
            idle.server == *server && idle.since.elapsed() < MAX_IDLE && idle.connection.is_quiet();
        is_usable.then_some(idle.connection)
    }

    /// Keeps this connection for the next request. The last reply must have been read: a late reply would be taken
    /// for the session of another user.
    pub fn keep(self, server: &RedisServer) {
        let idle = Idle {
            server: server.clone(),
            connection: self,
            since: Instant::now(),
        };
        *IDLE.lock().unwrap_or_else(PoisonError::into_inner) = Some(idle);
    }

    /// Connects to the first address of the server that accepts.
    pub fn open(address: &Address, allowed: Allowed) -> Result<Connection, RedisFault> {
        let (host, port) = match address {
            Address::Unix(path) => return Connection::to(&SocketAddrUnix::new(path)?, allowed),
            Address::Tcp { host, port } => (host, *port),
        };
        let mut last_fault = RedisFault::UnknownHost(host.clone());
        for ip in addresses(host, allowed.waits) {
            match Connection::to(&SocketAddr::new(ip, port), allowed) {
                Ok(connection) => return Ok(connection),
                Err(fault) => last_fault = fault,
            }
        }
        Err(last_fault)
    }

    fn to(address: &impl SocketAddrArg, allowed: Allowed) -> Result<Connection, RedisFault> {
        let family = address.as_any().address_family();
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // The send timeout applies to connect(2) too (socket(7)).
        allowed.call(&socket, Timeout::Send, || connect(&socket, address))?;
        Ok(Connection { socket })
    }

    /// Whether the connection is open and has no unread bytes, which would be taken for the next reply.
    fn is_quiet(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let peeked = retry_on_intr(|| recv(&self.socket, &mut [0; 1], flags));
        peeked.is_err_and(|error| error == Errno::AGAIN)
    }

    /// Sends `commands` and waits for their replies, or the first error, after which a server may close the
    /// connection.
    pub fn exchange(self, commands: &Commands, allowed: Allowed) -> Result<Replies, RedisFault> {
        self.send(&commands.bytes, allowed)?;
        let socket = &self.socket;
        let mut input = BufReader::with_capacity(BLOCK, Input { socket, allowed });
        let mut value = None;
        for &kind in &commands.replies {
            if let Reply::Value(bytes) = Reply::read(&mut input, kind)? {
                value = Some(bytes);
            }
        }
        let is_all = input.buffer().is_empty();
        Ok(Replies {
            value,
            connection: is_all.then_some(self),
        })
    }

    fn send(&self, bytes: &[u8], allowed: Allowed) -> Result<(), RedisFault> {
        let mut unsent = bytes;
        while !unsent.is_empty() {
            let count = allowed.call(&self.socket, Timeout::Send, || {
                match retry_on_intr(|| send(&self.socket, unsent, SendFlags::NOSIGNAL)) {
                    // The server has closed the connection; before that it may have said why.
                    Err(Errno::PIPE) => Ok(unsent.len()),
                    outcome => outcome,
                }
            })?;
            unsent = &unsent[count..];
        }
        Ok(())
    }
}

/// What a server sends
struct Input<'s> {
    socket: &'s OwnedFd,
    allowed: Allowed,
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = || retry_on_intr(|| rustix::io::read(self.socket, &mut *buffer));
        self.allowed.call(self.socket, Timeout::Recv, read)
    }
}

/// How long a request may use a server.
#[derive(Clone, Copy)]
pub struct Allowed {
    pub deadline: Instant,
    pub waits: Waits,
}

impl Allowed {
    /// Calls `call`, which uses `socket`, until it is done or the deadline has passed.
    fn call<T>(
        self,
        socket: &OwnedFd,
        timeout: Timeout,
        mut call: impl FnMut() -> Result<T, Errno>,
    ) -> io::Result<T> {
        let time = self.deadline.saturating_duration_since(Instant::now());
        if time.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        let call_within = |time: Duration| -> io::Result<Option<T>> {
            set_socket_timeout(socket, timeout, Some(time))?;
            match call() {
                // connect(2) over TCP goes on if it is called again. It fails with EINPROGRESS at the first timeout, and
                // with EALREADY at the next one (`__inet_stream_connect`, Linux's net/ipv4/af_inet.c).
                Err(Errno::AGAIN | Errno::INPROGRESS | Errno::ALREADY) => Ok(None),
                done => Ok(Some(done?)),
            }
        };
        self.waits
            .wait(Awaited::Redis, time, call_within)?
            .into_result()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::super::protocol::Kind;
    use super::*;

    #[test]
    fn refusal_is_read_if_the_server_has_already_closed_the_connection() {
        let (socket, mut server) = UnixStream::pair().unwrap();
        server
            .write_all(b"-ERR max number of clients reached\r\n")
            .unwrap();
        drop(server);
        let connection = Connection {
            socket: socket.into(),
        };
        let mut commands = Commands::default();
        commands.push(Kind::SimpleString, &["PING"]);
        let allowed = Allowed {
            deadline: Instant::now() + Duration::from_secs(5),
            waits: Waits::ALWAYS,
        };
        let fault = connection.exchange(&commands, allowed).err().unwrap();
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
            let kept = Idle {
                server: server.clone(),
                connection: Connection {
                    socket: socket.into(),
                },
                since: now.checked_sub(Duration::from_secs(seconds)).unwrap(),
            };
            *IDLE.lock().unwrap() = Some(kept);
            assert_eq!(
                Connection::take_idle(&server).is_some(),
                is_usable,
                "{seconds}"
            );
        }
    }
}
