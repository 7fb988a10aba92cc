//! A FastCGI 1.0 responder, as processes: a CGI program in a loop. Section numbers are those of the specification. It is
//! independent of the API: a [`Handler`] turns parameters and a body into the output of a CGI program.
//!
//! The way of a request:
//!
//! 1. The parent ([`parent`]) has the listening [`socket`], and keeps [`Limits::workers`] processes. It reads no request.
//! 2. A free worker ([`worker`]) accepts a connection. The kernel queues connections that find no free worker.
//! 3. It receives the parameters ([`requests`], record by record: [`input`], [`mod@record`]), at once, as web servers send
//!    them, and the first record of the body.
//! 4. The handler answers. It reads the body when it has admitted the request.
//! 5. The worker sends the answer, and receives what is left of the body.
//! 6. If the web server does not ask to keep the connection, the worker closes it. Otherwise it waits for the next
//!    request, for [`Limits::idle`] if half of the workers are free; then it stops receiving, looks once, answers what has
//!    come, and closes the connection.
//! 7. Whatever the request waits for of other programs, at the socket ([`stream`]) or in the handler, counts by one rule
//!    ([`waits`](crate::sys::waits)), so that a quarter of the workers are left for others.
//! 8. A crash ends one worker and its request. The parent replaces it, and each worker that ends after
//!    [`Limits::requests`] requests.
//! 9. If the handler has changed, by new settings, the workers end and have successors, a part of them at a time. No worker
//!    changes.
//! 10. SIGTERM, SIGINT, SIGQUIT or SIGUSR1 stop the responder: each worker answers the request that it has, and ends.
//!     For the connections that are left in the queue of its own socket, the parent starts further workers; it leaves
//!     the queue of an inherited socket to the next process. A stop has no timeout of its own.
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

use crate::sys::streams::Output;
use crate::sys::waits::{PROMPT, Waits};
pub use parent::serve;
pub use record::Pairs;
pub use socket::Socket;

/// Answers requests. Each worker has a copy of it, as it was when the worker was started.
pub trait Handler {
    /// Reads its settings again. Called by the parent, about twice a second. Returns whether others are in force
    /// afterwards: then all workers end after their request, a part of them at a time, and their successors have the new
    /// settings.
    fn reload(&mut self) -> bool;

    /// Answers a request, or says why it cannot be handled. The output becomes the content of the streams FCGI_STDOUT and
    /// FCGI_STDERR (§5.3). A worker whose handler has panicked ends after the answer.
    fn handle(
        &mut self,
        params: Result<Pairs, Refusal>,
        body: &mut dyn Read,
        waits: Waits,
    ) -> Output;
}

/// Why a request cannot be handled.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The parameters are longer in total than this limit ([`Limits::params`])
    ParamsTooLarge(usize),
    /// The length of a name or value exceeds the data
    ParamsMalformed,
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
    /// The time for which the waits of a request do not count
    pub prompt: Duration,
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
            prompt: PROMPT,
            large: 128 * 1024,
            requests: 5000,
        }
    }
}
