//! The body of a request: read to its length, then taken for what it is.

use std::io::{Read, Take};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use rustix::stdio::stdin;

use crate::cgi::form::Form;
use crate::cgi::multipart;
use crate::cgi::request::MAX_BODY;
use crate::cgi::{Request, Variables};
use crate::error::Error;
use crate::json::{Map, Value};

/// Standard input up to the end of the request's body: no more of it than `CONTENT_LENGTH`
/// (RFC 3875 §4.2); without one to the end of the input, as with a chunked upload, but for GET
/// and HEAD, which have none then.
pub fn input<R: Read>(variables: &Variables, stdin: R) -> Take<R> {
    let bodiless = matches!(variables.get("REQUEST_METHOD"), Some(b"GET" | b"HEAD"));
    let length = match variables.meta("CONTENT_LENGTH") {
        None if bodiless => 0,
        None => u64::MAX,
        // What is no length is refused, and nothing is read.
        Some(length) if !length.iter().all(u8::is_ascii_digit) => 0,
        Some(digits) => {
            str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(u64::MAX)
        }
    };
    stdin.take(length)
}

/// Reads what is left of `input`, which is standard input, as far as it comes in reasonable time.
///
/// Apache's mod_cgid and fcgiwrap speak to the program over a socket: ended with a part of the body
/// unread, it takes the answer with it.
pub fn drain(input: &mut Take<impl Read>) {
    let started = Instant::now();
    while input.limit() > 0 && started.elapsed() < MAX_DRAIN {
        let mut stdin = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
        match poll(&mut stdin, Some(&PATIENCE)) {
            Ok(1..) => {}
            _ => return,
        }
        match input.read(&mut [0; 8192]) {
            Ok(1..) => {}
            _ => return,
        }
    }
}

/// How long a body is read that nobody wants.
const MAX_DRAIN: Duration = Duration::from_secs(30);

/// How long a client may send nothing of it.
const PATIENCE: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Reads the body from `input` and gives its fields. An empty body has none.
///
/// Refuses a body that is longer than [`MAX_BODY`] (TOO_LARGE), shorter than declared, of another
/// type, malformed or no UTF-8 (INVALID_FORMAT).
pub fn fields(request: &Request, input: impl Read) -> Result<Map, Error> {
    let body = read(request.content_length, input)?;
    if body.is_empty() {
        return Ok(Map::new());
    }
    let content_type = request.content_type.unwrap_or_default();
    let media_type = content_type.split(|&b| b == b';').next();
    let is = |name: &str| {
        media_type.is_some_and(|t| t.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
    };
    // curl and fetch label a JSON string as a form or as text unless they are told better.
    if body.starts_with(b"{") || is("application/json") {
        return json(&body);
    }
    let form = if is("application/x-www-form-urlencoded") {
        Form::utf8(&body)
    } else if is("multipart/form-data") {
        multipart::fields(content_type, &body).map(Form::from_fields)
    } else {
        return Err(Error::invalid_format(
            "The body must be application/json, application/x-www-form-urlencoded or multipart/form-data.",
        ));
    };
    form.and_then(Form::nested).ok_or_else(|| {
        Error::invalid_format("The form in the body is malformed, no UTF-8 or has too many fields.")
    })
}

fn read(length: Option<usize>, input: impl Read) -> Result<Vec<u8>, Error> {
    let most = length.unwrap_or(MAX_BODY + 1);
    let mut body = Vec::with_capacity(length.unwrap_or_default());
    match input.take(most as u64).read_to_end(&mut body) {
        Ok(_) if length.is_none() && body.len() > MAX_BODY => Err(Error::too_large()),
        Ok(_) if length.is_some_and(|length| body.len() < length) => {
            Err(Error::invalid_format("The body is shorter than its Content-Length."))
        }
        Ok(_) => Ok(body),
        Err(error) => Err(Error::internal(format!("standard input: {error}"))),
    }
}

fn json(body: &[u8]) -> Result<Map, Error> {
    match Value::parse(body) {
        Ok(Value::Map(map)) => Ok(map),
        Ok(_) => Err(Error::invalid_format("The JSON of the body must be an object.")),
        Err(_) => Err(Error::invalid_format("The body is no well-formed JSON.")),
    }
}
