//! The contract of the program, by tests that need Rust only: variables and a body in, bytes out. `cargo test`
//! runs them, as any user.
#![allow(
    clippy::too_many_lines,
    reason = "a test is one table, or one sequence of steps"
)]

mod answers;
mod attributes;
mod check;
mod closing;
mod configure;
mod docs;
mod end_of_file;
mod failing_calls;
mod fastcgi;
mod figures;
mod golden;
mod hostile;
mod pages;
mod place;
mod power_cuts;
mod redis;
mod redis_process;
mod responder;
mod sessions;
mod settings;
mod source;
mod store;
mod streams;
#[path = "../support/mod.rs"]
mod support;
mod together;
mod waits;
mod writers;
