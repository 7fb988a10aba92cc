//! The tests of `main.rs` that send requests without looking at the process, through FastCGI.

mod faults;
mod redis;
mod sessions;
#[path = "../support/mod.rs"]
mod support;
