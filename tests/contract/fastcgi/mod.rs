//! The FastCGI responder over real sockets, with a handler of its own, in a process of its own: it forks.

mod bounds;
mod process;
mod requests;

use std::env;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, abort};
use std::time::Duration;

use comedor::fastcgi::{Handler, Limits, Pairs, Refusal, Socket, serve};
use comedor::sys::lock::Lock;
use comedor::sys::panics;
use comedor::sys::streams::Output;
use comedor::sys::waits::Waits;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getpid, kill_process};
use tempfile::TempDir;

use crate::support::fastcgi::*;
use crate::support::site::wait_until;
use crate::support::{until_waiting, waiting};

/// A limit that no test reaches
const HOUR: Duration = Duration::from_secs(3600);

/// Executes the command in the parameter DO, else repeats the body.
struct Dummy;

impl Handler for Dummy {
    fn reload(&mut self) -> bool {
        false
    }

    fn handle(
        &mut self,
        params: Result<Pairs, Refusal>,
        body: &mut dyn Read,
        waits: Waits,
    ) -> Output {
        let mut output = Output::default();
        match params.map(|params| panics::catch(|| answer(params, body, waits, &mut output))) {
            Ok(Ok(stdout)) => output.stdout = stdout,
            Ok(Err(message)) => {
                output.stdout = message.into();
                output.has_panicked = true;
            }
            Err(refusal) => output.stdout = format!("{refusal:?}").into(),
        }
        output
    }
}

/// What the command writes to standard output.
fn answer(mut params: Pairs, body: &mut dyn Read, waits: Waits, output: &mut Output) -> Vec<u8> {
    let mut param = |name: &str| {
        let found = params.find(|(known, _)| *known == name.as_bytes());
        found.map(|(_, value)| String::from_utf8(value.to_vec()).unwrap())
    };
    match param("DO").as_deref() {
        Some("early") => b"early".to_vec(),
        Some("large") => vec![b'x'; LARGE],
        Some("process") => std::process::id().to_string().into_bytes(),
        Some("log") => {
            output.stderr = b"one\ntwo\n".to_vec();
            Vec::new()
        }
        Some("lock") => {
            let file = File::open(param("FILE").unwrap()).unwrap();
            match Lock::Exclusive
                .acquire(&file, &mut { HOUR }, waits)
                .unwrap()
            {
                true => b"locked".to_vec(),
                false => b"busy".to_vec(),
            }
        }
        Some("panic") => panic!("as asked"),
        Some("abort") => abort(),
        Some("overflow") => vec![overflow(0)],
        // The test harness handles the first one.
        Some("fault") => loop {
            kill_process(getpid(), Signal::SEGV).unwrap();
        },
        _ => {
            let mut bytes = Vec::new();
            match body.read_to_end(&mut bytes) {
                Ok(_) => bytes,
                Err(error) => format!("{} bytes, {}", bytes.len(), error.kind()).into_bytes(),
            }
        }
    }
}

/// Calls itself until the stack is full.
#[allow(unconditional_recursion)]
fn overflow(depth: u64) -> u8 {
    let block = black_box([depth; 512]);
    overflow(depth + 1).wrapping_add(block[0] as u8)
}

/// More than the buffers of a socket hold.
const LARGE: usize = 4 * 1024 * 1024;

/// The values of a test's limits, as milliseconds and numbers in an environment variable.
fn to_text(limits: &Limits) -> String {
    let times = [
        limits.arrival, limits.pause, limits.transfer, limits.idle, limits.prompt,
    ];
    let times = times.map(|time| time.as_millis().to_string()).join(" ");
    let Limits {
        workers,
        params,
        large,
        requests,
        ..
    } = limits;
    format!("{workers} {params} {large} {requests} {times}")
}

fn from_text(text: &str) -> Limits {
    let values: Vec<u64> = text
        .split(' ')
        .map(|value| value.parse().unwrap())
        .collect();
    let time = |number: usize| Duration::from_millis(values[number]);
    Limits {
        workers: values[0] as usize,
        params: values[1] as usize,
        large: values[2],
        requests: values[3] as u32,
        arrival: time(4),
        pause: time(5),
        transfer: time(6),
        idle: time(7),
        prompt: time(8),
    }
}

