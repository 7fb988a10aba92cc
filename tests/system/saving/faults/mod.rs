//! Injected faults: kills and errors at every system call, kills of many concurrent writers (`writers.rs`). After each
//! fault the old or the new file must be complete, and the next write must succeed.
//!
//! With FastCGI a kill ends a worker, and the next one must answer the next write. After an error the same worker must
//! answer it, and have no more open file descriptors than before.

mod paths;
mod writers;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::fastcgi::{Client, Held, PING};
use crate::support::tracer::Tracer;
use crate::support::writes::{Write, writes};
use crate::support::*;

/// In the answer to a write that was stored
const SUCCESS: &str = "\"success\":true";

/// What happens in place of a system call.
#[derive(Clone, Copy)]
enum Fault {
    Kill,
    Error(i32),
}

/// A write that was sent to the program, under ptrace(2).
struct Run {
    answered: Answered,
    /// How the program ended: the process of the request, or the parent of the workers
    status: ExitStatus,
    log: String,
    /// The calls of this write, by name
    calls: Vec<&'static str>,
    /// The number of file descriptors of a worker that has answered the next write too
    descriptors: Option<usize>,
}

/// What is so when the client has received all.
struct Answered {
    /// What it has received
    output: String,
    /// The file
    content: Option<String>,
    /// Whether there is no temporary file
    is_clean: bool,
}

impl Answered {
    fn of(write: &Write, school: &School, output: Vec<u8>) -> Answered {
        Answered {
            output: String::from_utf8_lossy(&output).into_owned(),
            content: write.content(school),
            is_clean: school.files().iter().all(|path| !path.ends_with(".tmp")),
        }
    }
}

/// Sends the write in a new school, with a fault in place of the call of this number. The next write must
/// succeed.
fn run(write: &Write, fault: Option<(usize, Fault)>) -> Run {
    let school = write.school();
    let request = write.request(&school);
    if !by_fastcgi() {
        let mut program = request.trace_calls();
        let calls = follow(&mut program, fault);
        let output = program.output();
        let answered = Answered::of(write, &school, output.stdout);
        next_succeeds(write, &school, Cgi::run);
        return Run {
            answered,
            status: output.status,
            log: String::from_utf8_lossy(&output.stderr).into_owned(),
            calls,
            descriptors: None,
        };
    }
    let socket = Held::new();
    // Sent before the program starts, so that its first worker finds it.
    let mut client = Client::connect(&socket.path);
    client.send(request.records());
    thread::scope(|scope| {
        let responder = request.set("COMEDOR_WORKERS", "1").responder();
        let mut program = Tracer::start(&mut socket.command(responder), &[]);
        let parent = Pid::from_raw(program.program).unwrap();
        let (school, socket) = (&school, &socket);
        let answers = scope.spawn(move || {
            let _end = End(parent);
            let answered = Answered::of(write, school, client.received());
            next_succeeds(write, school, |next| next.ask(&socket.path));
            // Once the worker reads this connection, it has closed the others.
            let mut last = Client::connect(&socket.path);
            last.send(PING).record();
            let files = |worker| fs::read_dir(format!("/proc/{worker}/fd")).unwrap().count();
            (answered, children(parent).into_iter().map(files).sum())
        });
        let calls = follow(&mut program, fault);
        let output = program.output();
        let (answered, descriptors) = answers.join().unwrap();
        Run {
            answered,
            status: output.status,
            log: String::from_utf8_lossy(&output.stderr).into_owned(),
            calls,
            descriptors: Some(descriptors),
        }
    })
}

/// Stops the responder when dropped, by a panic too: then the tracer does not wait for ever.
struct End(Pid);

impl Drop for End {
    fn drop(&mut self) {
        _ = kill_process(self.0, Signal::TERM);
    }
}

/// Lets the program run to its end. Returns the calls of its first request: with FastCGI those between
/// accepting the connection and waiting for the next.
fn follow(program: &mut Tracer, fault: Option<(usize, Fault)>) -> Vec<&'static str> {
    let (mut calls, mut serving, mut is_over) = (Vec::new(), None, false);
    while let Some(stop) = program.next() {
        let name = stop.call.name();
        if stop.result.is_some() {
            if name == "accept4" && stop.result >= Some(0) && serving.is_none() {
                serving = Some(stop.process);
            }
            continue;
        }
        if by_fastcgi() {
            let is_serving = serving == Some(stop.process);
            is_over |= is_serving && name.starts_with("epoll_");
            if is_over || !is_serving {
                continue;
            }
        }
        match fault {
            Some((number, Fault::Kill)) if number == calls.len() => program.kill(),
            Some((number, Fault::Error(error))) if number == calls.len() => {
                program.skip(-i64::from(error));
            }
            _ => {}
        }
        calls.push(name);
    }
    calls
}

