//! A connection to a Redis server, with one deadline for all commands of a request.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::io::{Errno, read, retry_on_intr};
use rustix::net::addr::SocketAddrArg;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};

use super::reply::{self, Reply};
use super::{Address, Commands, RedisFault};
use crate::sys::shared_file;

/// The minimum buffer space for a read
const BLOCK: usize = 4096;

#[derive(Debug)]
pub struct RedisConnection {
    socket: OwnedFd,
    /// Bytes received after the last reply
    received: Vec<u8>,
}

impl RedisConnection {
    /// Connects to the first address of the server that accepts.
    pub fn open(address: &Address, deadline: Instant) -> Result<RedisConnection, RedisFault> {
        let (host, port) = match address {
            Address::Unix(path) => {
                let path = SocketAddrUnix::new(path)?;
                return RedisConnection::to(AddressFamily::UNIX, &path, deadline);
            }
            Address::Tcp { host, port } => (host, *port),
        };
        let mut failed = RedisFault::UnknownHost(host.clone());
        for ip in addresses(host) {
            let family = if ip.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            match RedisConnection::to(family, &SocketAddr::new(ip, port), deadline) {
                Ok(connection) => return Ok(connection),
                Err(fault) => failed = fault,
            }
        }
        Err(failed)
    }

    fn to(
        family: AddressFamily,
        address: &impl SocketAddrArg,
        deadline: Instant,
    ) -> Result<RedisConnection, RedisFault> {
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // The send timeout applies to connect(2) too (socket(7)).
        limit(&socket, Timeout::Send, deadline)?;
        connect(&socket, address)?;
        Ok(RedisConnection { socket, received: Vec::new() })
    }

    /// Whether the connection is open and has no unread bytes, which would be taken for the next
    /// reply.
    pub fn is_idle(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let peeked = retry_on_intr(|| recv(&self.socket, &mut [0; 1], flags));
        self.received.is_empty() && peeked.is_err_and(|error| error == Errno::AGAIN)
    }

    /// Sends `commands` and waits for their replies, or the first error, after which a server may
    /// close the connection. Returns the value among the replies. A reply of another kind than that of its
    /// command is a fault: the server may have sent a surplus one, so that the others are late.
    pub fn exchange(
        &mut self,
        commands: &Commands,
        deadline: Instant,
    ) -> Result<Reply, RedisFault> {
        let mut rest = commands.bytes.as_slice();
        while !rest.is_empty() {
            limit(&self.socket, Timeout::Send, deadline)?;
            match retry_on_intr(|| send(&self.socket, rest, SendFlags::NOSIGNAL)) {
                // The server has closed the connection; before that it may have said why.
                Err(Errno::PIPE) => break,
                sent => rest = &rest[sent?..],
            }
        }
        let mut value = None;
        for &kind in &commands.replies {
            value = value.or(loop {
                match reply::take(&mut self.received, kind)? {
                    Some(reply) => break reply,
                    None => self.receive(deadline)?,
                }
            });
        }
        Ok(value)
    }

    fn receive(&mut self, deadline: Instant) -> Result<(), RedisFault> {
        limit(&self.socket, Timeout::Recv, deadline)?;
        self.received.reserve(BLOCK);
        match retry_on_intr(|| read(&self.socket, spare_capacity(&mut self.received)))? {
            0 => Err(RedisFault::Io(io::ErrorKind::UnexpectedEof.into())),
            _ => Ok(()),
        }
    }
}

/// Limits the next calls on `socket` to the time until `deadline`.
fn limit(socket: &OwnedFd, calls: Timeout, deadline: Instant) -> Result<(), RedisFault> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(RedisFault::Timeout);
    }
    Ok(set_socket_timeout(socket, calls, Some(left))?)
}

impl From<Errno> for RedisFault {
    fn from(error: Errno) -> RedisFault {
        match error {
            // connect(2) over TCP fails with EINPROGRESS.
            Errno::AGAIN | Errno::INPROGRESS => RedisFault::Timeout,
            error => RedisFault::Io(error.into()),
        }
    }
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
        let mut connection = RedisConnection::open(&Address::Unix(path), deadline).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.write_all(b"-ERR max number of clients reached\r\n").unwrap();
        drop(server);
        let mut commands = Commands::default();
        commands.push(b'+', &["PING"]);
        let fault = connection.exchange(&commands, deadline).unwrap_err();
        assert_eq!(fault.to_string(), "ERR max number of clients reached");
    }
}
