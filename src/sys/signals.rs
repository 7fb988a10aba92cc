//! Signals: ignored, blocked, or read from a file descriptor.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::null_mut;

use super::check;

pub(super) fn ignore(signals: &[libc::c_int]) {
    for &signal in signals {
        // SAFETY: SIG_IGN runs no code in a signal handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Blocks SIGTERM, which stops a service, and SIGUSR1, which web servers send to restart one. Returns
/// a file descriptor that is readable after one of them has arrived (signalfd(2)). Threads inherit
/// the mask, so this must be called before the first thread is started.
pub fn block_stop_signals() -> io::Result<OwnedFd> {
    let signals = mask(libc::SIG_BLOCK, &[libc::SIGTERM, libc::SIGUSR1])?;
    // SAFETY: signalfd keeps no pointer, and returns a new descriptor, which nothing else owns.
    unsafe {
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        Ok(OwnedFd::from_raw_fd(check(libc::signalfd(-1, &signals, flags))?))
    }
}

/// Blocks or unblocks `signals` in this thread (pthread_sigmask(3)). Returns their set.
pub(super) fn mask(how: libc::c_int, signals: &[libc::c_int]) -> io::Result<libc::sigset_t> {
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
