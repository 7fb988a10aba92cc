//! The handlers of a process that run, and those that wait.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Limits, panics};

/// What a handler waits for.
type Key = (u64, u64);

thread_local! {
    /// The places of the process, if a handler on this thread has one of them
    static PLACES: RefCell<Option<Arc<Places>>> = const { RefCell::new(None) };
}

/// The places for running and for waiting handlers.
#[derive(Debug)]
pub struct Places {
    limits: Limits,
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
    pub fn new(limits: &Limits) -> Arc<Places> {
        let (limits, threads) = (limits.clone(), AtomicUsize::new(1));
        Arc::new(Places { limits, threads, taken: Mutex::default() })
    }

    /// A place for the handler that is going to run on this thread; `None` if all are taken.
    pub fn enter(self: &Arc<Places>) -> Option<Running> {
        let mut taken = self.taken();
        if taken.running >= self.limits.requests {
            return None;
        }
        taken.running += 1;
        PLACES.set(Some(self.clone()));
        Some(Running)
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running handler, counted until it is dropped, even by a panic.
pub struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(places) = PLACES.take() {
            places.taken().running -= 1;
        }
    }
}

/// Called before this thread waits for `key`. Until the result is dropped, the place of its handler is
/// free for another one. `None` if it may not wait: too many do; this is the last thread, since no
/// other could be started; or the handler has no place because it refuses a request. Outside of a
/// server nothing is counted.
pub fn wait(key: Key) -> Option<Waiting> {
    if !panics::is_guarded() {
        return Some(Waiting(None));
    }
    let places = PLACES.with_borrow(Clone::clone)?;
    let mut taken = places.taken();
    let for_key = taken.waiting.iter().filter(|&&other| other == key).count();
    let others = places.threads.load(Ordering::SeqCst) - 1;
    let in_all = places.limits.waiting.min(others);
    if taken.waiting.len() >= in_all || for_key >= places.limits.waiting_for_one {
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
        let places = Places::new(&Limits::default());
        places.threads.store(3, Ordering::SeqCst);
        let running = panics::guarded(|| {
            let _place = places.enter();
            let mut retries = Retries::new(Duration::ZERO, Duration::from_secs(60));
            (retries.pause(FileId::NONE), places.taken().running)
        });
        assert_eq!(running, Ok((Pause::Ended, 1)));
    }
}
