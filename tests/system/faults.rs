//! Injected faults: kills and errors at every system call, kills of many concurrent writers. After each
//! fault the old or the new file must be complete, and the next write must succeed immediately.
//!
//! With FastCGI a kill ends the responder. After an error, the same process must answer the next
//! write and have no more open file descriptors than before.

use std::fs;
use std::io::{Read, Write as _};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::fastcgi::{Client, Held, Process};
use crate::support::*;

/// In the answer to a write that was stored
const SUCCESS: &str = "\"success\":true";

/// A write and the file that it changes.
pub struct Write {
    pub action: &'static str,
    body: Value,
    file: &'static str,
    /// Whether the file exists before the write
    replaces: bool,
}

pub fn writes() -> [Write; 5] {
    let write = |action, body, file, replaces| Write { action, body, file, replaces };
    [
        write("save_menu", save("new"), DAY, false),
        write("save_menu", save("new"), DAY, true),
        write("add_menu_type", json!({"id": "new", "label": "N"}), TYPES, true),
        write("rename_menu_type", json!({"id": "basal", "label": "N"}), TYPES, true),
        write("delete_menu_type", json!({"id": "basal"}), TYPES, true),
    ]
}

impl Write {
    /// A school before this write.
    pub fn school(&self) -> School {
        let school = School::new();
        if self.replaces {
            let menu = json!({"plates": {"primero": {"name": "old", "pictogram": ""}}});
            let day = json!({"date": DATE, "menus": {"basal": menu}});
            let types = json!([{"id": "basal", "label": "B"}, {"id": "vegetariano", "label": "V"}]);
            school.write(DAY, day.to_string());
            school.write(TYPES, types.to_string());
            school.write(LOCK, "");
        }
        school
    }

    pub fn request(&self, school: &School) -> Cgi {
        school.post(self.action).json(&self.body)
    }

    pub fn content(&self, school: &School) -> Option<String> {
        fs::read_to_string(school.path(self.file)).ok()
    }

    /// The content of the file before and after.
    pub fn old_and_new(&self) -> (Option<String>, Option<String>) {
        let school = self.school();
        let old = self.content(&school);
        self.request(&school).run().ok();
        (old, self.content(&school))
    }

    /// Sends it in a new school to the program under strace with these options.
    fn run_under(&self, strace: &[&str]) -> Run {
        let school = self.school();
        let request = self.request(&school).under(&["strace"]).under(strace);
        if by_fastcgi() {
            let socket = Held::new();
            // Sent before the program starts, so that its first thread does everything.
            let mut client = Client::connect(&socket.path);
            client.send(request.records());
            let process = socket.spawn(request.responder());
            let output = String::from_utf8_lossy(&client.received()).into_owned();
            Run { school, output, process, socket: Some(socket) }
        } else {
            let mut process = Process(request.start());
            let mut output = String::new();
            process.0.stdout.take().unwrap().read_to_string(&mut output).unwrap();
            process.0.wait().unwrap();
            Run { school, output, process, socket: None }
        }
    }

    fn run_with(&self, fault: &str) -> Run {
        self.run_under(&["-o", "/dev/null", "-e", &format!("inject={fault}")])
    }

    /// The system calls of this write, each with its number among those of its name in the process. Those of
    /// a responder are between accepting the connection and waiting for the next.
    fn calls(&self) -> Vec<(String, usize)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let run = self.run_under(&["-o", file.path().to_str().unwrap()]);
        assert!(run.output.contains(SUCCESS), "{}", run.output);
        drop(run);
        let trace = fs::read_to_string(file.path()).unwrap();
        // strace cannot inject a fault into the call that starts the program.
        let last_before = if by_fastcgi() { "accept4" } else { "execve" };
        let calls = calls(&trace).into_iter().skip_while(|(call, ..)| *call != last_before).skip(1);
        // Only some runs have to wait for another thread.
        let calls = calls.filter(|(call, ..)| *call != "futex");
        let calls = calls.take_while(|(call, ..)| *call != "epoll_pwait");
        let calls: Vec<_> = calls.map(|(call, time, _)| (call.to_owned(), time)).collect();
        assert!(calls.len() > 30, "{calls:?}");
        calls
    }

    /// The next write, sent with `send`, succeeds and leaves no temporary file.
    fn next_succeeds(&self, school: &School, fault: &str, send: impl Fn(&Cgi) -> Answer) {
        let leftovers = || school.files().into_iter().filter(|path| path.ends_with(".tmp")).count();
        assert!(leftovers() <= 1, "{fault}");
        let started = Instant::now();
        let (action, body) = match self.file {
            DAY => ("save_menu", save("next")),
            _ => ("rename_menu_type", json!({"id": "vegetariano", "label": "next"})),
        };
        send(&school.post(action).json(&body)).ok();
        assert!(started.elapsed() < Duration::from_secs(5), "{fault}: no deadline is waited out");
        assert_eq!(leftovers(), 0, "{fault}");
    }
}

