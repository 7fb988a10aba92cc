//! The real program as a FastCGI responder, with its workers.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};

use crate::support::fastcgi::{Client, Held, Process, STDIN, begin, parameters, record};
use crate::support::site::wait_until;
use crate::support::*;

const TYPES_QUERY: &str = "action=get_menu_types&aulario=aula1";

/// Sends a request on each of `count` connections.
fn send_all(socket: &Held, request: &Cgi, count: usize) -> Vec<Client> {
    let records = request.records();
    let mut clients: Vec<Client> = (0..count).map(|_| Client::connect(&socket.path)).collect();
    for client in &mut clients {
        client.send(&records);
    }
    clients
}

/// Waits until all but `waiting` of the clients have an answer, which is BUSY. Returns those that wait.
#[track_caller]
fn but_busy(clients: Vec<Client>, waiting: usize) -> Vec<Client> {
    let is_answered = |client: &Client| client.has_received();
    wait_until("the answers of the others", || {
        clients.iter().filter(|client| !is_answered(client)).count() == waiting
    });
    let (busy, waits): (Vec<_>, Vec<_>) = clients.into_iter().partition(is_answered);
    for mut client in busy {
        let reply = client.reply();
        assert!(reply.stdout.contains("\"BUSY\""), "{reply:?}");
    }
    waits
}

#[track_caller]
fn all_succeed(clients: Vec<Client>) {
    for mut client in clients {
        let reply = client.reply();
        assert!(reply.stdout.starts_with("Status: 200 "), "{reply:?}");
    }
}

/// A file with the lock of a PHP page that does not end.
fn locked(path: &Path) -> File {
    let file = File::open(path).unwrap();
    file.lock().unwrap();
    file
}

/// A school with the aularios `a1` and `a2`, which have a lock file.
fn school_with_two_aularios() -> School {
    let school = School::new();
    for id in ["a1", "a2"] {
        school.write(&format!("{id}.json"), "{}");
        school.write(&format!("{id}/.comedor.lock"), "");
    }
    school
}

fn rename(school: &School) -> Cgi {
    let label = json!({"id": "basal", "label": "B"});
    school.post("rename_menu_type").json(&label)
}

#[test]
fn requests_for_a_held_session_or_aulario_are_busy_beyond_32_and_delay_no_other_user() {
    let (school, socket) = (school_with_two_aularios(), Held::new());
    let process = socket.serve(&school);
    let read = school.get("get_menu_types");
    let write = rename(&school);
    let aulario = |id| school.path(&format!("{id}/.comedor.lock"));
    let session = school.sessions().join("sess_teacher");
    let (mut held, mut waiting_clients) = (Vec::new(), Vec::new());
    // Half of the workers, three quarters in all, and none.
    for (path, request, may_wait) in [
        (aulario("a1"), write.clone().aulario("a1"), 32),
        (session, read.clone(), 16),
        (aulario("a2"), write.aulario("a2").session("admin"), 0),
    ] {
        held.push(locked(&path));
        // Few enough for a busy machine: those of the first round wait for at most ten seconds.
        let waits = but_busy(send_all(&socket, &request, 64), may_wait);
        for _ in 0..8 {
            read.clone().session("admin").ask(&socket.path).ok();
        }
        assert_eq!(waiting(&path).len(), may_wait);
        waiting_clients.extend(waits);
    }
    drop(held);
    all_succeed(waiting_clients);
    process.stop();
}

/// Screens with one login beside a page of this login, and a day on which all save at once.
#[test]
fn as_many_clients_as_half_of_the_workers_are_never_busy() {
    let (school, socket) = (school_with_two_aularios(), Held::new());
    let process = socket.serve(&school);
    for (path, request) in [
        (
            school.sessions().join("sess_teacher"),
            school.get("get_menu_types"),
        ),
        (
            school.path("a1/.comedor.lock"),
            rename(&school).aulario("a1"),
        ),
    ] {
        for _ in 0..5 {
            let page = locked(&path);
            let clients = send_all(&socket, &request, 32);
            wait_until("all wait", || waiting(&path).len() == 32);
            drop(page);
            all_succeed(clients);
            all_succeed(send_all(&socket, &request, 32));
        }
    }
    process.stop();
}

