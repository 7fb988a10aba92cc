//! Runs code in a child process with limits: as another user, what root does not trust; as the same user,
//! a command that may not end. What a child says is data, and must be parsed like any other input.

use std::fs::{self, File};
use std::io::{self, Error, ErrorKind, Read, Write, pipe};
use std::mem::{forget, take};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Gid, Pid, PidfdFlags, Signal, Uid, WaitOptions, kill_process,
    kill_process_group, pidfd_open, set_dumpable_behavior, set_parent_process_death_signal, setsid,
    waitpid,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stdout};
use rustix::thread::{
    CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

use crate::sys::log::printable;
use crate::sys::process::{Credentials, close_others, leave_keyring, run_in_child};
use crate::sys::signals::keep_exit_statuses;

/// The time for a killed child to end. It may not, if the server of a network file system does not answer.
const END: Duration = Duration::from_secs(1);

/// A child that was started. When this is dropped, it can end by itself for a moment, and is then killed.
#[derive(Debug)]
pub struct Running {
    child: Option<Pid>,
    /// What the child says, until it has said all. Polling it tells when [`hear`](Self::hear) does not wait.
    pub pipe: Option<File>,
    said: Vec<u8>,
    /// When it must have ended.
    pub end: Instant,
    size: usize,
}

/// Runs `say` in a child and returns what it wrote to the file, at most `size` bytes. That is also its standard
/// output, so that `say` may execute another program. The child runs as `user`, not root, with all groups, or as
/// the user of this process. All its other files are closed, it is detached from the terminal, and it ends with this
/// call, at `end` at the latest, together with its process group. An error of `say` is the error of the call.
pub fn output(
    user: Option<&Credentials>,
    end: Instant,
    size: usize,
    say: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<Vec<u8>> {
    start(user, end, size, say)?.finish()
}

/// Starts `say` in a child, as [`output`] does.
pub fn start(
    user: Option<&Credentials>,
    end: Instant,
    size: usize,
    say: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<Running> {
    if user.is_some_and(Credentials::is_root) {
        return Err(Error::other("a child for what root does not trust cannot be root"));
    }
    // A thread that has given its answer may not have ended yet.
    let threads_end = Instant::now() + END;
    while fs::read_dir("/proc/self/task")?.count() != 1 {
        if Instant::now() > threads_end {
            return Err(Error::other("a process with several threads cannot start a child"));
        }
        sleep(Duration::from_millis(1));
    }
    keep_exit_statuses();
    let (reader, writer) = pipe()?;
    let child = run_in_child(|| {
        let failed = enter(user, writer.into()).and_then(|mut output| {
            say(&mut output).or_else(|error| write!(output, "\n{error}").and(Err(error)))
        });
        failed.is_err().into()
    })?;
    let (child, pipe) = (Some(child), Some(OwnedFd::from(reader).into()));
    Ok(Running { child, pipe, said: Vec::new(), end, size })
}

/// In the child: gives up the terminal, all files but `output` and, for another user, the rights of root.
fn enter(user: Option<&Credentials>, output: OwnedFd) -> io::Result<File> {
    setsid()?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&output)?;
    dup2_stderr(&null)?;
    forget((null, output));
    close_others()?;
    if let Some(Credentials { uid, gid, groups }) = user {
        let (uid, gid) = (Uid::from_raw(*uid), Gid::from_raw(*gid));
        let groups: Vec<_> = groups.iter().map(|&group| Gid::from_raw(group)).collect();
        leave_keyring()?;
        set_no_new_privs(true)?;
        set_thread_groups(&groups)?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        let none = CapabilitySet::empty();
        let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
        set_capabilities(None, none)?;
        // No other process of this user can attach to it, or read the memory that root has filled.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(stdout().try_clone_to_owned()?.into())
}

impl Running {
    /// Reads a part of what the child says. Returns whether it has said all.
    pub fn hear(&mut self) -> io::Result<bool> {
        let (mut buffer, length) = ([0; 8192], self.said.len());
        let Some(pipe) = &mut self.pipe else { return Ok(true) };
        let read = pipe.read(&mut buffer)?;
        self.said.extend_from_slice(&buffer[..read]);
        if length + read > self.size {
            return Err(Error::other(format!("more than {} bytes", self.size)));
        }
        if read == 0 {
            self.pipe = None;
        }
        Ok(read == 0)
    }

    /// Waits until it has said `word`, at most until `end`. If it ends without it, it has failed.
    pub fn wait_for(mut self, word: &[u8], end: Instant) -> io::Result<Running> {
        while !self.said.starts_with(word) {
            if self.hear_until(end)? {
                self.finish()?;
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self)
    }

    /// All that it has said, when it has ended, which it does now at the latest.
    pub fn finish(mut self) -> io::Result<Vec<u8>> {
        let in_time = self.wait();
        let status = self.stop();
        in_time?;
        if status == Some(0) {
            return Ok(take(&mut self.said));
        }
        // The cause is often not in the last line, which may name a log.
        let said = String::from_utf8_lossy(&self.said);
        let mut lines: Vec<_> =
            said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines.split_off(lines.len().saturating_sub(4)).join("; ");
        let last = if last.is_empty() { "ended without a word" } else { &last };
        Err(Error::other(printable(last)))
    }

    fn wait(&mut self) -> io::Result<()> {
        while !self.hear_until(self.end)? {}
        self.child.map_or(Ok(()), |child| has_ended(child, self.end))
    }

    fn hear_until(&mut self, end: Instant) -> io::Result<bool> {
        self.pipe.as_ref().map_or(Ok(()), |pipe| ready([pipe.as_fd()], end).map(drop))?;
        self.hear()
    }

    /// Kills it with its process group, and returns its exit status.
    fn stop(&mut self) -> Option<i32> {
        let child = self.child.take()?;
        // Until it is waited for, no other process has its id.
        _ = kill_process_group(child, Signal::KILL);
        _ = kill_process(child, Signal::KILL);
        _ = has_ended(child, Instant::now() + END);
        waitpid(Some(child), WaitOptions::NOHANG).ok()??.1.exit_status()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The child can notice this.
        self.pipe = None;
        if let Some(child) = self.child {
            _ = has_ended(child, Instant::now() + END);
        }
        self.stop();
    }
}

/// Waits until a child that was not waited for has ended.
fn has_ended(child: Pid, end: Instant) -> io::Result<()> {
    ready([pidfd_open(child, PidfdFlags::empty())?.as_fd()], end).map(drop)
}

/// Waits until one of the files is readable, which a process is after it has ended. Returns which are.
pub fn ready<'f>(
    files: impl IntoIterator<Item = BorrowedFd<'f>>,
    end: Instant,
) -> io::Result<Vec<bool>> {
    let files = files.into_iter().map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN));
    let mut files: Vec<_> = files.collect();
    loop {
        let rest = end.saturating_duration_since(Instant::now());
        let rest = Timespec::try_from(rest).map_err(Error::other)?;
        match poll(&mut files, Some(&rest)) {
            Ok(0) => return Err(Error::new(ErrorKind::TimedOut, "no answer in time")),
            Ok(_) => return Ok(files.iter().map(|file| !file.revents().is_empty()).collect()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
