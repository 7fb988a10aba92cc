//! Tests that need root, strace, valgrind or `php-cli`: `cargo test --test system`.

mod attributes;
mod budget;
mod check;
mod check_limits;
mod check_permissions;
mod check_sessions;
mod configure;
mod end_of_file;
mod faults;
mod file_systems;
mod network;
mod redis;
mod redis_process;
mod replace;
mod sessions;
mod store;
#[path = "../support/mod.rs"]
mod support;
mod zones;
