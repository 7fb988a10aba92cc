//! The body: how much of the input belongs to it, its fields, and what is left of it at the end.

use std::io::{self, ErrorKind, Read, Take};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::stdio::stdin;

use super::{Method, Variables, multipart};
use crate::error::Error;
use crate::php::form::{Form, MAX_PAIRS};
use crate::php::json::{Map, Value};
use crate::sys::poll::is_ready_within;
use crate::sys::streams;

/// The maximum length of a body: about twice the largest menu, 64 plates with names of 2000 characters.
const MAX_BODY: u64 = 1024 * 1024;

/// The maximum number of scalars, lists and maps in a body: each takes up to 250 bytes of memory besides its text. A menu
/// of 64 plates has 132.
const MAX_VALUES: usize = 10_000;

/// INVALID_FORMAT for a length that is not a number, TOO_LARGE for one larger than [`MAX_BODY`].
pub(crate) fn check_length(variables: &Variables) -> Result<(), Error> {
    match variables.content_length()? {
        Some(length) if length > MAX_BODY => Err(too_large()),
        _ => Ok(()),
    }
}

/// What is left of the body of a request, in its input.
#[derive(Debug)]
pub struct Body<R>(Take<R>);

impl<R: Read> Body<R> {
    /// The body in `input`: at most `CONTENT_LENGTH` bytes (RFC 3875 §4.2). Without a length, a GET, HEAD or
    /// OPTIONS has no body; the body of any other request, such as a chunked upload, ends at end of file.
    pub fn new(variables: &Variables, input: R) -> Body<R> {
        let limit = match (variables.content_length(), variables.method()) {
            (Ok(Some(length)), _) => length,
            (Err(_), _) | (_, Method::Get | Method::Head | Method::Options) => 0,
            (Ok(None), _) => u64::MAX,
        };
        Body(input.take(limit))
    }

    /// Reads the body, whose length was checked. TOO_LARGE beyond [`MAX_BODY`], INVALID_FORMAT if it ends early.
    pub(crate) fn read(&mut self) -> Result<Vec<u8>, Error> {
        // Without a length, the limit is larger.
        let length = if self.0.limit() <= MAX_BODY {
            self.0.limit()
        } else {
            0
        };
        let mut bytes = Vec::with_capacity(length as usize);
        match self.0.by_ref().take(MAX_BODY + 1).read_to_end(&mut bytes) {
            Ok(read) if read as u64 > MAX_BODY => Err(too_large()),
            Ok(read) if length > read as u64 => Err(Error::invalid_format(
                "The body is shorter than its Content-Length.",
            )),
            Ok(_) => Ok(bytes),
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                Err(Error::invalid_format("The body did not arrive in time."))
            }
            // Too many requests wait for their bodies.
            Err(error) if error.kind() == ErrorKind::ResourceBusy => Err(Error::busy()),
            Err(error) => Err(Error::internal(format!("standard input: {error}"))),
        }
    }
}

/// The body as a map of its fields, which is empty for an empty body.
///
/// INVALID_FORMAT for any other media type, and for a body that is malformed or not valid UTF-8.
pub fn parse(variables: &Variables, body: &[u8]) -> Result<Map, Error> {
    if body.is_empty() {
        return Ok(Map::default());
    }
    let content_type = variables.meta("CONTENT_TYPE").unwrap_or_default();
    let media_type = content_type
        .split(|&byte| byte == b';')
        .next()
        .unwrap_or_default();
    let is = |name: &str| {
        media_type
            .trim_ascii()
            .eq_ignore_ascii_case(name.as_bytes())
    };
    // The sentences repeat them.
    const { assert!(MAX_VALUES == 10_000 && MAX_PAIRS == 1000) };
    // By default curl sends JSON with the media type of a form, and fetch with that of text.
    if body.starts_with(b"{") || is("application/json") {
        return match Value::parse_with(|_| None, MAX_VALUES, body) {
            Ok(Value::Map(map)) => Ok(map),
            Ok(_) => Err(Error::invalid_format("The JSON body must be an object.")),
            Err(_) => Err(Error::invalid_format(
                "The body must be valid JSON of at most 10,000 values.",
            )),
        };
    }
    let form = if is("application/x-www-form-urlencoded") {
        Form::from_body(body)
    } else if is("multipart/form-data") {
        multipart::parse(content_type, body)
    } else {
        return Err(Error::invalid_format(
            "The body must be application/json, application/x-www-form-urlencoded or multipart/form-data.",
        ));
    };
    form.and_then(|form| form.nested(MAX_VALUES)).ok_or_else(|| {
        Error::invalid_format(
            "The form must be well-formed and valid UTF-8, with at most 1000 fields and 10,000 values.",
        )
    })
}

fn too_large() -> Error {
    Error::too_large(format!("The body is larger than {} MiB.", MAX_BODY >> 20))
}

/// Standard input
#[derive(Debug)]
pub struct StandardInput;

impl Read for StandardInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(streams::read(buffer)?)
    }
}

/// The maximum time to read a body that is not needed, and the timeout for its next part: as long as FastCGI waits for a
/// body that is read (`fastcgi::Limits`, `transfer` and `pause`).
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
const DRAIN_IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// As large as the buffers of the standard library.
const DRAIN_BUFFER: usize = 8192;

impl Body<StandardInput> {
    /// Reads the rest of the body, until a timeout.
    ///
    /// Apache's mod_cgid and fcgiwrap connect to the program through a socket. If the program exits
    /// before it has read the whole body, the connection is reset and the response is lost.
    pub fn drain(&mut self) {
        // Most requests have none; with musl, the time alone would cost them 500 instructions.
        if self.0.limit() == 0 {
            return;
        }
        let started = Instant::now();
        let mut buffer = vec![0; DRAIN_BUFFER];
        while self.0.limit() > 0 && started.elapsed() < DRAIN_TIMEOUT {
            let is_ready = is_ready_within(DRAIN_IDLE_TIMEOUT, &stdin(), PollFlags::IN);
            if is_ready != Ok(true) || !matches!(self.0.read(&mut buffer), Ok(1..)) {
                return;
            }
        }
    }
}
