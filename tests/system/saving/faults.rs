//! Injected faults: kills and errors at every system call, kills of many concurrent writers. After each
//! fault the old or the new file must be complete, and the next write must succeed.
//!
//! With FastCGI a kill ends a worker, and the next one must answer the next write. After an error the same worker must
//! answer it, and have no more open file descriptors than before.

use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, pidfd_send_signal};

use crate::support::fastcgi::{Client, Held, PING, Process};
use crate::support::site::wait_until;
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

const WRITERS: usize = 32;
const WRITES: usize = 40;

/// Half of them may wait for one aulario: all writers.
const WORKERS: usize = 2 * WRITERS;

/// The program under load: a process for each request, or the workers of one responder.
struct Server {
    socket: Held,
    responder: Option<Process>,
}

/// A plate that a writer has sent.
#[derive(Debug)]
struct Sent {
    aulario: String,
    date: String,
    menu_type: &'static str,
    plate: String,
    is_acknowledged: bool,
}

impl Sent {
    /// The write of this number of a writer, who has a menu of its own.
    fn new(writer: usize, write: usize, aulario: String) -> Sent {
        Sent {
            aulario,
            date: format!("2026-10-{:02}", 1 + writer % 11),
            menu_type: ["basal", "vegetariano", "alergias"][writer / 11],
            plate: format!("p{write}"),
            is_acknowledged: false,
        }
    }

    fn request(&self, school: &School) -> Cgi {
        let Sent { date, plate, .. } = self;
        let plates = json!({plate: {"name": plate}});
        let body = json!({"date": date, "menu_type": self.menu_type, "plates": plates});
        school.post("save_menu").aulario(&self.aulario).json(&body)
    }

    /// Whether the file, which must be whole, has it.
    fn is_stored(&self, school: &School) -> bool {
        let path = format!(
            "{}/Comedor/2026-10/{}/_datos.json",
            self.aulario,
            &self.date[8..]
        );
        let day: Value = serde_json::from_str(&school.read(&path)).expect("a whole file");
        day["menus"][self.menu_type]["plates"][&self.plate]["name"] == *self.plate
    }
}

impl Server {
    fn start(school: &School) -> Server {
        let socket = Held::new();
        let request = school.post("save_menu");
        let request = request.set("COMEDOR_WORKERS", WORKERS.to_string());
        Server {
            responder: by_fastcgi().then(|| socket.spawn(request.responder())),
            socket,
        }
    }

    /// Sends a write, up to five times if it gets no turn among the other writers (`BUSY`). Makes the kill that is due until the
    /// answer. Returns whether the write was acknowledged; only a kill, this one or that of another writer, can be the
    /// reason if not.
    fn send(&self, request: &Cgi, due: &mut Option<Kill>) -> bool {
        for _ in 0..5 {
            let (answer, may_be_killed) = self.answer(request, due);
            let text = String::from_utf8_lossy(&answer);
            if text.contains(SUCCESS) {
                return true;
            }
            if answer.is_empty() && may_be_killed {
                return false;
            }
            assert!(text.contains("\"BUSY\""), "{}", answer.escape_ascii());
        }
        panic!("the aulario stays BUSY")
    }

    /// The answer, and whether the process may have been killed.
    fn answer(&self, request: &Cgi, due: &mut Option<Kill>) -> (Vec<u8>, bool) {
        if by_fastcgi() {
            let mut client = Client::connect(&self.socket.path);
            // A worker that is killed does not read it.
            _ = client.0.write_all(&request.records());
            due.take_if(|kill| kill.is_made_until(|| client.has_received()));
            return (client.received(), true);
        }
        let mut child = request.start();
        due.take_if(|kill| kill.is_made_until(|| child.try_wait().unwrap().is_some()));
        let output = child.wait_with_output().unwrap();
        (output.stdout, output.status.signal() == Some(9))
    }

    /// With FastCGI the parent has stayed, has replaced each worker that was killed, and stops. Returns the number of
    /// these.
    fn stop(self) -> Option<usize> {
        let responder = self.responder?;
        wait_until("the workers", || responder.has_started(WORKERS));
        Some(responder.stop().matches("SIGKILL").count())
    }
}

/// A kill of a process that saves in an aulario, as by the kernel if memory runs out (`oom_kill_process`).
struct Kill {
    lock: PathBuf,
    /// So long after it was seen with the lock
    after: Duration,
}

impl Kill {
    /// Kills the process that has the lock. If that has released it in the meantime, kills the next one, sooner. Returns
    /// whether this was done before the answer to the own write.
    fn is_made_until(&mut self, mut is_answered: impl FnMut() -> bool) -> bool {
        while !is_answered() {
            thread::yield_now();
            let Some((number, saving)) = holding(&self.lock).pop() else {
                continue;
            };
            if self.after > Duration::ZERO {
                thread::sleep(self.after);
                if holding(&self.lock)
                    .iter()
                    .all(|(holder, _)| *holder != number)
                {
                    self.after = self.after.saturating_sub(Duration::from_micros(100));
                    continue;
                }
            }
            return pidfd_send_signal(saving, Signal::KILL).is_ok();
        }
        false
    }
}

