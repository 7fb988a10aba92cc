//! Processes, from `/proc/PID` (proc(5)).

use std::fs;
use std::path::Path;

use super::reach::entries;
use crate::store::access::Credentials;

/// The capabilities (capabilities(7)) that this process lacks of those with which root saves the files
/// of other users: it sets their owner, reaches them, sets their mode, and takes a lease on them.
pub fn missing_capabilities() -> Vec<&'static str> {
    const NEEDED: [(u32, &str); 4] =
        [(0, "CHOWN"), (1, "DAC_OVERRIDE"), (3, "FOWNER"), (28, "LEASE")];
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    let is_missing = |bit: u32| effective.is_some_and(|bits| bits & 1 << bit == 0);
    NEEDED.into_iter().filter(|(bit, _)| is_missing(*bit)).map(|(_, name)| name).collect()
}

/// The processes of programs whose name `is_wanted`, with the user and groups that each has. Without
/// those of root.
pub fn running(is_wanted: impl Fn(&str) -> bool) -> Vec<(String, Credentials)> {
    let users = entries(Path::new("/proc")).into_iter().filter_map(|process| {
        let status = fs::read_to_string(process.join("status")).ok()?;
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
