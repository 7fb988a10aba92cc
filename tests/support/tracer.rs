//! The program under ptrace(2), which stops before and after each of its system calls.
//!
//! [`Tracer::next`] lets it run to the next stop, and returns it. Until it is called again the program does nothing, so
//! a test can look at the files, change them, or run another program. At a stop the test may also kill
//! the program, or make a call return a result without being made. Processes and threads that the program starts
//! are stopped in the same way; only one of all is resumed at a time, but others may be running.
//!
//! Works as any user. ptrace(2) belongs to threads: a `Tracer` stays in the thread that started it. If the machine
//! forbids it, the test fails and says so. An end of the test, even by a panic, ends the program.
#![allow(unsafe_code, reason = "ptrace(2) has no safe wrapper")]

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output};

use libc::{c_int, pid_t};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// A system call of the program.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub number: i64,
    pub arguments: [u64; 6],
}

/// The program before a call, or after it.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    /// The process or thread
    pub process: pid_t,
    pub call: Call,
    /// What the call returned, a negative number for an error; `None` before the call
    pub result: Option<i64>,
}

impl Stop {
    /// The path of a file descriptor of the process at this stop.
    pub fn descriptor(&self, number: impl std::fmt::Display) -> PathBuf {
        format!("/proc/{}/fd/{number}", self.process).into()
    }
}

/// Where a process is.
#[derive(Clone, Copy)]
enum Position {
    Outside,
    Inside(Call),
    /// In a call that is not made and has this result
    Skipped(Call, i64),
}

pub struct Tracer {
    /// The process that was started. Its number is that of a process group, to which its children belong.
    pub program: pid_t,
    child: Child,
    /// Processes and threads that have not ended
    positions: BTreeMap<pid_t, Position>,
    /// The one that is stopped
    stopped: Option<pid_t>,
    status: Option<ExitStatus>,
    /// Those of this thread before the start
    processors: CpuSet,
}

