//! The check of root: finds out how requests reach comedor, and looks from there. By FastCGI the running
//! process looks, by CGI a child with the user of the web server.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use super::report::{Level, Report};
use super::{Subject, fastcgi, findings, look};
use crate::accounts;
use crate::child::Child;
use crate::config::{Config, Settings};
use crate::site::{self, Server, Way};

/// The timeout for a child, which may have many files to read.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The maximum size of its findings, in bytes.
const MAX_FINDINGS: usize = 16 * 1024 * 1024;

/// Checks `subject`, of which `session` is the session.
pub fn check(
    subject: &Subject,
    session: Option<&str>,
    config: &Config,
    settings: &Settings,
    report: &mut Report,
) {
    let machine = site::find();
    let (mut users, mut sockets) = (BTreeSet::new(), BTreeMap::<&Path, Vec<_>>::new());
    for site::Enabled { site, way, .. } in &machine.enabled {
        let Way::FastCgi(socket) = way else {
            users.insert(site.user.clone());
            continue;
        };
        let unit = match site.server {
            Server::Apache => "apache2",
            Server::Nginx => "nginx",
        };
        let server = accounts::find(&site.user).map(|user| (unit.to_owned(), user));
        sockets.entry(socket).or_default().extend(server);
    }
    let mut has_looked;
    match subject {
        Subject::Session => {
            users.extend(site::unit_user().filter(|_| !sockets.is_empty()));
            has_looked = look_as(&users, session, report);
        }
        Subject::Everything { socket: Some(path) } => {
            let servers = sockets.remove(path.as_path()).unwrap_or_default();
            has_looked = fastcgi::check(Some(path), servers, report);
        }
        Subject::Everything { socket: None } => {
            super::site::check(&machine, config, settings, report);
            has_looked = look_as(&users, session, report);
            if !sockets.contains_key(Path::new(fastcgi::SOCKET)) {
                has_looked |= fastcgi::check(None, Vec::new(), report);
            }
            for (path, servers) in sockets {
                has_looked |= fastcgi::check(Some(path), servers, report);
            }
        }
    }
    if !has_looked {
        // Last, because it starts threads, and then there are no more children.
        look(session, report);
        let text = "root can access everything; when comedor is enabled in Apache or nginx, this check \
                    looks from where requests run";
        report.add(Level::Hint, "user", text);
    }
}

/// Looks as each of `users`; returns whether one could.
fn look_as(users: &BTreeSet<String>, session: Option<&str>, report: &mut Report) -> bool {
    let mut has_looked = false;
    for name in users {
        let user = accounts::find(name);
        let child = Child { user: user.as_ref(), time: TIMEOUT, size: MAX_FINDINGS };
        let document = match &user {
            Some(_) => child.ask(|output| output.write_all(&findings(session))),
            None => Err(std::io::Error::other("unknown user")),
        };
        let uid = user.map(|user| user.uid);
        let merged = document.map_err(|error| error.to_string());
        match merged.and_then(|document| report.merge(&document, uid)) {
            Ok(()) => has_looked = true,
            Err(error) => {
                report.add(Level::Error, name, format!("cannot look as this user: {error}"))
            }
        }
    }
    has_looked
}
