use std::io;
use std::time::Duration;

/// The limits of one process.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Concurrent handlers, without those that wait. Further requests are refused as
    /// [`Refusal::Overloaded`](super::Refusal::Overloaded)
    pub requests: usize,
    /// Handlers that wait ([`wait`](super::wait))
    pub waiting: usize,
    /// Handlers that wait for the same key
    pub waiting_for_one: usize,
    /// Open connections. At the limit, one of them gives way to a new one
    pub connections: usize,
    /// File descriptors that a handler has open at the same time
    pub descriptors: usize,
    /// Size of all parameters of a request, in bytes. Web servers have a lower limit for the header
    /// fields, from which most parameters come
    pub params: usize,
    /// Size of a body that the handler accepts, in bytes. The rest of a longer body is discarded
    pub body: usize,
    /// Stack size of each thread except the first, in bytes
    pub stack: usize,
    /// Timeout of a connection between two requests. Longer than the keep-alive timeout of web servers
    pub idle: Duration,
    /// Timeout of receiving a request, since its first byte or the start of the connection, and of reading
    /// the rest of the input before closing
    pub receive: Duration,
    /// Timeout of sending without progress
    pub send: Duration,
    /// Timeout of the open connections after the signal to stop. Running handlers always finish
    pub stop: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            requests: 64,
            waiting: 256,
            waiting_for_one: 64,
            connections: 512,
            // A write has open the lock, the old file, the new one, its folder, a path that it compares and a
            // connection to Redis.
            descriptors: 6,
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

/// File descriptors of the process itself: standard streams, the listener and those of the server, and
/// as many again that the program was started with.
const OWN_DESCRIPTORS: usize = 32;

/// The limit of open files that most processes start with
const USUAL_LIMIT: usize = 1024;

impl Limits {
    /// Threads of a process with these limits
    pub fn threads(&self) -> usize {
        self.requests + self.waiting + 1
    }

    /// File descriptors of a process with these limits
    pub fn file_descriptors(&self) -> usize {
        OWN_DESCRIPTORS + self.connections + (self.requests + self.waiting) * self.descriptors
    }

    /// These limits for a process that may have `open_files`. Reports that they are lower, or that the
    /// number is unknown.
    pub fn within(&self, open_files: io::Result<usize>, log: impl Fn(&str)) -> Limits {
        let needed = self.file_descriptors();
        let open_files = open_files.unwrap_or_else(|error| {
            log(&format!("the limit of open files is unknown ({error}): {USUAL_LIMIT} is assumed"));
            USUAL_LIMIT
        });
        if open_files >= needed {
            return self.clone();
        }
        // Each limit is lowered in proportion to the descriptors.
        let part = open_files.saturating_sub(OWN_DESCRIPTORS);
        let lower = |limit: usize| (limit * part / (needed - OWN_DESCRIPTORS)).max(1);
        let limits = Limits {
            requests: lower(self.requests),
            waiting: lower(self.waiting),
            connections: lower(self.connections),
            ..self.clone()
        };
        log(&format!(
            "the limit of open files (RLIMIT_NOFILE) is {open_files} instead of {needed}: at most {} \
             connections, {} running and {} waiting requests",
            limits.connections, limits.requests, limits.waiting
        ));
        limits
    }
}
