//! The handlers of a process: those that run, those that wait, and the panic of one as an error.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

/// What a handler waits for.
type Key = (u64, u64);

thread_local! {
    /// The handler that runs on this thread. In a box: musl has room for 112 bytes of such variables of all
    /// modules, without a mapping for them in each CGI process
    static HANDLER: RefCell<Option<Box<Current>>> = const { RefCell::new(None) };
}

struct Current {
    /// The places of the process, if it has one of them
    places: Option<Arc<Places>>,
    /// The message of its panic
    panic: String,
}

/// Runs a handler, with its place. The error is the message of a panic.
pub fn guarded<T>(place: Option<&Running>, run: impl FnOnce() -> T) -> Result<T, String> {
    let places = place.map(|Running(places)| places.clone());
    HANDLER.set(Some(Box::new(Current { places, panic: String::new() })));
    // After a panic, only state that the handler itself shares between requests is used again.
    let result = catch_unwind(AssertUnwindSafe(run));
    let handler = HANDLER.take();
    result.map_err(|_: Box<dyn Any + Send>| handler.map(|it| it.panic).unwrap_or_default())
}

/// Installs a panic hook that stores the message of a panic in a handler. Only the hook gets the
/// source location.
pub fn keep_messages() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let other = take_hook();
        set_hook(Box::new(move |panic| {
            HANDLER.with_borrow_mut(|handler| match handler {
                Some(handler) => handler.panic = panic.to_string(),
                None => other(panic),
            });
        }));
    });
}

/// The places of a process for running and for waiting handlers.
#[derive(Debug)]
pub struct Places {
    /// The maximum number of running handlers
    running: usize,
    /// The maximum number of waiting handlers
    waiting: usize,
    /// The maximum number of handlers that wait for the same key
    waiting_for_one: usize,
    /// The threads of the server
    pub threads: AtomicUsize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    running: usize,
    /// What each waiting handler waits for
    waiting: Vec<Key>,
}

impl Places {
    pub fn new(running: usize, waiting: usize, waiting_for_one: usize) -> Arc<Places> {
        let (threads, taken) = (AtomicUsize::new(1), Mutex::default());
        Arc::new(Places { running, waiting, waiting_for_one, threads, taken })
    }

    /// A place for the handler that is going to run on this thread; `None` if all are taken.
    pub fn enter(self: &Arc<Places>) -> Option<Running> {
        let mut taken = self.taken();
        if taken.running >= self.running {
            return None;
        }
        taken.running += 1;
        Some(Running(self.clone()))
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running handler, counted until this is dropped, even by a panic.
pub struct Running(Arc<Places>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.taken().running -= 1;
    }
}

/// Called before this thread waits for `key`. Until the result is dropped, the place of its handler is
/// free for another one. `None` if it may not wait: too many do; this is the last thread, since no
/// other could be started; or the handler has no place because it refuses a request. Outside of a
/// server nothing is counted.
pub fn wait(key: Key) -> Option<Waiting> {
    let places = HANDLER.with_borrow(|handler| Some(handler.as_ref()?.places.clone()));
    let Some(places) = places else { return Some(Waiting(None)) };
    let places = places?;
    let mut taken = places.taken();
    let for_key = taken.waiting.iter().filter(|&&other| other == key).count();
    let others = places.threads.load(Ordering::SeqCst) - 1;
    let in_all = places.waiting.min(others);
    if taken.waiting.len() >= in_all || for_key >= places.waiting_for_one {
        return None;
    }
    taken.waiting.push(key);
    taken.running -= 1;
    drop(taken);
    Some(Waiting(Some((places, key))))
}

/// A handler that waits. When this is dropped it runs again, even if all places are taken: otherwise
/// it would keep what it waited for from others.
#[derive(Debug)]
pub struct Waiting(Option<(Arc<Places>, Key)>);

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some((places, key)) = &self.0 else { return };
        let mut taken = places.taken();
        taken.running += 1;
        if let Some(place) = taken.waiting.iter().position(|other| other == key) {
            taken.waiting.swap_remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sys::lock::{FileId, Pause, Retries};

    /// The next attempt may pause too: for a lease on a file that was empty before.
    #[test]
    fn a_handler_runs_between_two_pauses() {
        let places = Places::new(64, 256, 64);
        places.threads.store(3, Ordering::SeqCst);
        let place = places.enter();
        let running = guarded(place.as_ref(), || {
            let mut retries = Retries::new(Duration::ZERO, Duration::from_secs(60));
            (retries.pause(FileId::NONE), places.taken().running)
        });
        assert_eq!(running, Ok((Pause::Ended, 1)));
    }
}
