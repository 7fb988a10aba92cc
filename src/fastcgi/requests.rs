//! The requests on one connection, one after the other. The result does not depend on how the input is split.
//!
//! - One request at a time (FCGI_MPXS_CONNS is 0). A BEGIN_REQUEST with another id during a request is rejected with
//!   CANT_MPX_CONN (§5.5); one with the same id replaces it, because Apache reuses connections in this way.
//! - A request is complete with its PARAMS; its STDIN, which web servers send after them, is a reader. Of STDIN only
//!   the first record is awaited: without a body it is the end, which would otherwise stay unread.
//! - Records of an inactive id are ignored (§3.3): after an early answer, the rest of the body.
//! - The end of the connection does not end a body: Apache closes it in the middle of an aborted upload.

use std::io::{self, Error, ErrorKind, Read, Write};

use super::Pairs;
use super::record::{self, HEADER, Header, kind};

/// FCGI_RESPONDER, the only role of web servers
const RESPONDER: u16 = 1;

/// FCGI_KEEP_CONN
const KEEP_CONNECTION: u8 = 1;

/// The size of the buffer for input. A request without a large body is shorter, so that one read is enough.
const BUFFER: usize = 16 * 1024;

/// The protocol status of an END_REQUEST record (§5.5). FCGI_OVERLOADED (2) is never sent.
#[derive(Clone, Copy)]
enum Status {
    RequestComplete = 0,
    CannotMultiplex = 1,
    UnknownRole = 3,
}

/// A request, from its BEGIN_REQUEST to the end of its PARAMS.
#[derive(Debug, Default, PartialEq)]
pub struct FcgiRequest {
    pub id: u16,
    /// FCGI_KEEP_CONN: the web server may send another request on the connection
    pub keep: bool,
    /// Up to one byte over the limit, to detect that it was exceeded
    pub params: Vec<u8>,
}

/// The body of the request that was received last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Body {
    /// Its end has not been read.
    Open,
    #[default]
    Ended,
    /// The web server has aborted the request (ABORT_REQUEST).
    Aborted,
    /// The web server has begun another request in its place.
    Replaced,
    /// The connection has ended, or its input is not FastCGI.
    Broken,
}

/// A connection with its requests.
#[derive(Debug)]
pub struct Requests<S> {
    pub stream: S,
    /// Input that was received, from `start` to `end`
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// What is left of the content and of the padding of the current record
    content: usize,
    padding: usize,
    /// Whether the content is a part of the body
    is_stdin: bool,
    /// The limit on the parameters
    max_params: usize,
    /// The values that FCGI_GET_VALUES asks for: the number of connections and of requests at the same time
    concurrency: usize,
    /// The id of the request that was received last
    id: u16,
    pub body: Body,
    /// The request that has replaced it
    next: Option<FcgiRequest>,
    /// The size of the input since the last request was received
    pub received: u64,
}

/// The connection can have no further request; what is left of its input is to be discarded.
fn over() -> Error {
    ErrorKind::InvalidData.into()
}

impl<S: Read + Write> Requests<S> {
    pub fn new(stream: S, max_params: usize, concurrency: usize) -> Requests<S> {
        Requests {
            stream,
            buffer: vec![0; BUFFER].into(),
            start: 0,
            end: 0,
            content: 0,
            padding: 0,
            is_stdin: false,
            max_params,
            concurrency,
            id: 0,
            body: Body::Ended,
            next: None,
            received: 0,
        }
    }

    /// Receives the next request. `None` at the end of the connection.
    pub fn receive(&mut self) -> io::Result<Option<FcgiRequest>> {
        self.received = 0;
        let mut begun = self.next.take();
        while let Some(header) = self.header()? {
            match (header.kind, header.id, &mut begun) {
                (_, 0, _) => self.reply(header)?,
                (kind::BEGIN_REQUEST, id, begun) => self.begin(id, begun)?,
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
                        (self.id, self.body) = (id, Body::Open);
                        return Ok(begun);
                    }
                    let content = self.take_content()?;
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

    /// Waits for the first part of the body, after [`receive`](Self::receive). If it does not arrive in time, the
    /// handler gets the request without it.
    pub fn await_body(&mut self) -> io::Result<()> {
        match self.advance() {
            Err(error) if error.kind() == ErrorKind::TimedOut => Ok(()),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                self.body = Body::Broken;
                Ok(())
            }
            advanced => advanced,
        }
    }

    /// Reads up to the next part of the body, or up to its end.
    fn advance(&mut self) -> io::Result<()> {
        while self.body == Body::Open && !(self.is_stdin && self.content > 0) {
            let header = self.header()?.ok_or(ErrorKind::UnexpectedEof)?;
            match (header.kind, header.id) {
                (_, 0) => self.reply(header)?,
                (kind::BEGIN_REQUEST, id) => {
                    let mut begun = Some(FcgiRequest {
                        id: self.id,
                        ..FcgiRequest::default()
                    });
                    self.begin(id, &mut begun)?;
                    if id == self.id {
                        self.next = begun;
                        self.body = Body::Replaced;
                    }
                }
                (kind::ABORT_REQUEST, id) if id == self.id => self.body = Body::Aborted,
                (kind::STDIN, id) if id == self.id => match header.content {
                    0 => self.body = Body::Ended,
                    _ => self.is_stdin = true,
                },
                _ => {}
            }
        }
        Ok(())
    }

    /// Discards what is left of the body.
    pub fn discard_body(&mut self) -> io::Result<()> {
        while self.body == Body::Open {
            self.skip()?;
            self.advance()?;
        }
        Ok(())
    }

    /// Whether a part of another request has been received.
    pub fn has_more(&self) -> bool {
        self.next.is_some() || self.start < self.end
    }

    /// Receives at least one byte; 0 is the end of the input.
    pub fn fill(&mut self) -> io::Result<usize> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start.., 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let length = self.stream.read(&mut self.buffer[self.end..])?;
        self.end += length;
        self.received += length as u64;
        Ok(length)
    }

