//! What needs Linux or `unsafe`. No other folder has `unsafe` code.
//!
//! | file | why it is here |
//! |---|---|
//! | `accounts` | the system's files of users and groups: the C library's own lookup needs plug-ins (nsswitch.conf(5)), which a static executable lacks |
//! | `allocator` | `unsafe`: the allocator of the process |
//! | `environment` | `unsafe`: the lists of C strings that execve(2) gives |
//! | `file_id` | device and inode (stat(2)), by which the scoreboard, locks and pauses know a file |
//! | `kept_output` | Linux: a pidfd; the fork is that of `process` |
//! | `lease` | `unsafe`, Linux: fcntl(2) with `F_SETLEASE`, which rustix lacks |
//! | `lock` | flock(2), interrupted by `timers`, and pauses |
//! | `log` | standard error without blocking: `poll` and `timers` |
//! | `panics` | the hook of the process |
//! | `poll` | poll(2), which the standard library lacks |
//! | `process` | `unsafe`: fork(2) and the auxiliary vector; users and groups of the process |
//! | `scoreboard` | `unsafe`: an entry for each worker in shared memory |
//! | `shared_file` | Linux: open(2) with `O_NOFOLLOW` and `O_NONBLOCK`, leases of other programs, ESTALE of network file systems |
//! | `shared_memory` | `unsafe`: mmap(2) |
//! | `signals` | `unsafe`: sigaction(2), pthread_sigmask(3), sigtimedwait(2) |
//! | `start` | `unsafe`: C's `main` in place of Rust's |
//! | `streams` | standard streams that may be non-blocking: `poll` |
//! | `timers` | `unsafe`: setitimer(2) |
//! | `waits` | the rule for what the `scoreboard` counts |

pub(crate) mod accounts;
pub mod allocator;
pub mod environment;
pub mod file_id;
pub mod kept_output;
pub mod lease;
pub mod lock;
pub mod log;
pub mod panics;
pub mod poll;
pub mod process;
pub mod scoreboard;
pub mod shared_file;
pub mod shared_memory;
pub mod signals;
pub mod start;
pub mod streams;
pub mod timers;
pub mod waits;

use std::io;

/// The value that a function of the C library returned, or the error in `errno` if it is -1.
fn or_errno(value: libc::c_int) -> io::Result<libc::c_int> {
    match value {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}
