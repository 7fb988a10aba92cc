//! Standard input and output of a CGI process. The web server may have made them non-blocking: then a call that
//! would block fails with EAGAIN, and is repeated when the stream is ready.

use rustix::event::{PollFd, PollFlags};
use rustix::fd::BorrowedFd;
use rustix::io::{Errno, retry_on_intr};
use rustix::stdio::{stdin, stdout};

use super::poll;

/// What answers a request, whatever has brought it.
#[derive(Debug, Default)]
pub struct Output {
    /// What a CGI program writes to standard output (RFC 3875 §6): headers, `Status:` and others, and the body
    pub stdout: Vec<u8>,
    /// Lines for the log
    pub stderr: Vec<u8>,
    /// Whether the program has panicked, so that its process should answer no other request
    pub has_panicked: bool,
}

/// Reads from standard input, without the buffer of the standard library.
pub fn read(buffer: &mut [u8]) -> Result<usize, Errno> {
    when_ready(stdin(), PollFlags::IN, || {
        rustix::io::read(stdin(), &mut *buffer)
    })
}

/// Writes to standard output. Ignores that the server has closed the pipe.
pub fn write(bytes: &[u8]) {
    let mut unwritten = bytes;
    // The standard library's stdout would split this into two writes.
    while !unwritten.is_empty()
        && let Ok(count @ 1..) = when_ready(stdout(), PollFlags::OUT, || {
            rustix::io::write(stdout(), unwritten)
        })
    {
        unwritten = &unwritten[count..];
    }
}

fn when_ready(
    stream: BorrowedFd,
    event: PollFlags,
    mut call: impl FnMut() -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    loop {
        match retry_on_intr(&mut call) {
            Err(Errno::AGAIN) => {
                poll::wait(&mut [PollFd::from_borrowed_fd(stream, event)], None)?;
            }
            done => return done,
        }
    }
}
