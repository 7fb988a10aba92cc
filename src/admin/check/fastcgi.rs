//! The FastCGI socket: whether it is needed, who may connect, and what the process behind it finds.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::geteuid;

use super::report::{Level, MAX_DOCUMENT, Report};
use crate::admin::accounts::{group_name, user_name};
use crate::admin::guide::SERVICE;
use crate::admin::limited::limited;
use crate::fastcgi::protocol::{PRIVATE, Status};
use crate::fastcgi::record::{self, kind};
use crate::sys::process::Credentials;

/// The socket of the unit `comedor.socket`.
pub const SOCKET: &str = "/run/comedor/comedor.sock";

/// The maximum time for a process to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

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
            "every user of this machine can connect and claim to be any client; give it mode 0660 ({SERVICE})"
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
             ({SERVICE})"
        );
        report.add(Level::Error, path.display(), text);
    }
}

/// Adds the findings of the process behind the socket.
fn findings(path: &Path, end: Instant, report: &mut Report) {
    let problem = match ask(path, end) {
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

/// Asks the process behind a socket in the role [`PRIVATE`] for its findings about itself. `None` if it does not
/// know the role, or does not grant it to this user.
fn ask(path: &Path, end: Instant) -> io::Result<Option<Vec<u8>>> {
    let path = path.to_owned();
    // This waits if the queue of the socket is full.
    let connected_until = end.min(Instant::now() + CONNECT_TIMEOUT);
    let mut stream = limited(connected_until, || UnixStream::connect(path))?;
    let answer = limited(end, move || {
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
            (kind::END_REQUEST, &[_, _, _, _, status, ..]) => {
                return Ok((status == Status::RequestComplete as u8).then_some(findings));
            }
            _ => {}
        }
        unread = rest;
    }
    Err(ErrorKind::UnexpectedEof.into())
}
