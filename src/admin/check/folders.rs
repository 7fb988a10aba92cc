//! Checks that the user can enter the folders of the settings and write to them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities};

use super::file_system::{self, Content};
use super::guide;
use super::reach::enter;
use super::redis;
use super::report::{Level, Report};
use crate::admin::accounts::user_name;
use crate::config::{Config, DATA_DIR, SESSION_DIR, Settings};
use crate::session::{SavePath, SessionFolder};
use crate::store::layout;
use crate::sys::process::Credentials;

/// Checks the folder or the server of the sessions, which must answer before `end`.
pub fn check_sessions(
    config: &Config,
    settings: &Settings,
    user: &Credentials,
    end: Instant,
    report: &mut Report,
) {
    match &config.session.save_path {
        SavePath::Files(SessionFolder { folder, .. }) => match enter(folder, end) {
            Err(obstacle) => obstacle.report("the session folder", SESSION_DIR.name, user, report),
            Ok(()) => check_mount(folder, Content::Sessions, report),
        },
        SavePath::Redis(server) => {
            redis::check(server, config.session.lifetime, settings, user, end, report);
        }
    }
}

/// Checks the data folder, which must answer before `end`; returns whether its `Centros` can be entered.
pub fn check_data(config: &Config, user: &Credentials, end: Instant, report: &mut Report) -> bool {
    let centros = layout::centres(&config.data_dir);
    match enter(&centros, end) {
        Err(obstacle) => {
            let what = "the data folder, which contains Centros";
            obstacle.report(what, DATA_DIR.name, user, report);
            false
        }
        Ok(()) => {
            check_mount(&centros, Content::Data, report);
            check_capabilities(&centros, user, report);
            true
        }
    }
}

/// Names the file system of `folder`. Reports if it is read-only for this process.
fn check_mount(folder: &Path, content: Content, report: &mut Report) {
    file_system::check(folder, content, report);
    if access(folder, Access::WRITE_OK) == Err(Errno::ROFS) {
        let text = format!("is read-only for this process, so requests fail{}", guide::DISK);
        report.add(Level::Error, folder.display(), text);
    }
}

/// Reports a root that cannot save the files of other users, as in a container.
fn check_capabilities(centros: &Path, user: &Credentials, report: &mut Report) {
    let owner = fs::metadata(centros).map_or(0, |folder| folder.uid());
    // It sets their owner, reaches them, sets their mode, and takes a lease (capabilities(7)).
    let needed = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::FOWNER
        | CapabilitySet::LEASE;
    let lacks_some = || capabilities(None).is_ok_and(|own| !own.effective.contains(needed));
    if owner != 0 && user.is_root() && lacks_some() {
        let needed = "capabilities CHOWN, DAC_OVERRIDE, FOWNER and LEASE (cap_add)";
        let text = format!(
            "root lacks some of the {needed}, so it cannot save files of {}",
            user_name(owner)
        );
        report.add(Level::Error, centros.display(), text);
    }
}
