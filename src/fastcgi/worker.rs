//! A worker process: accepts a connection, answers its requests, closes it, and accepts the next one.

use std::io::{self, ErrorKind, PipeReader};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, ioctl_fionread, retry_on_intr};
use rustix::net::{SocketFlags, accept_with};

use super::requests::{FcgiRequest, Requests, Stdin};
use super::stream::Stream;
use super::{Handler, Limits, Output, Pairs, Refusal, Socket};
use crate::sys::log;
use crate::sys::poll;
use crate::sys::scoreboard::{State, Worker};
use crate::sys::unread::is_unread;

/// The pause after an accept that failed because file descriptors or memory ran out.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// What an event of epoll is about.
const CONNECTION: EventData = EventData::new_u64(0);
const STOP: EventData = EventData::new_u64(1);

/// The message of the panic of a handler. Only the hook gets the source location.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

fn panic_message() -> MutexGuard<'static, Option<String>> {
    PANIC.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a worker serves with.
pub struct Service<'p> {
    pub socket: &'p Socket,
    pub limits: &'p Limits,
    pub worker: Worker,
    /// Readable after the parent has stopped the workers, or has ended
    pub stopped: &'p PipeReader,
    pub is_stopping: bool,
    /// The number of requests that the worker may still answer
    pub remaining: u32,
}

/// What happens to a connection after a request.
#[derive(PartialEq)]
enum Next {
    /// It is kept for another request.
    Request,
    /// It ends.
    End,
}

