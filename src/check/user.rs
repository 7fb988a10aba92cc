//! The user that a process runs as, and what he may do with files.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::{getegid, geteuid, getgroups};

/// A user and his groups.
#[derive(Debug)]
pub struct User {
    uid: u32,
    groups: Vec<u32>,
    /// As `/etc/passwd` has it, else the number
    pub name: String,
    /// The first of his groups, as `/etc/group` has it, else the number
    pub group: String,
}

impl User {
    /// The one of this process.
    pub fn of_process() -> User {
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        let mut groups: Vec<u32> =
            getgroups().unwrap_or_default().into_iter().map(|gid| gid.as_raw()).collect();
        groups.push(gid);
        User { uid, groups, name: name_in("/etc/passwd", uid), group: name_in("/etc/group", gid) }
    }

    /// Whether he is root, to whom nothing is refused.
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// The command that lets his group use `path` with these rights.
    pub fn admit(&self, path: &Path, rights: &str) -> String {
        let (group, path) = (&self.group, quoted(path));
        format!("sudo chgrp {group} {path} && sudo chmod g+{rights} {path}")
    }

    /// Whether he may replace a file without locking its owner out; the rule of the store.
    pub fn may_replace(&self, file: &Metadata) -> bool {
        let is_member = self.groups.contains(&file.gid());
        self.is_root() || is_member && (self.uid == file.uid() || file.mode() & 0o020 != 0)
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
