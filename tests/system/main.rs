//! Tests that need root, strace, valgrind or `php-cli`, by subject: `cargo test --test system`.

mod check;
mod configure;
mod cost;
mod end_of_file;
mod saving;
mod sessions;
#[path = "../support/mod.rs"]
mod support;
mod zones;
