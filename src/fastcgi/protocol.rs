//! The protocol on one connection, as a state machine: bytes in, requests and replies out. It does no
//! I/O. The result does not depend on how the bytes are split.
//!
//! - One request at a time (FCGI_MPXS_CONNS is 0). A BEGIN_REQUEST with another id while one is
//!   being received is rejected with CANT_MPX_CONN (§5.5); one with the same id replaces it, because
//!   Apache reuses connections in this way.
//! - A request is complete when its PARAMS and STDIN streams have ended. It also counts as complete
//!   when its body is longer than [`Limits::body`], or its parameters cannot be used: the answer does
//!   not depend on the rest.
//! - Records of an inactive id are ignored (§3.3): after an early answer, the rest of the body.
//! - The end of the connection does not end a body: an incomplete request is discarded.

use super::record::{self, NotFastCgi, Pairs, Params, Record, kind};
use super::{Limits, Refusal};

/// FCGI_RESPONDER, the only supported role
const RESPONDER: u16 = 1;

/// FCGI_KEEP_CONN
const KEEP_CONNECTION: u8 = 1;

/// The protocol status of an END_REQUEST record (§5.5). FCGI_OVERLOADED (2) is never sent: Apache's
/// mod_proxy_fcgi turns it into an empty 200.
#[derive(Clone, Copy)]
enum Status {
    RequestComplete = 0,
    CannotMultiplex = 1,
    UnknownRole = 3,
}

/// A received request.
#[derive(Debug, PartialEq)]
pub struct Request {
    pub id: u16,
    /// FCGI_KEEP_CONN: the connection stays open after the answer
    pub keep: bool,
    pub params: Result<Params, Refusal>,
    pub body: Vec<u8>,
    /// The body was received completely
    pub is_whole: bool,
}

impl Request {
    /// The records of the answer: one for each line of `stderr`, then `stdout`.
    pub fn answer(&self, stdout: &[u8], stderr: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(stdout.len() + stderr.len() + 64);
        let mut lines = stderr.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        if let Some(first) = lines.next() {
            record::push(&mut out, kind::STDERR, self.id, first);
            lines.for_each(|line| record::push(&mut out, kind::STDERR, self.id, line));
            record::push(&mut out, kind::STDERR, self.id, &[]);
        }
        if !stdout.is_empty() {
            record::push(&mut out, kind::STDOUT, self.id, stdout);
        }
        record::push(&mut out, kind::STDOUT, self.id, &[]);
        push_end(&mut out, self.id, Status::RequestComplete);
        out
    }
}

/// A request that is being received.
#[derive(Debug, Default)]
struct Incoming {
    id: u16,
    keep: bool,
    params: Vec<u8>,
    params_ended: bool,
    body: Vec<u8>,
    body_ended: bool,
}

/// The state of the protocol on one connection.
#[derive(Debug)]
pub struct Protocol<'l> {
    limits: &'l Limits,
    /// Bytes that are not processed yet: a partial record, or records after a complete request
    pending: Vec<u8>,
    incoming: Option<Incoming>,
    ready: Option<Request>,
    replies: Vec<u8>,
    ended: bool,
    is_read: bool,
}

