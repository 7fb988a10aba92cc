//! The handlers of a process that run, and those that wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Limits;

/// What a handler waits for.
type Key = (u64, u64);

/// The places for running and for waiting handlers.
#[derive(Debug)]
pub struct Places {
    limits: Limits,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    running: usize,
    /// The number of handlers that wait for each key
    waiting: BTreeMap<Key, usize>,
}

impl Places {
    pub(super) fn new(limits: &Limits) -> Arc<Places> {
        Arc::new(Places { limits: limits.clone(), taken: Mutex::default() })
    }

    /// A place to run; `None` if all are taken.
    pub(super) fn run(&self) -> Option<Running<'_>> {
        let mut taken = self.taken();
        let is_free = taken.running < self.limits.requests;
        taken.running += usize::from(is_free);
        is_free.then(|| Running(self))
    }

    /// Called by a running handler that is going to wait for `key`. Until the result is dropped, its
    /// place is free for another one. `None` if too many wait.
    pub fn wait(self: &Arc<Places>, key: Key) -> Option<Waiting> {
        let mut taken = self.taken();
        let in_all: usize = taken.waiting.values().sum();
        let for_key = taken.waiting.get(&key).copied().unwrap_or(0);
        if in_all >= self.limits.waiting || for_key >= self.limits.waiting_for_one {
            return None;
        }
        taken.waiting.insert(key, for_key + 1);
        taken.running -= 1;
        Some(Waiting { places: self.clone(), key })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running handler, counted until it is dropped, even by a panic.
#[derive(Debug)]
pub(super) struct Running<'p>(&'p Places);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.taken().running -= 1;
    }
}

/// A handler that waits. When this is dropped it runs again, even if all places are taken: otherwise
/// it would keep what it waited for from others.
#[derive(Debug)]
pub struct Waiting {
    places: Arc<Places>,
    key: Key,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.running += 1;
        if let Some(waiting) = taken.waiting.get_mut(&self.key) {
            *waiting -= 1;
            if *waiting == 0 {
                taken.waiting.remove(&self.key);
            }
        }
    }
}
