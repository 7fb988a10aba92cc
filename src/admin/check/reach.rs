//! How far the user can reach: the folders of a path, their entries, and creating a file.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{Access, access};
use rustix::process::geteuid;
use rustix::thread::gettid;

use super::guide;
use super::report::{Level, Report};
use crate::admin::accounts::{owner_of, user_name};
use crate::admin::limited::limited;
use crate::store::layout;
use crate::sys::process::Credentials;

/// The section of the guide on what the service may reach
const SANDBOX: &str = "docs/install-special.md#the-socket";

/// The entries of a folder that are looked at: a school has some hundred aularios.
pub const MAX_ENTRIES: usize = 10_000;

/// The first part of a path that is missing, not a folder or not accessible to the user
pub struct Obstacle<'p> {
    pub path: &'p Path,
    pub error: io::Error,
}

impl Obstacle<'_> {
    /// Reports that `what`, of `setting`, cannot be reached.
    pub fn report(&self, what: &str, setting: &str, user: &Credentials, report: &mut Report) {
        let Obstacle { path, error } = self;
        let is_hidden = || fs::metadata(path).is_ok_and(|folder| folder.mode() & 0o777 == 0);
        let help = match guide::help(error) {
            // Its file system may not answer.
            "" => String::new(),
            // systemd.exec(5): ProtectHome= shows another folder instead.
            _ if is_hidden() => format!("; if systemd hides it, set ProtectHome=no ({SANDBOX})"),
            help => owner_of(path) + help,
        };
        let text =
            format!("{} cannot reach {what} ({setting}): {error}{help}", user_name(user.uid));
        report.add(Level::Error, path.display(), text);
    }
}

/// Checks that this user can enter `folder` and every folder above it, which must answer before `end`.
pub fn enter(folder: &Path, end: Instant) -> Result<(), Obstacle<'_>> {
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
        limited(end, check).map_err(|error| Obstacle { path, error })?;
    }
    Ok(())
}

/// Creates a file and removes it. It is named like a temporary file, with the number of this thread: a FastCGI
/// process may run two checks. Root only asks: a link in the data may lead anywhere.
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

/// The entries of `folder`, sorted; none if it cannot be listed, and one more than [`MAX_ENTRIES`] if it has
/// others.
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_ENTRIES + 1);
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
