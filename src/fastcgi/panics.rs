//! A panic of a handler as an error.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// The panic message of the handler that runs on this thread. `None` if no handler runs
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs a handler. The error is the message of a panic.
pub fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    PANIC.set(Some(String::new()));
    // After a panic, only state that the handler itself shares between requests is used again.
    let result = catch_unwind(AssertUnwindSafe(run));
    let message = PANIC.take().unwrap_or_default();
    result.map_err(|_: Box<dyn Any + Send>| message)
}

/// Whether a handler runs on this thread.
pub fn is_guarded() -> bool {
    PANIC.with_borrow(Option::is_some)
}

/// Installs a panic hook that stores the message of a panic in a handler. Only the hook gets the
/// source location.
pub fn keep_messages() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let other = take_hook();
        set_hook(Box::new(move |panic| {
            if is_guarded() {
                PANIC.set(Some(panic.to_string()));
            } else {
                other(panic);
            }
        }));
    });
}
