//! The settings of a process that answers many requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::{Config, Error, Settings};
use crate::sys::log;
use crate::sys::shared_file::Fault;

/// The time for which settings that were read are in force.
const AGE: Duration = Duration::from_secs(1);

/// Settings, and the errors of those that cannot be used. One thread at a time reads them again, while the
/// others use those that are in force.
#[derive(Debug)]
pub struct InForce {
    settings: Mutex<Arc<Result<Config, Error>>>,
    last: Mutex<Last>,
}

/// The last time that the settings were read.
#[derive(Debug)]
struct Last {
    at: Instant,
    /// Whether the file could not be used then: the settings of before are in force.
    has_kept: bool,
}

impl InForce {
    /// Reads the settings, as a CGI process does.
    pub fn load() -> InForce {
        let settings = Mutex::new(Arc::new(Config::load()));
        InForce { settings, last: Mutex::new(Last { at: Instant::now(), has_kept: false }) }
    }

    /// The settings in force. Reads them again if they are old, or an error.
    pub fn get(&self) -> Arc<Result<Config, Error>> {
        let settings = self.settings().clone();
        let mut last = match self.last.try_lock() {
            Ok(last) => last,
            Err(TryLockError::Poisoned(last)) => last.into_inner(),
            Err(TryLockError::WouldBlock) => return settings,
        };
        if settings.is_ok() && last.at.elapsed() < AGE {
            return settings;
        }
        let read = Settings::within(Duration::ZERO).and_then(|read| Config::from_settings(&read));
        last.at = Instant::now();
        let kept = read.as_ref().err().filter(|error| settings.is_ok() && error.is_passing());
        if let Some(error) = kept
            && !last.has_kept
        {
            log::log(&format!("{error} (until then, the settings of before are in force)"));
        }
        last.has_kept = kept.is_some();
        if last.has_kept {
            return settings;
        }
        let settings = Arc::new(read);
        *self.settings() = settings.clone();
        settings
    }

    fn settings(&self) -> MutexGuard<'_, Arc<Result<Config, Error>>> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Error {
    /// Whether the next attempt to read the file may succeed: another program is using it, or the system lacks
    /// file descriptors or memory, or its disk fails.
    fn is_passing(&self) -> bool {
        match self {
            Error::BeingSaved { .. } | Error::Unreadable { fault: Fault::Leased, .. } => true,
            Error::Unreadable { fault: Fault::Io(error), .. } => matches!(
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
        for (errno, is_passing) in [
            (Errno::MFILE, true),
            (Errno::NFILE, true),
            (Errno::NOMEM, true),
            (Errno::IO, true),
            (Errno::ACCESS, false),
            (Errno::LOOP, false),
        ] {
            let fault = Fault::Io(errno.into());
            let error = Error::Unreadable { path: PathBuf::new(), fault };
            assert_eq!(error.is_passing(), is_passing, "{errno}");
        }
    }
}
