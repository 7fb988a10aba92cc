//! The FastCGI socket: whether it is needed, who may connect, and what the process behind it finds.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use rustix::process::geteuid;

use super::report::{Level, MAX_DOCUMENT, Report};
use crate::admin::accounts::{group_name, user_name};
use crate::admin::guide::SERVICE;
use crate::admin::limited::limited;
use crate::fastcgi::protocol::PRIVATE;
use crate::fastcgi::record::{self, kind};
use crate::sys::process::Credentials;

/// The socket of the unit `comedor.socket`.
pub const SOCKET: &str = "/run/comedor/comedor.sock";

/// A web server and its user.
pub type Client = (&'static str, Credentials);

/// Checks the socket at `path`, which `client` uses, and adds what the process behind it finds until `end`.
pub fn check(path: &Path, client: Option<Client>, end: Instant, report: &mut Report) {
    connections(path, client, report);
    let is_root = geteuid().is_root();
    let restart = |units| match path == Path::new(SOCKET) {
        true => format!("sudo systemctl restart {units}"),
        false => "restart it".to_owned(),
    };
    match ask(path, end) {
        // Only the web server must be able to connect.
        Err(error) if error.kind() == ErrorKind::PermissionDenied && !is_root => {}
        Err(error) => {
            let restart = restart("comedor.socket comedor.service");
            let text =
                format!("no FastCGI process answers ({error}), so every request fails: {restart}");
            report.add(Level::Error, path.display(), text);
        }
        Ok(findings) => {
            report.add(Level::Ok, path.display(), "a FastCGI process answers");
            // It tells other users nothing more.
            if is_root && let Err(problem) = report.merge(&findings) {
                let restart = restart("comedor.service");
                let text = format!("a process of another version answers ({problem}): {restart}");
                report.add(Level::Error, path.display(), text);
            }
        }
    }
}

/// Reports who can connect, and if the web server cannot.
fn connections(path: &Path, client: Option<Client>, report: &mut Report) {
    let Ok(socket) = fs::metadata(path) else { return };
    if !socket.file_type().is_socket() {
        return report.add(Level::Error, path.display(), "is not a socket");
    }
    let (owner, group) = (user_name(socket.uid()), group_name(socket.gid()));
    if socket.mode() & 0o002 != 0 {
        let text = format!(
            "every user of this machine can connect and claim to be any client; give it mode 0660 ({SERVICE})"
        );
        return report.add(Level::Error, path.display(), text);
    }
    let mode = socket.mode() & 0o777;
    let text = format!("the web server must be {owner} or in the group {group} (mode {mode:04o})");
    report.add(Level::Ok, path.display(), text);
    let Some((server, user)) = client else { return };
    let may_write = match mode {
        _ if user.is_root() => true,
        mode if user.uid == socket.uid() => mode & 0o200 != 0,
        mode => user.is_member(socket.gid()) && mode & 0o020 != 0,
    };
    if !may_write {
        let user = user_name(user.uid);
        let text = format!(
            "{server} runs as {user} without the group {group} and cannot connect, so every request fails \
             ({SERVICE})"
        );
        report.add(Level::Error, path.display(), text);
    }
}

/// Asks the process behind a socket, in the role [`PRIVATE`], for its findings about itself. It tells them root only.
fn ask(path: &Path, end: Instant) -> io::Result<Vec<u8>> {
    let path = path.to_owned();
    let answer = limited(end, move || {
        // This waits if the queue of the socket is full.
        let mut stream = UnixStream::connect(path)?;
        let [role1, role0] = PRIVATE.to_be_bytes();
        let mut question = Vec::new();
        record::push(&mut question, kind::BEGIN_REQUEST, 1, &[role1, role0, 0, 0, 0, 0, 0, 0]);
        stream.write_all(&question)?;
        // Without FCGI_KEEP_CONN, the process closes the connection after its answer.
        let mut answer = Vec::new();
        stream.take(2 * MAX_DOCUMENT as u64).read_to_end(&mut answer)?;
        Ok(answer)
    })?;
    let (mut unread, mut findings) = (&answer[..], Vec::new());
    let not_fastcgi = |_| io::Error::new(ErrorKind::InvalidData, "the answer is not FastCGI");
    while let Some((record, rest)) = record::split_first(unread).map_err(not_fastcgi)? {
        match (record.kind, record.content) {
            (kind::STDOUT, content) => findings.extend_from_slice(content),
            (kind::END_REQUEST, _) => return Ok(findings),
            _ => {}
        }
        unread = rest;
    }
    Err(ErrorKind::UnexpectedEof.into())
}
