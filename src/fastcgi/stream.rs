//! A connection's socket, on which each read and write has a timeout.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::input::BUFFER;
use crate::sys::poll;
use crate::sys::scoreboard::{self, PROMPT};

/// A socket that does not block by itself.
#[derive(Debug)]
pub struct Stream {
    pub socket: UnixStream,
    /// The timeout of one read or write
    pause: Duration,
    /// The end of all of them together
    deadline: Instant,
    /// Whether a read counts as waiting
    is_counted: bool,
}

impl Stream {
    /// `socket` must be non-blocking.
    pub fn new(socket: UnixStream, timeout: Duration) -> Stream {
        Stream {
            socket,
            pause: timeout,
            deadline: Instant::now() + timeout,
            is_counted: false,
        }
    }

    /// From now on, each read or write may take `pause`, and all together `total`.
    pub fn allow(&mut self, pause: Duration, total: Duration) {
        self.pause = pause;
        self.deadline = Instant::now() + total;
        self.is_counted = false;
    }

    /// From now on, until the next [`allow`](Self::allow), a read that takes more than a moment counts as waiting:
    /// clients whose requests are not admitted, and who send their bodies slowly, hold at most half of the workers.
    pub fn count_as_waiting(&mut self) {
        self.is_counted = true;
    }

    /// Sends nothing more, and discards the input up to its end.
    pub fn drain(&mut self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)?;
        let mut buffer = vec![0; BUFFER];
        while self.read(&mut buffer)? > 0 {}
        Ok(())
    }

    fn wait_until(&self, ready: PollFlags, most: Duration) -> io::Result<()> {
        let rest = self.deadline.saturating_duration_since(Instant::now());
        let timeout = rest.min(self.pause).min(most);
        if poll::is_ready_within(timeout, &self.socket, ready)? {
            Ok(())
        } else {
            Err(ErrorKind::TimedOut.into())
        }
    }

    fn await_input(&self) -> io::Result<()> {
        if !self.is_counted {
            return self.wait_until(PollFlags::IN, Duration::MAX);
        }
        match self.wait_until(PollFlags::IN, PROMPT) {
            Err(error) if error.kind() == ErrorKind::TimedOut => {}
            ready => return ready,
        }
        let _waiting = scoreboard::wait(None).ok_or(ErrorKind::TimedOut)?;
        self.wait_until(PollFlags::IN, Duration::MAX)
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match retry_on_intr(|| recv(&self.socket, &mut *buffer, RecvFlags::empty())) {
                Err(Errno::AGAIN) => self.await_input()?,
                received => return Ok(received.map(|(length, _)| length)?),
            }
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match retry_on_intr(|| send(&self.socket, bytes, SendFlags::NOSIGNAL)) {
                Err(Errno::AGAIN) => self.wait_until(PollFlags::OUT, Duration::MAX)?,
                sent => return Ok(sent?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
