//! Keeping standard output open until exit, for Apache.
//!
//! For Apache the response of a CGI program is complete at end of file, which the kernel delivers
//! shortly before the process has exited. If the process still exists then, Apache sends SIGTERM and
//! sleeps: 46.9 ms in mod_cgi (APR's `TIMEOUT_INTERVAL` in `free_proc_chain`), 10 ms in mod_cgid
//! (`dead_yet`). To avoid this wait, a forked child keeps standard output and standard error open
//! until its parent has exited: it waits on a pidfd of the parent (pidfd_open(2), Linux 5.3) and
//! exits.
//!
//! This is the last step of a request: the response is written, and all files and locks are released.
//! If the fork fails, the only effect is the wait. The child exits shortly after its parent and is
//! adopted by the system's first process. In a container this can be Apache, which then reaps it.

use rustix::event::{PollFd, PollFlags};
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::poll;
use super::process::run_in_child;

/// Keeps standard output open until this process has exited. The caller should exit next.
pub fn until_exit() {
    // Opened before the fork: afterwards, the process id could belong to another process.
    let Ok(parent) = pidfd_open(getpid(), PidfdFlags::empty()) else {
        return;
    };
    // This process has one thread.
    _ = run_in_child(|| {
        _ = poll::wait(&mut [PollFd::new(&parent, PollFlags::IN)], None);
        0
    });
}
