//! What each worker of a FastCGI responder is doing, and what they know in common, in memory that all of them share:
//! as Apache's scoreboard. A CGI process has no workers; it always may wait.
#![allow(unsafe_code)]

use std::io;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use super::file_id::FileId;

/// The maximum number of workers: eight times the default. The scoreboard needs 12 KiB for them.
pub const MAX_WORKERS: usize = 512;

/// The other end of a socket that can answer does so within this time. After it, the request counts as one that waits.
pub const PROMPT: Duration = Duration::from_millis(50);

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
    /// Its request waits for another program.
    Waiting,
}

/// One worker. Only the worker itself changes its slot; the parent clears it when the worker has ended.
#[derive(Debug)]
struct Slot {
    state: AtomicU32,
    /// The file that its request waits for; zeros for what is not a file
    device: AtomicU64,
    inode: AtomicU64,
}

impl Slot {
    fn set(&self, state: State) {
        self.state.store(state as u32, SeqCst);
    }

    fn is(&self, state: State) -> bool {
        self.state.load(SeqCst) == state as u32
    }

    fn wait_for(&self, file: Option<FileId>) {
        self.device
            .store(file.map_or(0, |file| file.device), SeqCst);
        self.inode.store(file.map_or(0, |file| file.inode), SeqCst);
        self.set(State::Waiting);
    }

    fn waits_for(&self, file: FileId) -> bool {
        self.is(State::Waiting)
            && self.device.load(SeqCst) == file.device
            && self.inode.load(SeqCst) == file.inode
    }
}

/// What the workers know in common.
#[derive(Debug)]
pub struct SharedFlags {
    /// Which settings files, by their number, one of them has seen
    pub has_seen: [AtomicBool; 2],
    /// The hash of the settings that one of them has read last; 0 for none
    pub settings: AtomicU64,
    /// Whether one of them has logged that the file cannot be used at the moment
    pub has_kept_settings: AtomicBool,
    /// Whether one of them has logged a parameter with the name of a setting
    pub has_reported_parameter: AtomicBool,
}

/// That of a process without workers
static OF_PROCESS: SharedFlags = SharedFlags {
    has_seen: [const { AtomicBool::new(false) }; 2],
    settings: AtomicU64::new(0),
    has_kept_settings: AtomicBool::new(false),
    has_reported_parameter: AtomicBool::new(false),
};

#[derive(Debug)]
struct Shared {
    flags: SharedFlags,
    workers: AtomicUsize,
    slots: [Slot; MAX_WORKERS],
}

/// The scoreboard of a responder.
#[derive(Clone, Copy, Debug)]
pub struct Scoreboard(&'static Shared);

/// A worker and its scoreboard.
#[derive(Clone, Copy, Debug)]
pub struct Worker {
    board: Scoreboard,
    slot: &'static Slot,
}

/// The scoreboard of this process, if it is the parent or a worker
static BOARD: OnceLock<Scoreboard> = OnceLock::new();

/// This process, if it is a worker
static WORKER: OnceLock<Worker> = OnceLock::new();

/// What the workers know in common, or this process alone.
pub fn shared_flags() -> &'static SharedFlags {
    BOARD.get().map_or(&OF_PROCESS, |board| &board.0.flags)
}

impl Scoreboard {
    /// The scoreboard of this process and of its children. Called before settings are read.
    pub fn of_process() -> io::Result<Scoreboard> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the mapping is new and never unmapped, and zeros are a valid value: all states are `Absent`.
        let shared: &Shared = unsafe {
            &*mmap_anonymous(null_mut(), size_of::<Shared>(), access, MapFlags::SHARED)?.cast()
        };
        Ok(*BOARD.get_or_init(|| Scoreboard(shared)))
    }

    pub fn set_workers(&self, workers: usize) {
        self.0.workers.store(workers, SeqCst);
    }

    fn workers(&self) -> usize {
        self.0.workers.load(SeqCst)
    }

    /// Makes this process the worker with this number.
    pub fn enter(self, number: usize) -> Worker {
        *WORKER.get_or_init(|| Worker {
            board: self,
            slot: &self.0.slots[number],
        })
    }

    /// Clears the slot of a worker that has ended. Returns whether it had started.
    pub fn clear(&self, number: usize) -> bool {
        let slot = &self.0.slots[number];
        let has_started = !slot.is(State::Absent);
        slot.set(State::Absent);
        has_started
    }

    fn slots(&self) -> &[Slot] {
        &self.0.slots[..self.workers()]
    }

    fn count(&self, is: impl Fn(&Slot) -> bool) -> usize {
        self.slots().iter().filter(|slot| is(slot)).count()
    }
}

impl Worker {
    pub fn set(&self, state: State) {
        self.slot.set(state);
    }

    /// Whether at least half of the workers are free.
    pub fn is_half_free(&self) -> bool {
        2 * self.board.count(|slot| slot.is(State::Free)) >= self.board.workers()
    }
}

/// A request that waits, until this is dropped.
#[derive(Debug)]
pub struct Waiting(Option<Worker>);

/// Called before this process waits for another program, which holds `file`, or for a server (`None`). `None` if it may
/// not: half of the workers wait already, or a quarter for the same file, or three quarters wait or have a kept
/// connection. So requests that wait and idle connections never take all workers.
pub fn wait(file: Option<FileId>) -> Option<Waiting> {
    let Some(worker) = WORKER.get() else {
        return Some(Waiting(None));
    };
    worker.slot.wait_for(file);
    let waiting = Waiting(Some(*worker));
    // This one is counted too. Of two that begin at the same time, both may be refused.
    let board = worker.board;
    let all = board.count(|slot| slot.is(State::Waiting));
    let for_file = file.map_or(0, |file| board.count(|slot| slot.waits_for(file)));
    let kept = board.count(|slot| slot.is(State::Kept));
    let workers = board.workers();
    let may_wait = all <= (workers / 2).max(1)
        && all + kept <= (workers * 3 / 4).max(1)
        && for_file <= (workers / 4).max(1);
    may_wait.then_some(waiting)
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(worker) = &self.0 {
            worker.set(State::Busy);
        }
    }
}
