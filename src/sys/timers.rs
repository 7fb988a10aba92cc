//! A timer that interrupts system calls without a timeout of their own.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::time::Duration;

use super::check;
use super::signals::mask;

/// Interrupts the blocking system calls of this thread (EINTR), again and again: one interruption
/// could come between two calls. Dropping it ends them.
#[derive(Debug)]
pub struct Interruptions(libc::timer_t);

/// The time between two interruptions.
const INTERVAL: Duration = Duration::from_millis(10);

impl Interruptions {
    /// Starts the interruptions after `time`.
    ///
    /// The signal is the first real-time signal that the C library leaves to programs. Its handler
    /// stays and does nothing. The timer sends it to this thread only.
    pub fn after(time: Duration) -> io::Result<Interruptions> {
        extern "C" fn nothing(_: libc::c_int) {}
        let timespec = |time: Duration| libc::timespec {
            tv_sec: time.as_secs() as _,
            tv_nsec: time.subsec_nanos().into(),
        };
        let times = libc::itimerspec {
            it_interval: timespec(INTERVAL),
            it_value: timespec(time.max(INTERVAL)),
        };
        let signal = libc::SIGRTMIN();
        // SAFETY: the structures may be zero, and no call keeps a pointer to one. The handler runs no
        // code. The timer is used before it is deleted, and deleted once.
        unsafe {
            let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
            // Without SA_RESTART, so that a call is not started again. A time of zero would disarm the timer.
            action.sa_sigaction = nothing as *const () as usize;
            check(libc::sigaction(signal, &action, null_mut()))?;
            // The parent of this process may have blocked it.
            mask(libc::SIG_UNBLOCK, &[signal])?;
            let mut event: libc::sigevent = MaybeUninit::zeroed().assume_init();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer = null_mut();
            check(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer))?;
            let interruptions = Interruptions(timer);
            check(libc::timer_settime(timer, 0, &times, null_mut()))?;
            Ok(interruptions)
        }
    }
}

impl Drop for Interruptions {
    fn drop(&mut self) {
        // SAFETY: the timer was created and not deleted.
        unsafe { libc::timer_delete(self.0) };
    }
}
