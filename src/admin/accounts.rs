//! Users and groups by name and number, from `/etc/passwd` and `/etc/group` (passwd(5), group(5)).

use std::fs;

use crate::store::access::Credentials;

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

/// The user `name`, with the groups that a login would have.
pub fn find(name: &str) -> Option<Credentials> {
    let (_, uid, gid) = entries(USERS).into_iter().find(|(known, ..)| known == name)?;
    let groups = entries(GROUPS).into_iter().filter(|(.., members)| lists(members, name));
    let groups = groups.map(|(_, gid, _)| gid).collect();
    Some(Credentials { uid, gid: gid.parse().ok()?, groups })
}

/// The user and the groups of the process `id`.
pub fn of_process(id: &str) -> Option<Credentials> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let numbers = |field| {
        let words = status.lines().find_map(|line| line.strip_prefix(field))?.split_whitespace();
        words.map(|word| word.parse().ok()).collect::<Option<Vec<u32>>>()
    };
    // Real, effective, saved and file system id
    let (uid, gid) = (*numbers("Uid:")?.get(1)?, *numbers("Gid:")?.get(1)?);
    Some(Credentials { uid, gid, groups: numbers("Groups:")? })
}

/// The users that have the group `gid`.
pub fn members(gid: u32) -> Vec<u32> {
    let groups = entries(GROUPS).into_iter().filter(|(_, number, _)| *number == gid);
    let listed: Vec<String> = groups.map(|(.., members)| members).collect();
    let is_member = |(name, _, first): &(String, u32, String)| {
        *first == gid.to_string() || listed.iter().any(|members| lists(members, name))
    };
    entries(USERS).into_iter().filter(is_member).map(|(_, uid, _)| uid).collect()
}

fn lists(members: &str, name: &str) -> bool {
    members.split(',').any(|member| member == name)
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
