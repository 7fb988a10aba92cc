//! Tests that need root, strace, valgrind or `php-cli`, by subject: `cargo test --test system`.
#![allow(
    clippy::too_many_lines,
    reason = "a test is one table, or one sequence of steps"
)]

mod change_owner;
mod check;
mod configure;
mod cost;
mod end_of_file;
mod evidence;
mod restore;
mod saving;
mod sessions;
#[path = "../support/mod.rs"]
mod support;
mod zones;
