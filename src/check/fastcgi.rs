//! The FastCGI socket: whether it is needed, who may connect, and whether a process answers.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::process::running;
use super::report::{Level, Report};
use super::user::quoted;
use crate::accounts::{group_name, user_name};
use crate::fastcgi::probe;
use crate::store::access::Credentials;

/// The socket of the unit `comedor.socket`.
const SOCKET: &str = "/run/comedor/comedor.sock";

/// Where `docs/install.md` puts the configurations that name [`SOCKET`].
const CONFIGURATIONS: [&str; 4] = [
    "/etc/apache2/conf-enabled/comedor.conf",
    "/etc/apache2/conf-enabled/comedor-fastcgi.conf",
    "/etc/caddy/comedor.caddyfile",
    "/etc/nginx/snippets/comedor.conf",
];

const SERVERS: [&str; 5] = ["apache2", "caddy", "frankenphp", "lighttpd", "nginx"];

/// Checks the socket at `path`, else [`SOCKET`] if it exists or a web server is configured for it.
pub fn check(path: Option<PathBuf>, report: &mut Report) {
    let is_wanted = path.is_some();
    let path = path.unwrap_or_else(|| PathBuf::from(SOCKET));
    let about = path.display();
    let metadata = match fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound && !is_wanted => {
            return missing(report);
        }
        Err(error) => {
            return report.add(Level::Error, about, format!("cannot be used: {error}"));
        }
    };
    if !metadata.file_type().is_socket() {
        return report.add(Level::Error, about, "is not a socket");
    }
    if metadata.mode() & 0o002 != 0 {
        let text = "every user of this machine can connect and claim to be any client";
        let fix = format!("sudo chmod o-rwx {}", quoted(&path));
        report.add_with_fix(Level::Error, about, text, fix);
    } else {
        let (owner, group) = (user_name(metadata.uid()), group_name(metadata.gid()));
        let text = format!("the user {owner} and the group {group} can connect");
        report.add(Level::Ok, about, text);
        web_servers(&path, &metadata, report);
    }
    match probe(&path) {
        Ok(()) => report.add(Level::Ok, path.display(), "a FastCGI process answers"),
        // Only the web server must be able to connect.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
        Err(error) => {
            let text = format!("no FastCGI process answers ({error}); every request fails");
            report.add(Level::Error, path.display(), text);
        }
    }
}

/// Reports that [`SOCKET`] does not exist, if a configuration names it. CGI does not need it.
fn missing(report: &mut Report) {
    let names_it = |file: &&&str| fs::read_to_string(file).is_ok_and(|text| text.contains(SOCKET));
    if let Some(file) = CONFIGURATIONS.iter().find(names_it) {
        let text = format!("does not exist, and {file} names it, so every request fails");
        let fix = "sudo systemctl enable --now comedor.socket".to_owned();
        report.add_with_fix(Level::Error, SOCKET, text, fix);
    }
}

/// Reports if web servers run here and none of them can connect. A process keeps the groups that
/// its user had when it was started.
fn web_servers(path: &Path, socket: &Metadata, report: &mut Report) {
    let may_connect = |user: &Credentials| {
        let needed = if user.uid == socket.uid() {
            0o200
        } else if user.is_member(socket.gid()) {
            0o020
        } else {
            0o002
        };
        socket.mode() & needed != 0
    };
    let servers = running(|name| SERVERS.contains(&name));
    let Some((server, user)) = servers.first() else { return };
    if servers.iter().any(|(_, user)| may_connect(user)) {
        return;
    }
    let (user, group) = (user_name(user.uid), group_name(socket.gid()));
    let text = format!(
        "{server} runs as {user} without the group {group} and cannot connect, so every request fails"
    );
    let fix = format!("sudo usermod -aG {group} {user} && sudo systemctl restart {server}");
    let fix = (socket.gid() != 0 && socket.mode() & 0o020 != 0).then_some(fix);
    report.add_with_fix(Level::Error, path.display(), text, fix);
}
