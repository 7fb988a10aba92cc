//! Standard error, which a web server writes to its error log.

use std::io::{self, Write};

/// The maximum number of characters in a line. Only input from outside can make a line longer.
const MAX_LINE: usize = 2000;

/// Writes one line.
pub fn log(cause: &str) {
    write(line(cause).as_bytes());
}

/// Writes complete lines. Ignores that standard error is closed.
pub fn write(lines: &[u8]) {
    if !lines.is_empty() {
        _ = io::stderr().write_all(lines);
    }
}

/// The line for `cause`.
pub(crate) fn line(cause: &str) -> String {
    format!("comedor: {}\n", printable(cause))
}

/// `text` with control characters escaped, so that data from a client or a file cannot imitate
/// another line or control a terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars().take(MAX_LINE) {
        if c.is_control() {
            printable.extend(c.escape_default());
        } else {
            printable.push(c);
        }
    }
    printable
}
