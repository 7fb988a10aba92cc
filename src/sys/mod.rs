//! What needs Linux or `unsafe`: the start of the process, its allocator, system calls that neither the
//! standard library nor rustix has, locks and pauses, files that other programs write, the log, and output
//! kept open for Apache.

pub mod ffi;
pub mod kept_output;
pub mod lock;
pub mod log;
pub mod shared_file;
