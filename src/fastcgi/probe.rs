//! Asks whether a process answers on a socket.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::record::{self, kind};

const TIMEOUT: Duration = Duration::from_secs(5);

/// Connects to the socket at `path` and sends a GET_VALUES record (§4.1), which every responder
/// answers.
pub fn probe(path: &Path) -> io::Result<()> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut question = Vec::new();
    record::push(&mut question, kind::GET_VALUES, 0, &[]);
    stream.write_all(&question)?;
    let mut answer = Vec::new();
    let mut buffer = [0; 256];
    loop {
        match record::split_first(&answer) {
            Ok(Some((record, _))) if record.kind == kind::GET_VALUES_RESULT => return Ok(()),
            Ok(None) => {}
            _ => return Err(io::Error::new(ErrorKind::InvalidData, "the answer is not FastCGI")),
        }
        match stream.read(&mut buffer)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            length => answer.extend_from_slice(&buffer[..length]),
        }
    }
}
