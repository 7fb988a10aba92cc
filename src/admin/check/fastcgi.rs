//! The FastCGI socket: whether it is needed, who may connect, and what the process behind it finds.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::process::geteuid;

use super::report::{Level, Report};
use super::role;
use super::user::{Command, is_in_container};
use crate::admin::accounts::{self, group_name, user_name};
use crate::admin::inferred;
use crate::admin::inferred::PATIENCE;
use crate::store::access::Credentials;
use crate::sys::process::peer_uid;

/// The socket of the unit `comedor.socket`.
pub const SOCKET: &str = "/run/comedor/comedor.sock";

/// The configuration of Caddy, which `crate::admin::inferred` does not understand, in `docs/install.md`
const CADDY: &str = "/etc/caddy/comedor.caddyfile";

/// A web server and its user.
pub type Server = (String, Credentials);

/// Checks the socket at `path`. If `is_wanted` is not set, [`SOCKET`] may be missing. `servers` are
/// configured to use it, each with its user. Returns whether there is something to check.
pub fn check(path: &Path, is_wanted: bool, servers: Vec<Server>, report: &mut Report) -> bool {
    match fs::metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => {
            connections(path, &metadata, servers, report);
            findings(path, report);
        }
        Ok(_) => report.add(Level::Error, path.display(), "is not a socket"),
        Err(error) if error.kind() == ErrorKind::NotFound && path == Path::new(SOCKET) => {
            return missing(is_wanted, report);
        }
        Err(error) => {
            report.add(Level::Error, path.display(), format!("cannot be used: {error}"));
        }
    }
    true
}

/// Reports that [`SOCKET`] does not exist, if it is wanted or Caddy's configuration names it. CGI does not
/// need it. Returns whether it is missing.
fn missing(is_wanted: bool, report: &mut Report) -> bool {
    let is_missing = is_wanted || fs::read_to_string(CADDY).is_ok_and(|text| text.contains(SOCKET));
    if is_missing {
        let text = "does not exist, and a web server is configured for it, so every request fails";
        let fix = Command::of_root("systemctl enable --now comedor.socket".to_owned());
        report.add_with_fix(Level::Error, SOCKET, text, Some(fix));
    }
    is_missing
}

/// Reports who can connect, and if web servers use the socket and none of them can.
fn connections(path: &Path, socket: &Metadata, servers: Vec<Server>, report: &mut Report) {
    let (owner, group) = (user_name(socket.uid()), group_name(socket.gid()));
    let who = match (socket.mode() & 0o200 != 0, socket.mode() & 0o020 != 0) {
        _ if socket.mode() & 0o002 != 0 => {
            let text = "every user of this machine can connect and claim to be any client";
            let fix = Command::on(path, |path| format!("chmod o-rwx {path}"));
            return report.add_with_fix(Level::Error, path.display(), text, fix);
        }
        (true, true) => format!("the user {owner} and the group {group}"),
        (true, false) => format!("the user {owner}"),
        (false, true) => format!("the group {group}"),
        (false, false) => "only root".to_owned(),
    };
    if is_in_container() {
        let text = format!("{who} can connect, no other: the web server must run as one of them");
        report.add(Level::Hint, path.display(), text);
    } else {
        report.add(Level::Ok, path.display(), format!("{who} can connect"));
    }
    let may_connect = |user: &Credentials| {
        let needed = if user.uid == socket.uid() {
            0o200
        } else if user.is_member(socket.gid()) {
            0o020
        } else {
            0o002
        };
        user.is_root() || socket.mode() & needed != 0
    };
    let Some((server, user)) = servers.first() else { return };
    if servers.iter().any(|(_, user)| may_connect(user)) {
        return;
    }
    let user = user_name(user.uid);
    let text = format!(
        "{server} runs as {user} without the group {group} and cannot connect, so every request fails"
    );
    let line = format!("usermod -aG {group} {user} && sudo systemctl restart {server}");
    let is_group = socket.gid() != 0 && socket.mode() & 0o020 != 0;
    // Who can put another socket there could choose the group.
    let fix = Command::on(path, |_| line).filter(|fix| is_group && fix.user == 0);
    report.add_with_fix(Level::Error, path.display(), text, fix);
}

/// Adds the findings of the process behind the socket.
fn findings(path: &Path, report: &mut Report) {
    let (is_unit, is_root) = (path == Path::new(SOCKET), geteuid().is_root());
    let asked = (|time| -> io::Result<_> {
        let stream = role::open(path)?;
        let listener = peer_uid(&stream)?;
        Ok((role::ask(stream, time)?, listener))
    })(PATIENCE);
    let problem = match asked {
        // Only the web server must be able to connect.
        Err(error) if error.kind() == ErrorKind::PermissionDenied && !is_root => return,
        Err(error) => {
            let text = format!("no FastCGI process answers ({error}); every request fails");
            return report.add(Level::Error, path.display(), text);
        }
        Ok((None, _)) if is_root => "it cannot run the check".to_owned(),
        Ok((findings, listener)) => {
            report.add(Level::Ok, path.display(), "a FastCGI process answers");
            let Some(findings) = findings else { return };
            // For a socket of systemd the listener is root.
            let unit = || accounts::find(&inferred::unit_user().filter(|_| is_unit)?);
            let user = if listener == 0 { unit().map(|user| user.uid) } else { Some(listener) };
            match report.merge(&findings, user) {
                Ok(()) => return,
                Err(problem) => problem,
            }
        }
    };
    let text = format!("a FastCGI process of another version answers ({problem}): restart it");
    let fix = Command::of_root("systemctl restart comedor.service".to_owned());
    report.add_with_fix(Level::Error, path.display(), text, is_unit.then_some(fix));
}
