//! Reading the body: how much of standard input belongs to it, and the rest of the input.

use std::io::{self, Read, Take};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use rustix::stdio::stdin;

use super::{Method, Variables};
use crate::error::Error;

/// The maximum length of a body. The largest menu, 64 plates with names of 2000 characters, has about
/// half of it.
pub const MAX_BODY: u64 = 1024 * 1024;

/// TOO_LARGE for a body longer than [`MAX_BODY`].
pub(super) fn body_too_large() -> Error {
    Error::too_large(format!("The body is larger than {} MiB.", MAX_BODY >> 20))
}

/// Standard input up to the end of the request's body: at most `CONTENT_LENGTH` bytes
/// (RFC 3875 §4.2). Without a length, a GET, HEAD or OPTIONS has no body; the body of any other request, such
/// as a chunked upload, ends at end of file.
pub fn limited<R: Read>(variables: &Variables, stdin: R) -> Take<R> {
    let limit = match (variables.content_length(), variables.method()) {
        (Ok(Some(length)), _) => length,
        (Err(_), _) | (Ok(None), Method::Get | Method::Head | Method::Options) => 0,
        (Ok(None), _) => u64::MAX,
    };
    stdin.take(limit)
}

/// Reads a body of `length`, else to the end of `input`.
///
/// TOO_LARGE for a body longer than [`MAX_BODY`], INVALID_FORMAT for one shorter than `length`.
pub(crate) fn read(length: Option<u64>, input: impl Read) -> Result<Vec<u8>, Error> {
    let mut body = Vec::with_capacity(length.unwrap_or_default() as usize);
    match input.take(length.unwrap_or(MAX_BODY + 1)).read_to_end(&mut body) {
        Ok(read) if read as u64 > MAX_BODY => Err(body_too_large()),
        Ok(read) if length.is_some_and(|length| length > read as u64) => {
            Err(Error::invalid_format("The body is shorter than its Content-Length."))
        }
        Ok(_) => Ok(body),
        Err(error) => Err(Error::internal(format!("standard input: {error}"))),
    }
}

/// Standard input, without the buffer of the standard library.
#[derive(Debug)]
pub struct StandardInput;

impl Read for StandardInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(stdin(), buffer)?)
    }
}

/// The maximum time to read a body that is not needed.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// The timeout for the next part of such a body.
const DRAIN_IDLE_TIMEOUT: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Reads the rest of `input`, which is standard input, until a timeout.
///
/// Apache's mod_cgid and fcgiwrap connect to the program through a socket. If the program exits
/// before it has read the whole body, the connection is reset and the response is lost.
pub fn drain(input: &mut Take<impl Read>) {
    // Set in the first round: without a body, even the time would cost 500 instructions with musl.
    let mut started = None;
    while input.limit() > 0 && started.get_or_insert_with(Instant::now).elapsed() < DRAIN_TIMEOUT {
        let mut stdin = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
        let is_ready = matches!(poll(&mut stdin, Some(&DRAIN_IDLE_TIMEOUT)), Ok(1..));
        if !is_ready || !matches!(input.read(&mut vec![0; 8192]), Ok(1..)) {
            return;
        }
    }
}
