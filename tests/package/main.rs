//! Tests of the installation scripts, the Debian package (`cargo-deb`, `dpkg`, `lintian`), the manual page (`mandoc`),
//! the systemd units (`systemd-analyze`) and, as root, the installation guide: `cargo test --test package`.

mod install;
#[path = "../support/mod.rs"]
mod support;
mod units;
mod walk;

const TRANSPORT: support::Transport = support::Transport::Cgi;
