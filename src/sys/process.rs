//! Child processes, limits and users of processes.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::process::exit;

use rustix::process::{Pid, getegid, geteuid, getgid, getgroups, getuid};

use super::check;

/// The user and groups of a process (credentials(7)).
#[derive(Clone, Debug)]
pub struct Credentials {
    pub uid: u32,
    pub gid: u32,
    /// Supplementary groups
    pub groups: Vec<u32>,
}

impl Credentials {
    /// The effective user of this process.
    pub fn of_process() -> Credentials {
        let groups = getgroups().unwrap_or_default();
        Credentials {
            uid: geteuid().as_raw(),
            gid: getegid().as_raw(),
            groups: groups.into_iter().map(|gid| gid.as_raw()).collect(),
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

/// Runs `run` in a child process (fork(2)), which exits with the status that it returns. The caller must be
/// the only thread of the process.
pub fn run_in_child(run: impl FnOnce() -> i32) -> io::Result<Pid> {
    // SAFETY: with a single thread, the child is a complete copy.
    match Pid::from_raw(check(unsafe { libc::fork() })?) {
        Some(child) => Ok(child),
        None => exit(run()),
    }
}

/// Closes all files but the standard streams, in a child of [`run_in_child`] (close_range(2), Linux 5.9).
pub fn close_others() -> io::Result<()> {
    // SAFETY: the values of the parent that own these files are not dropped in the child, which exits.
    check(unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) } as _).map(drop)
}

/// Raises the limit of open files to `needed`, as far as this process may (getrlimit(2)). Returns the limit.
pub fn raise_open_files(needed: usize) -> io::Result<usize> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the calls read or write the structure, and keep no pointer to it.
    unsafe {
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit))?;
        if limit.rlim_cur < needed as u64 {
            let raised = libc::rlimit { rlim_cur: limit.rlim_max.min(needed as u64), ..limit };
            if libc::setrlimit(libc::RLIMIT_NOFILE, &raised) == 0 {
                limit = raised;
            }
        }
    }
    Ok(usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX))
}

/// Gives up the session keyring that this process has from its parent (keyctl(2)).
pub fn leave_keyring() -> io::Result<()> {
    const JOIN_SESSION_KEYRING: libc::c_int = 1;
    let none = std::ptr::null_mut::<libc::c_char>();
    // SAFETY: without a name the call reads no memory.
    match check(unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, none) } as _) {
        // The kernel, or the filter of a container, has no keyrings.
        Err(error) if ![libc::ENOSYS, libc::EPERM].contains(&error.raw_os_error().unwrap_or(0)) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// The process at the other end of a Unix socket, its user and group (unix(7), SO_PEERCRED). The type of rustix
/// cannot hold the id 0 of a process in another namespace.
pub fn peer(socket: impl AsFd) -> io::Result<libc::ucred> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut size = size_of_val(&peer) as libc::socklen_t;
    // SAFETY: the call writes at most `size` bytes of `peer`, which any bytes are valid for.
    check(unsafe {
        let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
        let socket = socket.as_fd().as_raw_fd();
        libc::getsockopt(socket, level, option, (&raw mut peer).cast(), &mut size)
    })?;
    Ok(peer)
}

/// Whether the file of the program gives this process another user or group than that of its caller
/// (execve(2)). AT_SECURE alone is not enough: SELinux sets it for the CGI programs of Apache.
pub fn is_set_user_id() -> bool {
    // SAFETY: it reads a value that the kernel has put on the stack.
    let is_secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    is_secure && (getuid() != geteuid() || getgid() != getegid())
}
