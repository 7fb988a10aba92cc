//! A FastCGI client that can also send invalid input, and the program as a responder.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{School, children};

/// Record types
pub const BEGIN: u8 = 1;
pub const ABORT: u8 = 2;
pub const END: u8 = 3;
pub const PARAMS: u8 = 4;
pub const STDIN: u8 = 5;
pub const STDOUT: u8 = 6;
pub const STDERR: u8 = 7;

/// The numbers of the calls in which a worker waits for a connection
#[cfg(target_arch = "x86_64")]
const EPOLL_WAITS: &[libc::c_long] = &[libc::SYS_epoll_wait, libc::SYS_epoll_pwait];
#[cfg(not(target_arch = "x86_64"))]
const EPOLL_WAITS: &[libc::c_long] = &[libc::SYS_epoll_pwait];

/// Those in which it waits for the peer of its connection
#[cfg(target_arch = "x86_64")]
const POLLS: &[libc::c_long] = &[libc::SYS_poll, libc::SYS_ppoll];
#[cfg(not(target_arch = "x86_64"))]
const POLLS: &[libc::c_long] = &[libc::SYS_ppoll];

/// A management record of an unknown type. Its answer shows that what is before it was received.
pub const PING: [u8; 8] = [1, 99, 0, 0, 0, 0, 0, 0];

/// Long enough for a busy machine; a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [length1, length0] = u16::try_from(content.len())
        .expect("a short record")
        .to_be_bytes();
    [&[1, kind, 0, 1, length1, length0, 0, 0], content].concat()
}

/// BEGIN_REQUEST of a responder.
pub fn begin(keep: bool) -> Vec<u8> {
    record(BEGIN, &[0, 1, u8::from(keep), 0, 0, 0, 0, 0])
}

/// PARAMS, with their end.
pub fn params(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut content = Vec::new();
    for (name, value) in pairs {
        for length in [name.len(), value.len()] {
            content.extend((length as u32 | 0x8000_0000).to_be_bytes());
        }
        content.extend([name.as_bytes(), value.as_bytes()].concat());
    }
    [stream(PARAMS, &content), record(PARAMS, b"")].concat()
}

/// Records of at most 32 KiB, without the end of the stream.
pub fn stream(kind: u8, content: &[u8]) -> Vec<u8> {
    content
        .chunks(32 * 1024)
        .flat_map(|chunk| record(kind, chunk))
        .collect()
}

/// A whole request.
pub fn request(keep: bool, pairs: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    [
        begin(keep),
        params(pairs),
        stream(STDIN, body),
        record(STDIN, b""),
    ]
    .concat()
}

/// The reply to a request.
#[derive(Debug, Default, PartialEq)]
pub struct Reply {
    pub stdout: String,
    pub stderr: Vec<String>,
    /// The protocol status of END_REQUEST
    pub status: u8,
}

pub struct Client(pub UnixStream);

impl Client {
    pub fn connect(path: &Path) -> Client {
        let stream = UnixStream::connect(path).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Client(stream)
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Client {
        self.0.write_all(bytes.as_ref()).expect("the server reads");
        self
    }

    /// Type and content of the next record; `None` at the end of the connection.
    pub fn record(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut header = [0; 8];
        match self.0.read_exact(&mut header) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return None,
            read => read.expect("a record"),
        }
        let mut content = vec![0; u16::from_be_bytes([header[4], header[5]]).into()];
        self.0
            .read_exact(&mut content)
            .expect("the content of a record");
        self.0
            .read_exact(&mut vec![0; header[6].into()])
            .expect("the padding of a record");
        Some((header[1], content))
    }

    /// The whole answer to a request.
    pub fn reply(&mut self) -> Reply {
        let (mut reply, mut stdout) = (Reply::default(), Vec::new());
        loop {
            let (kind, content) = self.record().expect("an END_REQUEST");
            match kind {
                STDOUT => stdout.extend(content),
                STDERR if content.is_empty() => {}
                STDERR => reply.stderr.push(String::from_utf8(content).unwrap()),
                END => {
                    reply.status = content[4];
                    reply.stdout = String::from_utf8(stdout).unwrap();
                    return reply;
                }
                other => panic!("a record of the type {other}"),
            }
        }
    }

    /// Sends a request and returns the answer.
    pub fn ask(&mut self, keep: bool, pairs: &[(&str, &str)], body: &[u8]) -> Reply {
        self.send(request(keep, pairs, body)).reply()
    }

    /// Connects again if the server has closed the connection, as web servers do.
    pub fn connect_again(&mut self, path: &Path) {
        if self.has_received() {
            *self = Client::connect(path);
        }
    }

