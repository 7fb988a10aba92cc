//! Signals: ignored, blocked, or waited for.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::ptr::{self, null, null_mut};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

pub(super) fn ignore(signals: &[libc::c_int]) {
    for &signal in signals {
        sigaction(signal, libc::SIG_IGN);
    }
}

/// Ignores the signals that the keys of a terminal send: a paste can contain their characters.
pub fn ignore_keys() {
    ignore(&[libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP]);
}

/// Whether Ctrl-C or Ctrl-\\ was pressed after [`note_keys`]
static KEY_WAS_PRESSED: AtomicBool = AtomicBool::new(false);

/// Notes Ctrl-C and Ctrl-\\ for [`was_key_pressed`]. They must not end the process, which would leave the rest of a paste
/// to the shell; Ctrl-Z would do the same, and stays ignored.
pub fn note_keys() {
    extern "C" fn note(_: libc::c_int) {
        KEY_WAS_PRESSED.store(true, SeqCst);
    }
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        sigaction(signal, note as *const () as usize);
    }
}

pub fn was_key_pressed() -> bool {
    KEY_WAS_PRESSED.load(SeqCst)
}

/// Blocks SIGALRM in this thread, to which the kernel could send it otherwise. [Timers](super::timers) are to interrupt
/// another thread, which inherits the blocked signal and unblocks it.
pub fn leave_alarms_to_another_thread() -> io::Result<()> {
    pthread_sigmask(libc::SIG_BLOCK, &[libc::SIGALRM]).map(drop)
}

/// Keeps the exit statuses of children until they are read: the parent of this process may have ignored
/// SIGCHLD, which is inherited (wait(2)).
fn keep_exit_statuses() {
    sigaction(libc::SIGCHLD, libc::SIG_DFL);
}

/// Lets `signal` interrupt blocking system calls (EINTR), with no other effect.
pub(super) fn interrupt_calls(signal: libc::c_int) -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    sigaction(signal, nothing as *const () as usize);
    // The parent of this process may have blocked it.
    pthread_sigmask(libc::SIG_UNBLOCK, &[signal]).map(drop)
}

/// Without SA_RESTART, so that an interrupted call is not started again.
fn sigaction(signal: libc::c_int, action: libc::sighandler_t) {
    // SAFETY: zeros are a valid structure, and the call keeps no pointer to it. The action is SIG_IGN, SIG_DFL or a
    // function above, which does nothing or sets a flag. The call fails only for signals that no caller names.
    unsafe {
        let mut new: libc::sigaction = MaybeUninit::zeroed().assume_init();
        new.sa_sigaction = action;
        libc::sigaction(signal, &new, null_mut());
    }
}

/// Signals that are blocked in this process and its children, and that it waits for.
pub struct Blocked(libc::sigset_t);

/// SIGTERM, which stops a service, SIGINT and SIGQUIT, which the keys of a terminal and some supervisors send, and SIGUSR1,
/// which web servers send to restart a responder.
const STOP: [libc::c_int; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGQUIT, libc::SIGUSR1];

impl Blocked {
    /// Blocks the signals that stop a responder, and SIGCHLD, which tells the end of a child.
    pub fn of_parent() -> io::Result<Blocked> {
        keep_exit_statuses();
        let [term, int, quit, usr1] = STOP;
        let signals = [term, int, quit, usr1, libc::SIGCHLD];
        pthread_sigmask(libc::SIG_BLOCK, &signals).map(Blocked)
    }

    /// Waits for one of these signals, up to `timeout` if it is set. Returns whether the signal stops the responder.
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        let timeout = timeout.map(|timeout| libc::timespec {
            tv_sec: timeout.as_secs() as _,
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let timeout = timeout.as_ref().map_or(null(), ptr::from_ref);
        // SAFETY: the set is initialised, and the call keeps no pointer. Without a timeout it waits for a signal.
        let signal = unsafe { libc::sigtimedwait(&self.0, null_mut(), timeout) };
        STOP.contains(&signal)
    }
}

/// Blocks or unblocks `signals` in this thread (pthread_sigmask(3)). Returns their set.
fn pthread_sigmask(how: libc::c_int, signals: &[libc::c_int]) -> io::Result<libc::sigset_t> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set before it is used, and no call keeps a pointer to it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        match libc::pthread_sigmask(how, set.as_ptr(), null_mut()) {
            0 => Ok(set.assume_init()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}
