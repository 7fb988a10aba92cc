//! Waiting until files are ready (poll(2)). A signal that interrupts the call does not end the wait.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::io::{Errno, retry_on_intr};

/// Waits up to `timeout` until `file` is ready for `event`, or has failed. Returns whether it is.
pub fn is_ready_within(
    timeout: Duration,
    file: &impl AsFd,
    event: PollFlags,
) -> Result<bool, Errno> {
    wait(&mut [PollFd::new(file, event)], Some(timeout)).map(|ready| ready > 0)
}

/// Waits until at least one of `files` is ready, or has failed. Returns their number: 0 after `timeout`, which each
/// signal starts again.
pub fn wait(files: &mut [PollFd], timeout: Option<Duration>) -> Result<usize, Errno> {
    // A time that is too long for the type is as good as none.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    retry_on_intr(|| poll(files, timeout.as_ref()))
}
