//! Checks that the Redis server of the sessions answers and accepts the commands of a request.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use super::reach::enter;
use super::report::{Level, Report};
use crate::config::{SESSION_DIR, Settings, Source};
use crate::session::redis::probe;
use crate::session::{Address, RedisServer};
use crate::store::data_file::parent;
use crate::sys::process::Credentials;

pub fn check(
    server: &RedisServer,
    lifetime: u32,
    settings: &Settings,
    user: &Credentials,
    end: Instant,
    report: &mut Report,
) {
    if let Address::Unix(path) = &server.address
        && let Err(obstacle) = enter(parent(path), end)
    {
        obstacle.report("the socket of Redis", SESSION_DIR.name, user, report);
    } else if let Err(fault) = probe(server, lifetime) {
        let effect = "every request fails with INTERNAL_ERROR";
        let text = format!("{fault}; until this is fixed (docs/redis.md#set-up), {effect}");
        report.add(Level::Error, server, text);
    } else {
        report.add(Level::Ok, server, "Redis answers and accepts the commands of a request");
    }
    let Source::Line { path, .. } = settings.source(&SESSION_DIR) else { return };
    if server.login.is_some() && fs::metadata(path).is_ok_and(|file| file.mode() & 0o004 != 0) {
        let text = "every user of this machine can read the password of Redis in this file; give it mode 640 \
                    and PHP's group (docs/redis.md#set-up)";
        report.add(Level::Warning, path.display(), text);
    }
}
