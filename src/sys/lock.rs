//! Waiting for other programs: for a lock (flock(2)) on a file, with a timeout, and between attempts to
//! read a file that they write.
//!
//! The first attempt does not block. Only if it fails does the process wait, in the kernel's queue, as
//! PHP's pages do: a program that polls gets its turn after all of them. `flock` has no timeout, so a
//! timer interrupts it.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use crate::sys::file_id::FileId;
use crate::sys::timers::Interruptions;
use crate::sys::waits::{Awaited, Wait, Waits};

/// The outcome of a pause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pause {
    /// The pause is over: the next attempt may succeed
    Ended,
    /// There was no pause: the attempts took longer than their timeout
    TimedOut,
    /// There was no pause: the request may not wait
    Refused,
}

/// Attempts to use a file, repeated with pauses until a timeout.
pub struct Retries {
    waits: Waits,
    pause: Duration,
    timeout: Duration,
    /// The end of the timeout, which the first pause begins
    deadline: Option<Instant>,
}

impl Retries {
    pub fn new(waits: Waits, pause: Duration, timeout: Duration) -> Retries {
        Retries {
            waits,
            pause,
            timeout,
            deadline: None,
        }
    }

    /// Pauses before the next attempt to use `file`.
    pub fn pause(&mut self, file: FileId) -> Pause {
        let now = Instant::now();
        let deadline = *self.deadline.get_or_insert(now + self.timeout);
        if now >= deadline {
            return Pause::TimedOut;
        }
        // The request does not wait during the attempt, which may wait for something else.
        match self.waits.pause(Awaited::File(file), self.pause) {
            true => Pause::Ended,
            false => Pause::Refused,
        }
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
    /// Takes the lock, if it is not held. Returns whether it has.
    pub fn try_take(self, file: &File) -> io::Result<bool> {
        let outcome = match self {
            Lock::Shared => fs2::FileExt::try_lock_shared(file),
            Lock::Exclusive => fs2::FileExt::try_lock_exclusive(file),
        };
        match outcome {
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Ok(false)
            }
            outcome => outcome.map(|()| true),
        }
    }

    /// Waits up to `time` for this lock on `file`, which holds until the file is closed, and subtracts the wait from
    /// `time`. Returns whether it was taken; `false` also if the request may not wait.
    pub fn acquire(self, file: &File, time: &mut Duration, waits: Waits) -> io::Result<bool> {
        if self.try_take(file)? {
            return Ok(true);
        }
        let awaited = Awaited::File(FileId::of(&file.metadata()?));
        let deadline = Instant::now() + *time;
        let waited = waits.wait(awaited, *time, |time| self.wait(file, time));
        *time = deadline.saturating_duration_since(Instant::now());
        Ok(waited? == Wait::Done(()))
    }

    /// Waits until it is taken; `None` if it was not in this time.
    fn wait(self, file: &File, time: Duration) -> io::Result<Option<()>> {
        let deadline = Instant::now() + time;
        let _interruptions = Interruptions::after(time)?;
        loop {
            let outcome = match self {
                Lock::Shared => fs2::FileExt::lock_shared(file),
                Lock::Exclusive => fs2::FileExt::lock_exclusive(file),
            };
            match outcome {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                outcome => return outcome.map(Some),
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
        }
    }
}