const LIMITS: &str = "COMEDOR_TEST_LIMITS";
const SOCKET: &str = "COMEDOR_TEST_SOCKET";

/// What ends with these limits ends by the one that a test shortens. A busy machine only makes it later.
fn hours() -> Limits {
    Limits {
        workers: 4,
        arrival: HOUR,
        pause: HOUR,
        transfer: HOUR,
        idle: HOUR,
        ..Limits::default()
    }
}

/// The server of the other tests, which start this one in a process of its own.
#[test]
fn server() {
    let (Ok(limits), Ok(socket)) = (env::var(LIMITS), env::var(SOCKET)) else {
        return;
    };
    let socket = Socket::bind(Path::new(&socket)).expect("a socket");
    serve(socket, Dummy, &from_text(&limits)).expect("an end without error");
}

/// A running server. Dropping it stops it.
struct Service {
    folder: TempDir,
    path: PathBuf,
    /// `None` after it was stopped
    process: Option<Process>,
}

impl Service {
    fn start(limits: Limits) -> Service {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        // In no thread of the test harness may these signals have their default action.
        let mut command = Command::new("env");
        command.arg("--block-signal=TERM,INT,QUIT,USR1,CHLD");
        command.arg(env::current_exe().unwrap());
        command.args([
            "--exact", "fastcgi::server", "--nocapture", "--test-threads=1",
        ]);
        command
            .env(LIMITS, to_text(&limits))
            .env(SOCKET, &path)
            .stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let process = Process(command.spawn().unwrap());
        wait_until("the socket", || {
            std::os::unix::net::UnixStream::connect(&path).is_ok()
        });
        wait_until("the workers", || process.has_started(limits.workers));
        Service {
            folder,
            path,
            process: Some(process),
        }
    }

    fn with_workers(workers: usize) -> Service {
        Service::start(Limits { workers, ..hours() })
    }

    /// One in which every wait counts at once.
    fn counting(workers: usize) -> Service {
        Service::start(Limits {
            workers,
            prompt: Duration::ZERO,
            ..hours()
        })
    }

    fn client(&self) -> Client {
        Client::connect(&self.path)
    }

    fn clients<const N: usize>(&self) -> [Client; N] {
        std::array::from_fn(|_| self.client())
    }

    fn process(&self) -> &Process {
        self.process.as_ref().unwrap()
    }

    /// A file whose lock the caller holds.
    fn locked(&self, name: &str) -> (PathBuf, File) {
        let path = self.folder.path().join(name);
        let file = File::create(&path).unwrap();
        file.lock().unwrap();
        (path, file)
    }

    /// Begins the stop.
    fn stop(&self) {
        self.signal(Signal::TERM);
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.process().pid(), signal).unwrap();
    }

    /// Stops the server, waits until it has ended, and returns its log.
    fn finish(&mut self) -> String {
        self.process.take().unwrap().stop()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if self.process.is_some() && !std::thread::panicking() {
            self.finish();
        }
    }
}

fn answered(stdout: &str) -> Reply {
    Reply {
        stdout: stdout.to_owned(),
        ..Reply::default()
    }
}

/// A request that waits for the lock of a file.
fn lock_of(keep: bool, file: &Path) -> Vec<u8> {
    request(
        keep,
        &[("DO", "lock"), ("FILE", file.to_str().unwrap())],
        b"",
    )
}

/// A request without its end, which holds its worker.
fn half(keep: bool) -> Vec<u8> {
    [begin(keep), params(&[]), record(STDIN, b"bo")].concat()
}

/// Whether the server has closed the connection.
fn is_hung_up(client: &Client) -> bool {
    let mut hang_up = [PollFd::new(&client.0, PollFlags::empty())];
    poll(&mut hang_up, Some(&Timespec::default())) == Ok(1)
}

const EARLY: &[(&str, &str)] = &[("DO", "early")];
