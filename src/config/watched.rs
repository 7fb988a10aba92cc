//! The settings of a responder, whose parent reads them again when their file has changed.

use std::time::Duration;

use rustix::io::Errno;

use super::sources::{EDITOR_TIMEOUT, Look};
use super::{Config, Error, Files, Usable};
use crate::sys::log;
use crate::sys::shared_file::Fault;

/// The settings in force, or the error of settings that cannot be used.
pub struct Watched {
    files: Files,
    settings: Result<Usable, Error>,
    /// The files as they were before they were read
    look: Look,
    /// Whether they must be read again, although they look the same
    is_unsettled: bool,
    /// Whether the log says that the file cannot be used at the moment
    has_logged: bool,
}

impl Watched {
    /// Reads the settings, as a CGI process does.
    pub fn load() -> Watched {
        let files = Files::find();
        let look = files.look();
        let settings = Usable::read(&files, EDITOR_TIMEOUT);
        Watched {
            files,
            settings,
            look,
            is_unsettled: true,
            has_logged: false,
        }
    }

    pub fn in_force(&self) -> Result<&Config, &Error> {
        self.settings.as_ref().map(|usable| &usable.config)
    }

    /// Looks at the files, and reads a file that has changed. Returns whether other settings are in force afterwards.
    pub fn reload(&mut self) -> bool {
        let look = self.files.look();
        if look == self.look && !self.is_unsettled {
            return false;
        }
        // Before the read: of two changes in this time, the second one may not show.
        self.is_unsettled = look.is_recent();
        self.look = look;
        let settings = Usable::read(&self.files, Duration::ZERO);
        if let Err(error) = &settings
            && error.is_transient()
        {
            self.is_unsettled = true;
            if !std::mem::replace(&mut self.has_logged, true) {
                log::offer(&format!("{error} (until it can be read, {})", self.state()));
            }
            return false;
        }
        self.has_logged = false;
        let is_same = match (&settings, &self.settings) {
            (Ok(new), Ok(old)) => new.settings == old.settings,
            (Err(new), Err(old)) => new.to_string() == old.to_string(),
            _ => false,
        };
        self.settings = settings;
        !is_same
    }

    /// What stays while the file cannot be read
    fn state(&self) -> &'static str {
        match self.settings {
            Ok(_) => "the settings of before stay in force",
            Err(_) => "every request fails",
        }
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
    use std::fs::{self, FileTimes};
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};
    use std::time::SystemTime;

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

    /// The settings in this file, as they are after a look.
    fn watched(file: &Path) -> Watched {
        let files = Files::at([file.to_owned()]);
        Watched {
            settings: Usable::read(&files, Duration::ZERO),
            look: files.look(),
            files,
            is_unsettled: false,
            has_logged: false,
        }
    }

    fn workers(watched: &Watched) -> usize {
        watched.in_force().unwrap().workers
    }

    /// A login too, which `Config` never shows.
    #[test]
    fn each_other_value_is_a_change_and_the_same_ones_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("comedor.conf");
        let login = |password| format!("COMEDOR_SESSION_DIR=tcp://127.0.0.1?auth={password}\n");
        fs::write(&file, login("old")).unwrap();
        let mut watched = watched(&file);
        for (text, is_change) in [
            (login("old"), false),
            (login("new"), true),
            (login("new"), false),
            (format!("{}TZ=UTC\n", login("new")), true),
        ] {
            fs::write(&file, &text).unwrap();
            assert_eq!(watched.reload(), is_change, "{text}");
        }
        assert!(!watched.reload());
    }

    #[test]
    fn a_file_that_is_being_saved_leaves_what_is_in_force_and_one_that_cannot_be_used_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("comedor.conf");
        fs::write(&file, "COMEDOR_WORKERS=5\n").unwrap();
        let mut watched = watched(&file);
        fs::write(&file, "").unwrap();
        assert!(!watched.reload() && workers(&watched) == 5);
        fs::remove_file(&file).unwrap();
        assert!(!watched.reload() && workers(&watched) == 5);
        fs::write(&file, "COMEDOR_WORKERS=many\n").unwrap();
        assert!(watched.reload() && watched.in_force().is_err());
        assert!(!watched.reload(), "the same error");
        fs::write(&file, "COMEDOR_WORKERS=6\n").unwrap();
        assert!(watched.reload() && workers(&watched) == 6);
    }

    /// The defaults name another service and other folders.
    #[test]
    fn defaults_do_not_come_into_force_when_an_unreadable_file_is_renamed_away() {
        let creations: [fn(&Path); 3] = [
            |path| symlink(path, path).unwrap(),
            |path| fs::create_dir(path).unwrap(),
            |path| fs::write(path, "").unwrap(),
        ];
        for create in creations {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("comedor.conf");
            create(&file);
            let mut watched = watched(&file);
            fs::rename(&file, folder.path().join("away")).unwrap();
            watched.reload();
            assert!(watched.in_force().is_err());
            assert_eq!(watched.state(), "every request fails");
            fs::write(&file, "COMEDOR_WORKERS=5\n").unwrap();
            assert!(watched.reload() && workers(&watched) == 5);
            assert_eq!(watched.state(), "the settings of before stay in force");
        }
    }

    /// As on a file system that stores whole seconds.
    #[test]
    fn a_second_change_with_the_same_stamp_is_found_if_the_first_is_recent() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("comedor.conf");
        let set = |text: &str| {
            let file = fs::File::options().write(true).open(&file);
            let file = file.unwrap();
            std::io::Write::write_all(&mut &file, text.as_bytes()).unwrap();
            let time = SystemTime::UNIX_EPOCH;
            file.set_times(FileTimes::new().set_modified(time)).unwrap();
        };
        fs::write(&file, "").unwrap();
        set("COMEDOR_WORKERS=5\n");
        let mut watched = watched(&file);
        watched.is_unsettled = watched.look.is_recent();
        assert!(watched.is_unsettled, "the time of change is now");
        set("COMEDOR_WORKERS=6\n");
        watched.look = watched.files.look();
        assert!(watched.reload() && workers(&watched) == 6);
    }
}
