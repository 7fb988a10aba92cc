//! Differential tests against the installed PHP (`php-cli`): `cargo test --test php`.

mod oracle;
#[path = "../support/mod.rs"]
mod support;