/// Sessions, aularios and web servers that do not go on, all at once.
#[test]
fn another_user_is_answered_while_everything_else_is_held() {
    let (school, socket) = (school_with_two_aularios(), Held::new());
    let process = socket.serve(&school);
    let paths = [
        school.sessions().join("sess_teacher"),
        school.path("a1/.comedor.lock"),
    ];
    let _held = paths.each_ref().map(|path| locked(path));
    let save = |session| {
        let save = school.post("save_menu").session(session);
        save.set("CONTENT_LENGTH", "1000")
    };
    let end_of_body = record(STDIN, b"").len();
    let mut clients = Vec::new();
    for (request, is_slow) in [
        (school.get("get_menu_types"), false),
        (rename(&school).aulario("a1"), false),
        (save("admin"), true),
        (save("none"), true),
    ] {
        let records = request.records();
        let length = records.len() - if is_slow { end_of_body } else { 0 };
        for _ in 0..64 {
            clients.push(Client::connect(&socket.path));
            clients.last_mut().unwrap().send(&records[..length]);
        }
    }
    let read = school.get("get_menu_types").session("admin");
    read.ask(&socket.path).ok();
    let is_first = clients.iter().any(|client| !client.has_received());
    assert!(is_first, "others still wait");
    process.stop();
}

/// Any user can make one in PHP's folder, and lock it.
#[test]
fn a_session_file_that_is_refused_anyway_is_not_waited_for() {
    let school = School::new();
    let large = school.sessions().join("sess_large");
    File::create(&large).unwrap().set_len(17 << 20).unwrap();
    let _page = locked(&large);
    let answer = school.get("get_menu_types").session("large").run();
    let log = &answer.fails("INVALID_SESSION").log;
    assert!(log.contains("larger than 16 MiB"), "{log}");
}

/// Who has no session, or may not write, cannot hold a worker with a slow upload.
#[test]
fn a_body_is_read_only_when_session_and_permissions_admit_its_request() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.spawn(school.get("").set("COMEDOR_WORKERS", "8").responder());
    let part_of_a_save = |session| {
        let save = school.post("save_menu").session(session).json(&save("x"));
        let records = save.records();
        let mut client = Client::connect(&socket.path);
        client.send(&records[..records.len() - 20]);
        client
    };
    let mut admitted = part_of_a_save("admin");
    for (session, code) in [("none", "INVALID_SESSION"), ("teacher", "FORBIDDEN")] {
        let answer = part_of_a_save(session).reply().stdout;
        assert!(answer.contains(code), "{answer}");
    }
    assert!(!admitted.has_received(), "its body is waited for");
    let answer = admitted.reply().stdout;
    assert!(
        answer.contains("The body did not arrive in time."),
        "{answer}"
    );
    process.stop();
}

/// A Redis server that does not answer.
#[test]
fn half_of_the_workers_wait_for_redis_and_further_requests_are_busy() {
    let (school, socket, folder) = (School::new(), Held::new(), tempfile::tempdir().unwrap());
    let path = folder.path().join("redis.sock");
    let redis = UnixListener::bind(&path).unwrap();
    let request = school
        .get("get_menu_types")
        .set("COMEDOR_TRUSTED_ORIGINS", "https://a.example");
    let request = request.set("COMEDOR_SESSION_DIR", format!("unix://{}", path.display()));
    let process = socket.spawn(request.clone().set("COMEDOR_WORKERS", "8").responder());
    let waits = but_busy(send_all(&socket, &request, 24), 4);
    redis.set_nonblocking(true).unwrap();
    let mut accepted: Vec<_> = redis.incoming().map_while(Result::ok).collect();
    assert_eq!(accepted.len(), 4, "connections of those that wait");
    for _ in 0..10 {
        request.ask(&socket.path).fails("BUSY");
    }
    assert!(redis.accept().is_err());
    let large = request
        .set("HTTP_COOKIE", "x".repeat(300_000))
        .ask(&socket.path);
    assert_eq!(large.fails("TOO_LARGE").header("Vary"), Some("Origin"));
    accepted.clear();
    drop(redis);
    for mut client in waits {
        assert!(client.reply().stdout.starts_with("Status: 500 "));
    }
    process.stop();
}

