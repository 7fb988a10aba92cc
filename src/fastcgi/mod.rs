//! A FastCGI 1.0 responder. Section numbers are those of the specification.
//!
//! Independent of the API: a [`Handler`] turns parameters and a body into CGI output.
//!
//! | module | content | touches the system |
//! |---|---|---|
//! | `record` | records and name-value pairs | |
//! | `protocol` | the protocol on one connection, a state machine | |
//! | `connection` | one connection: reading, sending, deadlines, closing | a socket |
//! | `server` | threads, connections, timeouts, stopping | epoll |
//! | `probe` | whether a process answers on a socket | a socket |
//! | `socket` | the listening socket: inherited, or bound to a path | file system |
//!
//! Threads: all wait in `epoll_wait` on the same set of file descriptors. Each connection is armed
//! for one event (EPOLLONESHOT). The thread that gets the event owns the connection until it arms
//! it again. It reads once without blocking and, if a request is complete, runs the handler itself,
//! without a queue. So only a running handler occupies a thread; a connection that is idle,
//! receives a partial request or has a slow reader does not. The maximum number of threads is one
//! more than the maximum number of concurrent handlers, so that one thread can always accept,
//! receive and refuse. A thread is started when the last idle one gets work. Threads are reused.
//!
//! Web servers differ from the specification, and from each other:
//!
//! - Apache's mod_proxy_fcgi turns an END_REQUEST without output, FCGI_OVERLOADED and
//!   FCGI_CANT_MPX_CONN into an empty 200. So every request that can be answered gets a complete
//!   answer; otherwise the connection is closed without END_REQUEST.
//! - If a connection is closed with unread input, Apache answers 503, mod_fcgid 500, Caddy 502, and
//!   nginx hangs. So the rest of the input is read before a connection is closed.
//! - nginx waits for the end of the stream, not for END_REQUEST, and stops sending the body after
//!   an early answer. So sending is shut down first.
//! - Apache closes a connection in the middle of an aborted upload, and sends a new request with the
//!   same id after an early answer. Caddy sends bodies of unknown length with `CONTENT_LENGTH=-1`;
//!   the handler must accept this.

mod connection;
mod probe;
pub(crate) mod protocol;
mod record;
mod server;
mod socket;

use std::time::Duration;

pub use probe::probe;
pub use record::Params;
pub use server::serve;
pub use socket::Socket;

/// Answers requests.
pub trait Handler: Sync {
    /// Answers one request. `body` is complete, or longer than [`Limits::body`] and then possibly
    /// truncated. A panic becomes [`Refusal::Panicked`].
    fn handle(&self, params: &Params, body: &[u8]) -> Outcome;

    /// The answer to a request that [`handle`](Self::handle) did not answer. `params` is empty if the
    /// parameters cannot be used.
    fn refuse(&self, params: &Params, why: Refusal) -> Outcome;

    /// Logs a line about the process, not about a request.
    fn log(&self, line: &str);
}

/// The output of a CGI program.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Headers (`Status:` and others) and body
    pub stdout: Vec<u8>,
    /// Lines for the web server's error log; each line is sent as one record
    pub stderr: Vec<u8>,
}

/// Why a request is not handled.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// [`Limits::requests`] handlers are running
    Overloaded,
    /// The parameters are longer in total than [`Limits::params`]
    ParamsTooLarge,
    /// The length of a name or value exceeds the data
    ParamsMalformed,
    /// The handler panicked: the message with the source location
    Panicked(String),
}

/// The limits of one process.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Concurrent handlers. Further requests are refused as [`Refusal::Overloaded`]
    pub requests: usize,
    /// Open connections. At the limit, the connection that has been idle longest is closed for a new
    /// one; if no connection is idle, new ones wait
    pub connections: usize,
    /// Size of all parameters of a request, in bytes. Web servers have a lower limit for the header
    /// fields, from which most parameters come
    pub params: usize,
    /// Size of a body that the handler accepts, in bytes. The rest of a longer body is discarded
    pub body: usize,
    /// Stack size of each thread except the first, in bytes
    pub stack: usize,
    /// Timeout of a connection without a request. Longer than the keep-alive timeout of web servers
    pub idle: Duration,
    /// Timeout of a request, from its first byte to its last
    pub receive: Duration,
    /// Timeout of sending without progress, and of reading the rest of the input before closing
    pub send: Duration,
    /// Timeout of the open connections after the signal to stop. Running handlers always finish
    pub stop: Duration,
}

impl Default for Limits {
    /// 1024 file descriptors, the usual soft limit, are enough for these values.
    fn default() -> Limits {
        Limits {
            requests: 64,
            connections: 512,
            params: 256 * 1024,
            body: 1024 * 1024,
            stack: 2 * 1024 * 1024,
            idle: Duration::from_secs(180),
            receive: Duration::from_secs(300),
            send: Duration::from_secs(60),
            stop: Duration::from_secs(10),
        }
    }
}
