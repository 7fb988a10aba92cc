//! The installation scripts, the Debian package (`cargo-deb`, `lintian`), and the systemd units
//! (`systemd-analyze`): `cargo test --test package`.

mod install;
#[path = "../support/mod.rs"]
mod support;
mod units;
