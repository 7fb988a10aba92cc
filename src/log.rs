//! Standard error, which a web server puts into its error log.

use std::io::{self, Write};

/// The most characters of a line; more would be somebody's data.
const LONGEST: usize = 2000;

/// Writes one line. A missing standard error is no error.
pub fn log(cause: &str) {
    _ = io::stderr().write_all(format!("comedor: {}\n", printable(cause)).as_bytes());
}

/// `text` without control characters: nothing that a client or a file supplied can look like
/// another line, or steer a terminal.
pub fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars().take(LONGEST) {
        if c.is_control() {
            printable.extend(c.escape_default());
        } else {
            printable.push(c);
        }
    }
    printable
}
