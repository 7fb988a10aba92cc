//! Runs code in a child process with limits: as another user, what root does not trust; as the same user,
//! a command that may not end. What a child says is data, and must be parsed like any other input.

use std::fs::{self, File};
use std::io::{self, Error, ErrorKind, Read, Write, pipe};
use std::mem::forget;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Gid, PidfdFlags, Signal, Uid, WaitOptions, kill_process, kill_process_group,
    pidfd_open, set_dumpable_behavior, set_parent_process_death_signal, setsid, waitpid,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stdout};
use rustix::thread::{
    CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

use crate::store::access::Credentials;
use crate::sys::log::printable;
use crate::sys::process::{close_others, run_in_child};
use crate::sys::signals::keep_exit_statuses;

/// The time for a killed child to end. It may not, if the server of a network file system does not answer.
const END: Duration = Duration::from_secs(1);

/// The time that this process waits for all processes of other users together: they may stop or take long on
/// purpose. A check of a school takes a few seconds.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for a process of another user by `wait`, which gets what is left of [`PATIENCE`].
pub fn patient<T>(wait: impl FnOnce(Duration) -> T) -> T {
    static WAITED: AtomicU64 = AtomicU64::new(0);
    let start = Instant::now();
    let waited = Duration::from_millis(WAITED.load(Ordering::Relaxed));
    let result = wait(PATIENCE.saturating_sub(waited));
    WAITED.fetch_add(start.elapsed().as_millis() as u64, Ordering::Relaxed);
    result
}

/// The limits of a child.
#[derive(Debug)]
pub struct Child<'c> {
    /// The user that it runs as, not root, with all groups; `None` for the user of this process.
    pub user: Option<&'c Credentials>,
    /// The maximum time until it has ended; for one of another user at most what is left of [`PATIENCE`], or a
    /// second.
    pub time: Duration,
    /// The maximum number of bytes that it says.
    pub size: usize,
}

impl Child<'_> {
    /// Runs `say` in a child and returns what it wrote to the file. That is also its standard output, so
    /// that `say` may execute another program. The child has no terminal and no other file, and ends with
    /// this call, together with its process group. An error of `say` is the error of the call.
    pub fn ask(&self, say: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<Vec<u8>> {
        match self.user {
            // The last one may have to remove a file.
            Some(_) => patient(|rest| self.ask_within(self.time.min(rest.max(END)), say)),
            None => self.ask_within(self.time, say),
        }
    }

    fn ask_within(
        &self,
        time: Duration,
        say: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<Vec<u8>> {
        // A thread that has given its answer may not have ended yet.
        let end = Instant::now() + END;
        while fs::read_dir("/proc/self/task")?.count() != 1 {
            if Instant::now() > end {
                return Err(Error::other("a process with several threads cannot start a child"));
            }
            sleep(Duration::from_millis(1));
        }
        keep_exit_statuses();
        let (reader, writer) = pipe()?;
        let child = run_in_child(|| {
            let failed = self.enter(writer.into()).and_then(|mut output| {
                say(&mut output).or_else(|error| write!(output, "\n{error}").and(Err(error)))
            });
            failed.is_err().into()
        })?;
        let end = Instant::now() + time;
        let process = pidfd_open(child, PidfdFlags::empty());
        let said = match &process {
            Ok(process) => self
                .listen(OwnedFd::from(reader).into(), end)
                .and_then(|said| wait(process, end).map(|()| said)),
            Err(error) => Err((*error).into()),
        };
        // Until it is waited for, no other process has its id.
        _ = kill_process_group(child, Signal::KILL);
        _ = kill_process(child, Signal::KILL);
        _ = process.map(|process| wait(&process, Instant::now() + END));
        let ended = waitpid(Some(child), WaitOptions::NOHANG)?;
        let said = said?;
        match ended.and_then(|(_, status)| status.exit_status()) {
            Some(0) => Ok(said),
            _ => {
                // The cause is often not in the last line, which may name a log.
                let said = String::from_utf8_lossy(&said);
                let mut lines: Vec<_> =
                    said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
                let last = lines.split_off(lines.len().saturating_sub(4)).join("; ");
                let last = if last.is_empty() { "ended without a word" } else { &last };
                Err(Error::other(printable(last)))
            }
        }
    }

    /// In the child: gives up the terminal, all files but `output` and, for another user, the rights of root.
    fn enter(&self, output: OwnedFd) -> io::Result<File> {
        setsid()?;
        let null = File::options().read(true).write(true).open("/dev/null")?;
        dup2_stdin(&null)?;
        dup2_stdout(&output)?;
        dup2_stderr(&null)?;
        forget((null, output));
        close_others()?;
        if let Some(Credentials { uid, gid, groups }) = self.user {
            if *uid == 0 {
                return Err(Error::other("a child for what root does not trust cannot be root"));
            }
            let (uid, gid) = (Uid::from_raw(*uid), Gid::from_raw(*gid));
            let groups: Vec<_> = groups.iter().map(|&group| Gid::from_raw(group)).collect();
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

    /// Reads what the child says.
    fn listen(&self, mut reader: File, end: Instant) -> io::Result<Vec<u8>> {
        let (mut said, mut buffer) = (Vec::new(), [0; 8192]);
        loop {
            wait(&reader, end)?;
            let length = reader.read(&mut buffer)?;
            if length == 0 {
                return Ok(said);
            }
            said.extend_from_slice(&buffer[..length]);
            if said.len() > self.size {
                return Err(Error::other(format!("more than {} bytes", self.size)));
            }
        }
    }
}

/// Waits until `source` is readable, which a process is after it has ended.
fn wait(source: &impl AsFd, end: Instant) -> io::Result<()> {
    loop {
        let rest = end.saturating_duration_since(Instant::now());
        let rest = Timespec::try_from(rest).map_err(Error::other)?;
        match poll(&mut [PollFd::new(source, PollFlags::IN)], Some(&rest)) {
            Ok(0) => return Err(Error::new(ErrorKind::TimedOut, "no answer in time")),
            Err(Errno::INTR) => {}
            ready => return Ok(ready.map(drop)?),
        }
    }
}
