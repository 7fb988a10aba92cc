//! How far the user can reach: the folders of a path, their entries, and creating a file.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::thread::gettid;

use super::report::{Level, Report};
use super::user::User;
pub use crate::admin::inferred::entries;
use crate::store::layout;

/// The timeout for a folder to answer.
pub const TIMEOUT: Duration = Duration::from_secs(5);

/// The first part of a path that is missing, not a folder or not accessible to the user
pub struct Obstacle<'p> {
    pub path: &'p Path,
    pub error: io::Error,
}

impl Obstacle<'_> {
    /// Reports that `what`, the folder of `setting`, cannot be reached. A folder outside of the
    /// data may be closed on purpose, so no command is suggested.
    pub fn report(&self, what: &str, setting: &str, user: &User, report: &mut Report) {
        let mode = fs::metadata(self.path).map(|folder| folder.mode() & 0o777);
        let text = match self.error.kind() {
            // systemd.exec(5): ProtectHome= shows another folder instead.
            ErrorKind::PermissionDenied if mode.is_ok_and(|mode| mode == 0) => format!(
                "is closed to {}; if systemd hides it, the service needs ProtectHome=no to reach {what} \
                 ({setting}; docs/install-special.md#the-socket)",
                user.name
            ),
            ErrorKind::PermissionDenied => format!(
                "{} needs execute permission for this folder to reach {what} ({setting}); if the \
                 folder must stay closed, move {what}",
                user.name
            ),
            _ => format!("{}; {setting} must name {what}", self.error),
        };
        report.add(Level::Error, self.path.display(), text);
    }
}

/// Checks that this user can enter `folder` and every folder above it.
pub fn enter(folder: &Path) -> Result<(), Obstacle<'_>> {
    let mut parts: Vec<&Path> = folder.ancestors().collect();
    parts.reverse();
    for path in parts {
        let folder = path.to_owned();
        let check = move || -> io::Result<()> {
            if !fs::metadata(&folder)?.is_dir() {
                return Err(ErrorKind::NotADirectory.into());
            }
            Ok(access(&folder, Access::EXEC_OK)?)
        };
        limited(TIMEOUT, check).map_err(|error| Obstacle { path, error })?;
    }
    Ok(())
}

/// The result of `step`, or an error if it takes too long: if the server of a network file system does
/// not answer, a system call on a file may never return.
pub fn limited<T: Send + 'static>(
    timeout: Duration,
    step: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::Builder::new().spawn(move || sender.send(step()));
    thread.map_err(|error| io::Error::other(format!("cannot start a thread: {error}")))?;
    let no_answer = |_| Err(io::Error::other("the file system does not answer"));
    receiver.recv_timeout(timeout).unwrap_or_else(no_answer)
}

/// Reports that this process cannot write to `folder` because its mount is read-only.
pub fn check_mount(folder: &Path, report: &mut Report) {
    if access(folder, Access::WRITE_OK) == Err(Errno::ROFS) {
        let path = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let text = format!(
            "is read-only for this process, so requests fail; if systemd makes it so, the service needs \
             ReadWritePaths={} (docs/install-special.md#the-socket)",
            path.display()
        );
        report.add(Level::Error, folder.display(), text);
    }
}

/// Creates a file and removes it. It is named like a temporary file, so that a later check reports it if
/// this check is killed, with the number of this thread: a FastCGI process may run two checks. Root only asks:
/// a link in the data may lead anywhere.
pub fn try_to_write(folder: &Path) -> io::Result<()> {
    if geteuid().is_root() {
        return Ok(access(folder, Access::WRITE_OK)?);
    }
    let path = layout::temporary(&folder.join(format!("comedor.check.{}", gettid())));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    let written = file.write_all(b"comedor check\n").and_then(|()| file.sync_all());
    fs::remove_file(&path)?;
    written
}
