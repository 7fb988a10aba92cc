//! Standard error, which a web server writes to its error log.

use std::io::{self, Write};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::stdio::stderr;

use super::poll::is_ready_within;
use super::timers::Interruptions;

/// The maximum number of characters in a line. Only input from outside can make a line longer. nginx cuts a line of its
/// log at 2048 bytes (`NGX_MAX_ERROR_STR`).
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

/// Writes one line, as [`offer_lines`] does.
pub fn offer(cause: &str) {
    offer_lines(line(cause).as_bytes());
}

/// Writes complete lines, unless standard error cannot take them now: a log that is not read must not hold a process
/// that others wait for.
pub fn offer_lines(lines: &[u8]) {
    let stderr = stderr();
    if !lines.is_empty()
        && is_ready_within(Duration::ZERO, &stderr, PollFlags::OUT) == Ok(true)
        // Another process may fill the pipe first, and a pipe that can be written may have room for less.
        && let Ok(_interruptions) = Interruptions::after(Duration::ZERO)
    {
        _ = rustix::io::write(stderr, lines);
    }
}

/// The line for `cause`.
pub(crate) fn line(cause: &str) -> String {
    format!("comedor: {}\n", printable(cause))
}

/// `text` with the characters escaped that control a terminal, are invisible, change the direction of text
/// or combine with others, and each space after a space, so that data from a client or a file can neither
/// imitate another line nor hide a part of its own.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars().take(MAX_LINE) {
        match c {
            ' ' if printable.ends_with(' ') => printable.extend(c.escape_unicode()),
            '"' | '\'' | '\\' => printable.push(c),
            // Blank characters, although Unicode counts them as letters and a symbol
            '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}' => {
                printable.extend(c.escape_unicode());
            }
            c => printable.extend(c.escape_debug()),
        }
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn what_could_hide_text_is_escaped() {
        for text in ["Menú «ñ» / \"x\" 'y' \\ 😀 ", "1 день", ""] {
            assert_eq!(printable(text), text);
        }
        for (text, escaped) in [
            ("a\n\u{1b}[2J\u{9b}", "a\\n\\u{1b}[2J\\u{9b}"),
            ("rm \u{202e}fdp.\u{2066}", "rm \\u{202e}fdp.\\u{2066}"),
            (
                "a\u{ad}\u{200b}\u{2028}\u{feff}\u{e0041}",
                "a\\u{ad}\\u{200b}\\u{2028}\\u{feff}\\u{e0041}",
            ),
            ("e\u{301}\u{489}", "e\\u{301}\\u{489}"),
            ("a   b", "a \\u{20} b"),
            (
                "a\u{a0}\u{3000}\u{2800}\u{3164}", "a\\u{a0}\\u{3000}\\u{2800}\\u{3164}",
            ),
        ] {
            assert_eq!(printable(text), escaped);
        }
    }
}
