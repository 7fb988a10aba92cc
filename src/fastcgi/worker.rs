//! A worker process: accepts a connection, answers its requests, closes it, and accepts the next one.

use std::io::{self, ErrorKind, PipeReader};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, ioctl_fionread, retry_on_intr};
use rustix::net::{SocketFlags, accept_with};

use super::requests::{FcgiRequest, Handled, Requests};
use super::stream::Stream;
use super::{Handler, Limits, Pairs, Refusal, Socket};
use crate::sys::log;
use crate::sys::poll;
use crate::sys::scoreboard::{Entry, State};
use crate::sys::waits::Waits;

/// The pause after an accept that failed because file descriptors or memory ran out.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// The exit status of a worker that cannot wait for connections, or not accept one that is left after the stop.
pub const CANNOT_SERVE: i32 = 1;

/// What an event of epoll is about.
const CONNECTION: EventData = EventData::new_u64(0);
const STOP: EventData = EventData::new_u64(1);

/// What a worker serves with.
pub struct Service<'p> {
    pub socket: &'p Socket,
    pub limits: &'p Limits,
    pub entry: Entry,
    /// Readable when the worker is to end: at the stop, for new settings, or if the parent has ended
    pub stopped: &'p PipeReader,
    /// Whether it was started after the stop, for the connections that are left in the queue
    pub is_last: bool,
    /// The number of requests that the worker may still answer
    pub remaining: u32,
}

