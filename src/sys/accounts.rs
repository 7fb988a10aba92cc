//! Users and groups by name and number, from `/etc/passwd` and `/etc/group` (passwd(5), group(5)).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";

struct Entry {
    name: String,
    id: u32,
}

/// Whether this machine has accounts. In a container of the released image there are none.
pub fn exist() -> bool {
    Path::new(USERS).exists()
}

/// The name of the user, else the number.
pub fn user_name(uid: u32) -> String {
    name_of(USERS, uid).unwrap_or_else(|| uid.to_string())
}

/// The name and number of the user, `www-data (33)`, or the number of one without a name.
pub fn user(uid: u32) -> String {
    name_and_number(USERS, uid)
}

/// The same of the group.
pub fn group(gid: u32) -> String {
    name_and_number(GROUPS, gid)
}

fn name_and_number(file: &str, id: u32) -> String {
    name_of(file, id).map_or_else(|| id.to_string(), |name| format!("{name} ({id})"))
}

/// The number of the group `name`.
pub fn group_id(name: &str) -> Option<u32> {
    entries(GROUPS)
        .into_iter()
        .find(|group| group.name == name)
        .map(|group| group.id)
}

/// The owner and mode of `path`, as text after a sentence: only that user, or root, can change its permissions.
pub fn owner_of(path: &Path) -> String {
    let Ok(file) = fs::symlink_metadata(path) else {
        return String::new();
    };
    format!(
        "; it belongs to {}, mode {:04o}",
        user_name(file.uid()),
        file.mode() & 0o7777
    )
}

fn name_of(file: &str, id: u32) -> Option<String> {
    let entry = entries(file).into_iter().find(|entry| entry.id == id)?;
    Some(entry.name)
}

fn entries(file: &str) -> Vec<Entry> {
    // The full name of a user may have another encoding.
    let text = fs::read(file).unwrap_or_default();
    let entry = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let id = fields.nth(1)?.parse().ok()?;
        Some(Entry { name, id })
    };
    String::from_utf8_lossy(&text)
        .lines()
        .filter_map(entry)
        .collect()
}
