//! The user that runs the check, and commands that give this user access.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::store::access::Credentials;

/// The user that this process runs as.
#[derive(Debug)]
pub struct User {
    pub credentials: Credentials,
    /// The name in `/etc/passwd`, else the number
    pub name: String,
    /// The group that commands give access to: the one that shares the data, else the primary one
    pub group: String,
}

impl User {
    /// A command that gives the user's group these permissions for `path`, if it is within `folder`.
    pub fn grant(&self, path: &Path, permissions: &str, folder: &Path) -> Option<String> {
        is_within(path, folder).then(|| {
            let (group, path) = (&self.group, quoted(path));
            format!("sudo chgrp {group} {path} && sudo chmod g+{permissions} {path}")
        })
    }
}

/// Whether `path` is within `folder`, or the folder itself, once symbolic links are followed: chgrp and
/// chmod follow them, and whoever can write the data could lead them elsewhere.
pub fn is_within(path: &Path, folder: &Path) -> bool {
    let (path, folder) = (fs::canonicalize(path), fs::canonicalize(folder));
    path.is_ok_and(|path| folder.is_ok_and(|folder| path.starts_with(folder)))
}

/// `path` quoted for a shell. Control characters and invalid UTF-8 need the form `$'…'`.
pub fn quoted(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    match path.to_str() {
        Some(text) if text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(&b)) => {
            text.to_owned()
        }
        Some(text) if !text.contains(char::is_control) => {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
        _ => format!("$'{}'", bytes.escape_ascii()),
    }
}