    /// Answers a request.
    pub fn answer(
        &mut self,
        request: &FcgiRequest,
        stdout: &[u8],
        stderr: &[u8],
    ) -> io::Result<()> {
        let id = request.id;
        let mut out = Vec::with_capacity(stdout.len() + stderr.len() + 64);
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
        self.stream.write_all(&out)
    }

    /// Answers a request that was aborted.
    pub fn answer_abort(&mut self, request: &FcgiRequest) -> io::Result<()> {
        self.end_request(request.id, Status::RequestComplete)
    }

    fn end_request(&mut self, id: u16, status: Status) -> io::Result<()> {
        let mut out = Vec::new();
        push_end(&mut out, id, status);
        self.stream.write_all(&out)
    }

    /// BEGIN_REQUEST (§5.1): role (2), flags, reserved (5). `begun` is the request that has begun before.
    fn begin(&mut self, id: u16, begun: &mut Option<FcgiRequest>) -> io::Result<()> {
        let content = self.take_content()?;
        let Some(&[role1, role0, flags, ..]) = content.first_chunk::<8>() else {
            return Err(over());
        };
        if begun.as_ref().is_some_and(|other| other.id != id) {
            return self.end_request(id, Status::CannotMultiplex);
        }
        let keep = flags & KEEP_CONNECTION != 0;
        if u16::from_be_bytes([role1, role0]) == RESPONDER {
            *begun = Some(FcgiRequest {
                id,
                keep,
                params: Vec::new(),
            });
            return Ok(());
        }
        *begun = None;
        self.end_request(id, Status::UnknownRole)?;
        if keep { Ok(()) } else { Err(over()) }
    }

    /// Replies to a management record (§4).
    fn reply(&mut self, header: Header) -> io::Result<()> {
        let content = self.take_content()?;
        let mut out = Vec::new();
        if header.kind == kind::GET_VALUES {
            record::push(&mut out, kind::GET_VALUES_RESULT, 0, &self.values(&content));
        } else {
            let content = [header.kind, 0, 0, 0, 0, 0, 0, 0];
            record::push(&mut out, kind::UNKNOWN_TYPE, 0, &content);
        }
        self.stream.write_all(&out)
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

    /// The header of the next record; `None` at the end of the connection. Can be called again after a timeout.
    fn header(&mut self) -> io::Result<Option<Header>> {
        self.skip()?;
        loop {
            if let Some(bytes) = self.buffer[self.start..self.end].first_chunk::<HEADER>() {
                let header = Header::parse(*bytes).ok_or_else(over)?;
                self.start += HEADER;
                self.content = header.content.into();
                self.padding = header.padding.into();
                self.is_stdin = false;
                return Ok(Some(header));
            }
            if self.has_other_protocol() {
                return Err(over());
            }
            if self.fill()? == 0 {
                return Ok(None);
            }
        }
    }

    /// Whether the first byte of a header is another one than its first.
    fn has_other_protocol(&self) -> bool {
        let first = self.buffer[self.start..self.end].first();
        first.is_some_and(|&version| version != record::VERSION)
    }

    /// The rest of the content of the current record.
    fn take_content(&mut self) -> io::Result<Vec<u8>> {
        let mut content = Vec::with_capacity(self.content);
        while self.content > 0 {
            let part = self.part(self.content)?;
            content.extend_from_slice(part);
            self.content -= part.len();
        }
        Ok(content)
    }

    /// Discards the rest of the current record.
    fn skip(&mut self) -> io::Result<()> {
        while self.content > 0 {
            self.content -= self.part(self.content)?.len();
        }
        while self.padding > 0 {
            self.padding -= self.part(self.padding)?.len();
        }
        Ok(())
    }

    /// Takes at least one and at most `most` bytes of the input.
    fn part(&mut self, most: usize) -> io::Result<&[u8]> {
        if self.start == self.end && self.fill()? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let from = self.start;
        self.start = self.end.min(from + most);
        Ok(&self.buffer[from..self.start])
    }
}

/// STDIN of the request that was received last.
impl<S: Read + Write> Read for Requests<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.read_body(buffer);
        if let Err(error) = &read
            && error.kind() != ErrorKind::TimedOut
            && self.body == Body::Open
        {
            self.body = Body::Broken;
        }
        read
    }
}

impl<S: Read + Write> Requests<S> {
    fn read_body(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.advance()?;
        match self.body {
            Body::Open => {
                let part = self.part(self.content.min(buffer.len()))?;
                let length = part.len();
                buffer[..length].copy_from_slice(part);
                self.content -= length;
                Ok(length)
            }
            Body::Ended => Ok(0),
            Body::Aborted | Body::Replaced | Body::Broken => {
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
