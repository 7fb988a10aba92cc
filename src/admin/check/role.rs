//! Asks the process behind a socket for its findings about itself.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use super::report::MAX_DOCUMENT;
use crate::admin::limited::limited;
use crate::fastcgi::protocol::{PRIVATE, Status};
use crate::fastcgi::record::{self, kind};

/// The maximum time for a process to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Asks in the role [`PRIVATE`], which every responder answers. `None` if it does not know the role, or does not
/// grant it to this user.
pub fn ask(path: &Path, end: Instant) -> io::Result<Option<Vec<u8>>> {
    let path = path.to_owned();
    // This waits if the queue of the socket is full.
    let connected_until = end.min(Instant::now() + CONNECT_TIMEOUT);
    let mut stream = limited(connected_until, || UnixStream::connect(path))?;
    let [role1, role0] = PRIVATE.to_be_bytes();
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
        if rest.is_zero() || findings.len() > MAX_DOCUMENT {
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
