//! A connection's socket, on which each read and write has a timeout.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::input::BUFFER;
use crate::sys::poll;
use crate::sys::waits::{Awaited, Waits};

/// A socket that does not block by itself.
#[derive(Debug)]
pub struct Stream {
    pub socket: UnixStream,
    /// The timeout of one read or write
    pause: Duration,
    /// The end of all of them together
    deadline: Instant,
    waits: Waits,
}

impl Stream {
    /// `socket` must be non-blocking. Its parameters may take `arrival`.
    pub fn new(socket: UnixStream, arrival: Duration) -> Stream {
        Stream {
            socket,
            pause: arrival,
            deadline: Instant::now() + arrival,
            waits: Waits::ALWAYS,
        }
    }

    /// From now on, each read or write may take `pause`, and all together `total`, if they may wait.
    pub fn allow(&mut self, pause: Duration, total: Duration, waits: Waits) {
        self.pause = pause;
        self.deadline = Instant::now() + total;
        self.waits = waits;
    }

    /// Sends nothing more, and discards the input up to its end.
    pub fn drain(&mut self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)?;
        let mut buffer = vec![0; BUFFER];
        while self.read(&mut buffer)? > 0 {}
        Ok(())
    }

    fn wait_until(&self, ready: PollFlags) -> io::Result<()> {
        let rest = self.deadline.saturating_duration_since(Instant::now());
        let poll = |time| -> io::Result<Option<()>> {
            let is_ready = poll::is_ready_within(time, &self.socket, ready)?;
            Ok(is_ready.then_some(()))
        };
        self.waits
            .wait(Awaited::WebServer, rest.min(self.pause), poll)?
            .into_result()
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match retry_on_intr(|| recv(&self.socket, &mut *buffer, RecvFlags::empty())) {
                Err(Errno::AGAIN) => self.wait_until(PollFlags::IN)?,
                received => return Ok(received.map(|(length, _)| length)?),
            }
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match retry_on_intr(|| send(&self.socket, bytes, SendFlags::NOSIGNAL)) {
                Err(Errno::AGAIN) => self.wait_until(PollFlags::OUT)?,
                sent => return Ok(sent?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
