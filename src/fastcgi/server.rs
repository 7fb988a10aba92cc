//! The server: threads, connections, timeouts and stopping.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::EventFlags;
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{SocketFlags, accept_with};

use super::connection::{Connection, Phase};
use super::events::{DONE, Events, LISTENER, ONCE, STOP, TIMER};
use super::protocol::{FcgiRequest, RESPONDER};
use super::{Handler, Limits, Output, Pairs, Refusal, Socket};
use crate::sys::allocator;
use crate::sys::places::{Places, guarded, keep_messages};

/// The size of a read. A request without a large body is shorter, so that one read is enough.
const READ_SIZE: usize = 64 * 1024;

/// The time after which a thread without an event is idle
const IDLE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The pause after an accept that failed because file descriptors or memory ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The minimum time between two log lines about such failures.
const LOG_PAUSE: Duration = Duration::from_secs(60);

/// Answers requests on `socket` until `stop` is readable, then finishes the open connections. Returns
/// when all are closed.
pub fn serve(
    socket: Socket,
    handler: &impl Handler,
    limits: &Limits,
    stop: impl AsFd,
) -> io::Result<()> {
    keep_messages();
    let server = Server::new(socket, handler, limits, stop.as_fd())?;
    thread::scope(|scope| allocator::with_cache(|| server.work(scope)))
}

struct Server<'s, H> {
    socket: Socket,
    handler: &'s H,
    limits: &'s Limits,
    stop: BorrowedFd<'s>,
    events: Events,
    state: Mutex<State<'s>>,
    places: Arc<Places>,
    /// The number of threads that wait for an event
    idle: AtomicUsize,
}

#[derive(Default)]
struct State<'s> {
    /// The connections by token; `None` while a thread owns and serves one
    open: BTreeMap<u64, Option<Connection<'s>>>,
    accepted: u64,
    /// Whether the listener is not armed, because all connections have running handlers
    is_full: bool,
    /// The time for which the timer is set
    timer_at: Option<Instant>,
    /// When the signal to stop came
    stop: Option<Instant>,
    logged: Option<Instant>,
}

impl State<'_> {
    /// The waiting connection that gives way to a new one, and what it waits for.
    fn first_to_give_way(&self) -> Option<(Phase, u64)> {
        let waiting = self.open.iter().filter_map(|(&token, open)| Some((token, open.as_ref()?)));
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_by_key(|(_, waiting)| (waiting.phase(), waiting.since));
        // Of an idle connection, a request may just have arrived.
        let may_go = |waiting: &Connection| waiting.phase() != Phase::Idle || waiting.is_idle();
        let (token, first) = waiting.into_iter().find(|(_, waiting)| may_go(waiting))?;
        Some((first.phase(), token))
    }
}

