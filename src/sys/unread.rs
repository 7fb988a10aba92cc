//! Whether a peer has read what was sent to it: ioctl(2) with `SIOCOUTQ`, whose number is that of `TIOCOUTQ`.
#![allow(unsafe_code)]

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use super::or_errno;

/// Whether the peer of `socket` has still to read a part of what was sent to it.
pub fn is_unread(socket: &UnixStream) -> bool {
    let mut length: libc::c_int = 0;
    // SAFETY: the request stores an int (`unix_ioctl` in Linux's net/unix/af_unix.c).
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut length) };
    or_errno(done).is_ok() && length > 0
}
