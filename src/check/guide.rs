//! The headings of `docs/troubleshooting.md` that have the commands for findings. The check prints no command
//! with a path that another user can change: before it is run, that user could put something else there.

use std::fmt;
use std::io;

use rustix::io::Errno;

use crate::store::access::Refusal;

/// A heading of the guide
#[derive(Clone, Copy, Debug)]
pub enum Heading {
    PermissionDenied,
    WrongOwner,
    StickyBit,
    AccessControlList,
    Disk,
    InvalidJson,
    ApplicationUpdated,
    SessionFolder,
}

impl Heading {
    fn title(self) -> &'static str {
        match self {
            Heading::PermissionDenied => "Permission denied",
            Heading::WrongOwner => "Wrong owner, group or mode",
            Heading::StickyBit => "Sticky bit",
            Heading::AccessControlList => "Access control list",
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
        match refusal {
            Refusal::TakesAccess { .. } => Heading::WrongOwner,
            Refusal::Sticky { .. } => Heading::StickyBit,
            Refusal::UnknownList => Heading::AccessControlList,
        }
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
    use crate::store::access::Loser;

    #[test]
    fn the_log_and_the_check_name_the_same_heading_for_a_refusal() {
        for refusal in [
            Refusal::TakesAccess {
                user: 33,
                loser: Loser::NewOwner,
                rights: 2,
            },
            Refusal::Sticky { user: 33 },
            Refusal::UnknownList,
        ] {
            let title = Heading::from(&refusal).title().to_lowercase();
            let anchor = title.replace(',', "").replace(' ', "-");
            assert_eq!(refusal.anchor(), anchor);
        }
    }

    #[test]
    fn the_guides_of_both_languages_have_every_heading() {
        let english = include_str!("../../docs/troubleshooting.md");
        let spanish = include_str!("../../docs/es/instalar.md");
        for heading in [
            Heading::PermissionDenied,
            Heading::WrongOwner,
            Heading::StickyBit,
            Heading::AccessControlList,
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