impl Tracer {
    /// Starts the program and sends `body` to its standard input, if that is a pipe.
    #[track_caller]
    pub fn start(command: &mut Command, body: &[u8]) -> Tracer {
        let processors = sched_getaffinity(None).unwrap();
        // Each stop changes between this thread and the program twice, which is much faster on one processor.
        let mut one = CpuSet::new();
        one.set(sched_getcpu());
        sched_setaffinity(None, &one).unwrap();
        command.process_group(0);
        // SAFETY: between fork and exec this makes one system call, and allocates nothing.
        unsafe { command.pre_exec(|| ptrace(libc::PTRACE_TRACEME as _, 0, 0, 0).map(drop)) };
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => panic!("{command:?}: {error}; this test needs ptrace(2), or a program"),
        };
        let program = child.id() as pid_t;
        if let Some(mut stdin) = child.stdin.take() {
            // The program reads it later: it must be short enough for the buffer of a pipe.
            assert!(body.len() < 60_000);
            stdin.write_all(body).unwrap();
        }
        let positions = BTreeMap::from([(program, Position::Outside)]);
        let mut tracer = Tracer {
            program,
            child,
            positions,
            stopped: None,
            status: None,
            processors,
        };
        // After exec it is stopped by SIGTRAP.
        let (stopped, _) = tracer.wait().expect("a process");
        let options = libc::PTRACE_O_TRACESYSGOOD
            | libc::PTRACE_O_EXITKILL
            | libc::PTRACE_O_TRACEFORK
            | libc::PTRACE_O_TRACEVFORK
            | libc::PTRACE_O_TRACECLONE
            | libc::PTRACE_O_TRACEEXEC;
        let set = ptrace(libc::PTRACE_SETOPTIONS as _, stopped, 0, options as usize);
        set.expect("this test needs ptrace(2)");
        tracer.stopped = Some(stopped);
        tracer
    }

    /// Lets the program run to its next stop; `None` if it has ended, and all that it started.
    pub fn next(&mut self) -> Option<Stop> {
        const AT_CALL: c_int = libc::SIGTRAP | 0x80;
        let mut signal = 0;
        loop {
            if let Some(process) = self.stopped.take() {
                // It may have been killed in the meantime.
                _ = ptrace(libc::PTRACE_SYSCALL as _, process, 0, signal as usize);
            }
            signal = 0;
            let (process, status) = self.wait()?;
            if !libc::WIFSTOPPED(status) {
                self.positions.remove(&process);
                if process == self.program {
                    self.status = Some(ExitStatus::from_raw(status));
                }
                continue;
            }
            self.stopped = Some(process);
            let is_new = !self.positions.contains_key(&process);
            self.positions.entry(process).or_insert(Position::Outside);
            match libc::WSTOPSIG(status) {
                AT_CALL => match self.at_call(process) {
                    Some(stop) => return Some(stop),
                    None => continue,
                },
                // The first stop of what was started is that of ptrace(2), and so is each with an event.
                libc::SIGSTOP if is_new => {}
                _ if status >> 16 != 0 => {}
                received => signal = received,
            }
        }
    }

    /// The stop of a process at a call. `None` after the call that started the program, whose beginning was
    /// not seen.
    fn at_call(&mut self, process: pid_t) -> Option<Stop> {
        const ENTRY: u8 = 1;
        /// `struct ptrace_syscall_info`: what it is about, two pointers, and then for an entry the number of the
        /// call and its arguments, for an exit the result.
        type Information = [u64; 11];
        const GET_SYSCALL_INFO: u32 = 0x420e;
        let mut information: Information = [0; 11];
        let address = &raw mut information as usize;
        ptrace(
            GET_SYSCALL_INFO as _,
            process,
            size_of::<Information>(),
            address,
        )
        .expect("PTRACE_GET_SYSCALL_INFO (Linux 5.3)");
        let [kind, _, _, first, rest @ ..] = information;
        if kind as u8 == ENTRY {
            let call = Call {
                number: first as i64,
                arguments: rest[..6].try_into().unwrap(),
            };
            self.positions.insert(process, Position::Inside(call));
            return Some(Stop {
                process,
                call,
                result: None,
            });
        }
        match self.positions.insert(process, Position::Outside)? {
            Position::Outside => None,
            Position::Inside(call) => Some(Stop {
                process,
                call,
                result: Some(first as i64),
            }),
            Position::Skipped(call, result) => {
                registers::set_result(process, result).expect("registers");
                Some(Stop {
                    process,
                    call,
                    result: Some(result),
                })
            }
        }
    }

    /// Before a call: it is not made, and has this result.
    pub fn skip(&mut self, result: i64) {
        let process = self.stopped.expect("a stop");
        let Some(Position::Inside(call)) = self.positions.get(&process).copied() else {
            panic!("not before a call")
        };
        registers::set_call(process, -1).expect("registers");
        self.positions
            .insert(process, Position::Skipped(call, result));
    }

    /// Kills the process that is stopped, with its threads.
    pub fn kill(&mut self) {
        // SAFETY: it has not been waited for, so the number is that of the process.
        unsafe { libc::kill(self.stopped.expect("a stop"), libc::SIGKILL) };
    }

    /// Lets the program run to its end. Returns what it wrote to the pipes that its output is.
    pub fn output(mut self) -> Output {
        while self.next().is_some() {}
        let mut output = Output {
            status: self.status.unwrap(),
            stdout: Vec::new(),
            stderr: Vec::new(),
        };
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_end(&mut output.stdout).unwrap();
        }
        if let Some(mut pipe) = self.child.stderr.take() {
            pipe.read_to_end(&mut output.stderr).unwrap();
        }
        output
    }

    /// Whether the program has written to standard output, a pipe.
    pub fn has_answered(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, poll};
        let mut stdout = [PollFd::new(
            self.child.stdout.as_ref().unwrap(),
            PollFlags::IN,
        )];
        poll(&mut stdout, Some(&Default::default())).unwrap() > 0
            && stdout[0].revents().contains(PollFlags::IN)
    }

    /// Waits until one of the processes stops or ends; `None` if all have ended.
    fn wait(&self) -> Option<(pid_t, c_int)> {
        loop {
            let mut status = 0;
            // SAFETY: writes to `status`.
            let process = unsafe { libc::waitpid(-self.program, &mut status, libc::__WALL) };
            if process > 0 {
                return Some((process, status));
            }
            match io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::ECHILD) => return None,
                error => panic!("waitpid: {error:?}"),
            }
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        _ = sched_setaffinity(None, &self.processors);
        if !self.positions.is_empty() {
            // SAFETY: the group is that of the program, which has not been waited for.
            unsafe { libc::kill(-self.program, libc::SIGKILL) };
            while self.wait().is_some() {}
        }
    }
}

