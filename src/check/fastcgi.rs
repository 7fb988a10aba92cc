//! The FastCGI socket: who may connect, and whether a process answers.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::report::{Level, Report};
use super::user::{User, quoted};
use crate::fastcgi::probe;

/// The socket of the unit `comedor.socket`.
pub const SOCKET: &str = "/run/comedor/comedor.sock";

/// Checks the socket at `path`. A missing [`SOCKET`] is not reported: CGI does not need it.
pub fn check(path: &Path, user: &User, report: &mut Report) {
    let about = path.display();
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound && path == Path::new(SOCKET) => return,
        Err(error) => {
            return report.add(Level::Error, about, format!("cannot be used: {error}"));
        }
    };
    if !metadata.file_type().is_socket() {
        return report.add(Level::Error, about, "is not a socket");
    }
    let (owner, group) = User::names(metadata.uid(), metadata.gid());
    if metadata.mode() & 0o002 != 0 {
        let text = "every user of this machine can connect and claim to be any client";
        let fix = format!("sudo chmod o-rwx {}", quoted(path));
        report.add_with_fix(Level::Error, path.display(), text, fix);
    } else {
        let text = format!("the user {owner} and the group {group} can connect");
        report.add(Level::Ok, path.display(), text);
    }
    match probe(path) {
        Ok(()) => report.add(Level::Ok, path.display(), "a FastCGI process answers"),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let text = format!("{} cannot connect; the web server must be able to", user.name);
            report.add(Level::Warning, path.display(), text);
        }
        Err(error) => {
            let text = format!("no FastCGI process answers ({error}); every request fails");
            report.add(Level::Error, path.display(), text);
        }
    }
}
