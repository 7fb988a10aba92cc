//! A connection to a Redis server, with one deadline for all commands of a request.

use std::io::{self, BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Instant;

use rustix::io::{Errno, read, retry_on_intr};
use rustix::net::addr::SocketAddrArg;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send, socket_with,
};

use super::{Address, Commands, RedisFault};
use crate::sys::shared_file::{self, MAX_SIZE};

/// The buffer for replies
const BLOCK: usize = 4096;

/// The maximum length of a line, such as an error
const MAX_LINE: u64 = 4096;

/// The value of a key; `None` if it does not exist, and in the reply to any other command.
pub type Reply = Option<Vec<u8>>;

/// Connects to the first address of the server that accepts.
pub fn open(address: &Address, deadline: Instant) -> Result<OwnedFd, RedisFault> {
    let (host, port) = match address {
        Address::Unix(path) => return Ok(open_one(&SocketAddrUnix::new(path)?, deadline)?),
        Address::Tcp { host, port } => (host, *port),
    };
    let mut failed = RedisFault::UnknownHost(host.clone());
    for ip in addresses(host) {
        match open_one(&SocketAddr::new(ip, port), deadline) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = error.into(),
        }
    }
    Err(failed)
}

fn open_one(address: &impl SocketAddrArg, deadline: Instant) -> Result<OwnedFd, Errno> {
    let family = address.as_any().address_family();
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // The send timeout applies to connect(2) too (socket(7)).
    limit(&socket, Timeout::Send, deadline)?;
    connect(&socket, address)?;
    Ok(socket)
}

/// Whether the connection is open and has no unread bytes, which would be taken for the next reply.
pub fn is_idle(socket: &OwnedFd) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let peeked = retry_on_intr(|| recv(socket, &mut [0; 1], flags));
    peeked.is_err_and(|error| error == Errno::AGAIN)
}

/// Sends `commands` and waits for their replies, or the first error, after which a server may close the
/// connection. Returns the value among the replies, and the socket unless it has sent more. A reply of another
/// kind than that of its command is a fault: the server may have sent a surplus one, so that the others are late.
pub fn exchange(
    socket: OwnedFd,
    commands: &Commands,
    deadline: Instant,
) -> Result<(Reply, Option<OwnedFd>), RedisFault> {
    let mut rest = commands.bytes.as_slice();
    while !rest.is_empty() {
        limit(&socket, Timeout::Send, deadline)?;
        match retry_on_intr(|| send(&socket, rest, SendFlags::NOSIGNAL)) {
            // The server has closed the connection; before that it may have said why.
            Err(Errno::PIPE) => break,
            sent => rest = &rest[sent?..],
        }
    }
    let mut input = BufReader::with_capacity(BLOCK, Input { socket: &socket, deadline });
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
        limit(self.socket, Timeout::Recv, self.deadline)?;
        Ok(retry_on_intr(|| read(self.socket, &mut *buffer))?)
    }
}

/// Limits the next calls on `socket` to the time until `deadline`. Fails as they do after it.
fn limit(socket: &OwnedFd, calls: Timeout, deadline: Instant) -> Result<(), Errno> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(Errno::AGAIN) } else { set_socket_timeout(socket, calls, Some(left)) }
}

impl From<Errno> for RedisFault {
    fn from(error: Errno) -> RedisFault {
        io::Error::from(error).into()
    }
}

impl From<io::Error> for RedisFault {
    fn from(error: io::Error) -> RedisFault {
        match Errno::from_io_error(&error) {
            // connect(2) over TCP fails with EINPROGRESS.
            Some(Errno::AGAIN | Errno::INPROGRESS) => RedisFault::Timeout,
            _ => RedisFault::Io(error),
        }
    }
}

/// Reads a reply (RESP2, <https://redis.io/docs/latest/develop/reference/protocol-spec/>): `+` status,
/// `:` integer or `$` value, as `kind` says, or an error. No reply to the commands in use is an array.
/// Allocates nothing for a length that the server only claims.
pub fn take(input: &mut impl BufRead, kind: u8) -> Result<Reply, RedisFault> {
    let is_other = |first: &u8| *first != kind && *first != b'-';
    if input.fill_buf()?.first().is_some_and(is_other) {
        return Err(RedisFault::NotRedis);
    }
    let cut = || io::Error::from(io::ErrorKind::UnexpectedEof).into();
    let mut line = Vec::new();
    let length = input.take(MAX_LINE).read_until(b'\n', &mut line)? as u64;
    let Some((first, text)) = line.strip_suffix(b"\r\n").and_then(<[u8]>::split_first) else {
        let is_cut = length < MAX_LINE && !line.ends_with(b"\n");
        return Err(if is_cut { cut() } else { RedisFault::NotRedis });
    };
    let text = String::from_utf8_lossy(text);
    if *first == b'-' {
        return Err(RedisFault::refused(&text));
    }
    if *first != b'$' || text == "-1" {
        return Ok(None);
    }
    let length: u64 = text.parse().map_err(|_| RedisFault::NotRedis)?;
    if length > MAX_SIZE {
        return Err(RedisFault::TooLarge);
    }
    let mut value = Vec::new();
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
        fields.any(|name| name.eq_ignore_ascii_case(host)).then_some(address)
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixListener;
    use std::time::Duration;

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
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        let socket = open(&Address::Unix(path), deadline).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.write_all(b"-ERR max number of clients reached\r\n").unwrap();
        drop(server);
        let mut commands = Commands::default();
        commands.push(b'+', &["PING"]);
        let fault = exchange(socket, &commands, deadline).unwrap_err();
        assert_eq!(fault.to_string(), "ERR max number of clients reached");
    }
}
