//! Files that exist for a moment, created with the rights of another user: a page beside the script, a session.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::process::{fchdir, set_parent_process_death_signal};

use crate::admin::child::{self, Running, ready};
use crate::sys::process::Credentials;

/// The time that a file exists at most.
pub const LIFE: Duration = Duration::from_secs(60);

/// The time to create it.
const START: Duration = Duration::from_secs(5);

/// What the child says when the file is complete.
const DONE: &[u8] = b"done";

/// A file. A child removes it when this value is dropped, or this process ends in any way: then their pipe closes.
#[derive(Debug)]
pub struct BriefFile {
    _child: Running,
}

impl BriefFile {
    /// Creates the file with this content and mode, in its folder, opened as `links` says, where `prepare` runs first.
    pub fn create(
        path: PathBuf,
        user: Credentials,
        (text, mode): (&str, u32),
        links: ResolveFlags,
        prepare: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<BriefFile> {
        let (folder, name) = path.parent().zip(path.file_name()).ok_or(ErrorKind::NotFound)?;
        let user = Some(&user).filter(|user| !user.is_root());
        let child = child::start(user, Instant::now() + LIFE, 1000, |out| {
            set_parent_process_death_signal(None)?;
            // A folder of sessions may be closed for reading.
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            fchdir(openat2(CWD, folder, flags, Mode::empty(), links)?)?;
            prepare()?;
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(name)?;
            let mut write_and_wait = || {
                file.write_all(text.as_bytes())?;
                file.set_permissions(Permissions::from_mode(mode))?;
                out.write_all(DONE)?;
                // This end is never readable, so this waits until the other one is closed.
                ready([out.as_fd()], Instant::now() + LIFE).map(drop)
            };
            let written = write_and_wait();
            fs::remove_file(name)?;
            written
        })?;
        Ok(BriefFile { _child: child.wait_for(DONE, Instant::now() + START)? })
    }
}
