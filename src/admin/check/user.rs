//! The user of this process, and whose a file is.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::admin::accounts::user_name;
use crate::sys::process::Credentials;

/// The user of this process.
#[derive(Debug)]
pub struct User {
    pub credentials: Credentials,
    /// The name in `/etc/passwd`, else the number
    pub name: String,
}

impl User {
    pub fn of_process() -> User {
        let credentials = Credentials::of_process();
        User { name: user_name(credentials.uid), credentials }
    }
}

/// Whether this is a container of the released image, which contains only the program. The check runs as
/// the user of the container there.
pub fn is_in_container() -> bool {
    !Path::new("/bin/sh").exists()
}

/// Whose `path` is: only that user, or root, can change its permissions.
pub fn owner_of(path: &Path) -> String {
    let Ok(file) = fs::symlink_metadata(path) else { return String::new() };
    format!("; it belongs to {}, mode {:04o}", user_name(file.uid()), file.mode() & 0o7777)
}

/// Whether this process has the capabilities (capabilities(7)) with which root saves the files of other users: it
/// sets their owner (CHOWN), reaches them (DAC_OVERRIDE), sets their mode (FOWNER), and takes a lease (LEASE).
pub fn is_capable() -> bool {
    const NEEDED: u64 = 1 | 1 << 1 | 1 << 3 | 1 << 28;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    effective.is_none_or(|effective| effective & NEEDED == NEEDED)
}
