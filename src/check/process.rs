//! The processes of other programs, from `/proc/PID/status` (proc(5)).

use std::fs;

use crate::store::access::Credentials;

/// The processes of programs whose name `is_wanted`, with the user and groups that each has. Without
/// those of root.
pub fn running(is_wanted: impl Fn(&str) -> bool) -> Vec<(String, Credentials)> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let users = processes.filter_map(|process| {
        let status = fs::read_to_string(process.path().join("status")).ok()?;
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let numbers = |name| {
            let words = field(name)?.split_whitespace();
            words.map(|word| word.parse().ok()).collect::<Option<Vec<u32>>>()
        };
        let name = field("Name:").filter(|name| is_wanted(name))?;
        // Real, effective, saved and file system id
        let (uid, gid) = (*numbers("Uid:")?.get(1)?, *numbers("Gid:")?.get(1)?);
        Some((name.to_owned(), Credentials { uid, gid, groups: numbers("Groups:")? }))
    });
    users.filter(|(_, user)| !user.is_root()).collect()
}
