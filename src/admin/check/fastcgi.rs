//! The FastCGI socket: whether it is needed, who may connect, and what the process behind it finds.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Instant;

use rustix::process::geteuid;

use super::report::{Level, Report};
use super::role;
use crate::admin::accounts::{group_name, user_name};
use crate::sys::process::Credentials;

/// The socket of the unit `comedor.socket`.
pub const SOCKET: &str = "/run/comedor/comedor.sock";

/// The section of the guide on who can connect
const GUIDE: &str = "docs/install-special.md#the-socket";

/// A web server and its user.
pub type Client = (String, Credentials);

/// Checks the socket at `path`, which must exist, and adds what the process behind it finds until `end`.
/// `client` is configured to use it.
pub fn check(path: &Path, client: Option<Client>, end: Instant, report: &mut Report) {
    match fs::metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => {
            connections(path, &metadata, client, report);
            findings(path, end, report);
        }
        Ok(_) => report.add(Level::Error, path.display(), "is not a socket"),
        Err(error) => {
            let is_unit = path == Path::new(SOCKET);
            let fix = if is_unit { "; sudo systemctl restart comedor.socket" } else { "" };
            report.add(Level::Error, path.display(), format!("cannot be used: {error}{fix}"));
        }
    }
}

/// Reports who can connect, and if the web server cannot.
fn connections(path: &Path, socket: &Metadata, client: Option<Client>, report: &mut Report) {
    let (owner, group) = (user_name(socket.uid()), group_name(socket.gid()));
    if socket.mode() & 0o002 != 0 {
        let text = format!(
            "every user of this machine can connect and claim to be any client; give it mode 0660 ({GUIDE})"
        );
        return report.add(Level::Error, path.display(), text);
    }
    let mode = socket.mode() & 0o777;
    let text = format!("the web server must be {owner} or in the group {group} (mode {mode:04o})");
    report.add(Level::Ok, path.display(), text);
    let Some((server, user)) = client else { return };
    let needed = if user.uid == socket.uid() {
        0o200
    } else if user.is_member(socket.gid()) {
        0o020
    } else {
        0o002
    };
    if !user.is_root() && socket.mode() & needed == 0 {
        let user = user_name(user.uid);
        let text = format!(
            "{server} runs as {user} without the group {group} and cannot connect, so every request fails \
             ({GUIDE})"
        );
        report.add(Level::Error, path.display(), text);
    }
}

/// Adds the findings of the process behind the socket.
fn findings(path: &Path, end: Instant, report: &mut Report) {
    let problem = match role::ask(path, end) {
        // Only the web server must be able to connect.
        Err(error) if error.kind() == ErrorKind::PermissionDenied && !geteuid().is_root() => return,
        Err(error) => {
            let text = format!("no FastCGI process answers ({error}); every request fails");
            return report.add(Level::Error, path.display(), text);
        }
        Ok(None) if geteuid().is_root() => "it cannot run the check".to_owned(),
        Ok(findings) => {
            report.add(Level::Ok, path.display(), "a FastCGI process answers");
            match findings.map_or(Ok(()), |findings| report.merge(&findings)) {
                Ok(()) => return,
                Err(problem) => problem,
            }
        }
    };
    let restart = match path == Path::new(SOCKET) {
        true => "sudo systemctl restart comedor.service",
        false => "restart it",
    };
    let text = format!("a FastCGI process of another version answers ({problem}): {restart}");
    report.add(Level::Error, path.display(), text);
}
