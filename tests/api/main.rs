//! `openapi.yaml` and the examples of the documentation, against the program under lighttpd. Needs
//! root, PHP and the Node and Python tools that `tests/run` installs: `cargo test --test api`.

mod openapi;
#[path = "../support/mod.rs"]
mod support;

const TRANSPORT: support::Transport = support::Transport::Cgi;
