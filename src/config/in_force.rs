//! The settings of a process that answers many requests.

use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::{Config, Error, Files, Settings};
use crate::sys::shared_file::Fault;
use crate::sys::{log, scoreboard};

/// The time for which settings that were read are in force: an administrator does not notice the delay, and one read
/// in this time costs little beside the requests.
const AGE: Duration = Duration::from_secs(1);

/// The settings in force, or the error of those that cannot be used.
#[derive(Debug)]
pub struct InForce {
    files: Files,
    settings: Result<Usable, Error>,
    read_at: Instant,
}

impl InForce {
    /// Reads the settings, as a CGI process does.
    pub fn load() -> InForce {
        let files = Files::find();
        let settings = Settings::load(&files).and_then(Usable::parse);
        if let Ok(usable) = &settings {
            usable.publish();
        }
        InForce {
            files,
            settings,
            read_at: Instant::now(),
        }
    }

    /// The settings in force. Reads them again if they are old, or an error.
    pub fn get(&mut self) -> Result<&Config, &Error> {
        if self.settings.is_err() || self.read_at.elapsed() >= AGE {
            self.read();
        }
        self.settings.as_ref().map(|usable| &usable.config)
    }

    fn read(&mut self) {
        let read = Settings::within(Duration::ZERO, &self.files).and_then(Usable::parse);
        self.read_at = Instant::now();
        match (read, &self.settings) {
            // Those of another worker are newer: with the old ones, a save could go to another folder.
            (Err(error), Ok(usable)) if error.is_transient() && usable.is_newest() => {
                if !scoreboard::shared_flags()
                    .has_kept_settings
                    .swap(true, SeqCst)
                {
                    log::offer(&format!(
                        "{error} (until then, the settings of before are in force)"
                    ));
                }
            }
            (read, _) => {
                if let Ok(usable) = &read {
                    usable.publish();
                }
                self.settings = read;
            }
        }
    }
}

/// Settings that can be used.
#[derive(Debug)]
struct Usable {
    config: Config,
    fingerprint: u64,
}

impl Usable {
    fn parse(settings: Settings) -> Result<Usable, Error> {
        Ok(Usable {
            config: Config::from_settings(&settings)?,
            fingerprint: settings.fingerprint(),
        })
    }

    /// Tells the other workers which settings were read last.
    fn publish(&self) {
        let known = scoreboard::shared_flags();
        known.settings.store(self.fingerprint, SeqCst);
        known.has_kept_settings.store(false, SeqCst);
    }

    /// Whether no worker has read other settings since.
    fn is_newest(&self) -> bool {
        scoreboard::shared_flags().settings.load(SeqCst) == self.fingerprint
    }
}

impl Error {
    /// Whether the next attempt to read the file may succeed: another program is using it, or the system lacks
    /// file descriptors or memory, or its disk fails.
    fn is_transient(&self) -> bool {
        match self {
            Error::BeingSaved { .. }
            | Error::Unreadable {
                fault: Fault::Leased,
                ..
            } => true,
            Error::Unreadable {
                fault: Fault::Io(error),
                ..
            } => matches!(
                Errno::from_io_error(error),
                Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::IO)
            ),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn settings_are_kept_for_lack_of_resources_and_not_for_lack_of_permission() {
        for (errno, is_transient) in [
            (Errno::MFILE, true),
            (Errno::NFILE, true),
            (Errno::NOMEM, true),
            (Errno::IO, true),
            (Errno::ACCESS, false),
            (Errno::LOOP, false),
        ] {
            let fault = Fault::Io(errno.into());
            let error = Error::Unreadable {
                path: PathBuf::new(),
                fault,
            };
            assert_eq!(error.is_transient(), is_transient, "{errno}");
        }
    }
}
