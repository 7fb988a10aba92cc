//! Asks the process behind a socket for its findings about itself.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::fastcgi::protocol::{CHECK, Status};
use crate::fastcgi::record::{self, kind};

/// The timeout for a process that accepts no connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum size of an answer, in bytes.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// Connects to the socket at `path`.
pub fn open(path: &Path) -> io::Result<UnixStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // connect(2) waits for this time if the queue of the socket is full.
    set_socket_timeout(&socket, Timeout::Send, Some(CONNECT_TIMEOUT))?;
    match connect(&socket, &SocketAddrUnix::new(path)?) {
        Err(Errno::AGAIN) => Err(io::Error::other("its queue of connections is full")),
        connected => Ok(connected.map(|()| socket.into())?),
    }
}

/// Asks in the role [`CHECK`], which every responder answers within `time`. `None` if it does not know the
/// role, or does not grant it to this user.
pub fn ask(mut stream: UnixStream, time: Duration) -> io::Result<Option<Vec<u8>>> {
    let end = Instant::now() + time;
    let [role1, role0] = CHECK.to_be_bytes();
    let mut question = Vec::new();
    record::push(&mut question, kind::BEGIN_REQUEST, 1, &[role1, role0, 0, 0, 0, 0, 0, 0]);
    stream.write_all(&question)?;
    let (mut unread, mut findings, mut buffer) = (Vec::new(), Vec::new(), [0; 8192]);
    loop {
        let not_fastcgi = |_| io::Error::new(ErrorKind::InvalidData, "the answer is not FastCGI");
        while let Some((record, rest)) = record::split_first(&unread).map_err(not_fastcgi)? {
            match (record.kind, record.content) {
                (kind::STDOUT, content) => findings.extend_from_slice(content),
                (kind::END_REQUEST, &[_, _, _, _, status, ..]) => {
                    return Ok((status == Status::RequestComplete as u8).then_some(findings));
                }
                _ => {}
            }
            unread = rest.to_vec();
        }
        let rest = end.saturating_duration_since(Instant::now());
        if rest.is_zero() || findings.len() > MAX_ANSWER {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(rest))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => unread.extend_from_slice(&buffer[..length]),
            // The timeout of the socket
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}