impl Service<'_> {
    /// Runs until the worker is to end, or has answered its last request. Returns the exit status.
    pub fn run(mut self, handler: &mut impl Handler) -> i32 {
        match self.accept_all(handler) {
            Ok(()) => 0,
            Err(error) => {
                log::offer(&format!("FastCGI: {error}"));
                CANNOT_SERVE
            }
        }
    }

    fn accept_all(&mut self, handler: &mut impl Handler) -> io::Result<()> {
        let events = self.events()?;
        self.entry.set(State::Free);
        while self.remaining > 0 && (self.is_last || self.await_connection(&events)?) {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match accept_with(&self.socket.listener, flags) {
                Ok(socket) => {
                    self.entry.set(State::Busy);
                    // An error ends the connection, not the worker.
                    _ = self.serve(socket.into(), handler);
                }
                Err(Errno::AGAIN) if self.is_last => return Ok(()),
                // The peer has closed the connection, or another worker has accepted it.
                Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => {}
                Err(error) if self.is_last => return Err(error.into()),
                Err(error) => {
                    log::offer(&format!("cannot accept a connection: {error}"));
                    self.entry.set(State::Busy);
                    poll::is_ready_within(ACCEPT_PAUSE, self.stopped, PollFlags::IN)?;
                }
            }
            self.entry.set(State::Free);
        }
        Ok(())
    }

    /// An epoll set of the socket and the end of the worker. A connection wakes one of the workers that wait (`EPOLLEXCLUSIVE`): on
    /// Linux the one that has been registered first, so that the others rest.
    fn events(&self) -> io::Result<OwnedFd> {
        let events = epoll::create(CreateFlags::CLOEXEC)?;
        let only_one = EventFlags::IN | EventFlags::EXCLUSIVE;
        epoll::add(&events, &self.socket.listener, CONNECTION, only_one)?;
        epoll::add(&events, self.stopped, STOP, EventFlags::IN)?;
        Ok(events)
    }

    /// Waits for a connection, or until the worker is to end. Returns whether there is a connection, and it is not to end.
    fn await_connection(&self, events: &OwnedFd) -> io::Result<bool> {
        let mut ready = [Event {
            flags: EventFlags::empty(),
            data: CONNECTION,
        }; 2];
        let count = retry_on_intr(|| epoll::wait(events, &mut ready, None))?;
        // A field of a packed structure has no reference.
        let is_connection = |event: &Event| {
            let source = event.data;
            source == CONNECTION
        };
        Ok(ready[..count].iter().all(is_connection))
    }

    /// Answers the requests of a connection.
    fn serve(&mut self, socket: UnixStream, handler: &mut impl Handler) -> io::Result<()> {
        let limits = self.limits;
        let stream = Stream::new(socket, limits.arrival);
        let mut requests = Requests::new(stream, limits.params, limits.workers);
        loop {
            let request = match self.receive(&mut requests) {
                Ok(Some(request)) => request,
                Ok(None) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    return requests.input.stream.drain();
                }
                Err(error) => return Err(error),
            };
            let has_rest = self.answer(&request, &mut requests, handler)?;
            if !self.has_next(&request, has_rest, &mut requests)? {
                return Ok(());
            }
            // No request can be refused before its parameters are there. Only a web server can hold them up.
            let stream = &mut requests.input.stream;
            stream.allow(limits.arrival, limits.arrival, Waits::ALWAYS);
        }
    }

    /// Receives the next request and the first part of its body. `None` at the end of the connection.
    fn receive(&self, requests: &mut Requests<Stream>) -> io::Result<Option<FcgiRequest>> {
        let request = requests.receive()?;
        if request.is_some() {
            let arrival = self.limits.arrival;
            let stream = &mut requests.input.stream;
            self.entry.set_prompt(self.limits.prompt);
            stream.allow(arrival, arrival, Waits::of(self.entry));
            requests.await_body()?;
        }
        Ok(request)
    }

    /// Handles a request and sends its answer, unless the web server has given the request up. Returns whether a part of
    /// its body is left.
    fn answer(
        &mut self,
        request: &FcgiRequest,
        requests: &mut Requests<Stream>,
        handler: &mut impl Handler,
    ) -> io::Result<bool> {
        let limits = self.limits;
        let waits = Waits::of(self.entry);
        let params = parameters(request, limits.params);
        let stream = &mut requests.input.stream;
        stream.allow(limits.pause, limits.transfer, waits);
        let handled = requests.handle(|body| handler.handle(params, body, waits));
        let stream = &mut requests.input.stream;
        stream.allow(limits.pause, limits.transfer, waits);
        let is_large = requests.input.received > limits.large;
        self.remaining = self.remaining.saturating_sub(1);
        if is_large {
            self.remaining = 0;
        }
        match handled {
            Handled::Answer { answer, has_rest } => {
                if answer.has_panicked {
                    self.remaining = 0;
                }
                // Here too: Caddy 2.6 drops the lines that it is sent.
                log::offer_lines(&answer.stderr);
                requests.answer(request, &answer.stdout, &answer.stderr)?;
                return Ok(has_rest);
            }
            Handled::Aborted => requests.answer_abort(request)?,
            Handled::Replaced => {}
            Handled::Broken => return Err(ErrorKind::UnexpectedEof.into()),
        }
        Ok(false)
    }

    /// Discards the rest of the body. Returns whether the connection has another request, for which it waits if the
    /// connection is kept. If not, the connection is to be closed.
    fn has_next(
        &self,
        request: &FcgiRequest,
        has_rest: bool,
        requests: &mut Requests<Stream>,
    ) -> io::Result<bool> {
        let stream = &mut requests.input.stream;
        let arrival = self.limits.arrival;
        self.entry.set_prompt(self.limits.prompt);
        stream.allow(arrival, arrival, Waits::of(self.entry));
        // Not if another request may come: it would be carried out, and its answer lost.
        if !request.keep && has_rest {
            stream.socket.shutdown(Shutdown::Write)?;
        }
        requests.discard_body()?;
        if !request.keep || requests.has_more() {
            return Ok(request.keep);
        }
        let socket = &requests.input.stream.socket;
        let is_kept = self.remaining > 0 && self.entry.is_half_free();
        let (state, time) = if is_kept {
            (State::Kept, self.limits.idle)
        } else {
            (State::Busy, Duration::ZERO)
        };
        self.entry.set(state);
        let has_input = self.has_input_within(time, socket);
        self.entry.set(State::Busy);
        if has_input? {
            return Ok(true);
        }
        // What was sent until now is answered: a web server may not repeat it. Nothing more can be sent
        // (`unix_shutdown` in Linux's net/unix/af_unix.c).
        socket.shutdown(Shutdown::Read)?;
        Ok(ioctl_fionread(socket)? > 0)
    }

    /// Waits for the first byte of another request, up to this time or until the worker is to end. Returns whether it has come.
    fn has_input_within(&self, time: Duration, socket: &UnixStream) -> io::Result<bool> {
        let mut files = [
            PollFd::new(socket, PollFlags::IN),
            PollFd::new(self.stopped, PollFlags::IN),
        ];
        poll::wait(&mut files, Some(time))?;
        Ok(!files[0].revents().is_empty())
    }
}

/// The parameters of a request, of at most `limit` bytes in total.
fn parameters(request: &FcgiRequest, limit: usize) -> Result<Pairs<'_>, Refusal> {
    if request.params.len() > limit {
        return Err(Refusal::ParamsTooLarge(limit));
    }
    Pairs::parse(&request.params).ok_or(Refusal::ParamsMalformed)
}
