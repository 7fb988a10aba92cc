//! The Redis server of the sessions: whether it answers and accepts what a request sends.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;

use super::report::{Level, Report};
use super::user::{User, quoted};
use crate::config::{Address, RedisServer, Settings, Source};
use crate::session::redis::{Fault, probe};

pub fn check(
    server: &RedisServer,
    lifetime: u32,
    settings: &Settings,
    user: &User,
    report: &mut Report,
) {
    match probe(server, lifetime) {
        Ok(()) => {
            let login = match &server.login {
                Some(login) => {
                    format!("the login as {}", login.user.as_deref().unwrap_or("default"))
                }
                None => "requests without a login".to_owned(),
            };
            let database = server.database.unwrap_or_default();
            let text =
                format!("Redis answers and accepts {login}, database {database} and EXPIRE GT");
            report.add(Level::Ok, server, text);
        }
        Err(fault) => refused(server, &fault, user, report),
    }
    if server.login.is_some() {
        check_settings_file(settings, user, report);
    }
}

fn refused(server: &RedisServer, fault: &Fault, user: &User, report: &mut Report) {
    let text = format!("{fault}; until this is fixed, every request fails with INTERNAL_ERROR");
    let Address::Unix(path) = &server.address else {
        return report.add(Level::Error, server, text);
    };
    match (fault, fs::metadata(path)) {
        (Fault::Io(error), Ok(metadata)) if error.kind() == ErrorKind::PermissionDenied => {
            let (owner, group) = User::names(metadata.uid(), metadata.gid());
            let mode = metadata.mode() & 0o777;
            let text = format!(
                "{} cannot connect: the socket belongs to {owner} and the group {group}, with mode \
                 {mode:o}; every request fails with INTERNAL_ERROR. A new group counts after a restart \
                 of the web server",
                user.name
            );
            let helps = mode & 0o020 != 0 && metadata.gid() != 0;
            let fix = helps.then(|| format!("sudo usermod -aG {group} {}", user.name));
            report.add_with_fix(Level::Error, server, text, fix);
        }
        _ => report.add(Level::Error, server, text),
    }
}

/// Warns if every user of the machine can read the password.
fn check_settings_file(settings: &Settings, user: &User, report: &mut Report) {
    let Source::Line { path, .. } = settings.source("COMEDOR_SESSION_DIR") else { return };
    if fs::metadata(&path).is_ok_and(|file| file.mode() & 0o004 != 0) {
        let text = "every user of this machine can read the password of Redis in this file";
        let (group, file) = (&user.group, quoted(&path));
        let fix = format!("sudo chgrp {group} {file} && sudo chmod 640 {file}");
        report.add_with_fix(Level::Warning, path.display(), text, fix);
    }
}
