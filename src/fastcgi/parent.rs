//! The parent of the workers: starts them, replaces those that end, and stops them.
//!
//! A pipe tells a part of the workers to end. Only the parent has its writing end, so they also end with the parent.

use std::io::{self, PipeReader, PipeWriter, pipe};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, WaitOptions, wait};

use super::worker::{CANNOT_SERVE, Service};
use super::{Handler, Limits, Socket};
use crate::sys::log;
use crate::sys::poll::is_ready_within;
use crate::sys::process::run_in_child;
use crate::sys::scoreboard::Scoreboard;
use crate::sys::signals::Blocked;

/// The pause before another worker is started, after one that could not be started or ended before it was ready.
const PAUSE: Duration = Duration::from_secs(1);

/// The time between two looks at the handler. With the time for all parts it is less than a second.
const LOOK: Duration = Duration::from_millis(500);

/// The parts of the workers, of which one after the other ends for a new handler: the others answer meanwhile.
const PARTS: usize = 4;

/// The time for the workers of a part that are free to end and to be replaced, before the next part ends.
const PART_PAUSE: Duration = Duration::from_millis(50);

/// Answers requests on `socket` by worker processes until a signal that stops it, then lets them finish. Returns when all
/// have ended. The caller must be the only thread of the process.
pub fn serve(socket: Socket, handler: impl Handler, limits: &Limits) -> io::Result<()> {
    // Before the first fork: a worker never gets these signals.
    let signals = Blocked::of_parent()?;
    ioctl_fionbio(&socket.listener, true)?;
    let now = Instant::now();
    let mut parent = Parent {
        socket,
        handler,
        board: Scoreboard::new(limits.workers)?,
        parts: (0..PARTS).map(|_| Part::new()).collect::<Result<_, _>>()?,
        renewed: PARTS,
        look_at: now + LOOK,
        is_stopping: false,
        workers: vec![None; limits.workers],
        limits: limits.clone(),
        may_start_at: now,
        has_failed: false,
    };
    loop {
        parent.start_workers();
        parent.board.set_missing(parent.missing());
        if parent.has_ended() {
            return Ok(());
        }
        if signals.wait(parent.time_to_wait()) {
            parent.stop();
        }
        parent.reap();
        parent.renew();
    }
}

/// The pipe of the workers whose numbers have the same remainder.
struct Part {
    stopped: PipeReader,
    /// `None` after the stop
    stop: Option<PipeWriter>,
}

impl Part {
    fn new() -> io::Result<Part> {
        let (stopped, stop) = pipe()?;
        Ok(Part {
            stopped,
            stop: Some(stop),
        })
    }
}

struct Parent<H> {
    socket: Socket,
    handler: H,
    limits: Limits,
    board: Scoreboard,
    parts: Vec<Part>,
    /// The number of parts whose workers have the handler as it is now, or are about to end
    renewed: usize,
    /// When the handler is asked, or the next part renewed
    look_at: Instant,
    is_stopping: bool,
    /// The process of each worker
    workers: Vec<Option<Pid>>,
    may_start_at: Instant,
    /// Whether a worker has failed since the last start of a worker
    has_failed: bool,
}

impl<H: Handler> Parent<H> {
    /// Starts the missing workers. After a failure only one, and the others after a pause, so that workers that
    /// fail at once do not take the processor.
    fn start_workers(&mut self) {
        for number in 0..self.workers.len() {
            if self.workers[number].is_some() {
                continue;
            }
            if !self.needs_workers() || Instant::now() < self.may_start_at {
                return;
            }
            // One alone, which may fail too.
            if std::mem::take(&mut self.has_failed) {
                self.may_start_at = Instant::now() + PAUSE;
            }
            match self.start(number) {
                Ok(worker) => self.workers[number] = Some(worker),
                Err(error) => {
                    log::offer(&format!("cannot start a worker process: {error}"));
                    self.pause();
                }
            }
        }
    }

    fn start(&mut self, number: usize) -> io::Result<Pid> {
        let Parent {
            socket,
            handler,
            limits,
            board,
            parts,
            is_stopping,
            ..
        } = self;
        run_in_child(|| {
            let Part { stopped, .. } = parts.swap_remove(number % PARTS);
            // The pipes end with the parent, not with its last child.
            parts.clear();
            Service {
                socket,
                limits,
                entry: board.enter(number),
                stopped: &stopped,
                is_last: *is_stopping,
                remaining: limits.requests,
            }
            .run(handler)
        })
    }

    /// The time until there is something to do without a signal; `None` for none.
    fn time_to_wait(&self) -> Option<Duration> {
        let is_missing = self.workers.iter().any(Option::is_none);
        let start_at = (is_missing && self.needs_workers()).then_some(self.may_start_at);
        let look_at = (!self.is_stopping).then_some(self.look_at);
        let next = start_at.into_iter().chain(look_at).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Looks whether the handler has changed. Then lets the workers of one part after the other end; their successors have
    /// the new handler.
    fn renew(&mut self) {
        let now = Instant::now();
        if self.is_stopping || now < self.look_at {
            return;
        }
        if self.handler.reload() {
            self.renewed = 0;
        }
        self.look_at = now + LOOK;
        if self.renewed < PARTS {
            self.look_at = now + PART_PAUSE;
            // Without descriptors for another pipe, later.
            if let Ok(part) = Part::new() {
                self.parts[self.renewed] = part;
                self.renewed += 1;
            }
        }
    }

    /// Whether a missing worker is to be started: until the stop, and then for what is in the queue of an own socket.
    /// No other process will come for it.
    fn needs_workers(&self) -> bool {
        let has_queue = || {
            let queue = &self.socket.listener;
            is_ready_within(Duration::ZERO, queue, PollFlags::IN) == Ok(true)
        };
        !self.is_stopping || (self.socket.is_own() && has_queue())
    }

    /// Reaps the workers that have ended, and logs those that have failed.
    fn reap(&mut self) {
        while let Ok(Some((ended, status))) = wait(WaitOptions::NOHANG) {
            // Process 1 of a container has children of others too.
            let Some(number) = self
                .workers
                .iter()
                .position(|&worker| worker == Some(ended))
            else {
                continue;
            };
            self.workers[number] = None;
            let has_started = self.board.clear(number);
            let status = ExitStatus::from_raw(status.as_raw());
            if !status.success() {
                log::offer(&format!(
                    "worker process {ended} ended ({status}) and is replaced; any request on it failed"
                ));
            }
            if !has_started || status.code() == Some(CANNOT_SERVE) {
                self.pause();
            }
        }
    }

    /// The number of workers that could not be started.
    fn missing(&self) -> usize {
        if self.may_start_at <= Instant::now() {
            return 0;
        }
        self.workers
            .iter()
            .filter(|worker| worker.is_none())
            .count()
    }

    fn pause(&mut self) {
        self.has_failed = true;
        self.may_start_at = Instant::now() + PAUSE;
    }

    /// Whether all workers have ended after the stop. One that could not serve the queue then is not replaced.
    fn has_ended(&self) -> bool {
        self.is_stopping && self.workers.iter().all(Option::is_none)
    }

    /// Withdraws the socket first: otherwise a connection could come after a worker has found the queue empty.
    fn stop(&mut self) {
        self.socket.withdraw();
        self.is_stopping = true;
        self.parts.iter_mut().for_each(|part| part.stop = None);
        self.may_start_at = Instant::now();
    }
}
