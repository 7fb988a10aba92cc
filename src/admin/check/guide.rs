//! The headings of `docs/troubleshooting.md` that have the commands for findings. The check prints no command
//! with a path that another user can change: before it is run, that user could put something else there.

use std::fmt;
use std::io;

use rustix::io::Errno;

/// The text of a heading. Shown, it follows a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heading(&'static str);

pub const OLD_SCRIPT: Heading = Heading("The old PHP script still answers");
pub const REFUSED: Heading = Heading("403 or 404 with an HTML page or plain text");
pub const NOT_STARTED: Heading = Heading("500 with an HTML page");
pub const NO_CONNECTION: Heading = Heading("502 or 503 with an HTML page or no content");
pub const CLOSED: Heading = Heading("Permission denied");
pub const OWNER: Heading = Heading("Wrong owner, group or mode");
pub const DISK: Heading = Heading("Disk full or read-only");
pub const DAMAGED: Heading = Heading("Invalid JSON");

/// The heading for a step that failed so, if there is one, as text after a sentence.
pub fn help(error: &io::Error) -> String {
    let heading = match Errno::from_io_error(error) {
        Some(Errno::ACCESS) => CLOSED,
        Some(Errno::PERM) => OWNER,
        Some(Errno::NOSPC | Errno::DQUOT | Errno::ROFS) => DISK,
        _ => return String::new(),
    };
    heading.to_string()
}

impl fmt::Display for Heading {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "; see \"{}\" in docs/troubleshooting.md", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guides_of_both_languages_have_every_heading() {
        let english = include_str!("../../../docs/troubleshooting.md");
        let spanish = include_str!("../../../docs/es/instalar.md");
        for (Heading(text), counterpart) in [
            (OLD_SCRIPT, "### Sigue respondiendo el script de PHP"),
            (REFUSED, "| 403 o 404, HTML |"),
            (NOT_STARTED, "| 500, HTML |"),
            (NO_CONNECTION, "| 502 o 503 |"),
            (CLOSED, "#### Permission denied"),
            (OWNER, "#### Wrong owner, group or mode"),
            (DISK, "#### Disk full or read-only"),
            (DAMAGED, "#### Invalid JSON"),
        ] {
            let is_it = |line: &str| line.trim_start_matches('#').trim() == text;
            assert!(english.lines().any(|line| line.starts_with('#') && is_it(line)), "{text}");
            assert!(spanish.lines().any(|line| line.starts_with(counterpart)), "{counterpart}");
        }
    }
}
