//! A FastCGI 1.0 responder. Section numbers are those of the specification.
//!
//! Knows nothing of what is asked or answered: a [`Handler`] makes CGI output of parameters and a
//! body.
//!
//! | module | knows | touches the system |
//! |---|---|---|
//! | `record` | records and name-value pairs | |
//! | `protocol` | the conversation on one connection | |
//! | `connection` | what one connection waits for, and how it is closed | a socket |
//! | `server` | threads, connections, timeouts, stopping | epoll |
//! | `probe` | whether a process answers on a socket | a socket |
//! | `socket` | the listening socket: inherited, or bound to a path | file system |
//!
//! Threads: all wait in `epoll_wait` on the same set of descriptors, each of which is armed for one
//! event (EPOLLONESHOT). The thread that gets a connection's event owns the connection until it
//! arms it again, reads once without blocking and, if a request is complete, runs the handler
//! itself: no hand-over, no queue. A connection that is idle, half-sent, or slow to read its answer
//! therefore occupies no thread; only a running handler does. There is one thread more than
//! handlers may run at once, so that one is always left to accept, to receive and to refuse.
//! Threads are started when the last idle one gets work, and then reused.
//!
//! Web servers differ from the specification, and from each other:
//!
//! - A bare END_REQUEST, FCGI_OVERLOADED and FCGI_CANT_MPX_CONN become an empty 200 in Apache's
//!   mod_proxy_fcgi. So every request that can be answered has a whole answer; a connection with
//!   nothing to answer is closed without END_REQUEST.
//! - Closing with input unread makes Apache answer 503, mod_fcgid 500, Caddy 502, and nginx hang.
//!   So the rest of the input is read before a connection is closed.
//! - nginx waits for the end of the stream, not for END_REQUEST, and stops sending the body after
//!   an early answer. So sending is shut down first.
//! - Apache drops a connection in the middle of an upload that was cut, and sends a new request
//!   with the same id after an early answer. Caddy sends bodies without a length, as
//!   `CONTENT_LENGTH=-1`; that is for the handler.

mod connection;
mod probe;
mod protocol;
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
    /// Answers one request. `body` is all that was received of it: up to its end, or more than
    /// [`Limits::body`] bytes. A panic becomes [`Refusal::Panicked`].
    fn handle(&self, params: &Params, body: &[u8]) -> Outcome;

    /// The answer to a request that [`handle`](Self::handle) did not answer. `params` is empty
    /// where they cannot be used.
    fn refuse(&self, params: &Params, why: Refusal) -> Outcome;

    /// Logs a line about the process, not about a request.
    fn log(&self, line: &str);
}

/// What a CGI program would have written.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Headers (`Status:` and others) and body
    pub stdout: Vec<u8>,
    /// Lines for the web server's error log; each is sent as a record
    pub stderr: Vec<u8>,
}

/// Why a request is not handled.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// [`Limits::requests`] are running
    Overloaded,
    /// The parameters together are longer than [`Limits::params`]
    ParamsTooLarge,
    /// A name or value is longer than what was sent
    ParamsMalformed,
    /// The handler panicked: the message, with the place
    Panicked(String),
}

/// What one process takes on.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Handlers at once; beyond, requests are refused as [`Refusal::Overloaded`]
    pub requests: usize,
    /// Connections at once; beyond, the one that has been idle longest is closed, or, if none is
    /// idle, new ones wait
    pub connections: usize,
    /// Bytes of all parameters of a request. Web servers limit the header fields, of which they are
    /// made, to less
    pub params: usize,
    /// Bytes of a body that the handler accepts. A longer body is not received to its end
    pub body: usize,
    /// Bytes of the stack of each thread but the first
    pub stack: usize,
    /// How long a connection may be open without a request. Longer than web servers keep theirs
    pub idle: Duration,
    /// How long a request may take from its first byte to its last
    pub receive: Duration,
    /// How long sending may make no progress, and how long the rest of the input is read before
    /// closing
    pub send: Duration,
    /// How long connections are served after the signal to stop. Running handlers are always waited
    /// for
    pub stop: Duration,
}

impl Default for Limits {
    /// 1024 file descriptors, the usual soft limit, are enough for them.
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
