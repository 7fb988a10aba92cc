//! What each worker of a FastCGI responder is doing, in memory that all of them share: as Apache's scoreboard.
#![allow(unsafe_code)]

use std::io;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use std::thread::yield_now;
use std::time::Duration;

use super::file_id::FileId;
use super::shared_memory::{self, Shared};

/// The maximum number of workers: eight times the default. The scoreboard needs 16 KiB for them.
pub const MAX_WORKERS: usize = 512;

/// What a worker is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u32)]
pub enum State {
    /// It has not started yet, or has ended.
    Absent,
    /// It waits for a connection.
    Free,
    /// It has a connection.
    Busy,
    /// It has a kept connection, which waits for another request.
    Kept,
    /// Its request waits for what is outside its process.
    Waiting,
}

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Awaited {
    /// A lock on this file, or the program that writes it
    File(FileId),
    /// The server that has the sessions
    Redis,
    /// The web server, which sends a body as its client does, and reads an answer so
    WebServer,
}

/// One worker. Only the worker itself changes its slot; the parent clears it when the worker has ended.
#[derive(Debug)]
struct Slot {
    state: AtomicU32,
    /// What its request waits for: device and inode of a file, else 0 and a number
    device: AtomicU64,
    inode: AtomicU64,
    /// The place of this wait in the order of all; 0 while it has none yet
    ticket: AtomicU64,
    /// The microseconds for which its request may still wait without being counted
    prompt: AtomicU64,
}

/// The two numbers of `awaited` in a slot. No file is on the device 0.
fn numbers(awaited: Awaited) -> (u64, u64) {
    match awaited {
        Awaited::File(file) => (file.device, file.inode),
        Awaited::Redis => (0, 1),
        Awaited::WebServer => (0, 2),
    }
}

impl Slot {
    fn is(&self, state: State) -> bool {
        self.state.load(SeqCst) == state as u32
    }

    fn waits_for(&self, awaited: Awaited) -> bool {
        self.is(State::Waiting)
            && (self.device.load(SeqCst), self.inode.load(SeqCst)) == numbers(awaited)
    }
}

#[derive(Debug)]
struct Slots {
    workers: AtomicUsize,
    missing: AtomicUsize,
    /// The number of waits until now
    tickets: AtomicU64,
    slots: [Slot; MAX_WORKERS],
}

/// The scoreboard of a responder.
#[derive(Clone, Copy, Debug)]
pub struct Scoreboard(&'static Slots);

// SAFETY: all states are `Absent`.
unsafe impl Shared for Slots {}

/// The entry of a worker.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    board: Scoreboard,
    slot: &'static Slot,
}

impl Scoreboard {
    /// A scoreboard for this number of workers, at most [`MAX_WORKERS`], which this process and its children share.
    pub fn new(workers: usize) -> io::Result<Scoreboard> {
        let shared: &Slots = shared_memory::zeroed()?;
        shared.workers.store(workers, SeqCst);
        Ok(Scoreboard(shared))
    }

    /// Sets how many of the workers could not be started. Counts of workers leave them out.
    pub fn set_missing(&self, missing: usize) {
        self.0.missing.store(missing, SeqCst);
    }

    /// The number of workers, without those that could not be started.
    fn workers(&self) -> usize {
        let workers = self.0.workers.load(SeqCst);
        workers.saturating_sub(self.0.missing.load(SeqCst))
    }

    /// The entry of the worker with this number.
    pub fn enter(self, number: usize) -> Entry {
        Entry {
            board: self,
            slot: &self.0.slots[number],
        }
    }

    /// Clears the slot of a worker that has ended. Returns whether it had started.
    pub fn clear(&self, number: usize) -> bool {
        let slot = &self.0.slots[number];
        let has_started = !slot.is(State::Absent);
        slot.state.store(State::Absent as u32, SeqCst);
        has_started
    }

    fn count(&self, is: impl Fn(&Slot) -> bool) -> usize {
        let slots = &self.0.slots[..self.0.workers.load(SeqCst)];
        slots.iter().filter(|slot| is(slot)).count()
    }
}

impl Entry {
    pub fn set(&self, state: State) {
        self.slot.state.store(state as u32, SeqCst);
    }

    /// Whether at least half of the workers are free.
    pub fn is_half_free(&self) -> bool {
        2 * self.board.count(|slot| slot.is(State::Free)) >= self.board.workers()
    }

    /// The time for which the waits of the request do not count.
    pub(super) fn prompt(&self) -> Duration {
        Duration::from_micros(self.slot.prompt.load(SeqCst))
    }

    /// Sets the time for which waits do not count: when a request begins, and for what follows its answer.
    pub fn set_prompt(&self, time: Duration) {
        self.slot.prompt.store(time.as_micros() as u64, SeqCst);
    }

    /// The request of this worker waits from now on, after the requests that wait already.
    pub(super) fn wait_for(&self, awaited: Awaited) {
        let (device, inode) = numbers(awaited);
        self.slot.device.store(device, SeqCst);
        self.slot.inode.store(inode, SeqCst);
        self.slot.ticket.store(0, SeqCst);
        self.set(State::Waiting);
        let before = self.board.0.tickets.fetch_add(1, SeqCst);
        self.slot.ticket.store(before + 1, SeqCst);
    }

    /// The number of workers, without those that could not be started.
    pub(super) fn workers(&self) -> usize {
        self.board.workers()
    }

    /// The number of workers whose requests have begun to wait for this before its own.
    pub(super) fn waiting_before(&self, awaited: Awaited) -> usize {
        let count = |slot: &Slot| slot.waits_for(awaited) && self.is_before(slot);
        self.board.count(count)
    }

    /// The number of workers whose requests have begun to wait before its own, or that have a kept connection.
    pub(super) fn held_before(&self) -> usize {
        let is_before = |slot: &Slot| slot.is(State::Waiting) && self.is_before(slot);
        self.board
            .count(|slot| is_before(slot) || slot.is(State::Kept))
    }

    /// Whether the wait of this slot has begun before its own, or has if that has not begun.
    fn is_before(&self, slot: &Slot) -> bool {
        if !self.slot.is(State::Waiting) {
            return true;
        }
        // Between two steps of `wait_for`
        while slot.ticket.load(SeqCst) == 0 && slot.is(State::Waiting) {
            yield_now();
        }
        slot.ticket.load(SeqCst) < self.slot.ticket.load(SeqCst)
    }
}