/// Apache sends the parameters before the client has sent the body.
#[test]
fn slow_uploads_without_a_session_delay_no_other_user() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.spawn(school.get("").set("COMEDOR_WORKERS", "8").responder());
    let records = school
        .post("save_menu")
        .session("none")
        .set("CONTENT_LENGTH", "9")
        .records();
    let before_body = records.len() - record(STDIN, b"").len();
    let mut slow: Vec<Client> = (0..24).map(|_| Client::connect(&socket.path)).collect();
    for client in &mut slow {
        client.send(&records[..before_body]);
    }
    school.get("get_menu_types").ask(&socket.path).ok();
    assert!(slow.iter().any(|client| !client.has_received()));
    for client in &mut slow {
        assert!(client.reply().stdout.contains("INVALID_SESSION"));
    }
    process.stop();
}

/// A web server does not repeat a save whose answer is the end of the connection. One worker keeps no connection.
#[test]
fn a_save_that_comes_with_the_end_of_the_last_body_is_answered_if_it_is_stored() {
    let (school, socket) = (School::with_menu("none"), Held::new());
    let process = socket.spawn(school.get("").set("COMEDOR_WORKERS", "1").responder());
    let (kept, end) = (begin(true), record(STDIN, b""));
    let save = |name| {
        let records = school.post("save_menu").json(&save(name)).records();
        [&kept, &records[kept.len()..records.len() - end.len()]].concat()
    };
    for _ in 0..20 {
        let mut client = Client::connect(&socket.path);
        let first = client.send(save("first")).reply().stdout;
        assert!(first.contains("\"success\":true"), "{first}");
        // It fails only if the test had to wait for the processor longer than a worker waits for the end of a body.
        let next = [&end, &save("next")[..], &end].concat();
        let is_sent = client.0.write_all(&next).is_ok();
        let answer = client.received();
        let is_answered = String::from_utf8_lossy(&answer).contains("\"success\":true");
        assert_eq!(is_answered, is_sent, "{}", answer.escape_ascii());
        let stored = &school.menu("basal")["menu"]["plates"]["primero"]["name"];
        assert_eq!(*stored, if is_sent { "next" } else { "first" });
    }
    process.stop();
}

#[test]
fn the_number_of_workers_is_a_setting() {
    let (school, socket) = (School::new(), Held::new());
    for (setting, workers) in [(None, 64), (Some("3"), 3)] {
        let mut request = school.get("get_menu_types");
        if let Some(setting) = setting {
            request = request.set("COMEDOR_WORKERS", setting);
        }
        let process = socket.spawn(request.responder());
        wait_until("the workers", || process.has_started(workers));
        request.ask(&socket.path).ok();
        process.stop();
    }
    for setting in ["0", "513", "many"] {
        let request = school.get("get_menu_types").set("COMEDOR_WORKERS", setting);
        let answer = request.run();
        assert!(
            answer
                .fails("INTERNAL_ERROR")
                .log
                .contains("COMEDOR_WORKERS must be")
        );
    }
}

#[test]
fn the_unit_and_the_container_allow_as_many_workers_as_can_be_set() {
    let (unit, overlay) = (
        text_of("packaging/systemd/comedor.service"),
        text_of("examples/compose.yaml"),
    );
    let needed = comedor::sys::scoreboard::MAX_WORKERS + 1;
    for (file, name) in [(&unit, "TasksMax="), (&overlay, "pids_limit: ")] {
        let allowed = file
            .lines()
            .find_map(|line| line.trim().strip_prefix(name))
            .unwrap();
        assert!(
            allowed.parse::<usize>().unwrap() >= needed,
            "{name}: {needed}"
        );
    }
    let image = concat!("image: comedor:", env!("CARGO_PKG_VERSION"), "\n");
    assert!(overlay.contains(image), "{image}");
}

