//! A FastCGI 1.0 responder. Section numbers are those of the specification.
//!
//! Independent of the API: a [`Handler`] turns parameters and a body into CGI output.
//!
//! Threads: all wait in `epoll_wait` on the same set of file descriptors. Each connection is armed
//! for one event (EPOLLONESHOT). The thread that gets the event owns the connection until it arms
//! it again. It reads once without blocking and, if a request is complete, runs the handler itself,
//! without a queue. So only a handler occupies a thread. The maximum number of threads is one more than
//! the maximum number of handlers, so that one thread can always accept, receive and refuse.
//!
//! Handlers: a handler that waits for a lock ([`wait`]) does not count as running, so that
//! requests that wait for the lock of one user do not make others busy.
//!
//! Connections: if all are taken, one of them gives way to a new one, so that slow clients and idle
//! connections keep no others out: the one that has been idle longest, else the one whose request has
//! been arriving longest (a useful one arrives at once), else the one that has been reading its answer
//! longest. A request with complete parameters is answered as [`Refusal::Overloaded`]. Only if all
//! connections have running handlers does a new one wait.
//!
//! Web servers differ from the specification, and from each other:
//!
//! - Apache's mod_proxy_fcgi turns an END_REQUEST without output, FCGI_OVERLOADED and
//!   FCGI_CANT_MPX_CONN into an empty 200. So every request that can be answered gets a complete
//!   answer; otherwise the connection is closed without END_REQUEST.
//! - If a connection is closed with unread input, Apache answers 503, mod_fcgid 500, Caddy 502, and
//!   nginx hangs. So the rest of the input is read before a connection is closed, unless it gives way.
//! - nginx waits for the end of the stream, not for END_REQUEST, and stops sending the body after
//!   an early answer. So sending is shut down first.
//! - Caddy sends bodies of unknown length with `CONTENT_LENGTH=-1`; the handler must accept this.

mod connection;
mod events;
mod limits;
pub(crate) mod protocol;
pub(crate) mod record;
mod server;
mod socket;

use std::os::unix::net::UnixStream;

pub use crate::sys::log::Output;
pub use crate::sys::places::wait;
pub use limits::Limits;
pub use record::Pairs;
pub use server::serve;
pub use socket::Socket;

/// Answers requests.
pub trait Handler: Sync {
    /// Answers one request. `body` is complete, or longer than [`Limits::body`] and then possibly
    /// truncated. Before it waits, it calls [`wait`]. A panic becomes [`Refusal::Panicked`].
    fn handle(&self, params: Pairs, body: &[u8]) -> Output;

    /// The answer to a request that [`handle`](Self::handle) did not answer. `params` is empty if the
    /// parameters cannot be used.
    fn refuse(&self, params: Pairs, why: Refusal) -> Output;

    /// The answer in a role other than that of web servers, if `peer` may have it.
    fn answer_role(&self, _role: u16, _peer: &UnixStream) -> Option<Vec<u8>> {
        None
    }

    /// Logs a line about the process, not about a request.
    fn log(&self, line: &str);
}

/// Why a request is not handled.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// [`Limits::requests`] handlers are running, or its connection gave way to a new one
    Overloaded,
    /// The parameters are longer in total than this limit ([`Limits::params`])
    ParamsTooLarge(usize),
    /// The length of a name or value exceeds the data
    ParamsMalformed,
    /// The handler panicked: the message with the source location
    Panicked(String),
}