/// The system calls of this write.
fn calls_of(write: &Write) -> Vec<&'static str> {
    let run = run(write, None);
    assert!(
        run.answered.output.contains(SUCCESS),
        "{}",
        run.answered.output
    );
    assert!(run.calls.len() > 30, "{:?}", run.calls);
    run.calls
}

/// The next write, sent with `send`, succeeds and leaves no temporary file. A lock or a lease that was left would make it
/// BUSY, after its timeout.
fn next_succeeds(write: &Write, school: &School, send: impl Fn(&Cgi) -> Answer) {
    let leftovers = || {
        school
            .files()
            .into_iter()
            .filter(|path| path.ends_with(".tmp"))
            .count()
    };
    assert!(leftovers() <= 1);
    send(&write.next(school)).ok();
    assert_eq!(leftovers(), 0);
}

#[test]
fn a_kill_at_any_system_call_leaves_the_old_or_the_new_file() {
    let (mut kills, mut stored) = (0, 0);
    for write in writes() {
        let (old, new) = write.old_and_new();
        for (number, call) in calls_of(&write).iter().enumerate() {
            let case = format!("{}: killed at call {number}, {call}", write.kind);
            println!("{case}");
            let run = run(&write, Some((number, Fault::Kill)));
            if by_fastcgi() {
                assert!(
                    run.status.success() && run.log.contains("SIGKILL"),
                    "{case}: {}",
                    run.log
                );
            } else {
                assert_eq!(run.status.signal(), Some(9), "{case}");
            }
            let Answered {
                output, content, ..
            } = &run.answered;
            assert!(*content == old || *content == new, "{case}: {content:?}");
            assert!(*content == new || !output.contains(SUCCESS), "{case}");
            kills += 1;
            stored += usize::from(*content == new);
        }
    }
    assert!(stored > 0 && stored < kills);
    println!("kills: {kills}, requests: {}, losses: 0", 2 * kills);
}

#[test]
fn the_answer_is_correct_after_an_error_of_any_system_call() {
    // Those on files. The tests of the responder cover the calls on its connections.
    #[rustfmt::skip]
    const CALLS: [&str; 28] = [
        "openat", "open", "read", "pread64", "write", "fsync", "fdatasync", "rename", "renameat",
        "renameat2", "unlink", "flock", "fcntl", "mkdir", "fstat", "lstat", "stat", "newfstatat",
        "statx", "ftruncate", "fchmod", "fchown", "utimensat", "readlink", "flistxattr",
        "fgetxattr", "fsetxattr", "fremovexattr",
    ];
    const ERRORS: [i32; 5] = [
        libc::EIO,
        libc::ENOENT,
        libc::ENOSPC,
        libc::EACCES,
        libc::EINTR,
    ];
    const CODES: [&str; 5] = [
        "INTERNAL_ERROR", "BUSY", "INVALID_SESSION", "MISSING_PARAM", "NOT_FOUND",
    ];
    let (mut errors, mut stored) = (0, 0);
    for write in writes() {
        let (old, new) = write.old_and_new();
        let descriptors = run(&write, None).descriptors;
        let calls = calls_of(&write);
        let calls = calls
            .iter()
            .enumerate()
            .filter(|(_, call)| CALLS.contains(call));
        for ((number, call), error) in calls.flat_map(|call| ERRORS.map(|error| (call, error))) {
            println!("{}: error {error} of call {number}, {call}", write.kind);
            let run = run(&write, Some((number, Fault::Error(error))));
            errors += 1;
            let Answered {
                output,
                content,
                is_clean,
            } = &run.answered;
            let case = format!(
                "{}: error {error} of {call}: {output} {content:?}",
                write.kind
            );
            assert!(*content == old || *content == new, "{case}");
            let must_be_clean = ["write", "fsync", "renameat2"].contains(call);
            if output.contains(SUCCESS) {
                assert!(*content == new, "{case}");
            } else if output.contains("may have been stored") {
                stored += usize::from(*content == new);
            } else if let Some(code) = CODES.into_iter().find(|code| output.contains(code)) {
                assert!(*content == old && (*is_clean || !must_be_clean), "{case}");
                assert_eq!(
                    code == "INTERNAL_ERROR",
                    output.contains("Nothing was changed")
                );
            } else {
                // Only an error of the write to standard output can lose the answer.
                assert!(
                    output.is_empty() && *call == "write" && !by_fastcgi(),
                    "{case}"
                );
            }
            assert_eq!(run.descriptors, descriptors, "{case}");
        }
    }
    assert!(stored > 0, "an error of the last flush, of the folder");
    println!("errors: {errors}, requests: {}, losses: 0", 2 * errors);
}
