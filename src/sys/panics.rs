//! Panics: each is a fault of this program, which costs the request that meets it.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The message of the last panic. Only the hook gets its place in the source.
static MESSAGE: Mutex<String> = Mutex::new(String::new());

fn message() -> MutexGuard<'static, String> {
    MESSAGE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns what `run` returns, or the message of its panic with the place in the source. What it was changing then may be
/// in any state.
pub fn catch<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    set_hook(Box::new(|panic| *message() = panic.to_string()));
    let outcome = catch_unwind(AssertUnwindSafe(run));
    drop(take_hook());
    outcome.map_err(|_| std::mem::take(&mut *message()))
}
