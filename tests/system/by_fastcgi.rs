//! The tests of `main.rs` that send requests without looking at the process, through FastCGI.
#![allow(
    clippy::too_many_lines,
    reason = "a test is one table, or one sequence of steps"
)]

mod saving {
    mod faults;
}
mod sessions {
    mod files;
    mod redis;
}
#[path = "../support/mod.rs"]
mod support;
