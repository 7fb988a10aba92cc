//! The installation scripts, the Debian package (`cargo-deb`, `lintian`), the systemd units (`systemd-analyze`), and
//! whole servers of a school under a real systemd. Needs root: `cargo test --test machines`.
#![allow(
    clippy::too_many_lines,
    reason = "a test is one table, or one sequence of steps"
)]

mod deploy;
mod install;
mod package;
#[path = "../../tests/support/mod.rs"]
mod support;
mod units;
