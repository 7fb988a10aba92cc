//! Checks that the Redis server of the sessions answers and accepts the commands of a request.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;

use super::reach::enter;
use super::report::{Level, Report};
use super::user::{User, quoted};
use crate::config::{Settings, Source};
use crate::session::redis::{Fault, probe};
use crate::session::{Address, RedisServer};
use crate::store::data_file::parent;

pub fn check(
    server: &RedisServer,
    lifetime: u32,
    settings: &Settings,
    user: &User,
    report: &mut Report,
) {
    match probe(server, lifetime) {
        Ok(()) => {
            let user =
                server.login.as_ref().map(|login| login.user.as_deref().unwrap_or("default"));
            let login = user.map(|user| format!("the login as {user}"));
            let login = login.as_deref().unwrap_or("requests without a login");
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
    if let Address::Unix(path) = &server.address
        && let Err(obstacle) = enter(parent(path))
    {
        return obstacle.report("the socket of Redis", "COMEDOR_SESSION_DIR", user, report);
    }
    let advice = match fault {
        Fault::Io(error) if error.kind() == ErrorKind::PermissionDenied => format!(
            ": redis.conf must have unixsocketperm 770, and {} must be in the group of the socket \
             (docs/redis.md#set-up)",
            user.name
        ),
        fault => advice(fault).map(|advice| format!(": {advice}")).unwrap_or_default(),
    };
    let text =
        format!("{fault}{advice}; until this is fixed, every request fails with INTERNAL_ERROR");
    report.add(Level::Error, server, text);
}

/// What to change, for the errors of wrong settings.
fn advice(fault: &Fault) -> Option<&'static str> {
    use ErrorKind::{ConnectionRefused, NotFound};
    Some(match fault {
        Fault::Io(error) if matches!(error.kind(), ConnectionRefused | NotFound) => {
            "Redis is stopped, or redis.conf has another port or unixsocket"
        }
        Fault::Refused(text) => match text.split(' ').next()? {
            "NOAUTH" => "add auth= to COMEDOR_SESSION_DIR",
            "WRONGPASS" => "auth= in COMEDOR_SESSION_DIR has another user or password than Redis",
            "NOPERM" => "the user of Redis needs +get, +expire, +select and these keys",
            "READONLY" => "COMEDOR_SESSION_DIR must name the server that accepts writes",
            _ => return None,
        },
        _ => return None,
    })
}

/// Warns if every user of the machine can read the password.
fn check_settings_file(settings: &Settings, user: &User, report: &mut Report) {
    let Source::Line { path, .. } = settings.source("COMEDOR_SESSION_DIR") else { return };
    if fs::metadata(path).is_ok_and(|file| file.mode() & 0o004 != 0) {
        let text = "every user of this machine can read the password of Redis in this file";
        let (group, file) = (&user.group, quoted(path));
        // The group of root is not that of the web server.
        let fix = (!user.credentials.is_root())
            .then(|| format!("sudo chgrp {group} {file} && sudo chmod 640 {file}"));
        report.add_with_fix(Level::Warning, path.display(), text, fix);
    }
}
