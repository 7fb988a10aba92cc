//! A connection's socket, on which each read and write has a timeout.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// A socket that does not block by itself.
#[derive(Debug)]
pub struct Stream {
    pub socket: UnixStream,
    /// The timeout of one read or write
    pause: Duration,
    /// The end of all of them together
    deadline: Instant,
}

impl Stream {
    /// `socket` must be non-blocking.
    pub fn new(socket: UnixStream, timeout: Duration) -> Stream {
        Stream { socket, pause: timeout, deadline: Instant::now() + timeout }
    }

    /// From now on, each read or write may take `pause`, and all together `total`.
    pub fn allow(&mut self, pause: Duration, total: Duration) {
        self.pause = pause;
        self.deadline = Instant::now() + total;
    }

    /// Sends nothing more, and discards the input up to its end.
    pub fn drain(&mut self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)?;
        let mut buffer = vec![0; 16 * 1024];
        while self.read(&mut buffer)? > 0 {}
        Ok(())
    }

    fn wait_until(&self, ready: PollFlags) -> io::Result<()> {
        let rest = self.deadline.saturating_duration_since(Instant::now()).min(self.pause);
        match wait(&mut [PollFd::new(&self.socket, ready)], rest)? {
            0 => Err(ErrorKind::TimedOut.into()),
            _ => Ok(()),
        }
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

/// Waits for one of `sources`; the number of those that are ready, or 0 after `timeout`.
pub fn wait(sources: &mut [PollFd], timeout: Duration) -> io::Result<usize> {
    let timeout = Timespec::try_from(timeout).unwrap_or_default();
    loop {
        match poll(sources, Some(&timeout)) {
            Err(Errno::INTR) => {}
            done => return Ok(done?),
        }
    }
}
