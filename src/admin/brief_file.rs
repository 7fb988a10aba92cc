//! Files that exist for a moment, created with the rights of another user: a page beside the script, a session.

use std::fs::File;
use std::io::{self, Error, ErrorKind, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, fchmod, openat, openat2, unlinkat};
use rustix::process::set_parent_process_death_signal;

use crate::admin::child::{Child, Running};
use crate::sys::process::Credentials;

/// The time that a file exists at most.
pub const LIFE: Duration = Duration::from_secs(60);

/// The time to create it.
const START: Duration = Duration::from_secs(5);

/// What the child says when the file is complete.
const DONE: &[u8] = b"done";

/// A file. A child removes it when this value is dropped, or this process ends in any way: then their pipe closes.
#[derive(Debug)]
pub struct BriefFile(Running);

impl BriefFile {
    /// Creates the file with this content and mode. The folder of `path` is opened as `links` says, and then
    /// looked at by `prepare`.
    pub fn create(
        path: PathBuf,
        user: Credentials,
        (text, mode): (&str, u32),
        links: ResolveFlags,
        prepare: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<BriefFile> {
        let (folder, name) = path.parent().zip(path.file_name()).ok_or(ErrorKind::NotFound)?;
        let user = Some(&user).filter(|user| !user.is_root());
        let child = Child { user, time: LIFE, size: 1000 };
        let child = child.start(|out| {
            set_parent_process_death_signal(None)?;
            // A folder of sessions may be closed for reading.
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = File::from(openat2(CWD, folder, flags, Mode::empty(), links)?);
            prepare(&folder)?;
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(&folder, name, flags, Mode::from(0o600))?);
            let mut write_and_wait = || {
                file.write_all(text.as_bytes())?;
                fchmod(&file, Mode::from(mode))?;
                out.write_all(DONE)?;
                // Without other events, this waits until the other end is closed.
                let life = Timespec::try_from(LIFE).map_err(Error::other)?;
                Ok(poll(&mut [PollFd::new(out, PollFlags::empty())], Some(&life)).map(drop)?)
            };
            let written = write_and_wait();
            unlinkat(&folder, name, AtFlags::empty())?;
            written
        })?;
        Ok(BriefFile(child.wait_for(DONE, Instant::now() + START)?))
    }
}

impl Drop for BriefFile {
    fn drop(&mut self) {
        self.0.release();
    }
}