impl<'l> Protocol<'l> {
    pub fn new(limits: &'l Limits) -> Protocol<'l> {
        Protocol {
            limits,
            pending: Vec::new(),
            incoming: None,
            ready: None,
            replies: Vec::new(),
            ended: false,
            is_read: false,
        }
    }

    /// Processes received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.ended {
            return;
        }
        let mut pending = std::mem::take(&mut self.pending);
        if pending.is_empty() {
            let left = self.digest(bytes);
            self.pending = left.to_vec();
        } else {
            pending.extend_from_slice(bytes);
            let left = self.digest(&pending).len();
            if left > 0 {
                pending.drain(..pending.len() - left);
                self.pending = pending;
            }
        }
    }

    /// The complete request, if there is one. Without FCGI_KEEP_CONN it is the last of the
    /// connection.
    pub fn take_request(&mut self) -> Option<Request> {
        let request = self.ready.take()?;
        if request.keep {
            // The next request may already be in `pending`.
            self.feed(&[]);
        } else {
            self.end_with(&request);
        }
        Some(request)
    }

    /// Replies to management records and rejections, which are sent before anything else.
    pub fn take_replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.replies)
    }

    pub fn unsent_replies(&self) -> usize {
        self.replies.len()
    }

    /// Whether more input can be processed: not while a complete request waits.
    pub fn wants_input(&self) -> bool {
        self.ready.is_none()
    }

    /// Makes `request` the last that is answered on this connection.
    pub fn end_with(&mut self, request: &Request) {
        if !self.ended {
            self.is_read = request.is_whole && self.is_idle();
            self.end();
        }
    }

    /// Ignores all further input.
    fn end(&mut self) {
        self.ended = true;
        self.pending = Vec::new();
        self.incoming = None;
        self.ready = None;
    }

    /// Whether it has ended and all input was read.
    pub fn is_read(&self) -> bool {
        self.is_read
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether no part of an unanswered request has been received.
    pub fn is_idle(&self) -> bool {
        self.incoming.is_none() && self.pending.is_empty() && self.ready.is_none()
    }

    /// Processes complete records, up to the end of a request. Returns the remaining bytes.
    fn digest<'b>(&mut self, mut bytes: &'b [u8]) -> &'b [u8] {
        while self.ready.is_none() && !self.ended {
            match record::split_first(bytes) {
                Ok(Some((record, rest))) => {
                    self.take(&record);
                    bytes = rest;
                }
                Ok(None) => return bytes,
                Err(NotFastCgi) => self.end(),
            }
        }
        if self.ended { &[] } else { bytes }
    }

    fn take(&mut self, record: &Record) {
        match (record.kind, record.id, &mut self.incoming) {
            (kind::GET_VALUES, 0, _) => self.reply_values(record.content),
            (unknown, 0, _) => {
                let content = [unknown, 0, 0, 0, 0, 0, 0, 0];
                record::push(&mut self.replies, kind::UNKNOWN_TYPE, 0, &content);
            }
            (kind::BEGIN_REQUEST, id, _) => self.begin(id, record.content),
            (kind::ABORT_REQUEST, id, Some(incoming)) if incoming.id == id => {
                let keep = incoming.keep;
                self.incoming = None;
                self.reply_end(id, Status::RequestComplete, keep);
            }
            (kind::PARAMS, id, Some(incoming)) if incoming.id == id && !incoming.params_ended => {
                incoming.params_ended = record.content.is_empty();
                extend(&mut incoming.params, record.content, self.limits.params);
                self.complete();
            }
            (kind::STDIN, id, Some(incoming)) if incoming.id == id && !incoming.body_ended => {
                incoming.body_ended = record.content.is_empty();
                extend(&mut incoming.body, record.content, self.limits.body);
                self.complete();
            }
            _ => {}
        }
    }

    /// BEGIN_REQUEST (§5.1): role (2), flags, reserved (5).
    fn begin(&mut self, id: u16, content: &[u8]) {
        let Some(&[role1, role0, flags, ..]) = content.first_chunk::<8>() else {
            return self.end();
        };
        let keep = flags & KEEP_CONNECTION != 0;
        match &self.incoming {
            Some(incoming) if incoming.id != id => {
                self.reply_end(id, Status::CannotMultiplex, true);
            }
            _ if u16::from_be_bytes([role1, role0]) != RESPONDER => {
                self.incoming = None;
                self.reply_end(id, Status::UnknownRole, keep);
            }
            _ => {
                self.incoming = Some(Incoming { id, keep, ..Incoming::default() });
            }
        }
    }

    /// Moves the incoming request to `ready`, if it is complete.
    fn complete(&mut self) {
        let limits = self.limits;
        let answerable = |incoming: &mut Incoming| {
            let enough = incoming.body_ended || incoming.body.len() > limits.body;
            let unusable = incoming.params.len() > limits.params;
            incoming.params_ended && (enough || unusable)
        };
        self.ready = self.incoming.take_if(answerable).map(|incoming| self.request(incoming));
    }

    /// The request that is being received, if its parameters are complete. It ends the connection.
    pub fn give_up(&mut self) -> Option<Request> {
        let incoming = self.incoming.take().filter(|incoming| incoming.params_ended);
        self.end();
        incoming.map(|incoming| self.request(incoming))
    }

    fn request(&self, incoming: Incoming) -> Request {
        let params = if incoming.params.len() > self.limits.params {
            Err(Refusal::ParamsTooLarge(self.limits.params))
        } else {
            Params::parse(incoming.params).ok_or(Refusal::ParamsMalformed)
        };
        Request {
            id: incoming.id,
            keep: incoming.keep,
            params,
            body: incoming.body,
            is_whole: incoming.body_ended,
        }
    }

    fn reply_end(&mut self, id: u16, status: Status, keep: bool) {
        push_end(&mut self.replies, id, status);
        if !keep {
            self.end();
        }
    }

    /// GET_VALUES_RESULT (§4.1): the requested values, without unknown names.
    fn reply_values(&mut self, asked: &[u8]) {
        let mut pairs = Vec::new();
        for (name, value) in [
            ("FCGI_MAX_CONNS", self.limits.connections),
            ("FCGI_MAX_REQS", self.limits.requests),
            ("FCGI_MPXS_CONNS", 0),
        ] {
            if Pairs(asked).any(|(asked, _)| asked == name.as_bytes()) {
                let value = value.to_string();
                record::push_short_pair(&mut pairs, name.as_bytes(), value.as_bytes());
            }
        }
        record::push(&mut self.replies, kind::GET_VALUES_RESULT, 0, &pairs);
    }
}

/// Appends `content` to `stream`, up to one byte over the limit, to detect that it was exceeded.
fn extend(stream: &mut Vec<u8>, content: &[u8], limit: usize) {
    let room = limit + 1 - stream.len();
    stream.extend_from_slice(content.get(..room).unwrap_or(content));
}

/// END_REQUEST (§5.5): application status (4), protocol status, reserved (3).
fn push_end(out: &mut Vec<u8>, id: u16, status: Status) {
    record::push(out, kind::END_REQUEST, id, &[0, 0, 0, 0, status as u8, 0, 0, 0]);
}

/// Feeds `pieces` of input. Returns the requests, the replies and whether the protocol has ended.
#[cfg(any(test, fuzzing))]
pub fn outcome<'b>(
    limits: &Limits,
    pieces: impl IntoIterator<Item = &'b [u8]>,
) -> (Vec<Request>, Vec<u8>, bool) {
    let mut protocol = Protocol::new(limits);
    let (mut requests, mut replies) = (Vec::new(), Vec::new());
    for piece in pieces {
        protocol.feed(piece);
        while let Some(request) = protocol.take_request() {
            requests.push(request);
        }
        replies.append(&mut protocol.take_replies());
        if let Some(incoming) = &protocol.incoming {
            assert!(incoming.params.len() <= limits.params + 1);
            assert!(incoming.body.len() <= limits.body + 1);
        }
    }
    (requests, replies, protocol.has_ended())
}

#[cfg(test)]
mod tests;
