//! A deadline for steps that may never end.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// The result of `step`, or an error if it is not there at `end`: if the server of a network file system, or a
/// process, does not answer, a system call may never return. Its thread goes on then, and this process can start
/// no [child](super::child) any more.
pub fn limited<T: Send + 'static>(
    end: Instant,
    step: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let thread = thread::Builder::new().spawn(step);
    let thread =
        thread.map_err(|error| io::Error::other(format!("cannot start a thread: {error}")))?;
    // A channel would do the same, but its variables of each thread need a mapping in every CGI process.
    while !thread.is_finished() {
        if Instant::now() >= end {
            return Err(io::Error::other("no answer in time"));
        }
        thread::sleep(Duration::from_millis(1));
    }
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the step failed")))
}
