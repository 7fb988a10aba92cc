//! The user that a process runs as, and what he may do with files.

use std::fs;
use std::path::Path;

use crate::store::access;

/// A user and his groups.
#[derive(Debug)]
pub struct User {
    pub ids: access::User,
    /// As `/etc/passwd` has it, else the number
    pub name: String,
    /// The first of his groups, as `/etc/group` has it, else the number
    pub group: String,
}

impl User {
    /// The one of this process.
    pub fn of_process() -> User {
        let ids = access::User::of_process();
        let (name, group) = (name_in("/etc/passwd", ids.uid), name_in("/etc/group", ids.gid));
        User { ids, name, group }
    }

    /// The command that lets his group use `path` with these rights.
    pub fn admit(&self, path: &Path, rights: &str) -> String {
        let (group, path) = (&self.group, quoted(path));
        format!("sudo chgrp {group} {path} && sudo chmod g+{rights} {path}")
    }
}

/// The name that goes with a number in `/etc/passwd` or `/etc/group`.
fn name_in(file: &str, id: u32) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut entries = text.lines().map(|line| line.split(':'));
    let name = entries.find_map(|mut fields| {
        let name = fields.next()?;
        (fields.nth(1)? == id.to_string()).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| id.to_string())
}

/// A path as a shell takes it.
pub fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if path.chars().all(plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}