/// Limits the number of open files of a process, and of those that it starts from now on.
fn limit_files(process: Pid, files: u64) {
    let files = Rlimit {
        current: Some(files),
        ..getrlimit(Resource::Nofile)
    };
    prlimit(Some(process), Resource::Nofile, files).unwrap();
}

#[test]
fn running_out_of_file_descriptors_causes_no_busy_loop() {
    let (school, socket) = (School::new(), Held::new());
    let limited = school.get("get_menu_types").set("COMEDOR_WORKERS", "2");
    let process = socket.spawn(limited.clone().responder());
    wait_until("the workers", || process.has_started(2));
    for worker in process.workers() {
        let is_free = |file: &u64| !Path::new(&format!("/proc/{worker}/fd/{file}")).exists();
        limit_files(worker, (0..).find(is_free).unwrap());
    }
    let since = Instant::now();
    let mut client = Client::connect(&socket.path);
    client.send(limited.records());
    thread::sleep(Duration::from_millis(1500));
    process
        .workers()
        .into_iter()
        .for_each(|worker| limit_files(worker, 1024));
    assert!(client.reply().stdout.starts_with("Status: 200 "));
    let log = process.stop();
    let lines = log.matches("cannot accept a connection").count() as u64;
    // One per second of each worker, and one at the begin.
    let most = 2 * (since.elapsed().as_secs() + 1);
    assert!((1..=most).contains(&lines), "{most}: {log}");
}

#[test]
fn an_idle_responder_takes_no_processor_time() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.spawn(school.get("").set("COMEDOR_WORKERS", "4").responder());
    wait_until("the workers", || process.has_started(4));
    // The time on a processor (proc_pid_schedstat(5)).
    let time = || {
        let of = |process: Pid| {
            let text = fs::read_to_string(format!("/proc/{process}/schedstat")).unwrap();
            let nanoseconds = text.split_whitespace().next().unwrap();
            Duration::from_nanos(nanoseconds.parse().unwrap())
        };
        let workers: Duration = process.workers().into_iter().map(of).sum();
        of(process.pid()) + workers
    };
    let before = time();
    thread::sleep(Duration::from_millis(500));
    let taken = time() - before;
    assert!(taken < Duration::from_millis(20), "{taken:?}");
    process.stop();
}

/// Else they would take the processor.
#[test]
fn workers_that_fail_at_their_start_are_replaced_once_per_second() {
    let (school, socket) = (School::new(), Held::new());
    let request = school.get("get_menu_types").set("COMEDOR_WORKERS", "16");
    let process = socket.spawn(request.clone().responder());
    wait_until("the workers", || process.has_started(16));
    // A new worker then fails to create its epoll set.
    limit_files(process.pid(), 3);
    let workers = process.workers();
    let since = Instant::now();
    for &worker in &workers {
        kill_process(worker, Signal::KILL).unwrap();
    }
    thread::sleep(Duration::from_millis(2500));
    limit_files(process.pid(), 1024);
    request.ask(&socket.path).ok();
    let log = process.stop();
    // Those that are killed are replaced at once. Then one after the other fails.
    let failed = log.matches("is replaced").count();
    let most = 2 * workers.len() + since.elapsed().as_secs() as usize + 1;
    assert!(failed <= most, "{most}: {log}");
}

