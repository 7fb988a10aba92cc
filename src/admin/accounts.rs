//! Users and groups by name and number, from `/etc/passwd` and `/etc/group` (passwd(5), group(5)).

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, io};

use crate::sys::process::Credentials;

const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";

/// The name of the user, else the number.
pub fn user_name(uid: u32) -> String {
    name_in(USERS, uid).unwrap_or_else(|| uid.to_string())
}

/// The name of the group, else the number.
pub fn group_name(gid: u32) -> String {
    name_in(GROUPS, gid).unwrap_or_else(|| gid.to_string())
}

/// Whose `path` is, as text after a sentence: only that user, or root, can change its permissions.
pub fn owner_of(path: &Path) -> String {
    let Ok(file) = fs::symlink_metadata(path) else { return String::new() };
    format!("; it belongs to {}, mode {:04o}", user_name(file.uid()), file.mode() & 0o7777)
}

/// The user `name`, with the groups that a login would have.
pub fn find(name: &str) -> Option<Credentials> {
    let (_, uid, gid) = entries(USERS).into_iter().find(|(known, ..)| known == name)?;
    let mut groups = entries(GROUPS);
    groups.retain(|(.., members)| members.split(',').any(|member| member == name));
    let groups = groups.into_iter().map(|(_, gid, _)| gid).collect();
    Some(Credentials { uid, gid: gid.parse().ok()?, groups })
}

/// The user and the groups of the process `id`.
pub fn of_process(id: &str) -> Option<Credentials> {
    let [uids, gids, groups] = ids_of_process(id)?;
    Some(Credentials { uid: *uids.get(1)?, gid: *gids.get(1)?, groups })
}

/// The user and group ids of the process `id`, each real, effective, saved and of the file system; its other groups.
fn ids_of_process(id: &str) -> Option<[Vec<u32>; 3]> {
    // The name of a process may have another encoding.
    let status = fs::read(format!("/proc/{id}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let ids = |field| {
        let words = status.lines().find_map(|line| line.strip_prefix(field))?.split_whitespace();
        words.map(|word| word.parse().ok()).collect::<Option<_>>()
    };
    Some([ids("Uid:")?, ids("Gid:")?, ids("Groups:")?])
}

/// A user and a group that no account and no process has, so that no other process can look into one of this user.
pub fn unused() -> io::Result<Credentials> {
    let mut taken = BTreeSet::new();
    for (_, id, next) in entries(USERS).into_iter().chain(entries(GROUPS)) {
        // The group of a user, and the members of a group
        taken.extend([id].into_iter().chain(next.parse().ok()));
    }
    for process in fs::read_dir("/proc")?.flatten() {
        let ids = process.file_name().to_str().and_then(ids_of_process);
        taken.extend(ids.into_iter().flatten().flatten());
    }
    let id = |map| {
        let map = fs::read_to_string(map)?;
        unused_id(&map, &taken).ok_or_else(|| io::Error::other("every user id is taken"))
    };
    Ok(Credentials {
        uid: id("/proc/self/uid_map")?,
        gid: id("/proc/self/gid_map")?,
        groups: vec![],
    })
}

/// The highest id of the map (user_namespaces(7)) that is not taken and has no meaning of its own: systemd
/// leaves those below 0x7ffe_0000 unused, and 65534 and 65535 are "nobody" and "none" (systemd's UIDS-GIDS).
fn unused_id(map: &str, taken: &BTreeSet<u32>) -> Option<u32> {
    let ids = map.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let first: u32 = words.next()?.parse().ok()?;
        let count: u32 = words.nth(1)?.parse().ok()?;
        Some(first..first.saturating_add(count).min(0x7ffe_0000))
    });
    let is_free = |id: &u32| ![0, 65534, 65535].contains(id) && !taken.contains(id);
    ids.filter_map(|mut ids| ids.rfind(is_free)).max()
}

fn name_in(file: &str, id: u32) -> Option<String> {
    entries(file).into_iter().find(|(_, number, _)| *number == id).map(|(name, ..)| name)
}

/// The entries of `file`: the name, the number and the field after it.
fn entries(file: &str) -> Vec<(String, u32, String)> {
    // The full name of a user may have another encoding.
    let text = fs::read(file).unwrap_or_default();
    let entry = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        Some((name, fields.nth(1)?.parse().ok()?, fields.next()?.to_owned()))
    };
    String::from_utf8_lossy(&text).lines().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unused_id_is_in_the_map_and_nobody_has_it() {
        let all = (0..65536).collect::<BTreeSet<u32>>();
        let but = |free: &[u32]| all.iter().copied().filter(|id| !free.contains(id)).collect();
        for (map, taken, unused) in [
            ("         0          0 4294967295\n", BTreeSet::new(), Some(0x7ffd_ffff)),
            ("0 0 4294967295", BTreeSet::from([0x7ffd_ffff]), Some(0x7ffd_fffe)),
            // An unprivileged container
            ("         0     100000      65536\n", BTreeSet::new(), Some(65533)),
            ("0 100000 65536", BTreeSet::from([65533, 65532]), Some(65531)),
            ("0 100000 65536", but(&[0, 700, 65534, 65535]), Some(700)),
            ("0 100000 65536", but(&[0, 65534, 65535]), None),
            ("0 1000 1\n1 100000 9\n", BTreeSet::from([9]), Some(8)),
            ("0 1000 1", BTreeSet::new(), None),
            ("", BTreeSet::new(), None),
        ] {
            assert_eq!(unused_id(map, &taken), unused, "{map}");
        }
    }
}
