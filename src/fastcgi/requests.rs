//! The requests on one connection, one after the other. The result does not depend on how the input is split.
//!
//! - One request at a time (FCGI_MPXS_CONNS is 0). A BEGIN_REQUEST with another id during a request is rejected with
//!   CANT_MPX_CONN (§5.5); one with the same id replaces it, because Apache reuses connections in this way.
//! - A request is complete with its PARAMS; its STDIN, which web servers send after them, is a reader. Of STDIN only
//!   the first record is awaited: without a body it is the end, which would otherwise stay unread.
//! - Records of an inactive id are ignored (§3.3): after an early answer, the rest of the body.
//! - The end of the connection does not end a body: Apache closes it in the middle of an aborted upload.

use std::io::{self, ErrorKind, Read, Write};

use super::Pairs;
use super::input::{Input, over};
use super::record::{self, HEADER, Header, kind};

/// FCGI_RESPONDER, the only role of web servers
const RESPONDER: u16 = 1;

/// FCGI_KEEP_CONN
const KEEP_CONNECTION: u8 = 1;

/// The protocol status of an END_REQUEST record (§5.5). FCGI_OVERLOADED (2) is never sent.
#[derive(Clone, Copy)]
enum Status {
    RequestComplete = 0,
    CannotMultiplex = 1,
    UnknownRole = 3,
}

/// A request, from its BEGIN_REQUEST to the end of its PARAMS.
#[derive(Debug, PartialEq)]
pub struct FcgiRequest {
    pub id: u16,
    /// FCGI_KEEP_CONN: the web server may send another request on the connection
    pub keep: bool,
    /// Up to one byte over the limit, to detect that it was exceeded
    pub params: Vec<u8>,
}

/// What a BEGIN_REQUEST does to the active request.
enum Begin {
    /// Nothing: it was of another id, and was rejected.
    Rejected,
    /// It ends. The new request has its place, unless its role is unknown.
    Replaced(Option<FcgiRequest>),
}

/// The state of STDIN, the body of the request that was received last.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stdin {
    /// Its end has not been read.
    Open,
    Ended,
    /// The web server has aborted the request (ABORT_REQUEST).
    Aborted,
    /// The web server has begun another request in its place.
    Replaced,
    /// The connection has ended, or its input is not FastCGI.
    Broken,
}

/// What became of a request.
#[derive(Debug, PartialEq)]
pub enum Handled<T> {
    /// It is to be answered.
    Answer {
        answer: T,
        /// Whether the end of its body has not been read
        has_rest: bool,
    },
    /// The web server has aborted it (ABORT_REQUEST).
    Aborted,
    /// The web server has begun another request in its place.
    Replaced,
    /// The connection has ended, or its input is not FastCGI.
    Broken,
}

/// A connection with its requests.
#[derive(Debug)]
pub struct Requests<S> {
    pub input: Input<S>,
    /// Whether the current record is a part of the body
    is_in_stdin: bool,
    /// The limit on the parameters
    max_params: usize,
    /// The values that FCGI_GET_VALUES asks for: the number of connections and of requests at the same time
    concurrency: usize,
    /// The id of the request that was received last
    id: u16,
    stdin: Stdin,
    /// The request that has replaced it
    next: Option<FcgiRequest>,
}

impl<S: Read + Write> Requests<S> {
    pub fn new(stream: S, max_params: usize, concurrency: usize) -> Requests<S> {
        Requests {
            input: Input::new(stream),
            is_in_stdin: false,
            max_params,
            concurrency,
            id: 0,
            stdin: Stdin::Ended,
            next: None,
        }
    }