#[test]
fn idle_workers_take_little_memory_and_large_requests_leave_none() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.serve(&school);
    wait_until("the workers", || process.has_started(64));
    // A debug build relocates more pages.
    let most = if GIVEN.is_some() { 8 } else { 64 };
    let own = || process.of_workers("RssAnon");
    let idle = own();
    println!("64 idle workers: {idle} KiB");
    assert!(idle <= most * 1024, "{idle} KiB");
    let body =
        json!({"date": DATE, "menu_type": "basal", "x": "y".repeat(1_000_000), "plates": {}});
    let large = school.post("save_menu").json(&body);
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| (0..50).for_each(|_| drop(large.ask(&socket.path).ok())));
        }
    });
    wait_until("the workers", || process.has_started(64));
    let after = own();
    println!("after 500 uploads: {after} KiB");
    wait_until("the memory of before", || own() <= idle + idle / 4 + 1024);
    process.stop();
}

/// The unit allows 1 GiB. Each of the 64 workers can have one at the same time.
#[test]
fn as_many_large_bodies_as_workers_take_512_mib() {
    let (school, socket) = (School::new(), Held::new());
    let many = format!("{{\"plates\":[{}0]}}", "[0],".repeat(262_000));
    // Of as many values as a body may have, those that take most memory.
    let nested = format!("{}0{},", "{\"a\":".repeat(498), "}".repeat(498)).repeat(20);
    let most = format!("{{\"x\":[{nested}0],\"y\":\"{}\"}}", "y".repeat(900_000));
    for (body, code) in [(many, "INVALID_FORMAT"), (most, "MISSING_PARAM")] {
        let save = school.post("save_menu").body("application/json", body);
        // A worker that needs more ends without an answer.
        let limited = save.clone().set("COMEDOR_WORKERS", "1");
        let process = socket.spawn(limited.memory((512 << 20) / 64).responder());
        save.ask(&socket.path).fails(code);
        process.stop();
    }
}

/// `COMEDOR_FASTCGI_REQUESTS=1000000` makes it a long run.
#[test]
fn memory_and_descriptors_do_not_leak() {
    let requests = std::env::var("COMEDOR_FASTCGI_REQUESTS").ok();
    let requests: usize = requests
        .and_then(|count| count.parse().ok())
        .unwrap_or(50_000);
    let (school, socket) = (School::new(), Held::new());
    school.save(save("x"));
    let process = socket.serve(&school);
    let run = |requests: usize| {
        thread::scope(|scope| {
            for client in 0..16 {
                let socket = &socket;
                scope.spawn(move || {
                    let mut connection = Client::connect(&socket.path);
                    for request in 0..requests / 16 {
                        let query = match (client + request) % 5 {
                            0 => TYPES_QUERY.to_owned(),
                            1 => format!("action=get_menu&aulario=aula1&date={DATE}"),
                            2 => "action=get_menu&aulario=missing".to_owned(),
                            3 => "action=unknown&aulario=aula1".to_owned(),
                            _ => format!("action=get_menu&aulario=aula1&x={}", "y".repeat(5000)),
                        };
                        let session = ["PHPSESSID=teacher", "PHPSESSID=none"];
                        let session = session[usize::from(request % 7 == 0)];
                        // Every tenth request is the last of its connection.
                        let keep = request % 10 != 9;
                        connection.connect_again(&socket.path);
                        let reply = connection.ask(keep, &parameters("GET", &query, session), b"");
                        assert!(reply.stdout.starts_with("Status: "), "{reply:?}");
                        if !keep {
                            // Others end in the middle of a request, or are not FastCGI.
                            let mut other = Client::connect(&socket.path);
                            other.send([&begin(true)[..], b"garbage"][request / 10 % 2]);
                            connection = Client::connect(&socket.path);
                        }
                    }
                });
            }
        });
    };
    wait_until("the workers", || process.has_started(64));
    let descriptors = process.descriptors();
    run(requests / 5);
    let memory = process.of_workers("RssAnon");
    run(requests);
    // Without the pages of the executable: a debug build has more of them, and the kernel takes them back.
    let after = process.of_workers("RssAnon");
    println!("requests: {requests}, memory of their own: {memory} KiB, then {after} KiB");
    assert!(after <= memory + 2048, "{memory} KiB, then {after} KiB");
    wait_until("the end of connections", || {
        process.descriptors() <= descriptors
    });
    process.stop();
}

