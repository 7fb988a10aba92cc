//! The start of the process.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::fs::File;
use std::mem::forget;
use std::panic::catch_unwind;
use std::process::abort;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::stdio::{stderr, stdin, stdout};

use super::environment::Strings;
use super::poll;
use super::signals::ignore;

/// Defines the C function `main`, which exits with the status that `$run` returns.
///
/// Before a Rust `main`, the standard library prepares a message for a stack overflow: a third more system
/// calls for a read, and a tenth more processor time. [`start`] does the rest of what it does. Only
/// `std::process::exit` flushes standard output.
#[macro_export]
macro_rules! main {
    ($run:path) => {
        // SAFETY: the C library calls this function, which has the name and the type of the C standard.
        #[unsafe(no_mangle)]
        extern "C" fn main(_: i32, argv: *const *const std::ffi::c_char) -> i32 {
            // SAFETY: this is the second argument of `main`.
            unsafe { $crate::sys::start::start(argv, $run) }
        }
    };
}

/// Passes the arguments to `run`; the status that it returns, or 101 if it panics.
///
/// # Safety
///
/// `argv` must be the second argument of `main`.
#[doc(hidden)]
pub unsafe fn start(argv: *const *const c_char, run: fn(Strings) -> u8) -> i32 {
    // A write to a closed pipe fails with EPIPE, and one beyond the file size limit (RLIMIT_FSIZE) with
    // EFBIG; the default ends the process (signal(7)).
    ignore(&[libc::SIGPIPE, libc::SIGXFSZ]);
    open_standard_streams();
    catch_unwind(|| run(Strings(argv))).unwrap_or(101).into()
}

/// Opens /dev/null in place of each closed standard stream, so that no other file gets its number.
fn open_standard_streams() {
    let mut streams = [stdin(), stdout(), stderr()]
        .map(|stream| PollFd::from_borrowed_fd(stream, PollFlags::empty()));
    _ = poll::wait(&mut streams, Some(Duration::ZERO));
    for stream in &streams {
        if stream.revents().contains(PollFlags::NVAL) {
            // The file gets the lowest free number.
            match File::options().read(true).write(true).open("/dev/null") {
                Ok(null) => forget(null),
                Err(_) => abort(),
            }
        }
    }
}
