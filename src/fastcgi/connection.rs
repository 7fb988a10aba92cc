//! One connection: reading, sending, deadlines and closing. Never blocks.

use std::io::{self, ErrorKind, Write};
use std::mem;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use rustix::io::{Errno, ioctl_fionread, retry_on_intr};
use rustix::net::{RecvFlags, recv};

use super::Limits;
use super::events::Events;
use super::protocol::{FcgiRequest, Protocol, Stage};

/// The maximum size of unsent replies to management records, in bytes. A web server sends at most one
/// such record.
const MAX_UNSENT_REPLIES: usize = 64 * 1024;

/// At a stop, a kept connection is closed once it has been idle for this time: one that was used just now
/// may be used again, and a request that the web server sends while it is closed fails.
const LINGER: Duration = Duration::from_millis(250);

/// A kept connection is closed earlier if the write of its answer began less than this time ago. A web server cannot have
/// received that, passed it on and begun to send another request; it can, if another process had this
/// processor in between.
const AT_ONCE: Duration = Duration::from_micros(15);

/// After this time of a stop, a kept connection is closed as soon as it is idle: new connections wait for
/// the next process.
const GENTLE: Duration = Duration::from_millis(500);

/// What a connection waits for. The first in this order gives way to a new one.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Phase {
    /// The first byte of another request
    Idle,
    /// The first request, the rest of a request, or the end of the input after the last one
    Receiving,
    /// The peer reads the answer
    Sending,
}

/// A connection that was accepted.
#[derive(Debug)]
pub struct Connection<'l> {
    stream: UnixStream,
    /// Whether the stream was added to the server's epoll instance
    is_watched: bool,
    protocol: Protocol<'l>,
    out: Vec<u8>,
    sent: usize,
    /// The phase that began at `since`; `None` if it is the one after sending
    phase: Option<Phase>,
    /// When the phase began
    pub since: Instant,
    /// Whether a request was answered on the connection
    is_kept: bool,
}

impl<'l> Connection<'l> {
    /// `stream` must be non-blocking.
    pub fn new(stream: OwnedFd, limits: &'l Limits) -> Connection<'l> {
        Connection {
            stream: stream.into(),
            is_watched: false,
            protocol: Protocol::new(limits),
            out: Vec::new(),
            sent: 0,
            phase: None,
            since: Instant::now(),
            is_kept: false,
        }
    }

    /// Reads at most once, so that a peer that sends without pause cannot occupy a thread; answers
    /// the complete requests; sends as much as the peer accepts. `answer` returns the records that
    /// answer a request of this peer, or `None` to close the connection without an answer. Returns
    /// whether it stays open, to be [armed](Self::arm).
    pub fn turn(
        &mut self,
        buffer: &mut [u8],
        answer: impl Fn(&FcgiRequest, &UnixStream) -> Option<Vec<u8>>,
    ) -> io::Result<bool> {
        if self.protocol.wants_input() {
            match retry_on_intr(|| recv(&self.stream, &mut *buffer, RecvFlags::empty())) {
                Ok((0, _)) => self.protocol.end(Stage::Over),
                Ok((length, _)) => self.protocol.feed(&buffer[..length]),
                Err(Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // Until more input is needed or the peer has to read.
        while self.send()? {
            if let Some(request) = self.protocol.take_request() {
                let records = answer(&request, &self.stream);
                (self.phase, self.is_kept) = (Some(Phase::Receiving), true);
                self.protocol.go_on(&request, request.keep && records.is_some());
                self.out = records.unwrap_or_default();
                continue;
            }
            self.out = mem::take(&mut self.protocol.replies);
            if self.out.is_empty() {
                return match self.protocol.stage {
                    Stage::Answered | Stage::Over => Ok(false),
                    Stage::Draining => self.stream.shutdown(Shutdown::Write).map(|()| true),
                    _ => Ok(true),
                };
            }
        }
        Ok(self.protocol.replies.len() <= MAX_UNSENT_REPLIES)
    }

    /// Sends as much of `out` as the peer accepts. Returns whether everything was sent.
    fn send(&mut self) -> io::Result<bool> {
        while self.sent < self.out.len() {
            // The write wakes the peer, which may run before this thread does again.
            let now = Instant::now();
            match self.stream.write(&self.out[self.sent..]) {
                Ok(length) => {
                    self.sent += length;
                    // The peer made progress, so the send timeout starts again.
                    (self.phase, self.since) = (None, now);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        (self.out, self.sent) = (Vec::new(), 0);
        Ok(true)
    }

    /// Begins the phase, if it has changed.
    pub fn enter_phase(&mut self) {
        let phase = self.phase();
        if self.phase.replace(phase).is_some_and(|before| before != phase) {
            self.since = Instant::now();
        }
    }

    /// Arms the connection for its next event, which has this token.
    pub fn arm(&mut self, events: &Events, token: u64) -> Result<(), Errno> {
        let mut flags = EventFlags::ONESHOT;
        flags.set(EventFlags::IN, self.protocol.wants_input());
        flags.set(EventFlags::OUT, !self.out.is_empty());
        if mem::replace(&mut self.is_watched, true) {
            events.arm(&self.stream, token, flags)
        } else {
            events.watch(&self.stream, token, flags)
        }
    }

    /// When the current phase times out; `stop` is when the server began to stop.
    pub fn deadline(&self, stop: Option<Instant>) -> Instant {
        let limits = self.protocol.limits;
        let timeout = match (self.phase(), stop) {
            (Phase::Idle, Some(stop)) if self.since < stop + GENTLE => LINGER,
            (Phase::Idle, Some(_)) => Duration::ZERO,
            (Phase::Idle, None) => limits.idle,
            (Phase::Receiving, _) => limits.receive,
            (Phase::Sending, _) => limits.send,
        };
        let deadline = self.since + timeout;
        stop.map_or(deadline, |stop| deadline.min(stop + limits.stop))
    }

    /// What the connection waits for now.
    pub fn phase(&self) -> Phase {
        if !self.out.is_empty() {
            Phase::Sending
        } else if self.is_kept && self.protocol.is_idle() {
            Phase::Idle
        } else {
            Phase::Receiving
        }
    }

    /// Closes the connection for a new one. `refuse` returns the records that answer a request whose
    /// parameters are complete.
    pub fn give_way(self, refuse: impl FnOnce(&FcgiRequest) -> Option<Vec<u8>>) {
        if self.out.is_empty()
            && let Some(records) = self.protocol.give_up().as_ref().and_then(refuse)
        {
            _ = (&self.stream).write_all(&records);
        }
    }

    /// Whether the connection waits for another request and no byte of one has arrived, not even in the
    /// socket's buffer.
    pub fn is_idle(&self) -> bool {
        self.phase() == Phase::Idle && ioctl_fionread(&self.stream) == Ok(0)
    }

    /// Whether the connection is to be closed now: its deadline has passed, or the server is stopping and its answer
    /// was sent just now. `false` if a request has just arrived on an idle connection, unless the stop takes
    /// too long: its event is already queued.
    pub fn is_due(&self, stop: Option<Instant>) -> bool {
        let is_late = self.deadline(stop) <= Instant::now();
        match self.phase() {
            _ if stop.is_some_and(|stop| stop.elapsed() >= self.protocol.limits.stop) => true,
            Phase::Idle if is_late => self.is_idle(),
            // The time is looked at last.
            Phase::Idle if stop.is_some() => self.is_idle() && self.since.elapsed() < AT_ONCE,
            _ => is_late,
        }
    }
}
