//! A deadline for steps that may never end.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

/// The result of `step`, or an error if it is not there at `end`: if the server of a network file system, or a
/// process, does not answer, a system call may never return. Its thread goes on then, and this process can start
/// no [`Child`](super::child::Child) any more.
pub fn limited<T: Send + 'static>(
    end: Instant,
    step: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let place = Arc::new((Mutex::new(None), Condvar::new()));
    let (result, changed) = &*place;
    let of_thread = place.clone();
    let thread = thread::Builder::new().spawn(move || {
        let (result, changed) = &*of_thread;
        let done = step();
        *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        changed.notify_one();
    });
    thread.map_err(|error| io::Error::other(format!("cannot start a thread: {error}")))?;
    let result = result.lock().unwrap_or_else(PoisonError::into_inner);
    let rest = end.saturating_duration_since(Instant::now());
    let waited = changed.wait_timeout_while(result, rest, |result| result.is_none());
    let (mut result, _) = waited.unwrap_or_else(PoisonError::into_inner);
    result.take().unwrap_or_else(|| Err(io::Error::other("no answer in time")))
}
