//! Child processes and users of processes.
#![allow(unsafe_code)]

use std::fs;
use std::io;
use std::process::exit;

use rustix::process::{Pid, getegid, geteuid, getgid, getgroups, getuid};

use rustix::thread::{CapabilitySet, capabilities};

use super::or_errno;

/// The user and groups of a process (credentials(7)).
#[derive(Clone, Debug)]
pub struct Credentials {
    pub uid: u32,
    pub gid: u32,
    /// Supplementary groups
    pub groups: Vec<u32>,
    /// Whether it may give a file to another user (CAP_CHOWN, capabilities(7))
    pub may_give_away: bool,
}

impl Credentials {
    /// The effective user of this process.
    pub fn of_process() -> Credentials {
        let groups = getgroups().unwrap_or_default();
        let uid = geteuid().as_raw();
        let has_capability =
            || capabilities(None).is_ok_and(|own| own.effective.contains(CapabilitySet::CHOWN));
        Credentials {
            uid,
            gid: getegid().as_raw(),
            groups: groups.into_iter().map(|gid| gid.as_raw()).collect(),
            may_give_away: uid == 0 && has_capability(),
        }
    }

    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// Whether the group `gid` is one of the user's.
    pub fn is_member(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }
}

/// Whether this user and group have numbers in the user namespace of this process (user_namespaces(7)). No file can be
/// given to others.
pub fn have_numbers(uid: u32, gid: u32) -> bool {
    is_in_map("/proc/self/uid_map", uid) && is_in_map("/proc/self/gid_map", gid)
}

/// Whether `id` is in one of the ranges in `file`: the first number inside, the first outside, and their count.
fn is_in_map(file: &str, id: u32) -> bool {
    let Ok(map) = fs::read_to_string(file) else {
        return true;
    };
    map.lines().any(|range| {
        let mut numbers = range.split_whitespace().map(str::parse);
        let (Some(Ok(first)), Some(Ok(count))) = (numbers.next(), numbers.nth(1)) else {
            return false;
        };
        id.checked_sub(first)
            .is_some_and(|offset: u32| offset < count)
    })
}

/// The umask of this process (umask(2) would change it). `None` before Linux 4.7, or without /proc.
pub fn umask() -> Option<u32> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let umask = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(umask.trim(), 8).ok()
}

/// Runs `run` in a child process (fork(2)), which exits with the status that it returns. The caller must be
/// the only thread of the process.
pub fn run_in_child(run: impl FnOnce() -> i32) -> io::Result<Pid> {
    // SAFETY: with a single thread, the child is a complete copy.
    match Pid::from_raw(or_errno(unsafe { libc::fork() })?) {
        Some(child) => Ok(child),
        None => exit(run()),
    }
}

/// Whether the file of the program gives this process another user or group than its caller has
/// (execve(2)). AT_SECURE alone is not enough: SELinux sets it for the CGI programs of Apache.
pub fn is_set_user_id() -> bool {
    // SAFETY: it reads a value that the kernel has put on the stack.
    let is_secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    is_secure && (getuid() != geteuid() || getgid() != getegid())
}
