//! The check of root: finds out how requests reach comedor, and looks from there. By FastCGI the running
//! process looks, by CGI a child with the user of the web server.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

use super::reach::limited;
use super::report::{Level, Report};
use super::{Subject, fastcgi, findings, look};
use crate::admin::accounts;
use crate::admin::child::Child;
use crate::admin::inferred::PATIENCE;
use crate::admin::inferred::{self, Way};
use crate::config::{Config, Settings};

/// The maximum size of what a child finds, in bytes
const MAX_SIZE: usize = 16 * 1024 * 1024;

/// Checks `subject`, of which `session` is the session.
pub fn check(
    subject: &Subject,
    session: Option<&str>,
    config: &Config,
    settings: &Settings,
    report: &mut Report,
) {
    let machine = inferred::find();
    let (mut users, mut sockets) = (BTreeSet::new(), BTreeMap::<&Path, Vec<_>>::new());
    for inferred::Enabled { site, way, .. } in &machine.enabled {
        match way {
            Way::Cgi => _ = users.insert(site.user.clone()),
            Way::FastCgi(socket) => sockets.entry(socket).or_default().extend(
                accounts::find(&site.user).map(|user| (site.server.unit().to_owned(), user)),
            ),
        }
    }
    let standard = Path::new(fastcgi::SOCKET);
    let by_fastcgi = !sockets.is_empty() || standard.exists();
    let mut is_enabled = by_fastcgi || !users.is_empty();
    let is_standard = sockets.contains_key(standard);
    match subject {
        Subject::Session => {
            users.extend(if by_fastcgi { inferred::unit_user() } else { None });
            if is_enabled && users.is_empty() {
                let text = "the user of the FastCGI process is unknown: run this as that user";
                report.add(Level::Error, "user", text);
            }
            look_as(&users, session, report);
        }
        Subject::Everything { socket } => {
            sockets.entry(standard).or_default().extend(machine.others.clone());
            if let Some(path) = socket {
                sockets.retain(|known, _| known == path);
                sockets.entry(path).or_default();
            } else {
                super::site::check(&machine, config, settings, report);
                look_as(&users, session, report);
            }
            for (path, servers) in sockets {
                let is_wanted = is_standard || socket.is_some() || path != standard;
                is_enabled |= fastcgi::check(path, is_wanted, servers, report);
            }
        }
    }
    if !is_enabled {
        look_as_root(session.map(str::to_owned), report);
    }
}

/// Adds what a child of each of `users` sees.
pub fn look_as(users: &BTreeSet<String>, session: Option<&str>, report: &mut Report) {
    for name in users {
        let user = accounts::find(name);
        let child = Child { user: user.as_ref(), time: PATIENCE, size: MAX_SIZE };
        let document = match &user {
            Some(_) => child.output(|output| output.write_all(&findings(session))),
            None => Err(std::io::Error::other("unknown user")),
        };
        let uid = user.map(|user| user.uid);
        let merged = document.map_err(|error| error.to_string());
        if let Err(error) = merged.and_then(|document| report.merge(&document, uid)) {
            report.add(Level::Error, name, format!("cannot check as this user: {error}"));
        }
    }
}

/// Adds what root sees, in limited time: the files may be those of another user. Comes last, because a
/// process with several threads cannot start a child.
fn look_as_root(session: Option<String>, report: &mut Report) {
    let looked = limited(PATIENCE, move || {
        let mut report = Report::new();
        look(session.as_deref(), &mut report);
        Ok(report)
    });
    match looked {
        Ok(findings) => report.extend(findings),
        Err(error) => report.add(Level::Error, "user", format!("cannot check as root: {error}")),
    }
    let text = "checked as root, which can access everything; once comedor is enabled in Apache or \
                nginx, the check runs as the user of the requests";
    report.add(Level::Hint, "user", text);
}
