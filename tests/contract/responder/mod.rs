//! The real program as a FastCGI responder, with its workers.

mod held;
mod resources;
mod start;

use std::fs::File;
use std::path::Path;

use crate::support::fastcgi::{Client, Held, begin, parameters};
use crate::support::site::wait_until;
use crate::support::*;

const TYPES_QUERY: &str = "action=get_menu_types&aulario=aula1";

/// A file with the lock of a PHP page that does not end.
fn locked(path: &Path) -> File {
    let file = File::open(path).unwrap();
    file.lock().unwrap();
    file
}
