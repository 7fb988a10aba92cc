//! Checks that the user can enter the folders of the settings, and use the Redis server of the sessions.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use rustix::fs::{Access, access};
use rustix::thread::{CapabilitySet, capabilities};

use super::file_system::{self, Content};
use super::report::{Level, Report};
use crate::admin::accounts::{owner_of, user_name};
use crate::admin::guide::{self, SERVICE};
use crate::admin::limited::limited;
use crate::config::{Config, DATA_DIR, SESSION_DIR, Setting, Settings, Source};
use crate::session::redis::probe;
use crate::session::{Address, RedisServer, SavePath, SessionFolder};
use crate::store::data_file::parent;
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
        SavePath::Files(SessionFolder { folder, .. }) => {
            if enter(folder, "the session folder", &SESSION_DIR, user, end, report) {
                file_system::check(folder, Content::Sessions, report);
            }
        }
        SavePath::Redis(server) => {
            let is_reached = match &server.address {
                Address::Unix(path) => {
                    enter(parent(path), "the socket of Redis", &SESSION_DIR, user, end, report)
                }
                _ => true,
            };
            if is_reached {
                check_redis(server, config.session.lifetime, report);
            }
            check_password(server, settings, report);
        }
    }
}

/// Checks the data folder, which must answer before `end`; returns whether its `Centros` can be entered.
pub fn check_data(config: &Config, user: &Credentials, end: Instant, report: &mut Report) -> bool {
    let centros = layout::centres(&config.data_dir);
    let what = "the data folder, which contains Centros";
    let is_entered = enter(&centros, what, &DATA_DIR, user, end, report);
    if is_entered {
        file_system::check(&centros, Content::Data, report);
        check_capabilities(&centros, user, report);
    }
    is_entered
}

/// Whether this user can enter `folder`, which is `what` of the `setting`, and every folder above it. They must
/// answer before `end`.
fn enter(
    folder: &Path,
    what: &str,
    setting: &Setting,
    user: &Credentials,
    end: Instant,
    report: &mut Report,
) -> bool {
    let mut parts: Vec<&Path> = folder.ancestors().collect();
    parts.reverse();
    for path in parts {
        let folder = path.to_owned();
        let check = move || -> io::Result<()> {
            if !fs::metadata(&folder)?.is_dir() {
                return Err(ErrorKind::NotADirectory.into());
            }
            Ok(access(&folder, Access::EXEC_OK)?)
        };
        let Err(error) = limited(end, check) else { continue };
        let is_hidden = || fs::metadata(path).is_ok_and(|folder| folder.mode() & 0o777 == 0);
        let help = match guide::help(&error) {
            // Its file system may not answer.
            "" => String::new(),
            // systemd.exec(5): ProtectHome= shows another folder instead.
            _ if is_hidden() => format!("; if systemd hides it, set ProtectHome=no ({SERVICE})"),
            help => owner_of(path) + help,
        };
        let (user, setting) = (user_name(user.uid), setting.name);
        let text = format!("{user} cannot reach {what} ({setting}): {error}{help}");
        report.add(Level::Error, path.display(), text);
        return false;
    }
    true
}

/// Checks that the server answers and accepts the commands of a request.
fn check_redis(server: &RedisServer, lifetime: u32, report: &mut Report) {
    let Err(fault) = probe(server, lifetime) else {
        let text = "Redis answers and accepts the commands of a request";
        return report.add(Level::Ok, server, text);
    };
    let effect = "every request fails with INTERNAL_ERROR";
    let text = format!("{fault}; until this is fixed (docs/redis.md#set-up), {effect}");
    report.add(Level::Error, server, text);
}

/// Warns about a file of settings with a password that every user can read.
fn check_password(server: &RedisServer, settings: &Settings, report: &mut Report) {
    let Source::Line { path, .. } = settings.source(&SESSION_DIR) else { return };
    if server.login.is_some() && fs::metadata(path).is_ok_and(|file| file.mode() & 0o004 != 0) {
        let text = "every user of this machine can read the password of Redis in this file; give it mode 640 \
                    and PHP's group (docs/redis.md#set-up)";
        report.add(Level::Warning, path.display(), text);
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
        let owner = user_name(owner);
        let text = format!("root lacks some of the {needed}, so it cannot save files of {owner}");
        report.add(Level::Error, centros.display(), text);
    }
}
