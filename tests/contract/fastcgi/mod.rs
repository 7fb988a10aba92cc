//! The FastCGI responder over real sockets, with a handler of its own.

mod full;
mod process;
mod requests;

use std::io::{self, PipeWriter, pipe};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use comedor::fastcgi::{Handler, Limits, Output, Pairs, Refusal, Socket, serve, wait};
use tempfile::TempDir;

use crate::support::fastcgi::*;

/// Executes the command in the parameter DO, else repeats the body.
#[derive(Default)]
struct Dummy {
    /// The number of received requests and lines of the log, and whether the waiting requests may continue
    gate: Mutex<(usize, bool)>,
    changed: Condvar,
    log: Mutex<Vec<String>>,
}

impl Dummy {
    fn receive(&self) -> MutexGuard<'_, (usize, bool)> {
        let mut gate = self.gate.lock().unwrap();
        gate.0 += 1;
        self.changed.notify_all();
        gate
    }

    /// Waits until `count` requests and lines were received.
    fn wait_for(&self, count: usize) {
        let gate = self.gate.lock().unwrap();
        drop(self.changed.wait_while(gate, |(came, _)| *came < count).unwrap());
    }

    fn open_gate(&self) {
        self.gate.lock().unwrap().1 = true;
        self.changed.notify_all();
    }

    fn handled(&self) -> usize {
        self.gate.lock().unwrap().0
    }
}

impl Handler for Dummy {
    fn handle(&self, mut params: Pairs, body: &[u8]) -> Output {
        let gate = self.receive();
        let (mut stdout, mut stderr) = (body.to_vec(), Vec::new());
        let command = params.find(|(name, _)| *name == b"DO");
        match command.map(|(_, command)| command) {
            Some(b"wait") => drop(self.changed.wait_while(gate, |(_, open)| !*open).unwrap()),
            // Waits for the key that is the body.
            Some(b"lock") => match wait((0, body.first().copied().unwrap_or(0).into())) {
                Some(_waiting) => drop(self.changed.wait_while(gate, |(_, open)| !*open).unwrap()),
                None => stdout = b"too many wait".to_vec(),
            },
            Some(how @ (b"panic" | b"lock and panic")) => {
                drop(gate);
                let _waiting = how.starts_with(b"lock").then(|| wait((0, 0)));
                panic!("as asked")
            }
            Some(b"large") => stdout = vec![b'x'; LARGE],
            Some(b"log") => stderr = b"one\ntwo\n".to_vec(),
            Some(b"early") => stdout = b"early".to_vec(),
            _ => {}
        }
        Output { stdout, stderr }
    }

    fn refuse(&self, _: Pairs, why: Refusal) -> Output {
        Output { stdout: format!("{why:?}").into(), stderr: Vec::new() }
    }

    fn log(&self, line: &str) {
        drop(self.receive());
        self.log.lock().unwrap().push(line.to_owned());
    }
}

/// More than the buffers of a socket hold.
const LARGE: usize = 4 * 1024 * 1024;

/// A running server. Dropping it stops it.
struct Service {
    _folder: TempDir,
    path: PathBuf,
    handler: Arc<Dummy>,
    /// `None` begins the stop
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Service {
    fn start(limits: Limits) -> Service {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let (socket, handler) = (Socket::bind(&path).expect("a socket"), Arc::<Dummy>::default());
        let (stopped, stop) = pipe().unwrap();
        let shared = handler.clone();
        let thread = thread::spawn(move || serve(socket, &*shared, &limits, stopped));
        Service { _folder: folder, path, handler, stop: Some(stop), thread: Some(thread) }
    }

    fn client(&self) -> Client {
        Client::connect(&self.path)
    }

    fn clients<const N: usize>(&self) -> [Client; N] {
        std::array::from_fn(|_| self.client())
    }

    /// Stops the server and waits until it has ended.
    fn finish(&mut self) {
        self.stop = None;
        self.thread.take().unwrap().join().unwrap().expect("an end without error");
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.handler.open_gate();
        if self.thread.is_some() && !thread::panicking() {
            self.finish();
        }
    }
}

fn answered(stdout: &str) -> Reply {
    Reply { stdout: stdout.to_owned(), ..Reply::default() }
}

const WAIT: &[(&str, &str)] = &[("DO", "wait")];
const LOCK: &[(&str, &str)] = &[("DO", "lock")];
const EARLY: &[(&str, &str)] = &[("DO", "early")];
