//! The headings of `docs/troubleshooting.md` that have the commands for findings. The check prints no command
//! with a path that another user can change: before it is run, that user could put something else there.

use std::io;

use rustix::io::Errno;

/// A heading, as text after a sentence
macro_rules! heading {
    ($text:literal) => {
        concat!("; see \"", $text, "\" in docs/troubleshooting.md")
    };
}

pub const OLD_SCRIPT: &str = heading!("The old PHP script still answers");
pub const REFUSED: &str = heading!("403 or 404 with an HTML page or plain text");
pub const NOT_STARTED: &str = heading!("500 with an HTML page");
pub const NO_CONNECTION: &str = heading!("502 or 503 with an HTML page or no content");
pub const CLOSED: &str = heading!("Permission denied");
pub const OWNER: &str = heading!("Wrong owner, group or mode");
pub const DISK: &str = heading!("Disk full or read-only");
pub const DAMAGED: &str = heading!("Invalid JSON");

/// The section of another guide on who can connect to the service, and what it may reach
pub const SERVICE: &str = "docs/install-special.md#the-socket";

/// The heading for a step that failed so, or nothing.
pub fn help(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::ACCESS) => CLOSED,
        Some(Errno::PERM) => OWNER,
        Some(Errno::NOSPC | Errno::DQUOT | Errno::ROFS) => DISK,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guides_of_both_languages_have_every_heading() {
        let english = include_str!("../../docs/troubleshooting.md");
        let spanish = include_str!("../../docs/es/instalar.md");
        for (heading, counterpart) in [
            (OLD_SCRIPT, "### Sigue respondiendo el script de PHP"),
            (REFUSED, "| 403 o 404, HTML |"),
            (NOT_STARTED, "| 500, HTML |"),
            (NO_CONNECTION, "| 502 o 503 |"),
            (CLOSED, "#### Permission denied"),
            (OWNER, "#### Wrong owner, group or mode"),
            (DISK, "#### Disk full or read-only"),
            (DAMAGED, "#### Invalid JSON"),
        ] {
            let text = heading.split('"').nth(1).unwrap();
            let is_it = |line: &str| line.trim_start_matches('#').trim() == text;
            assert!(english.lines().any(|line| line.starts_with('#') && is_it(line)), "{text}");
            assert!(spanish.lines().any(|line| line.starts_with(counterpart)), "{counterpart}");
        }
    }
}
