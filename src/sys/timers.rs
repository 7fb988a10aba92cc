//! A timer that interrupts system calls without a timeout of their own.
#![allow(unsafe_code)]

use std::io;
use std::ptr::null_mut;
use std::time::Duration;

use super::signals::interrupt_calls;

/// Interrupts the blocking system calls of this thread (EINTR), again and again: one interruption could come between two
/// calls. Dropping it ends them. A process has one at a time, and its other threads block SIGALRM.
#[derive(Debug)]
pub struct Interruptions(());

/// The time between two interruptions: a wait ends at most this late.
const INTERVAL: Duration = Duration::from_millis(10);

impl Interruptions {
    /// Starts the interruptions after `time`.
    pub fn after(time: Duration) -> io::Result<Interruptions> {
        interrupt_calls(libc::SIGALRM)?;
        // A time of zero would disarm the timer.
        setitimer(time.max(INTERVAL));
        Ok(Interruptions(()))
    }
}

impl Drop for Interruptions {
    fn drop(&mut self) {
        setitimer(Duration::ZERO);
    }
}

/// Sends SIGALRM after `time`, then in intervals (setitimer(2)); never again after a time of zero.
fn setitimer(time: Duration) {
    let timeval = |time: Duration| libc::timeval {
        tv_sec: time.as_secs() as _,
        tv_usec: time.subsec_micros().into(),
    };
    let times = libc::itimerval {
        it_interval: timeval(INTERVAL),
        it_value: timeval(time),
    };
    // SAFETY: the call keeps no pointer. It fails only for times that are not valid.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &times, null_mut()) };
}
