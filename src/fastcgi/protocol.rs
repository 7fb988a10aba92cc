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

use std::mem;

use super::record::{self, NotFastCgi, Pairs, Params, Record, kind};
use super::{Limits, Refusal};

/// FCGI_RESPONDER, the only role of web servers
const RESPONDER: u16 = 1;

/// A role of this program. BEGIN_REQUEST is the whole request, and the handler gives it its meaning: a peer to
/// which [`Handler::answer_privately`](super::Handler::answer_privately) has no answer gets that to an unknown
/// role.
pub const PRIVATE: u16 = 0xc0ed;

/// FCGI_KEEP_CONN
const KEEP_CONNECTION: u8 = 1;

/// The protocol status of an END_REQUEST record (§5.5). FCGI_OVERLOADED (2) is never sent: Apache's
/// mod_proxy_fcgi turns it into an empty 200.
#[derive(Clone, Copy)]
pub enum Status {
    RequestComplete = 0,
    CannotMultiplex = 1,
    UnknownRole = 3,
}

/// A received request.
#[derive(Debug, PartialEq)]
pub struct FcgiRequest {
    pub id: u16,
    /// FCGI_KEEP_CONN: the connection stays open after the answer
    pub keep: bool,
    pub params: Result<Params, Refusal>,
    pub body: Vec<u8>,
    /// The body was received completely
    pub is_whole: bool,
    /// In the role [`PRIVATE`], without parameters and body
    pub is_private: bool,
}

impl FcgiRequest {
    /// The record that refuses it as one of an unknown role.
    pub fn unknown_role(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push_end(&mut out, self.id, Status::UnknownRole);
        out
    }

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

/// A stream of records (§3.3), up to one byte over its limit, to detect that it was exceeded.
#[derive(Debug, Default)]
struct Stream {
    bytes: Vec<u8>,
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

/// A request that is being received.
#[derive(Debug, Default)]
pub struct Incoming {
    id: u16,
    keep: bool,
    params: Stream,
    body: Stream,
}

impl Incoming {
    fn is_complete(&self, limits: &Limits) -> bool {
        let is_enough = self.body.has_ended || self.body.bytes.len() > limits.body;
        self.params.has_ended && (is_enough || self.params.bytes.len() > limits.params)
    }

    fn request(self, limits: &Limits) -> FcgiRequest {
        let params = if self.params.bytes.len() > limits.params {
            Err(Refusal::ParamsTooLarge(limits.params))
        } else {
            Params::parse(self.params.bytes).ok_or(Refusal::ParamsMalformed)
        };
        let Stream { bytes: body, has_ended: is_whole } = self.body;
        FcgiRequest { id: self.id, keep: self.keep, params, body, is_whole, is_private: false }
    }
}

/// What a connection receives next.
#[derive(Debug, Default)]
pub enum Stage {
    /// The first byte of a request
    #[default]
    Idle,
    /// The rest of a request
    Receiving(Incoming),
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
        match mem::take(&mut self.stage) {
            Stage::Ready(request) => Some(request),
            other => {
                self.stage = other;
                None
            }
        }
    }

    /// Receives the request after `request`, which may already be in `pending`; unless `keep`, only
    /// discards the rest of the input.
    pub fn go_on(&mut self, request: &FcgiRequest, keep: bool) {
        if keep {
            self.feed(&[]);
        } else {
            let is_read = request.is_whole && self.pending.is_empty();
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
            Stage::Receiving(incoming) if incoming.params.has_ended => {
                Some(incoming.request(self.limits))
            }
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
            (kind, id, Stage::Receiving(incoming)) if incoming.id == id => {
                match kind {
                    kind::ABORT_REQUEST => {
                        let keep = incoming.keep;
                        self.stage = Stage::Idle;
                        return self.reply_end(id, Status::RequestComplete, keep);
                    }
                    kind::PARAMS => incoming.params.extend(record.content, self.limits.params),
                    kind::STDIN => incoming.body.extend(record.content, self.limits.body),
                    _ => {}
                }
                if incoming.is_complete(self.limits) {
                    self.stage = Stage::Ready(mem::take(incoming).request(self.limits));
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
        let keep = flags & KEEP_CONNECTION != 0;
        let begun = Incoming { id, keep, ..Incoming::default() };
        match (u16::from_be_bytes([role1, role0]), &self.stage) {
            (_, Stage::Receiving(other)) if other.id != id => {
                self.reply_end(id, Status::CannotMultiplex, true);
            }
            (RESPONDER, _) => self.stage = Stage::Receiving(begun),
            // Its other records are ignored, as those of an unknown role.
            (PRIVATE, _) => {
                let request = begun.request(self.limits);
                self.stage = Stage::Ready(FcgiRequest { is_private: true, ..request });
            }
            _ => {
                self.stage = Stage::Idle;
                self.reply_end(id, Status::UnknownRole, keep);
            }
        }
    }

    fn reply_end(&mut self, id: u16, status: Status, keep: bool) {
        push_end(&mut self.replies, id, status);
        if !keep {
            self.end(Stage::Draining);
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
    let (mut requests, mut replies) = (Vec::new(), Vec::new());
    for piece in pieces {
        protocol.feed(piece);
        while let Some(request) = protocol.take_request() {
            protocol.go_on(&request, request.keep);
            requests.push(request);
        }
        replies.append(&mut protocol.replies);
        if let Stage::Receiving(incoming) = &protocol.stage {
            assert!(incoming.params.bytes.len() <= limits.params + 1);
            assert!(incoming.body.bytes.len() <= limits.body + 1);
        }
    }
    let has_ended = matches!(protocol.stage, Stage::Draining | Stage::Answered | Stage::Over);
    (requests, replies, has_ended)
}