/// A write that was sent.
struct Run {
    school: School,
    /// What the client received
    output: String,
    /// With CGI it has exited
    process: Process,
    /// The socket of a responder
    socket: Option<Held>,
}

#[test]
fn a_kill_at_any_system_call_leaves_the_old_or_the_new_file() {
    let (mut kills, mut stored) = (0, 0);
    for write in writes() {
        let (old, new) = write.old_and_new();
        for (call, time) in write.calls() {
            let fault = format!("{call}:signal=KILL:when={time}");
            let mut run = write.run_with(&fault);
            let status = run.process.0.wait().unwrap();
            assert_eq!(status.signal(), Some(9), "{} {fault}", write.action);
            let content = write.content(&run.school);
            assert!(content == old || content == new, "{} {fault}: {content:?}", write.action);
            assert!(content == new || !run.output.contains(SUCCESS), "{} {fault}", write.action);
            kills += 1;
            stored += usize::from(content == new);
            write.next_succeeds(&run.school, &fault, Cgi::run);
        }
    }
    assert!(stored > 0 && stored < kills);
    println!("kills: {kills}, requests: {}, losses: 0", 2 * kills);
}

#[test]
fn the_answer_is_correct_after_an_error_of_any_system_call() {
    // Those on files. The tests of the responder cover the calls on its connections.
    const CALLS: [&str; 28] = [
        "openat", "open", "read", "pread64", "write", "fsync", "fdatasync", "rename", "renameat",
        "renameat2", "unlink", "flock", "fcntl", "mkdir", "fstat", "lstat", "stat", "newfstatat",
        "statx", "ftruncate", "fchmod", "fchown", "utimensat", "readlink", "flistxattr",
        "fgetxattr", "fsetxattr", "fremovexattr",
    ];
    const CODES: [&str; 5] =
        ["INTERNAL_ERROR", "BUSY", "INVALID_SESSION", "MISSING_PARAM", "NOT_FOUND"];
    let (mut errors, mut stored) = (0, 0);
    for write in writes() {
        let (old, new) = write.old_and_new();
        let sound = write.run_under(&["-o", "/dev/null"]);
        let descriptors = sound.socket.as_ref().map(|_| sound.process.descriptors());
        let mut calls = write.calls();
        calls.retain(|(call, _)| CALLS.contains(&call.as_str()));
        for (call, time) in &calls {
            for error in ["EIO", "ENOENT", "ENOSPC", "EACCES", "EINTR"] {
                let fault = format!("{call}:error={error}:when={time}");
                let run = write.run_with(&fault);
                errors += 1;
                let content = write.content(&run.school);
                let text = &run.output;
                let case = format!("{} {fault}: {text} {content:?}", write.action);
                assert!(content == old || content == new, "{case}");
                let is_clean = run.school.files().iter().all(|path| !path.ends_with(".tmp"));
                let must_be_clean = ["write", "fsync", "renameat2"].contains(&call.as_str());
                if run.output.contains(SUCCESS) {
                    assert!(content == new, "{case}");
                } else if text.contains("may have been stored") {
                    stored += usize::from(content == new);
                } else if let Some(code) = CODES.into_iter().find(|code| text.contains(code)) {
                    assert!(content == old && (is_clean || !must_be_clean), "{case}");
                    assert_eq!(code == "INTERNAL_ERROR", text.contains("Nothing was changed"));
                } else {
                    // Only an error of the write to standard output can lose the answer.
                    assert!(text.is_empty() && call == "write", "{case}");
                    assert!(!by_fastcgi(), "{case}");
                }
                let Some(socket) = &run.socket else {
                    write.next_succeeds(&run.school, &fault, Cgi::run);
                    continue;
                };
                write.next_succeeds(&run.school, &fault, |next| next.ask(&socket.path));
                assert_eq!(Some(run.process.descriptors()), descriptors, "{case}");
            }
        }
    }
    assert!(stored > 0, "an error of the last flush, of the folder");
    println!("errors: {errors}, requests: {}, losses: 0", 2 * errors);
}

/// The program under load: a process for each request, or one responder.
struct Server {
    socket: Held,
    responder: Mutex<Option<Process>>,
}

impl Server {
    /// Ends the responder and starts another one.
    fn restart(&self, request: &Cgi) {
        let mut responder = self.responder.lock().unwrap();
        drop(responder.take());
        *responder = Some(self.socket.spawn(request.responder()));
    }

