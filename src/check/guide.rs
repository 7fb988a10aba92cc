//! The headings of `docs/troubleshooting.md` that have the commands for findings. The check prints no command
//! with a path that another user can change: before it is run, that user could put something else there.

use std::fmt;
use std::io;

use rustix::io::Errno;

use crate::store::access::{Refusal, WRONG_OWNER};

/// A heading of the guide
#[derive(Clone, Copy, Debug)]
pub enum Heading {
    PermissionDenied,
    WrongOwner,
    /// That of a refusal, with this title
    Refused(&'static str),
    Disk,
    InvalidJson,
    ApplicationUpdated,
    SessionFolder,
}

impl Heading {
    fn title(self) -> &'static str {
        match self {
            Heading::PermissionDenied => "Permission denied",
            Heading::WrongOwner => WRONG_OWNER,
            Heading::Refused(title) => title,
            Heading::Disk => "Disk full or read-only",
            Heading::InvalidJson => "Invalid JSON",
            Heading::ApplicationUpdated => "The application was updated",
            Heading::SessionFolder => "Session folder",
        }
    }

    /// The heading for a step that failed so.
    pub fn for_error(error: &io::Error) -> Option<Heading> {
        match Errno::from_io_error(error)? {
            Errno::ACCESS => Some(Heading::PermissionDenied),
            Errno::PERM => Some(Heading::WrongOwner),
            Errno::NOSPC | Errno::DQUOT | Errno::ROFS => Some(Heading::Disk),
            _ => None,
        }
    }
}

impl From<&Refusal> for Heading {
    fn from(refusal: &Refusal) -> Heading {
        Heading::Refused(refusal.heading())
    }
}

/// As text after a sentence
impl fmt::Display for Heading {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let title = self.title();
        write!(f, "; see \"{title}\" in docs/troubleshooting.md")
    }
}

/// The section of another guide on who can connect to the service, and what it may reach
pub const SERVICE: &str = "docs/install.md#the-service";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guides_of_both_languages_have_every_heading() {
        let english = include_str!("../../docs/troubleshooting.md");
        let spanish = include_str!("../../docs/es/instalar.md");
        for heading in [
            Heading::PermissionDenied,
            Heading::WrongOwner,
            Heading::from(&Refusal::Sticky { user: 33 }),
            Heading::from(&Refusal::UnknownList),
            Heading::Disk,
            Heading::InvalidJson,
            Heading::ApplicationUpdated,
            Heading::SessionFolder,
        ] {
            let title = heading.title();
            let is_it = |line: &str| line.trim_start_matches('#').trim() == title;
            for guide in [english, spanish] {
                assert!(
                    guide
                        .lines()
                        .any(|line| line.starts_with('#') && is_it(line)),
                    "{title}"
                );
            }
        }
    }
}
