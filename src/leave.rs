//! Keeping standard output open until exit, for Apache.
//!
//! Apache takes the response of a CGI program as complete at end of file, which the kernel delivers
//! a moment before the process has ended. If Apache finds the process still alive, it sends SIGTERM and
//! sleeps: 46.9 ms in mod_cgi (APR's `TIMEOUT_INTERVAL` in `free_proc_chain`), 10 ms in mod_cgid
//! (`dead_yet`). A process that keeps standard output and standard error open until the program
//! has ended saves every request that wait: here a forked child, which waits on a pidfd of
//! its parent (pidfd_open(2), Linux 5.3) and exits.
//!
//! It is the last step of a request: the response is written, every file and lock is released.
//! If it fails, only the time is lost. The child outlives its parent by a moment and is adopted by
//! the system's first process; in a container where that is Apache, Apache reaps it.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use crate::cgi::Variables;
use crate::config::Config;
use crate::ffi::{Fork, fork};

/// Whether the request came through Apache and the setting is on. Under other servers the fork
/// would only cost time.
pub fn is_wanted(config: &Config, variables: &Variables) -> bool {
    config.leave_early && variables.is_apache()
}

/// Keeps standard output open until this process has ended, which should be its next step.
pub fn hold_end_of_file() {
    // Opened before the fork: the child must wait for this process and no other.
    let Ok(parent) = pidfd_open(getpid(), PidfdFlags::empty()) else { return };
    // This process has one thread.
    if let Ok(Fork::Child) = fork() {
        let mut gone = [PollFd::new(&parent, PollFlags::IN)];
        while let Err(Errno::INTR) = poll(&mut gone, None) {}
        std::process::exit(0);
    }
}
