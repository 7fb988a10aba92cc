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
//! - The end of the connection does not end a body: an incomplete request is discarded. Apache closes it
//!   in the middle of an aborted upload.

use std::mem;

use super::record::{self, NotFastCgi, Pairs, Record, kind};
use super::{Limits, Refusal};

/// FCGI_RESPONDER, the only role of web servers
pub const RESPONDER: u16 = 1;

/// FCGI_KEEP_CONN
const KEEP_CONNECTION: u8 = 1;

/// The protocol status of an END_REQUEST record (§5.5). FCGI_OVERLOADED (2) is never sent.
#[derive(Clone, Copy)]
pub enum Status {
    RequestComplete = 0,
    CannotMultiplex = 1,
    UnknownRole = 3,
}

/// A request, of which at least BEGIN_REQUEST was received.
#[derive(Debug, Default, PartialEq)]
pub struct FcgiRequest {
    pub id: u16,
    /// In a role other than [`RESPONDER`], BEGIN_REQUEST is the whole request.
    pub role: u16,
    /// FCGI_KEEP_CONN: the connection stays open after the answer
    pub keep: bool,
    params: Stream,
    pub body: Stream,
}

impl FcgiRequest {
    /// The parameters, if they can be used.
    pub fn params(&self, limits: &Limits) -> Result<Pairs<'_>, Refusal> {
        let bytes = &self.params.bytes;
        if bytes.len() > limits.params {
            return Err(Refusal::ParamsTooLarge(limits.params));
        }
        Pairs::parse(bytes).ok_or(Refusal::ParamsMalformed)
    }

    fn is_complete(&self, limits: &Limits) -> bool {
        let is_enough = self.body.has_ended || self.body.bytes.len() > limits.body;
        self.params.has_ended && (is_enough || self.params.bytes.len() > limits.params)
    }

    /// The record that refuses it as one of an unknown role.
    pub fn unknown_role(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push_end(&mut out, self.id, Status::UnknownRole);
        out
    }

    /// The records of the answer: one for each line of `stderr`, then `stdout`.
    pub fn answer(&self, stdout: &[u8], stderr: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(stdout.len() + stderr.len() + 64);
        for line in stderr.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            record::push(&mut out, kind::STDERR, self.id, line);
        }
        if !stderr.is_empty() {
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

/// A stream of records (§3.3), up to one byte over its limit, to detect that it was exceeded.
#[derive(Debug, Default, PartialEq)]
pub struct Stream {
    pub bytes: Vec<u8>,
    has_ended: bool,
}

impl Stream {
    fn extend(&mut self, content: &[u8], limit: usize) {
        if !self.has_ended {
            self.has_ended = content.is_empty();
            let room = limit + 1 - self.bytes.len();
            self.bytes.extend_from_slice(content.get(..room).unwrap_or(content));
        }
    }
}

/// What a connection receives next.
#[derive(Debug, Default)]
pub enum Stage {
    /// The first byte of a request
    #[default]
    Idle,
    /// The rest of a request
    Receiving(FcgiRequest),
    /// The next request, after this complete one is taken
    Ready(FcgiRequest),
    /// The rest of the input, to discard it after the last request
    Draining,
    /// The rest of the input, until the answer is sent: all of the last request was read
    Answered,
    /// Nothing: the peer has ended sending
    Over,
}

/// The state of the protocol on one connection.
#[derive(Debug)]
pub struct Protocol<'l> {
    pub limits: &'l Limits,
    /// Bytes that are not processed yet: a partial record, or records after a complete request
    pending: Vec<u8>,
    pub stage: Stage,
    /// Replies to management records and rejections, which are sent when no complete request waits for
    /// its answer.
    pub replies: Vec<u8>,
}

impl<'l> Protocol<'l> {
    pub fn new(limits: &'l Limits) -> Protocol<'l> {
        Protocol { limits, pending: Vec::new(), stage: Stage::Idle, replies: Vec::new() }
    }

    /// Processes received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut pending = mem::take(&mut self.pending);
        if pending.is_empty() {
            self.pending = self.digest(bytes).to_vec();
        } else {
            pending.extend_from_slice(bytes);
            let left = self.digest(&pending).len();
            // An empty buffer releases its memory.
            if left > 0 {
                pending.drain(..pending.len() - left);
                self.pending = pending;
            }
        }
    }

    /// The complete request, if there is one. After its answer, [`go_on`](Self::go_on) is called.
    pub fn take_request(&mut self) -> Option<FcgiRequest> {
        let Stage::Ready(request) = &mut self.stage else { return None };
        let request = mem::take(request);
        self.stage = Stage::Idle;
        Some(request)
    }