fn ptrace(request: u32, process: pid_t, address: usize, data: usize) -> io::Result<i64> {
    // SAFETY: the requests of this file that write to memory get the address and the size of a variable.
    let result = unsafe { libc::ptrace(request as _, process, address, data) };
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// The registers for the number of a call and its result.
#[cfg(target_arch = "x86_64")]
mod registers {
    use super::{io, pid_t, ptrace};

    const ORIG_RAX: usize = 15 * 8;
    const RAX: usize = 10 * 8;

    pub fn set_call(process: pid_t, number: i64) -> io::Result<i64> {
        ptrace(
            libc::PTRACE_POKEUSER as _,
            process,
            ORIG_RAX,
            number as usize,
        )
    }

    pub fn set_result(process: pid_t, result: i64) -> io::Result<i64> {
        ptrace(libc::PTRACE_POKEUSER as _, process, RAX, result as usize)
    }
}

#[cfg(target_arch = "aarch64")]
mod registers {
    use super::{io, pid_t, ptrace};

    /// From Linux's `linux/elf.h`
    const NT_PRSTATUS: usize = 1;
    const NT_ARM_SYSTEM_CALL: usize = 0x404;

    pub fn set_call(process: pid_t, number: i64) -> io::Result<i64> {
        let mut number = number as i32;
        set(
            process,
            NT_ARM_SYSTEM_CALL,
            &raw mut number as usize,
            size_of::<i32>(),
        )
    }

    pub fn set_result(process: pid_t, result: i64) -> io::Result<i64> {
        // `x0`, the first of them.
        let mut result = result;
        set(
            process,
            NT_PRSTATUS,
            &raw mut result as usize,
            size_of::<i64>(),
        )
    }

    fn set(process: pid_t, kind: usize, address: usize, length: usize) -> io::Result<i64> {
        let part = [address, length];
        ptrace(
            libc::PTRACE_SETREGSET as _,
            process,
            kind,
            &raw const part as usize,
        )
    }
}

/// Pairs of a number and a name.
macro_rules! names {
    ($($constant:ident)*) => { &[$((libc::$constant, stringify!($constant))),*] };
}

/// Numbers and names of calls on files, and of those that wait.
const NAMES: &[(i64, &str)] = names![
    SYS_openat SYS_read SYS_pread64 SYS_write SYS_writev SYS_fsync SYS_fdatasync SYS_syncfs SYS_sync
    SYS_renameat SYS_renameat2 SYS_linkat SYS_unlinkat SYS_mkdirat SYS_flock SYS_fcntl SYS_ftruncate SYS_fstat
    SYS_newfstatat SYS_statx SYS_faccessat SYS_faccessat2 SYS_fchmod SYS_fchmodat SYS_fchown SYS_fchownat SYS_utimensat SYS_readlinkat
    SYS_flistxattr SYS_fgetxattr SYS_fsetxattr SYS_fremovexattr SYS_getdents64 SYS_close
    SYS_clock_nanosleep SYS_nanosleep SYS_futex SYS_epoll_pwait SYS_accept4 SYS_exit_group
];
/// Those that new processors do not have
#[cfg(target_arch = "x86_64")]
const OLD_NAMES: &[(i64, &str)] = names![
    SYS_open SYS_stat SYS_lstat SYS_access SYS_chmod SYS_chown SYS_mkdir SYS_rename SYS_link SYS_unlink SYS_rmdir SYS_readlink
    SYS_epoll_wait
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_NAMES: &[(i64, &str)] = &[];

impl Call {
    /// The name, as in the manual; of a call that is not in the tables above, `another call`.
    pub fn name(&self) -> &'static str {
        let mut known = NAMES.iter().chain(OLD_NAMES);
        let found = known.find(|(number, _)| *number == self.number);
        found.map_or("another call", |(_, name)| name.trim_start_matches("SYS_"))
    }

    /// Whether it writes a file or folder to the disk.
    pub fn is_flush(&self) -> bool {
        ["fsync", "fdatasync"].contains(&self.name())
    }
}