    /// Whether a part of an answer has come, or the end of the connection.
    pub fn has_received(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        !matches!(recv(&self.0, &mut [0; 1], flags), Err(Errno::AGAIN))
    }

    /// Waits for a part of an answer. Returns whether the connection has ended instead.
    pub fn is_ended(&self) -> bool {
        let peeked = retry_on_intr(|| recv(&self.0, &mut [0; 1], RecvFlags::PEEK));
        !matches!(peeked, Ok((1.., _)))
    }

    /// All that the server sends before the connection ends, even by a reset.
    pub fn received(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.0.read_to_end(&mut bytes) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
            _ => bytes,
        }
    }

    /// Checks that the server has closed, or shut down sending. What it has not read makes that a reset.
    #[track_caller]
    pub fn is_at_end(&mut self) {
        assert_eq!(self.received(), b"");
    }
}

/// A socket that stays open between the processes that serve it, like a socket of systemd.
pub struct Held {
    _folder: TempDir,
    pub path: PathBuf,
    listener: UnixListener,
}

impl Held {
    pub fn new() -> Held {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        Held {
            listener: UnixListener::bind(&path).unwrap(),
            path,
            _folder: folder,
        }
    }

    pub fn serve(&self, school: &School) -> Process {
        self.spawn(school.get("").responder())
    }

    pub fn spawn(&self, command: Command) -> Process {
        Process(self.command(command).spawn().unwrap())
    }

    /// The command with the socket as its standard input.
    pub fn command(&self, mut command: Command) -> Command {
        command.stdin(OwnedFd::from(self.listener.try_clone().unwrap()));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }
}

/// A responder; killed if it was not stopped.
pub struct Process(pub Child);

impl Process {
    /// Stops it as systemd does; it must end with success. Returns what it logged.
    #[track_caller]
    pub fn stop(mut self) -> String {
        kill_process(self.pid(), Signal::TERM).unwrap();
        let mut log = String::new();
        if let Some(mut stderr) = self.0.stderr.take() {
            stderr.read_to_string(&mut log).unwrap();
        }
        let status = self.0.wait().unwrap();
        assert!(status.success(), "{status:?} {log}");
        log
    }

    /// The parent of the workers. Under strace the program is a child of the process that was started.
    pub fn pid(&self) -> Pid {
        let started = Pid::from_child(&self.0);
        match fs::read_to_string(format!("/proc/{started}/comm")).as_deref() {
            Ok("strace\n") => children(self.0.id()).pop().unwrap_or(started),
            _ => started,
        }
    }

    pub fn workers(&self) -> Vec<Pid> {
        children(self.pid())
    }

    /// Whether this number of workers have started, and each waits for a connection.
    pub fn has_started(&self, workers: usize) -> bool {
        self.workers_in(EPOLL_WAITS) == workers
    }

    /// The number of workers that have a kept connection, and wait for its next request.
    pub fn kept(&self) -> usize {
        self.workers_in(POLLS)
    }

    /// The number of workers that are in one of these system calls (proc_pid_syscall(5)).
    fn workers_in(&self, calls: &[libc::c_long]) -> usize {
        let is_in = |worker: &Pid| {
            let call = fs::read_to_string(format!("/proc/{worker}/syscall")).unwrap_or_default();
            let number = call
                .split(' ')
                .next()
                .and_then(|number| number.parse().ok());
            number.is_some_and(|number| calls.contains(&number))
        };
        self.workers().iter().filter(|worker| is_in(worker)).count()
    }

    /// The sum of a value in KiB of /proc/PID/status, such as the memory of its own `RssAnon`, of all workers.
    pub fn of_workers(&self, name: &str) -> u64 {
        self.workers()
            .into_iter()
            .filter_map(|worker| value(worker, name))
            .sum()
    }

    /// The open file descriptors of the workers.
    pub fn descriptors(&self) -> usize {
        let count = |worker: Pid| Some(fs::read_dir(format!("/proc/{worker}/fd")).ok()?.count());
        self.workers().into_iter().filter_map(count).sum()
    }
}

/// A value in KiB of /proc/PID/status; `None` if the process has ended.
fn value(process: Pid, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim_start_matches(':')
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .ok()
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            _ = kill_process(self.pid(), Signal::KILL);
            _ = self.0.wait();
        }
    }
}

/// The parameters of a request to `aula1`.
pub fn parameters<'p>(method: &'p str, query: &'p str, cookie: &'p str) -> Vec<(&'p str, &'p str)> {
    vec![
        ("REQUEST_METHOD", method),
        ("QUERY_STRING", query),
        ("HTTP_COOKIE", cookie),
        ("HTTP_HOST", "school.example"),
    ]
}
