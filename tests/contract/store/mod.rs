//! The data files: what the program accepts, what it creates and what it never changes.

mod content;
mod folders;
mod locks;
pub mod replace;