impl<'s, H: Handler> Server<'s, H> {
    fn new(
        socket: Socket,
        handler: &'s H,
        limits: &'s Limits,
        stop: BorrowedFd<'s>,
    ) -> io::Result<Server<'s, H>> {
        ioctl_fionbio(&socket.listener, true)?;
        let server = Server {
            socket,
            handler,
            limits,
            stop,
            events: Events::new()?,
            state: Mutex::default(),
            places: Places::new(limits.requests, limits.waiting, limits.waiting_for_one),
            idle: AtomicUsize::new(1),
        };
        server.events.watch(&server.socket.listener, LISTENER, ONCE)?;
        server.events.watch(stop, STOP, ONCE)?;
        Ok(server)
    }

    /// The main loop of a thread.
    fn work<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> io::Result<()> {
        let (mut buffer, mut timeout) = (vec![0; READ_SIZE], None);
        loop {
            let Some(token) = self.events.next(timeout)? else {
                allocator::rest();
                timeout = None;
                continue;
            };
            timeout = Some(&IDLE);
            if token == DONE {
                return Ok(());
            }
            if self.idle.fetch_sub(1, Ordering::SeqCst) == 1 {
                self.start_thread(scope);
            }
            match token {
                LISTENER => self.accept(&mut buffer),
                STOP => self.stop(),
                TIMER => self.close_expired(&mut self.state()),
                token => {
                    let waiting = self.state().open.get_mut(&token).and_then(Option::take);
                    if let Some(connection) = waiting {
                        self.turn(token, connection, &mut buffer);
                    }
                }
            }
            // More idle threads than running handlers need are left over from waiting ones.
            let one_more = |idle| (idle <= self.limits.requests).then_some(idle + 1);
            if self.idle.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more).is_err() {
                self.places.threads.fetch_sub(1, Ordering::SeqCst);
                return Ok(());
            }
        }
    }

    /// Starts another thread, up to one more than the maximum number of handlers.
    fn start_thread<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        if self.places.threads.fetch_add(1, Ordering::SeqCst) < self.limits.threads() {
            self.idle.fetch_add(1, Ordering::SeqCst);
            let builder = thread::Builder::new().stack_size(self.limits.stack);
            let work = || allocator::with_cache(|| self.work(scope));
            let Err(error) = builder.spawn_scoped(scope, work) else { return };
            self.idle.fetch_sub(1, Ordering::SeqCst);
            self.log(self.state(), || format!("cannot start another thread: {error}"));
        }
        self.places.threads.fetch_sub(1, Ordering::SeqCst);
    }

    fn accept(&self, buffer: &mut [u8]) {
        let mut state = self.state();
        // The event came before the stop, which takes the rest of the queue itself.
        if state.stop.is_some() {
            return;
        }
        let all_are_taken = state.open.len() >= self.limits.connections;
        let first = if all_are_taken { state.first_to_give_way() } else { None };
        state.is_full = all_are_taken && first.is_none();
        if state.is_full {
            return;
        }
        match self.accept_one(&mut state) {
            Ok((token, connection)) => {
                let first = first.and_then(|(_, token)| state.open.remove(&token)?);
                self.accept_more(&mut state);
                drop(state);
                if let Some(first) = first {
                    first.give_way(|request| self.refuse(request, Refusal::Overloaded));
                }
                self.turn(token, connection, buffer);
            }
            // The peer has closed the connection, or another process has accepted it.
            Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => self.accept_more(&mut state),
            Err(error) => {
                if let Some((Phase::Idle, idle)) = state.first_to_give_way() {
                    state.open.remove(&idle);
                    return self.accept_more(&mut state);
                }
                // The listener is armed again with the timer, not when a connection becomes idle.
                self.set_timer(&mut state, Instant::now() + ACCEPT_PAUSE);
                self.log(state, || format!("cannot accept a connection: {error}"));
            }
        }
    }

    /// Accepts a connection, which the caller owns and which has this token.
    fn accept_one(&self, state: &mut State) -> Result<(u64, Connection<'s>), Errno> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let stream = accept_with(&self.socket.listener, flags)?;
        state.accepted += 1;
        let token = DONE + state.accepted;
        state.open.insert(token, None);
        Ok((token, Connection::new(stream, self.limits)))
    }

    /// Arms the listener, unless the server is stopping.
    fn accept_more(&self, state: &mut State) {
        if state.stop.is_none() {
            state.is_full = false;
            _ = self.events.arm(&self.socket.listener, LISTENER, ONCE);
        }
    }

    /// The records that answer a request; `None` if the handler panics for the refusal too.
    fn answer(&self, request: &FcgiRequest, peer: &UnixStream) -> Option<Vec<u8>> {
        let place = self.places.enter();
        if request.role != RESPONDER {
            // With a place it waits as a request does.
            let answer = guarded(place.as_ref(), || self.handler.answer_role(request.role, peer));
            return Some(match answer.ok()? {
                Some(answer) => request.answer(&answer, &[]),
                None => request.unknown_role(),
            });
        }
        let params = match request.params(self.limits) {
            Ok(params) => params,
            Err(unusable) => return self.refuse(request, unusable),
        };
        let Some(place) = place else { return self.refuse(request, Refusal::Overloaded) };
        match guarded(Some(&place), || self.handler.handle(params, &request.body.bytes)) {
            Ok(Output { stdout, stderr }) => Some(request.answer(&stdout, &stderr)),
            Err(panic) => self.refuse(request, Refusal::Panicked(panic)),
        }
    }

    /// The records that answer a request without handling it.
    fn refuse(&self, request: &FcgiRequest, why: Refusal) -> Option<Vec<u8>> {
        let params = request.params(self.limits).unwrap_or(Pairs(&[]));
        let Output { stdout, stderr } = guarded(None, || self.handler.refuse(params, why)).ok()?;
        Some(request.answer(&stdout, &stderr))
    }

    /// Serves a connection until it has to wait or is closed.
    fn turn(&self, token: u64, mut connection: Connection<'s>, buffer: &mut [u8]) {
        if let Ok(true) = connection.turn(buffer, |request, peer| self.answer(request, peer)) {
            self.wait(&mut self.state(), token, connection);
        } else {
            drop(connection);
            self.close(&mut self.state(), token);
        }
    }

    /// Arms a connection for its next event.
    fn wait(&self, state: &mut State<'s>, token: u64, mut connection: Connection<'s>) {
        connection.enter_phase();
        let is_due = state.stop.is_some() && connection.is_due(state.stop);
        if is_due || connection.arm(&self.events, token).is_err() {
            drop(connection);
            return self.close(state, token);
        }
        let deadline = connection.deadline(state.stop);
        state.open.insert(token, Some(connection));
        if state.is_full {
            self.accept_more(state);
        }
        self.set_timer(state, deadline);
    }

    /// Removes a connection, and closes it if it waits.
    fn close(&self, state: &mut State, token: u64) {
        state.open.remove(&token);
        self.closed(state);
    }

    /// Accepts more connections, or ends all threads if the server is stopping and the last one was
    /// closed.
    fn closed(&self, state: &mut State) {
        if state.is_full {
            self.accept_more(state);
        }
        if state.stop.is_some() && state.open.is_empty() {
            _ = self.events.arm(self.stop, DONE, EventFlags::IN);
        }
    }

    /// Closes the connections whose deadline has passed, and sets the timer for the next deadline. Arms the
    /// listener, since an accept may have failed.
    fn close_expired(&self, state: &mut State) {
        let (now, stop) = (Instant::now(), state.stop);
        state.timer_at = None;
        state.open.retain(|_, open| !open.as_ref().is_some_and(|waiting| waiting.is_due(stop)));
        self.accept_more(state);
        self.closed(state);
        let deadlines = state.open.values().flatten().map(|waiting| waiting.deadline(stop));
        if let Some(next) = deadlines.filter(|&at| at > now).min() {
            self.set_timer(state, next);
        }
    }

    /// Accepts the connections in the queue of the listener, and stops accepting. Kept connections are
    /// closed when they are idle.
    fn stop(&self) {
        let state = &mut *self.state();
        self.socket.withdraw();
        loop {
            if state.open.len() >= self.limits.connections {
                // An idle connection gives way, as to every other new connection.
                let Some((Phase::Idle, idle)) = state.first_to_give_way() else { break };
                state.open.remove(&idle);
            }
            let Ok((token, connection)) = self.accept_one(state) else { break };
            self.wait(state, token, connection);
        }
        state.stop = Some(Instant::now());
        self.close_expired(state);
    }

    /// Logs without the lock: the write may block.
    fn log(&self, mut state: MutexGuard<State>, line: impl FnOnce() -> String) {
        let now = Instant::now();
        if state.logged.is_none_or(|at| now - at >= LOG_PAUSE) {
            state.logged = Some(now);
            drop(state);
            self.handler.log(&line());
        }
    }

    /// Sets the timer, unless it is set for an earlier time. At that time it is set again.
    fn set_timer(&self, state: &mut State, at: Instant) {
        if state.timer_at.is_none_or(|set| set > at) {
            state.timer_at = Some(at);
            self.events.set_timer(at);
        }
    }

    /// While the lock is held, no code of the handler runs.
    fn state(&self) -> MutexGuard<'_, State<'s>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write, pipe};
    use std::path::Path;

    use super::*;
    use crate::responder::Responder;

    /// Calls `test` with a server without threads, and the path of its socket.
    fn with_server(limits: &Limits, test: impl FnOnce(&Server<Responder>, &Path)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let (handler, (stop, _stopper)) = (Responder::load(), pipe().unwrap());
        let socket = Socket::bind(&path).unwrap();
        test(&Server::new(socket, &handler, limits, stop.as_fd()).unwrap(), &path);
    }

    /// A thread gets the event of the listener, and another one stops the server before the first
    /// accepts.
    #[test]
    fn connection_after_the_stop_is_left_to_the_next_process() {
        with_server(&Limits::default(), |server, path| {
            let next = server.socket.listener.try_clone().unwrap();
            // The stop removes the path of the socket.
            let other_path = path.with_extension("other");
            std::fs::hard_link(path, &other_path).unwrap();
            let _first = UnixStream::connect(path).unwrap();
            server.stop();
            assert_eq!(server.state().open.len(), 1);
            let _second = UnixStream::connect(&other_path).unwrap();
            server.accept(&mut [0; 1]);
            assert_eq!(server.state().open.len(), 1);
            assert!(next.accept().is_ok());
        });
    }

    #[test]
    fn at_the_stop_an_idle_connection_gives_way_to_one_in_the_queue() {
        with_server(&Limits { connections: 1, ..Limits::default() }, |server, path| {
            let mut kept = UnixStream::connect(path).unwrap();
            // BEGIN_REQUEST with FCGI_KEEP_CONN, the ends of PARAMS and STDIN
            kept.write_all(b"\x01\x01\0\x01\0\x08\0\0\0\x01\x01\0\0\0\0\0").unwrap();
            kept.write_all(b"\x01\x04\0\x01\0\0\0\0\x01\x05\0\x01\0\0\0\0").unwrap();
            server.accept(&mut [0; 64]);
            let _queued = UnixStream::connect(path).unwrap();
            server.stop();
            // The answer, then the end of the connection
            assert!(kept.read_to_end(&mut Vec::new()).unwrap() > 0);
            assert_eq!(server.state().open.len(), 1);
        });
    }
}
