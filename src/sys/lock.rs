//! Waiting for other programs: for a lock (flock(2)) on a file, with a timeout, and between attempts to
//! read a file that they write. Under FastCGI, the scoreboard says whether a request may wait.
//!
//! The first attempt does not block. Only if it fails does the process wait, in the kernel's queue, as
//! PHP's pages do: a program that polls gets its turn after all of them. `flock` has no timeout, so a
//! timer interrupts it.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::sys::file_id::FileId;
use crate::sys::scoreboard;
use crate::sys::timers::Interruptions;

/// The outcome of a pause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pause {
    /// The pause is over: the next attempt may succeed
    Ended,
    /// There was no pause: the attempts took longer than their timeout
    TimedOut,
    /// There was no pause: this process may not wait
    Refused,
}

/// Attempts to use a file, repeated with pauses until a timeout.
pub struct Retries {
    pause: Duration,
    timeout: Duration,
    /// The end of the timeout, which the first pause begins
    deadline: Option<Instant>,
}

impl Retries {
    pub fn new(pause: Duration, timeout: Duration) -> Retries {
        Retries {
            pause,
            timeout,
            deadline: None,
        }
    }

    /// Pauses before the next attempt to use `file`, if it exists.
    pub fn pause(&mut self, file: Option<FileId>) -> Pause {
        // The process does not wait during the attempt, which may wait for something else.
        let Some(_waiting) = scoreboard::wait(file) else {
            return Pause::Refused;
        };
        let now = Instant::now();
        let deadline = *self.deadline.get_or_insert(now + self.timeout);
        if now >= deadline {
            return Pause::TimedOut;
        }
        sleep(self.pause);
        Pause::Ended
    }
}

/// A kind of lock (flock(2)).
#[derive(Clone, Copy, Debug)]
pub enum Lock {
    Shared,
    Exclusive,
}

// The functions of fs2 are called by their paths, because `File` has methods of the same names.
impl Lock {
    /// Fails if the lock is held.
    fn attempt(self, file: &File) -> io::Result<()> {
        match self {
            Lock::Shared => fs2::FileExt::try_lock_shared(file),
            Lock::Exclusive => fs2::FileExt::try_lock_exclusive(file),
        }
    }

    /// Waits until it is taken, or for a signal.
    fn wait(self, file: &File) -> io::Result<()> {
        match self {
            Lock::Shared => fs2::FileExt::lock_shared(file),
            Lock::Exclusive => fs2::FileExt::lock_exclusive(file),
        }
    }

    /// Waits up to `time` for this lock on `file`, which holds until the file is closed, and subtracts the wait from
    /// `time`. Returns whether it was taken; `false` at once if it may not wait.
    pub fn acquire(self, file: &File, time: &mut Duration) -> io::Result<bool> {
        match self.attempt(file) {
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            outcome => return outcome.map(|()| true),
        }
        let id = FileId::of(&file.metadata()?);
        let Some(_waiting) = scoreboard::wait(Some(id)) else {
            return Ok(false);
        };
        let deadline = Instant::now() + *time;
        let _interruptions = Interruptions::after(*time)?;
        loop {
            let outcome = self.wait(file);
            *time = deadline.saturating_duration_since(Instant::now());
            match outcome {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                outcome => return outcome.map(|()| true),
            }
            if time.is_zero() {
                return Ok(false);
            }
        }
    }
}
