//! The tests of `main.rs` that send requests, through FastCGI.

mod answers;
mod hostile;
mod sessions;
mod store;
#[path = "../support/mod.rs"]
mod support;
mod together;
mod waits;
