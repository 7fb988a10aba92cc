//! The listening socket: inherited as standard input (FCGI_LISTENSOCK_FILENO, §2.2), or bound to a
//! path.
//!
//! Only a Unix socket with a path is accepted: the permissions of its file limit who can connect. A
//! TCP port and an abstract Unix socket have no permissions, and a process that connects can claim
//! to be any client.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Error, ErrorKind, stdin};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, fchmod};
use rustix::io::Errno;
use rustix::net::sockopt::socket_acceptconn;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use crate::sys::file_id::FileId;
use crate::sys::lock::Lock;
use crate::sys::waits::Waits;

/// The mode of the socket's file: its owner and its group can connect.
const MODE: u32 = 0o660;

/// The maximum number of connections that wait to be accepted: the default of net.core.somaxconn, to which the kernel
/// limits it (listen(2)).
const BACKLOG: i32 = 4096;

/// The timeout of the lock, which another starting process holds for a few milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

const NO_FILE: &str = "the listening socket is not a Unix socket with a path: only the permissions of \
     its file can limit who connects, and a process that connects can claim to be any client";

/// A listening Unix socket.
#[derive(Debug)]
pub struct Socket {
    pub(super) listener: UnixListener,
    /// The file, if this process created it and must remove it
    file: Option<(PathBuf, FileId)>,
}

impl Socket {
    /// Standard input, if that is a listening socket.
    pub fn inherited() -> io::Result<Option<Socket>> {
        if socket_acceptconn(stdin()) != Ok(true) {
            return Ok(None);
        }
        let listener = UnixListener::from(stdin().as_fd().try_clone_to_owned()?);
        match listener.local_addr() {
            Ok(address) if address.as_pathname().is_some() => Ok(Some(Socket {
                listener,
                file: None,
            })),
            // The address of a TCP socket is of another type.
            _ => Err(Error::new(ErrorKind::Unsupported, NO_FILE)),
        }
    }

    /// Creates the socket at `path`, with mode 0660. Replaces the file of a socket that no process
    /// listens on.
    pub fn bind(path: &Path) -> io::Result<Socket> {
        let _lock = lock(path)?;
        remove_unused(path)?;
        let socket = socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        // Linux makes the file with the descriptor's mode less the umask (unix_bind_bsd in
        // net/unix/af_unix.c), so that it never has more permissions than these.
        fchmod(&socket, Mode::from_raw_mode(MODE))?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        fs::set_permissions(path, Permissions::from_mode(MODE))?;
        listen(&socket, BACKLOG)?;
        let id = FileId::of(&fs::symlink_metadata(path)?);
        Ok(Socket {
            listener: socket.into(),
            file: Some((path.to_owned(), id)),
        })
    }

    /// Whether [`bind`](Self::bind) created the socket: then no process can connect after the stop.
    pub(super) fn is_own(&self) -> bool {
        self.file.is_some()
    }

    /// Removes the socket's file, if [`bind`](Self::bind) created it. Then no new process can
    /// connect.
    pub(super) fn withdraw(&self) {
        if let Some((path, id)) = &self.file
            && fs::symlink_metadata(path).is_ok_and(|found| FileId::of(&found) == *id)
        {
            _ = fs::remove_file(path);
        }
    }
}

/// Locks the file `.lock` beside the socket, as Wayland's compositors do (`wl_socket_lock`): two processes that start at the
/// same time must not both replace the file of the socket. Only its owner can open it, unlike the folder, which any user
/// may be able to lock. It stays, since another process may have it open.
fn lock(path: &Path) -> io::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags.bits() as i32)
        .open(&name)
        .map_err(|error| Error::new(error.kind(), format!("{}: {error}", name.display())))?;
    if Lock::Exclusive.acquire(&file, &mut { LOCK_TIMEOUT }, Waits::ALWAYS)? {
        Ok(file)
    } else {
        let problem = format!("{} is locked by another process", name.display());
        Err(Error::new(ErrorKind::TimedOut, problem))
    }
}

/// Removes the socket at `path`, if there is one and no process listens on it.
fn remove_unused(path: &Path) -> io::Result<()> {
    // The socket does not block: the queue of the other process may be full.
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&socket, &SocketAddrUnix::new(path)?) {
        Err(Errno::NOENT) if !path.is_symlink() => Ok(()),
        Err(Errno::CONNREFUSED) if fs::symlink_metadata(path)?.file_type().is_socket() => {
            fs::remove_file(path)
        }
        Err(Errno::NOENT | Errno::CONNREFUSED) => Err(Error::new(
            ErrorKind::AlreadyExists,
            "the file exists and is not a socket",
        )),
        Ok(()) | Err(Errno::AGAIN) => Err(Error::new(
            ErrorKind::AddrInUse,
            "another process listens on this socket",
        )),
        Err(error) => Err(error.into()),
    }
}
