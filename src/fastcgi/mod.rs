//! A FastCGI 1.0 responder, as processes: a CGI program in a loop. Section numbers are those of the
//! specification.
//!
//! Independent of the API: a [`Handler`] turns parameters and a body into CGI output.
//!
//! - [`parent`]: binds or inherits the [`socket`], keeps [`Limits::workers`] processes, and stops them. It never reads
//!   a request.
//! - [`worker`]: accepts a connection, answers its requests, then accepts the next one. A request has its process to
//!   itself: a panic or a signal ends only that request. The kernel queues the connections that find no free worker.
//! - [`requests`]: the requests on a connection, one after the other; a body is read when the handler asks for it.
//! - [`input`]: the input of a connection, taken record by record.
//! - [`stream`]: the connection's socket, on which each read and write has a timeout.
//! - [`record`]: records and name-value pairs.
//!
//! The workers share the [scoreboard](crate::sys::scoreboard), which limits how many of them may wait for locks, and
//! tells how many are free.
//!
//! SIGTERM or SIGUSR1 stops it: the parent removes the file of a socket that it has bound, and closes the pipe of the stop.
//! A worker answers the request that it has, and closes its connection. Then it answers what is in the queue of a bound
//! socket; that of an inherited one is left to the next process. A stop has no timeout of its own.
//!
//! Everything that a client or a web server can hold up has a bound ([`Limits`]):
//!
//! - Parameters must arrive at once, as web servers send them.
//! - A body is read only when the handler has admitted its request.
//! - A connection is kept after its answer only while half of the workers are free. Otherwise it is closed right after
//!   the answer, unless another request has come: a web server that keeps connections must repeat one that it sends at
//!   that moment, as nginx does.
//! - At most half of the workers wait for the same file, and at most three quarters wait: for files, other programs,
//!   bodies that no handler has asked for, or the next request on a kept connection.
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
//! - Apache begins the next request on a kept connection after an early answer, without the rest of the body.
//! - Caddy sends bodies of unknown length with `CONTENT_LENGTH=-1`; the handler must accept this.

mod input;
mod parent;
pub mod record;
pub(crate) mod requests;
mod socket;
mod stream;
mod worker;

use std::io::Read;
use std::time::Duration;

pub use parent::serve;
pub use record::Pairs;
pub use socket::Socket;

/// An answer: the content of the streams FCGI_STDOUT and FCGI_STDERR (§5.3).
#[derive(Debug, Default)]
pub struct Output {
    /// What a CGI program writes to standard output
    pub stdout: Vec<u8>,
    /// Lines for the log
    pub stderr: Vec<u8>,
}

/// Answers requests. Each worker has a copy of it, as it was when the worker was started.
pub trait Handler {
    /// Answers one request. A panic ends the worker after an answer to [`Refusal::Panicked`].
    fn handle(&mut self, params: Pairs, body: &mut dyn Read) -> Output;

    /// The answer to a request that [`handle`](Self::handle) did not answer. `params` is empty if the
    /// parameters cannot be used.
    fn refuse(&mut self, params: Pairs, why: Refusal) -> Output;
}

/// Why a request is not handled.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The parameters are longer in total than this limit ([`Limits::params`])
    ParamsTooLarge(usize),
    /// The length of a name or value exceeds the data
    ParamsMalformed,
    /// The handler panicked: the message with the source location
    Panicked(String),
}

/// The bounds of the responder.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Processes that answer requests, 1 to [`MAX_WORKERS`](crate::sys::scoreboard::MAX_WORKERS)
    pub workers: usize,
    /// Size of all parameters of a request, in bytes. Web servers have a lower limit for the header
    /// fields, from which most parameters come
    pub params: usize,
    /// Timeout of the parameters, since the connection was accepted or their first byte, and of what is left of the
    /// input after an answer. Web servers send the parameters at once
    pub arrival: Duration,
    /// Timeout of the next part of a body, and of a peer that does not read its answer
    pub pause: Duration,
    /// Timeout of a whole body, and of a whole answer
    pub transfer: Duration,
    /// Timeout of a kept connection without a request. Longer than that of the web server in the shipped
    /// configurations, which closes its connections first
    pub idle: Duration,
    /// A worker ends after a request with a larger input, in bytes: its memory would stay as large. A usual save has
    /// less than 1 KiB
    pub large: u64,
    /// A worker ends after this number of requests, which large sessions and files may have made large; so many that
    /// the start of another one costs nothing
    pub requests: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            workers: 64,
            params: 256 * 1024,
            arrival: Duration::from_secs(2),
            pause: Duration::from_secs(5),
            transfer: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            large: 128 * 1024,
            requests: 5000,
        }
    }
}