#[test]
fn parameter_named_like_a_setting_has_no_effect_and_is_reported_once() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.serve(&school);
    let mut query = parameters("GET", TYPES_QUERY, "PHPSESSID=teacher");
    query.push(("COMEDOR_DATA_DIR", "/nowhere"));
    for reported in [1, 0] {
        let reply = Client::connect(&socket.path).ask(false, &query, b"");
        assert!(reply.stdout.contains("\"success\":true"), "{reply:?}");
        assert_eq!(reply.stderr.len(), reported, "{reply:?}");
        assert!(
            reply
                .stderr
                .iter()
                .all(|line| line.contains("COMEDOR_DATA_DIR")),
            "{reply:?}"
        );
    }
    process.stop();
}

#[test]
fn command_creates_the_socket_for_its_owner_and_group() {
    let school = School::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("comedor.sock");
    let read = school.get("get_menu_types");
    let start = || {
        let mut command = read.responder();
        command.arg("fastcgi").arg(&path).stdin(Stdio::null());
        Process(command.spawn().unwrap())
    };
    let process = start();
    wait_until("the socket", || UnixStream::connect(&path).is_ok());
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o660
    );
    read.ask(&path).ok();
    let is_refused = |why| {
        let mut second = start();
        let mut log = String::new();
        second
            .0
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut log)
            .unwrap();
        assert!(!second.0.wait().unwrap().success());
        assert!(log.contains(why), "{log}");
    };
    is_refused("another process listens on this socket");
    read.ask(&path).ok();
    process.stop();
    assert!(!path.exists());
    let full = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&full, 0).unwrap();
    let _queued = UnixStream::connect(&path).unwrap();
    is_refused("another process listens on this socket");
    fs::remove_file(&path).unwrap();
    fs::write(&path, "a file").unwrap();
    is_refused("exists and is not a socket");
    assert_eq!(fs::read(&path).unwrap(), b"a file");
    fs::remove_file(&path).unwrap();
    symlink("nothing", &path).unwrap();
    is_refused("exists and is not a socket");
    fs::remove_file(&path).unwrap();
    // Any user can lock a folder that they may read, but not the file that is locked.
    let _folder = locked(folder.path());
    let process = start();
    wait_until("the socket", || UnixStream::connect(&path).is_ok());
    process.stop();
    let lock = folder.path().join("comedor.sock.lock");
    assert_eq!(fs::metadata(&lock).unwrap().mode() & 0o7777, 0o600);
    let _other = locked(&lock);
    is_refused("comedor.sock.lock is locked by another process");
}

#[test]
fn closed_standard_streams_are_dev_null() {
    let socket = Held::new();
    let request = School::new().get("").shell("exec \"$0\" >&- 2>&-");
    let process = socket.spawn(request.responder());
    request.ask(&socket.path);
    for stream in [1, 2] {
        let file = fs::read_link(format!("/proc/{}/fd/{stream}", process.0.id())).unwrap();
        assert_eq!(file, Path::new("/dev/null"), "{stream}");
    }
    process.stop();
}

#[test]
fn socket_without_a_file_is_refused_with_the_reason() {
    let name = format!("comedor-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(name).unwrap();
    for listener in [
        OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap()),
        OwnedFd::from(UnixListener::bind_addr(&address).unwrap()),
    ] {
        let output = Command::new(program())
            .env_clear()
            .stdin(listener)
            .output()
            .unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{log}");
        assert!(log.contains("not a Unix socket with a path"), "{log}");
    }
}

/// As ExecStartPre= of a unit with StandardInput=socket
#[test]
fn a_command_precedes_the_socket_on_standard_input() {
    let (school, folder) = (School::new(), tempfile::tempdir().unwrap());
    let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
    let mut check = school.get("").responder();
    let output = check
        .arg("check")
        .stdin(OwnedFd::from(listener))
        .output()
        .unwrap();
    let findings = String::from_utf8(output.stdout).unwrap();
    assert!(findings.contains("settings: today is 20"), "{findings}");
}