    /// Receives the next request. `None` at the end of the connection.
    pub fn receive(&mut self) -> io::Result<Option<FcgiRequest>> {
        self.input.received = 0;
        let mut begun = self.next.take();
        while let Some(header) = self.input.header()? {
            match (header.kind, header.id, &mut begun) {
                (_, 0, _) => self.reply(header)?,
                (kind::BEGIN_REQUEST, id, active) => {
                    let active = active.as_ref().map(|request| request.id);
                    if let Begin::Replaced(request) = self.begin(id, active)? {
                        begun = request;
                    }
                }
                (kind::ABORT_REQUEST, id, Some(request)) if id == request.id => {
                    let keep = request.keep;
                    begun = None;
                    self.end_request(id, Status::RequestComplete)?;
                    if !keep {
                        return Err(over());
                    }
                }
                (kind::PARAMS, id, Some(request)) if id == request.id => {
                    if header.content == 0 {
                        self.id = id;
                        self.stdin = Stdin::Open;
                        return Ok(begun);
                    }
                    let content = self.input.content()?;
                    let room = self.max_params + 1 - request.params.len();
                    request.params.extend(content.iter().take(room));
                }
                // No web server sends the body first.
                (kind::STDIN, id, Some(request)) if id == request.id => return Err(over()),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Waits for the first part of the body, after [`receive`](Self::receive). If it does not arrive in time, or may not
    /// be waited for, the handler gets the request without it.
    pub fn await_body(&mut self) -> io::Result<()> {
        match self.advance() {
            Err(error) if is_late(&error) => Ok(()),
            advanced => advanced,
        }
    }

    /// Reads up to the next part of the body, or up to its end.
    fn advance(&mut self) -> io::Result<()> {
        while self.stdin == Stdin::Open && !(self.is_in_stdin && self.input.has_content()) {
            let header = self.input.header()?.ok_or(ErrorKind::UnexpectedEof)?;
            self.is_in_stdin = false;
            match (header.kind, header.id) {
                (_, 0) => self.reply(header)?,
                (kind::BEGIN_REQUEST, id) => {
                    if let Begin::Replaced(request) = self.begin(id, Some(self.id))? {
                        self.next = request;
                        self.stdin = Stdin::Replaced;
                    }
                }
                (kind::ABORT_REQUEST, id) if id == self.id => self.stdin = Stdin::Aborted,
                (kind::STDIN, id) if id == self.id => match header.content {
                    0 => self.stdin = Stdin::Ended,
                    _ => self.is_in_stdin = true,
                },
                _ => {}
            }
        }
        Ok(())
    }

    /// Passes the body to `handle`, unless the web server has given the request up.
    pub fn handle<T>(&mut self, handle: impl FnOnce(&mut dyn Read) -> T) -> Handled<T> {
        let answer = match self.stdin {
            Stdin::Open | Stdin::Ended => Some(handle(&mut Body(self))),
            Stdin::Aborted | Stdin::Replaced | Stdin::Broken => None,
        };
        match (self.stdin, answer) {
            (Stdin::Open | Stdin::Ended, Some(answer)) => Handled::Answer {
                answer,
                has_rest: self.stdin == Stdin::Open,
            },
            (Stdin::Aborted, _) => Handled::Aborted,
            (Stdin::Replaced, _) => Handled::Replaced,
            _ => Handled::Broken,
        }
    }

    /// Discards what is left of the body.
    pub fn discard_body(&mut self) -> io::Result<()> {
        while self.stdin == Stdin::Open {
            self.input.skip()?;
            self.advance()?;
        }
        Ok(())
    }

    /// Whether a part of another request has been received.
    pub fn has_more(&self) -> bool {
        self.next.is_some() || self.input.has_more()
    }

    /// Answers a request.
    pub fn answer(
        &mut self,
        request: &FcgiRequest,
        stdout: &[u8],
        stderr: &[u8],
    ) -> io::Result<()> {
        let id = request.id;
        // Five headers with one line for the log, and the content of END_REQUEST, which is as long as a header.
        let mut out = Vec::with_capacity(stdout.len() + stderr.len() + 6 * HEADER);
        for line in stderr
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            record::push(&mut out, kind::STDERR, id, line);
        }
        if !stderr.is_empty() {
            record::push(&mut out, kind::STDERR, id, &[]);
        }
        if !stdout.is_empty() {
            record::push(&mut out, kind::STDOUT, id, stdout);
        }
        record::push(&mut out, kind::STDOUT, id, &[]);
        push_end(&mut out, id, Status::RequestComplete);
        self.input.stream.write_all(&out)
    }

    /// Answers a request that was aborted.
    pub fn answer_abort(&mut self, request: &FcgiRequest) -> io::Result<()> {
        self.end_request(request.id, Status::RequestComplete)
    }

    fn end_request(&mut self, id: u16, status: Status) -> io::Result<()> {
        let mut out = Vec::new();
        push_end(&mut out, id, status);
        self.input.stream.write_all(&out)
    }

    /// BEGIN_REQUEST (§5.1): role (2), flags, reserved (5). `active` is the id of a request that has not ended.
    fn begin(&mut self, id: u16, active: Option<u16>) -> io::Result<Begin> {
        let content = self.input.content()?;
        let Some(&[role1, role0, flags, ..]) = content.first_chunk::<8>() else {
            return Err(over());
        };
        if active.is_some_and(|active| active != id) {
            self.end_request(id, Status::CannotMultiplex)?;
            return Ok(Begin::Rejected);
        }
        let keep = flags & KEEP_CONNECTION != 0;
        if u16::from_be_bytes([role1, role0]) == RESPONDER {
            return Ok(Begin::Replaced(Some(FcgiRequest {
                id,
                keep,
                params: Vec::new(),
            })));
        }
        self.end_request(id, Status::UnknownRole)?;
        if keep {
            Ok(Begin::Replaced(None))
        } else {
            Err(over())
        }
    }

    /// Replies to a management record (§4).
    fn reply(&mut self, header: Header) -> io::Result<()> {
        let content = self.input.content()?;
        let mut out = Vec::new();
        if header.kind == kind::GET_VALUES {
            record::push(&mut out, kind::GET_VALUES_RESULT, 0, &self.values(&content));
        } else {
            let content = [header.kind, 0, 0, 0, 0, 0, 0, 0];
            record::push(&mut out, kind::UNKNOWN_TYPE, 0, &content);
        }
        self.input.stream.write_all(&out)
    }

    /// The values that FCGI_GET_VALUES (§4.1) asks for, without unknown names.
    fn values(&self, asked: &[u8]) -> Vec<u8> {
        let mut pairs = Vec::new();
        for (name, value) in [
            ("FCGI_MAX_CONNS", self.concurrency),
            ("FCGI_MAX_REQS", self.concurrency),
            ("FCGI_MPXS_CONNS", 0),
        ] {
            if Pairs(asked).any(|(asked, _)| asked == name.as_bytes()) {
                let value = value.to_string();
                // Name and value are shorter than 128 bytes.
                pairs.extend([name.len() as u8, value.len() as u8]);
                pairs.extend([name, &value].concat().bytes());
            }
        }
        pairs
    }
}

/// Whether input has not come yet, and can still come.
fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::ResourceBusy)
}

/// STDIN of the request that was received last.
struct Body<'r, S>(&'r mut Requests<S>);

impl<S: Read + Write> Read for Body<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read_body(buffer);
        if let Err(error) = &read
            && !is_late(error)
            && self.0.stdin == Stdin::Open
        {
            self.0.stdin = Stdin::Broken;
        }
        read
    }
}

impl<S: Read + Write> Requests<S> {
    fn read_body(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.advance()?;
        match self.stdin {
            Stdin::Open => {
                let part = self.input.part(buffer.len())?;
                buffer[..part.len()].copy_from_slice(part);
                Ok(part.len())
            }
            Stdin::Ended => Ok(0),
            Stdin::Aborted | Stdin::Replaced | Stdin::Broken => {
                Err(ErrorKind::ConnectionAborted.into())
            }
        }
    }
}

/// END_REQUEST (§5.5): application status (4), protocol status, reserved (3).
fn push_end(out: &mut Vec<u8>, id: u16, status: Status) {
    record::push(
        out,
        kind::END_REQUEST,
        id,
        &[0, 0, 0, 0, status as u8, 0, 0, 0],
    );
}
