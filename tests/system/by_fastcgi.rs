//! The tests of `main.rs` that send requests without looking at the process, through FastCGI.

mod saving {
    mod faults;
}
mod sessions {
    mod files;
    mod redis;
}
#[path = "../support/mod.rs"]
mod support;
