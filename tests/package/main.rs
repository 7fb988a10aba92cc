//! Tests of the installation script, the Debian package (`cargo-deb`, `dpkg`) and the installation
//! guide, as root:
//! `cargo test --test package`.

mod install;
#[path = "../support/mod.rs"]
mod support;
mod walk;
