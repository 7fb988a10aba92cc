//! The server: threads, connections, timeouts and stopping.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::{Errno, ioctl_fionbio, retry_on_intr, write};
use rustix::net::{SocketFlags, accept_with};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::connection::{Connection, Next};
use super::protocol::Request;
use super::record::Params;
use super::{Handler, Limits, Outcome, Refusal, Socket};

/// The tokens of epoll events. Connections are numbered from `FIRST_CONNECTION`.
const LISTENER: u64 = 0;
const STOP: u64 = 1;
const TIMER: u64 = 2;
const DONE: u64 = 3;
const FIRST_CONNECTION: u64 = 4;

/// The size of a read. A request without a large body is shorter, so that one read is enough.
const READ_SIZE: usize = 64 * 1024;

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
    keep_panic_messages();
    ioctl_fionbio(&socket.listener, true)?;
    let server = Server {
        socket,
        handler,
        limits,
        epoll: epoll::create(CreateFlags::CLOEXEC)?,
        timer: timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?,
        done: eventfd(0, EventfdFlags::CLOEXEC)?,
        state: Mutex::default(),
        running: AtomicUsize::new(0),
        idle: AtomicUsize::new(1),
        threads: AtomicUsize::new(1),
    };
    server.watch(&server.socket.listener, LISTENER, EventFlags::IN | EventFlags::ONESHOT)?;
    server.watch(&stop, STOP, EventFlags::IN | EventFlags::ONESHOT)?;
    // Edge-triggered: one thread gets the event, and the timer need not be read.
    server.watch(&server.timer, TIMER, EventFlags::IN | EventFlags::ET)?;
    server.watch(&server.done, DONE, EventFlags::IN)?;
    thread::scope(|scope| server.work(scope))
}

struct Server<'s, H> {
    socket: Socket,
    handler: &'s H,
    limits: &'s Limits,
    epoll: OwnedFd,
    timer: OwnedFd,
    /// Readable after the last connection is closed: all threads exit
    done: OwnedFd,
    state: Mutex<State<'s>>,
    /// The number of running handlers
    running: AtomicUsize,
    /// The number of threads that wait for an event
    idle: AtomicUsize,
    threads: AtomicUsize,
}

#[derive(Default)]
struct State<'s> {
    /// Connections that wait for an event. The others are owned by the threads that serve them
    waiting: BTreeMap<u64, Connection<'s>>,
    /// The number of all connections
    open: usize,
    accepted: u64,
    /// The listener is not armed
    is_full: bool,
    /// When to arm it again, even if no connection is closed
    accept_at: Option<Instant>,
    /// The time for which the timer is set
    timer_at: Option<Instant>,
    /// Set by the signal to stop: when to close the remaining connections
    stop_at: Option<Instant>,
    logged: Option<Instant>,
}

impl<'s, H: Handler> Server<'s, H> {
    /// The main loop of a thread.
    fn work<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> io::Result<()> {
        let mut buffer = vec![0; READ_SIZE];
        loop {
            let mut event = [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }];
            // One event at a time: a second event would have to wait for the first request.
            retry_on_intr(|| epoll::wait(&self.epoll, &mut event, None))?;
            if self.idle.fetch_sub(1, Ordering::SeqCst) == 1 {
                self.start_thread(scope);
            }
            match event[0].data.u64() {
                LISTENER => self.accept(&mut buffer),
                STOP => self.stop(),
                TIMER => self.close_expired(),
                DONE => return Ok(()),
                token => {
                    let connection = self.state().waiting.remove(&token);
                    if let Some(connection) = connection {
                        self.turn(token, connection, &mut buffer);
                    }
                }
            }
            self.idle.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Starts another thread, up to one more than the maximum number of handlers.
    fn start_thread<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        if self.threads.fetch_add(1, Ordering::SeqCst) <= self.limits.requests {
            self.idle.fetch_add(1, Ordering::SeqCst);
            let builder = thread::Builder::new().stack_size(self.limits.stack);
            let Err(error) = builder.spawn_scoped(scope, || self.work(scope)) else { return };
            self.idle.fetch_sub(1, Ordering::SeqCst);
            let mut state = self.state();
            self.log(&mut state, || format!("cannot start another thread: {error}"));
        }
        self.threads.fetch_sub(1, Ordering::SeqCst);
    }

