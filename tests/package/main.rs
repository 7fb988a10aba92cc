//! Tests of the installation script and the Debian package (`cargo-deb`, `dpkg`):
//! `cargo test --test package`.

mod install;
#[path = "../support/mod.rs"]
mod support;
