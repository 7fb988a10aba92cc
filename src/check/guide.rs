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

const CLOSED: &str = heading!("Permission denied");
const OWNER: &str = heading!("Wrong owner, group or mode");
pub const DISK: &str = heading!("Disk full or read-only");
pub const DAMAGED: &str = heading!("Invalid JSON");

/// The section of another guide on who can connect to the service, and what it may reach
pub const SERVICE: &str = "docs/install.md#the-service";

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
            (CLOSED, "#### Permission denied"),
            (OWNER, "#### Wrong owner, group or mode"),
            (DISK, "#### Disk full or read-only"),
            (DAMAGED, "#### Invalid JSON"),
        ] {
            let text = heading.split('"').nth(1).unwrap();
            let is_it = |line: &str| line.trim_start_matches('#').trim() == text;
            assert!(
                english
                    .lines()
                    .any(|line| line.starts_with('#') && is_it(line)),
                "{text}"
            );
            assert!(
                spanish.lines().any(|line| line.starts_with(counterpart)),
                "{counterpart}"
            );
        }
    }
}