    /// Receives the request after `request`, which may already be in `pending`; unless `keep`, only
    /// discards the rest of the input.
    pub fn go_on(&mut self, request: &FcgiRequest, keep: bool) {
        if keep {
            self.feed(&[]);
        } else {
            let is_read = request.body.has_ended && self.pending.is_empty();
            self.end(if is_read { Stage::Answered } else { Stage::Draining });
        }
    }

    /// Receives no further request.
    pub fn end(&mut self, stage: Stage) {
        (self.stage, self.pending) = (stage, Vec::new());
    }

    /// Whether more input can be processed.
    pub fn wants_input(&self) -> bool {
        !matches!(self.stage, Stage::Ready(_) | Stage::Over)
    }

    /// Whether no part of an unanswered request has been received.
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle) && self.pending.is_empty()
    }

    /// The request that is being received, if its parameters are complete. It ends the connection.
    pub fn give_up(self) -> Option<FcgiRequest> {
        match self.stage {
            Stage::Receiving(request) if request.params.has_ended => Some(request),
            _ => None,
        }
    }

    /// Processes complete records, up to the end of a request. Returns the remaining bytes.
    fn digest<'b>(&mut self, mut bytes: &'b [u8]) -> &'b [u8] {
        while let Stage::Idle | Stage::Receiving(_) = self.stage {
            match record::split_first(bytes) {
                Ok(Some((record, rest))) => {
                    self.take(&record);
                    bytes = rest;
                }
                Ok(None) => return bytes,
                Err(NotFastCgi) => self.end(Stage::Draining),
            }
        }
        if let Stage::Ready(_) = self.stage { bytes } else { &[] }
    }

    fn take(&mut self, record: &Record) {
        match (record.kind, record.id, &mut self.stage) {
            (kind::GET_VALUES, 0, _) => self.reply_values(record.content),
            (unknown, 0, _) => {
                let content = [unknown, 0, 0, 0, 0, 0, 0, 0];
                record::push(&mut self.replies, kind::UNKNOWN_TYPE, 0, &content);
            }
            (kind::BEGIN_REQUEST, id, _) => self.begin(id, record.content),
            (kind, id, Stage::Receiving(request)) if request.id == id => {
                match kind {
                    kind::ABORT_REQUEST => {
                        self.stage = if request.keep { Stage::Idle } else { Stage::Draining };
                        return push_end(&mut self.replies, id, Status::RequestComplete);
                    }
                    kind::PARAMS => request.params.extend(record.content, self.limits.params),
                    kind::STDIN => request.body.extend(record.content, self.limits.body),
                    _ => {}
                }
                if request.is_complete(self.limits) {
                    self.stage = Stage::Ready(mem::take(request));
                }
            }
            _ => {}
        }
    }

    /// BEGIN_REQUEST (§5.1): role (2), flags, reserved (5).
    fn begin(&mut self, id: u16, content: &[u8]) {
        let Some(&[role1, role0, flags, ..]) = content.first_chunk::<8>() else {
            return self.end(Stage::Draining);
        };
        if let Stage::Receiving(other) = &self.stage
            && other.id != id
        {
            return push_end(&mut self.replies, id, Status::CannotMultiplex);
        }
        let (role, keep) = (u16::from_be_bytes([role1, role0]), flags & KEEP_CONNECTION != 0);
        let begun = FcgiRequest { id, role, keep, ..FcgiRequest::default() };
        let is_responder = role == RESPONDER;
        self.stage = if is_responder { Stage::Receiving(begun) } else { Stage::Ready(begun) };
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
                // Name and value are shorter than 128 bytes.
                pairs.extend([name.len() as u8, value.len() as u8]);
                pairs.extend([name, &value].concat().bytes());
            }
        }
        record::push(&mut self.replies, kind::GET_VALUES_RESULT, 0, &pairs);
    }
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
) -> (Vec<FcgiRequest>, Vec<u8>, bool) {
    let mut protocol = Protocol::new(limits);
    let mut requests = Vec::new();
    for piece in pieces {
        protocol.feed(piece);
        while let Some(request) = protocol.take_request() {
            protocol.go_on(&request, request.keep);
            requests.push(request);
        }
        if let Stage::Receiving(request) = &protocol.stage {
            assert!(request.params.bytes.len() <= limits.params + 1);
            assert!(request.body.bytes.len() <= limits.body + 1);
        }
    }
    let has_ended = matches!(protocol.stage, Stage::Draining | Stage::Answered | Stage::Over);
    (requests, protocol.replies, has_ended)
}