    fn accept(&self, buffer: &mut [u8]) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match accept_with(&self.socket.listener, flags) {
            Ok(stream) => {
                let mut state = self.state();
                let token = state.open_one();
                if state.open < self.limits.connections || state.close_idle() {
                    self.accept_more(&mut state);
                } else {
                    state.is_full = true;
                }
                drop(state);
                self.turn(token, Connection::new(stream, self.limits), buffer);
            }
            // The peer has closed the connection, or another process has accepted it.
            Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => {
                self.accept_more(&mut self.state());
            }
            Err(error) => {
                let mut state = self.state();
                if state.close_idle() {
                    return self.accept_more(&mut state);
                }
                self.log(&mut state, || format!("cannot accept a connection: {error}"));
                let at = Instant::now() + ACCEPT_PAUSE;
                (state.is_full, state.accept_at) = (true, Some(at));
                self.set_timer(&mut state, at);
            }
        }
    }

    /// Arms the listener, unless the server is stopping.
    fn accept_more(&self, state: &mut State) {
        if state.stop_at.is_none() {
            (state.is_full, state.accept_at) = (false, None);
            _ = self.arm(&self.socket.listener, LISTENER, EventFlags::IN | EventFlags::ONESHOT);
        }
    }

    /// Serves a connection until it has to wait or is closed.
    fn turn(&self, token: u64, mut connection: Connection<'s>, buffer: &mut [u8]) {
        let may_keep = || self.state().stop_at.is_none();
        let next = connection.turn(buffer, |request| self.answer(request), may_keep);
        if let Ok(Next::Wait) = next {
            self.wait(token, connection);
        } else {
            drop(connection);
            self.close(&mut self.state());
        }
    }

    /// Arms a connection for its next event.
    fn wait(&self, token: u64, mut connection: Connection<'s>) {
        connection.set_deadline(self.limits);
        let state = &mut *self.state();
        if let Some(at) = state.stop_at {
            if connection.is_idle_and_kept() {
                drop(connection);
                return self.close(state);
            }
            connection.deadline = connection.deadline.min(at);
        }
        let (interest, deadline) = (connection.interest(), connection.deadline);
        let connection = state.waiting.entry(token).or_insert(connection);
        let armed = if connection.is_watched {
            self.arm(&connection.stream, token, interest)
        } else {
            connection.is_watched = true;
            self.watch(&connection.stream, token, interest)
        };
        if armed.is_err() {
            state.waiting.remove(&token);
            return self.close(state);
        }
        self.set_timer(state, deadline);
    }

    /// Updates the state after a connection was closed.
    fn close(&self, state: &mut State) {
        state.open -= 1;
        if state.is_full {
            self.accept_more(state);
        }
        if state.stop_at.is_some() && state.open == 0 {
            _ = write(&self.done, &1_u64.to_ne_bytes());
        }
    }

    /// Closes the connections whose deadline has passed, and sets the timer for the next deadline.
    fn close_expired(&self) {
        let (state, now) = (&mut *self.state(), Instant::now());
        state.timer_at = None;
        let is_stopping = state.stop_at.is_some();
        // If a request has just arrived on an idle connection, its event is already queued.
        let expired = |_: &u64, connection: &mut Connection| {
            connection.deadline <= now && (is_stopping || connection.may_be_closed())
        };
        for expired in state.waiting.extract_if(.., expired).collect::<Vec<_>>() {
            drop(expired);
            self.close(state);
        }
        if state.accept_at.is_some_and(|at| at <= now) {
            self.accept_more(state);
        }
        let deadlines = state.waiting.values().map(|connection| connection.deadline);
        if let Some(next) = deadlines.chain(state.accept_at).filter(|&at| at > now).min() {
            self.set_timer(state, next);
        }
    }

    /// Accepts the connections in the queue of the listener, then no more. Closes idle connections.
    fn stop(&self) {
        {
            let mut state = self.state();
            let at = Instant::now() + self.limits.stop;
            state.stop_at = Some(at);
            // Counts as a connection, so that the server does not end before this function returns.
            state.open += 1;
            _ = epoll::delete(&self.epoll, &self.socket.listener);
            for connection in state.waiting.values_mut() {
                connection.deadline = connection.deadline.min(at);
            }
            self.set_timer(&mut state, at);
        }
        self.socket.withdraw();
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        for _ in 0..self.limits.connections {
            let Ok(stream) = accept_with(&self.socket.listener, flags) else { break };
            let token = self.state().open_one();
            self.wait(token, Connection::new(stream, self.limits));
        }
        let state = &mut *self.state();
        let idle = |_: &u64, connection: &mut Connection| connection.is_idle_and_kept();
        for idle in state.waiting.extract_if(.., idle).collect::<Vec<_>>() {
            drop(idle);
            self.close(state);
        }
        self.close(state);
    }

    /// The records that answer a request; `None` if the handler panics for the refusal too.
    fn answer(&self, request: &Request) -> Option<Vec<u8>> {
        let refuse = |params: &Params, why| guarded(|| self.handler.refuse(params, why)).ok();
        let outcome = match &request.params {
            Err(why) => refuse(&Params::default(), why.clone()),
            Ok(params) => match Slot::take(&self.running, self.limits.requests) {
                None => refuse(params, Refusal::Overloaded),
                Some(_slot) => guarded(|| self.handler.handle(params, &request.body))
                    .or_else(|panic| refuse(params, Refusal::Panicked(panic)).ok_or(()))
                    .ok(),
            },
        };
        outcome.map(|Outcome { stdout, stderr }| request.answer(&stdout, &stderr))
    }

    fn log(&self, state: &mut State, line: impl FnOnce() -> String) {
        let now = Instant::now();
        if state.logged.is_none_or(|at| now - at >= LOG_PAUSE) {
            state.logged = Some(now);
            self.handler.log(&line());
        }
    }

    /// Sets the timer, unless it is set for an earlier time. At that time it is set again.
    fn set_timer(&self, state: &mut State, at: Instant) {
        if state.timer_at.is_some_and(|set| set <= at) {
            return;
        }
        state.timer_at = Some(at);
        // Zero would disarm the timer.
        let rest = at.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let it_value = Timespec::try_from(rest).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let time = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &time);
    }

    fn watch(&self, source: impl AsFd, token: u64, flags: EventFlags) -> Result<(), Errno> {
        epoll::add(&self.epoll, source, EventData::new_u64(token), flags)
    }

    fn arm(&self, source: impl AsFd, token: u64, flags: EventFlags) -> Result<(), Errno> {
        epoll::modify(&self.epoll, source, EventData::new_u64(token), flags)
    }

    /// While the lock is held, no code of the handler runs except `log`.
    fn state(&self) -> MutexGuard<'_, State<'s>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State<'_> {
    /// Counts a new connection and returns its token.
    fn open_one(&mut self) -> u64 {
        self.open += 1;
        self.accepted += 1;
        FIRST_CONNECTION + self.accepted
    }

    /// Closes the connection that has been idle longest, if there is one.
    fn close_idle(&mut self) -> bool {
        let idle = self.waiting.iter().filter(|(_, connection)| connection.is_idle());
        let oldest =
            idle.min_by_key(|(_, connection)| connection.deadline).map(|(&token, _)| token);
        let closed = oldest.and_then(|token| self.waiting.remove(&token));
        self.open -= usize::from(closed.is_some());
        closed.is_some()
    }
}

/// A running handler, counted until it is dropped, even by a panic.
struct Slot<'s>(&'s AtomicUsize);

impl<'s> Slot<'s> {
    fn take(running: &'s AtomicUsize, limit: usize) -> Option<Slot<'s>> {
        let slot = Slot(running);
        (running.fetch_add(1, Ordering::SeqCst) < limit).then_some(slot)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

thread_local! {
    /// The panic message of the handler that runs on this thread. `None` if no handler runs
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs the handler. The error is the message of a panic.
fn guarded(run: impl FnOnce() -> Outcome) -> Result<Outcome, String> {
    PANIC.set(Some(String::new()));
    // After a panic, only state that the handler itself shares between requests is used again.
    let result = catch_unwind(AssertUnwindSafe(run));
    let message = PANIC.take().unwrap_or_default();
    result.map_err(|_: Box<dyn Any + Send>| message)
}

/// Installs a panic hook that stores the message of a panic in a handler. Only the hook gets the
/// source location.
fn keep_panic_messages() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let other = take_hook();
        set_hook(Box::new(move |panic| {
            if PANIC.with_borrow(Option::is_some) {
                PANIC.set(Some(panic.to_string()));
            } else {
                other(panic);
            }
        }));
    });
}
