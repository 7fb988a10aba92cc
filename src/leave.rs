//! Leaving before end-of-file, for Apache's sake.
//!
//! Apache takes the answer of a CGI program as complete at end-of-file, which the kernel brings a
//! moment before the process is gone. Finding it still alive, Apache sends SIGTERM and sleeps:
//! 46.9 ms in mod_cgi (APR's `TIMEOUT_INTERVAL` in `free_proc_chain`), 10 ms in mod_cgid
//! (`dead_yet`). So whoever holds standard output and standard error open until the process is
//! gone spares every request that wait: here a forked child, which waits on a pidfd of its parent
//! (pidfd_open(2), Linux 5.3) and ends.
//!
//! It is the last thing that a request does: the answer is written, every file and lock is let go.
//! Where it can't be done nothing is lost but the time. The child outlives its parent by a moment and
//! is left to the system's first process; where that is Apache, in a container, Apache reaps it.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use crate::cgi::Variables;

/// Whether this request was passed on by Apache and nobody has set `COMEDOR_LEAVE_EARLY` to `off`.
/// Under other servers the fork would only cost.
pub fn is_wanted(variables: &Variables) -> bool {
    let server = variables.meta("SERVER_SOFTWARE").unwrap_or_default();
    server.starts_with(b"Apache") && variables.get("COMEDOR_LEAVE_EARLY") != Some(b"off")
}

/// Keeps end-of-file from arriving until this process has ended, which it should do next.
pub fn hold_end_of_file() {
    // The child is to wait for this process, whatever has become of it by then.
    let Ok(parent) = pidfd_open(getpid(), PidfdFlags::empty()) else { return };
    // SAFETY: this process has one thread, so the child's copy of it is whole. The standard library
    // has no fork.
    #[allow(unsafe_code)]
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut gone = [PollFd::new(&parent, PollFlags::IN)];
        while let Err(Errno::INTR) = poll(&mut gone, None) {}
        std::process::exit(0);
    }
}