    /// Sends a write and kills the program after the time `kill`, if there is one. Returns whether the
    /// write was acknowledged.
    fn send(&self, request: &Cgi, kill: Option<Duration>) -> bool {
        let answer = if !by_fastcgi() {
            let mut child = request.start();
            if let Some(time) = kill {
                thread::sleep(time);
                _ = child.kill();
            }
            child.wait_with_output().unwrap().stdout
        } else {
            let mut client = Client::connect(&self.socket.path);
            // A responder that is killed does not read it.
            _ = client.0.write_all(&request.records());
            if let Some(time) = kill {
                thread::sleep(time);
                self.restart(request);
            }
            client.received()
        };
        let is_acknowledged = String::from_utf8_lossy(&answer).contains(SUCCESS);
        let is_lost = answer.is_empty() && (kill.is_some() || by_fastcgi());
        assert!(is_acknowledged || is_lost, "{}", answer.escape_ascii());
        is_acknowledged
    }
}

/// 32 writers with 40 writes each. During every eighth write the program is killed at some point.
fn crowd(aulario_of: impl Fn(usize) -> String + Sync) {
    const WRITERS: usize = 32;
    const WRITES: usize = 40;
    let school = School::new();
    let server = Server { socket: Held::new(), responder: Mutex::default() };
    for writer in 0..WRITERS {
        school.write(&format!("{}.json", aulario_of(writer)), "{}");
    }
    if by_fastcgi() {
        server.restart(&school.post("save_menu"));
    }
    let acknowledged = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (school, server, acknowledged) = (&school, &server, &acknowledged);
            let aulario = aulario_of(writer);
            scope.spawn(move || {
                for write in 0..WRITES {
                    // A menu of 40 plates for each writer
                    let date = format!("2026-10-{:02}", 1 + writer % 11);
                    let menu_type = ["basal", "vegetariano", "alergias"][writer / 11];
                    let plate = format!("p{write}");
                    let plates = json!({&plate: {"name": plate}});
                    let body = json!({"date": date, "menu_type": menu_type, "plates": plates});
                    let request = school.post("save_menu").aulario(&aulario).json(&body);
                    let time = Duration::from_micros(300 * (write as u64 % 9));
                    let is_killed = (writer + write).is_multiple_of(8);
                    if server.send(&request, is_killed.then_some(time)) {
                        let path = format!("{aulario}/Comedor/2026-10/{}/_datos.json", &date[8..]);
                        acknowledged.lock().unwrap().push((path, menu_type, plate));
                    }
                }
            });
        }
    });
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(!acknowledged.is_empty());
    for (path, menu_type, plate) in &acknowledged {
        let day: Value = serde_json::from_str(&school.read(path)).expect("a whole file");
        assert_eq!(day["menus"][menu_type]["plates"][plate]["name"], **plate, "{path}");
    }
    let (writes, stored) = (WRITERS * WRITES, acknowledged.len());
    println!("writes: {writes}, kills: {}, acknowledged: {stored}, losses: 0", writes / 8);
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
    school.write("evil.json", json!({"shared_comedor_from": "../../../../etc/passwd"}).to_string());
    school.write("etc.json", json!({"shared_comedor_from": "/etc/passwd"}).to_string());
    let settings = format!("{}.conf", program());
    let own = ["/proc/self/exe", "/proc/self/maps", "/etc/localtime", program(), &settings];
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
        school.get("get_menu").query("date", dots).query("menu", dots),
        school.get(dots),
        school.get("get_menu").set("PATH_INFO", "/../../etc").set("SCRIPT_FILENAME", "/etc/passwd"),
        school.get("get_menu").set("HTTP_COMEDOR_DATA_DIR", "/etc"),
        school.post("save_menu").json(&json!({"date": "../x", "menu_type": "basal", "plates": {}})),
        school
            .post("save_menu")
            .json(&json!({"date": DATE, "menu_type": "../x", "plates": plates})),
        school.post("add_menu_type").json(&json!({"id": "../../x", "label": "/etc/passwd"})),
    ] {
        let (_, calls) = request.trace(&["-f", "-e", "trace=%file"]);
        for line in calls.lines() {
            let named = line.split('"').nth(1).filter(|path| !path.is_empty());
            let Some(named) = named else { continue };
            let is_own = own.contains(&named);
            // Of the dynamic linker, if the program is not the one that is released.
            let is_library = named.starts_with("/etc/ld.so.") || named.starts_with("/lib/");
            let is_inside = folders.iter().any(|folder| Path::new(named).starts_with(folder));
            assert!(is_own || is_library || is_inside && !named.contains(".."), "{line}");
        }
    }
}

/// As by a seccomp filter.
#[test]
fn responder_that_may_not_read_its_limit_of_open_files_assumes_the_usual_one() {
    let (school, socket) = (School::new(), Held::new());
    let refused = ["strace", "-o/dev/null", "-f", "-einject=prlimit64,getrlimit:error=EPERM"];
    let process = socket.spawn(school.get("").under(&refused).responder());
    school.get("get_menu").ask(&socket.path).ok();
    let log = process.stop();
    assert!(log.contains("open files is unknown") && log.contains("1024 instead of"), "{log}");
}