impl Service<'_> {
    /// Runs until the stop, or until the worker is to be replaced. Returns the exit status.
    pub fn run(mut self, handler: &mut impl Handler) -> i32 {
        set_hook(Box::new(|panic| *panic_message() = Some(panic.to_string())));
        match self.accept_all(handler) {
            Ok(()) => 0,
            Err(error) => {
                log::offer(&format!("FastCGI: {error}"));
                1
            }
        }
    }

    fn accept_all(&mut self, handler: &mut impl Handler) -> io::Result<()> {
        let events = self.events()?;
        while self.remaining > 0 {
            self.worker.set(State::Free);
            if !self.is_stopping {
                self.await_connection(&events)?;
            }
            // An inherited socket stays open, so its queue is left to the next process.
            if self.is_stopping && !self.socket.is_own() {
                return Ok(());
            }
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match accept_with(&self.socket.listener, flags) {
                Ok(socket) => {
                    self.worker.set(State::Busy);
                    // An error ends the connection, not the worker.
                    _ = self.serve(socket.into(), handler);
                }
                Err(Errno::AGAIN) if self.is_stopping => return Ok(()),
                // The peer has closed the connection, or another worker has accepted it.
                Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => {}
                Err(error) if self.is_stopping => return Err(error.into()),
                Err(error) => {
                    log::offer(&format!("cannot accept a connection: {error}"));
                    self.worker.set(State::Busy);
                    sleep(ACCEPT_PAUSE);
                }
            }
        }
        Ok(())
    }

    /// An epoll set of the socket and the stop. A connection wakes one of the workers that wait (`EPOLLEXCLUSIVE`): on
    /// Linux the one that has been registered first, so that the others rest.
    fn events(&self) -> io::Result<OwnedFd> {
        let events = epoll::create(CreateFlags::CLOEXEC)?;
        let only_one = EventFlags::IN | EventFlags::EXCLUSIVE;
        epoll::add(&events, &self.socket.listener, CONNECTION, only_one)?;
        epoll::add(&events, self.stopped, STOP, EventFlags::IN)?;
        Ok(events)
    }

    /// Waits for a connection or the stop.
    fn await_connection(&mut self, events: &OwnedFd) -> io::Result<()> {
        let mut ready = [Event {
            flags: EventFlags::empty(),
            data: CONNECTION,
        }];
        retry_on_intr(|| epoll::wait(events, &mut ready, None))?;
        // A field of a packed structure has no reference.
        let source = ready[0].data;
        self.is_stopping = source == STOP;
        Ok(())
    }

    /// Answers the requests of a connection.
    fn serve(&mut self, socket: UnixStream, handler: &mut impl Handler) -> io::Result<()> {
        let limits = self.limits;
        let stream = Stream::new(socket, limits.arrival);
        let mut requests = Requests::new(stream, limits.params, limits.workers);
        loop {
            let request = match receive(&mut requests) {
                Ok(Some(request)) => request,
                Ok(None) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    return requests.input.stream.drain();
                }
                Err(error) => return Err(error),
            };
            self.answer(&request, &mut requests, handler)?;
            if self.next(&request, &mut requests)? == Next::End {
                return Ok(());
            }
            requests.input.stream.allow(limits.arrival, limits.arrival);
        }
    }

    /// Handles a request and sends its answer, unless the web server has given the request up.
    fn answer(
        &mut self,
        request: &FcgiRequest,
        requests: &mut Requests<Stream>,
        handler: &mut impl Handler,
    ) -> io::Result<()> {
        let limits = self.limits;
        requests.input.stream.allow(limits.pause, limits.transfer);
        let output = match requests.stdin {
            Stdin::Open | Stdin::Ended => self.output(request, requests, handler),
            Stdin::Aborted | Stdin::Replaced | Stdin::Broken => Output::default(),
        };
        requests.input.stream.allow(limits.pause, limits.transfer);
        let is_large = requests.input.received > limits.large;
        self.remaining = if is_large {
            0
        } else {
            self.remaining.saturating_sub(1)
        };
        match requests.stdin {
            Stdin::Broken => Err(ErrorKind::UnexpectedEof.into()),
            Stdin::Replaced => Ok(()),
            Stdin::Aborted => requests.answer_abort(request),
            Stdin::Open | Stdin::Ended => {
                // Here too: Caddy 2.6 drops the lines that it is sent.
                log::offer_lines(&output.stderr);
                requests.answer(request, &output.stdout, &output.stderr)
            }
        }
    }

    fn output(
        &mut self,
        request: &FcgiRequest,
        requests: &mut Requests<Stream>,
        handler: &mut impl Handler,
    ) -> Output {
        let limit = self.limits.params;
        if request.params.len() > limit {
            return handler.refuse(Pairs(&[]), Refusal::ParamsTooLarge(limit));
        }
        let Some(params) = Pairs::parse(&request.params) else {
            return handler.refuse(Pairs(&[]), Refusal::ParamsMalformed);
        };
        let run = AssertUnwindSafe(|| handler.handle(params.clone(), requests));
        catch_unwind(run).unwrap_or_else(|_| {
            // What the panic has left is not known, so the worker ends after this connection.
            self.remaining = 0;
            let message = panic_message().take().unwrap_or_default();
            handler.refuse(params, Refusal::Panicked(message))
        })
    }

    /// Discards the rest of the body, and waits for another request or the end of the connection.
    fn next(&mut self, request: &FcgiRequest, requests: &mut Requests<Stream>) -> io::Result<Next> {
        let stream = &mut requests.input.stream;
        stream.allow(self.limits.arrival, self.limits.arrival);
        stream.count_as_waiting();
        if !request.keep && requests.stdin == Stdin::Open {
            stream.socket.shutdown(Shutdown::Write)?;
        }
        requests.discard_body()?;
        if !request.keep {
            return Ok(Next::End);
        }
        if requests.has_more() {
            return Ok(Next::Request);
        }
        let socket = &requests.input.stream.socket;
        let is_kept = self.remaining > 0 && self.worker.is_half_free();
        self.worker.set(State::Kept);
        let next = self.await_request(socket, is_kept);
        self.worker.set(State::Busy);
        next
    }

    /// Waits for the first byte of another request, or until the connection is to be closed.
    fn await_request(&mut self, socket: &UnixStream, is_kept: bool) -> io::Result<Next> {
        let since = Instant::now();
        if is_kept && !self.is_stopping {
            let mut files = [
                PollFd::new(socket, PollFlags::IN),
                PollFd::new(self.stopped, PollFlags::IN),
            ];
            poll::wait(&mut files, Some(self.limits.idle))?;
            let [has_input, is_stopping] = files.map(|file| !file.revents().is_empty());
            self.is_stopping = is_stopping;
            if has_input {
                return Ok(Next::Request);
            }
        }
        // A web server that has not read the answer finds the end before it sends another request.
        if is_unread(socket) {
            return end_or_request(socket);
        }
        let timeout = if is_kept {
            self.limits.linger
        } else {
            self.limits.closing
        };
        let rest = timeout.saturating_sub(since.elapsed());
        poll::is_ready_within(rest, socket, PollFlags::IN)?;
        // On a busy machine a request may have come after the timeout, before this process runs again.
        end_or_request(socket)
    }
}

/// The end, unless a request has come. Nothing can be received after this look (`unix_shutdown` in Linux's
/// net/unix/af_unix.c): before the connection is closed, this process may have to wait while others run.
fn end_or_request(socket: &UnixStream) -> io::Result<Next> {
    // A request of which a part has come is received whole.
    if next_of(socket)? == Next::Request {
        return Ok(Next::Request);
    }
    socket.shutdown(Shutdown::Read)?;
    next_of(socket)
}

/// The end, unless a request has come.
fn next_of(socket: &UnixStream) -> io::Result<Next> {
    Ok(match ioctl_fionread(socket)? {
        0 => Next::End,
        _ => Next::Request,
    })
}

/// Receives the next request and the first part of its body. `None` at the end of the connection.
fn receive(requests: &mut Requests<Stream>) -> io::Result<Option<FcgiRequest>> {
    let request = requests.receive()?;
    if request.is_some() {
        requests.input.stream.count_as_waiting();
        requests.await_body()?;
    }
    Ok(request)
}
