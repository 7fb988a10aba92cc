//! The tests of `main.rs` that send requests, through FastCGI.
#![allow(
    clippy::too_many_lines,
    reason = "a test is one table, or one sequence of steps"
)]

mod answers;
mod hostile;
mod place;
mod redis;
mod sessions;
mod store;
#[path = "../support/mod.rs"]
mod support;
mod together;
mod waits;