/// Each writer writes 40 times. During every eighth write a process that saves in its aulario is killed: its own or that
/// of another writer.
fn crowd(aulario_of: impl Fn(usize) -> String + Sync) {
    let school = School::new();
    for writer in 0..WRITERS {
        school.write(&format!("{}.json", aulario_of(writer)), "{}");
    }
    let server = Server::start(&school);
    let sent = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (school, server, sent) = (&school, &server, &sent);
            let aulario = aulario_of(writer);
            scope.spawn(move || {
                let mut due = None;
                for write in 0..WRITES {
                    if (writer + write).is_multiple_of(8) {
                        due = Some(Kill {
                            lock: school.path(&format!("{aulario}/.comedor.lock")),
                            after: Duration::from_micros(100 * (write as u64 % 9)),
                        });
                    }
                    let mut plate = Sent::new(writer, write, aulario.clone());
                    plate.is_acknowledged = server.send(&plate.request(school), &mut due);
                    sent.lock().unwrap().push(plate);
                }
            });
        }
    });
    let sent = sent.into_inner().unwrap();
    // Each file is read, so each must be whole.
    let (stored, missing): (Vec<_>, Vec<_>) =
        sent.iter().partition(|plate| plate.is_stored(&school));
    let lost: Vec<_> = missing
        .iter()
        .filter(|plate| plate.is_acknowledged)
        .collect();
    assert!(lost.is_empty(), "{lost:?}");
    for writer in 0..WRITERS {
        let next = Sent::new(writer, WRITES, aulario_of(writer));
        assert!(server.send(&next.request(&school), &mut None));
    }
    assert!(!school.files().iter().any(|path| path.ends_with(".tmp")));
    let killed = server.stop();
    let acknowledged = sent.iter().filter(|plate| plate.is_acknowledged).count();
    let interrupted = sent.len() - acknowledged;
    println!(
        "writes: {}, kills: {interrupted} ({} after the file was replaced), acknowledged: {acknowledged}, losses: 0",
        sent.len(),
        stored.len() - acknowledged,
    );
    assert!(
        killed.is_none_or(|killed| killed >= interrupted),
        "a write failed without a kill"
    );
    assert!(
        interrupted >= sent.len() / 16,
        "half of the kills must interrupt a save"
    );
}

#[test]
fn writers_of_one_aulario_lose_no_acknowledged_write_when_some_are_killed() {
    crowd(|_| "aula1".to_owned());
}

#[test]
fn writers_of_many_aularios_lose_no_acknowledged_write_when_some_are_killed() {
    crowd(|writer| format!("crowd{}", writer / 4));
}

#[test]
fn no_input_leads_to_a_path_outside_of_the_data_and_session_folders() {
    let school = School::new();
    school.log_in("evil", session_of("../../../../etc", ADMIN));
    school.log_in("dots", session_of("..", ADMIN));
    school.write(
        "evil.json",
        json!({"shared_comedor_from": "../../../../etc/passwd"}).to_string(),
    );
    school.write(
        "etc.json",
        json!({"shared_comedor_from": "/etc/passwd"}).to_string(),
    );
    let settings = format!("{}.conf", program());
    let own = [
        "/proc/self/exe",
        "/proc/self/maps",
        "/etc/localtime",
        program(),
        &settings,
    ];
    let folders = [school.data(), school.sessions()];
    let dots = "..%2f..%2f..%2fetc%2fpasswd";
    let plates = json!({"../../x": {"name": "/etc/passwd"}});
    for request in [
        school.get("get_menu").session("evil"),
        school.get("get_menu").session("dots"),
        school.get("get_menu").session("../../etc/passwd"),
        school.get("get_menu").session("%2e%2e%2fsess_admin"),
        school.get("get_menu").aulario(dots),
        school.get("get_menu").aulario("evil"),
        school.post("save_menu").aulario("etc").json(&save("x")),
        school
            .get("get_menu")
            .query("date", dots)
            .query("menu", dots),
        school.get(dots),
        school
            .get("get_menu")
            .set("PATH_INFO", "/../../etc")
            .set("SCRIPT_FILENAME", "/etc/passwd"),
        school.get("get_menu").set("HTTP_COMEDOR_DATA_DIR", "/etc"),
        school
            .post("save_menu")
            .json(&json!({"date": "../x", "menu_type": "basal", "plates": {}})),
        school
            .post("save_menu")
            .json(&json!({"date": DATE, "menu_type": "../x", "plates": plates})),
        school
            .post("add_menu_type")
            .json(&json!({"id": "../../x", "label": "/etc/passwd"})),
    ] {
        let (_, calls) = request.trace(&["-f", "-e", "trace=%file"]);
        for line in calls.lines() {
            let named = line.split('"').nth(1).filter(|path| !path.is_empty());
            let Some(named) = named else { continue };
            let is_own = own.contains(&named);
            // Of the dynamic linker, if the program is not the one that is released.
            let is_library = named.starts_with("/etc/ld.so.") || named.starts_with("/lib/");
            let is_inside = folders
                .iter()
                .any(|folder| Path::new(named).starts_with(folder));
            assert!(
                is_own || is_library || is_inside && !named.contains(".."),
                "{line}"
            );
        }
    }
}
