//! What needs Linux or `unsafe`: the start of the process, its allocator, system calls that neither the standard
//! library nor rustix has, locks and pauses, the scoreboard of the processes of a responder, files that other
//! programs write, standard streams, users and groups, the log, and output kept open for Apache. No other folder has
//! `unsafe` code.

pub(crate) mod accounts;
pub mod allocator;
pub mod environment;
pub mod file_id;
pub mod kept_output;
pub mod lease;
pub mod lock;
pub mod log;
pub mod process;
pub mod scoreboard;
pub mod shared_file;
pub mod signals;
pub mod start;
pub mod streams;
pub mod timers;

use std::io;

/// The result of a system call, or its error.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}
