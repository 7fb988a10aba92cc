//! The real program as a FastCGI responder: one process for many requests.

use std::fs::{self, File};
use std::io::Read;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, recv};

use crate::support::fastcgi::{Client, Held, Process, Reply, parameters};
use crate::support::*;

const TYPES_QUERY: &str = "action=get_menu_types&aulario=aula1";

#[track_caller]
fn read(client: &mut Client, keep: bool, session: &str) -> Reply {
    let session = format!("PHPSESSID={session}");
    client.ask(keep, &parameters("GET", TYPES_QUERY, &session), b"")
}

#[track_caller]
fn assert_ok(reply: &Reply) {
    assert!(reply.stdout.starts_with("Status: 200 OK\r\n"), "{reply:?}");
    assert_eq!(reply.stderr, [""; 0]);
}

/// A client that has sent this request.
fn sent(socket: &Held, request: &Cgi) -> Client {
    let mut client = Client::connect(&socket.path);
    client.send(request.records());
    client
}

/// A read of `/proc/locks` may see a lock twice, or not at all, while other locks come and go.
#[track_caller]
fn until_waiting(goal: usize, waiting: impl Fn() -> usize) {
    let started = Instant::now();
    while waiting() != goal {
        assert!(started.elapsed() < Duration::from_secs(9), "{} of {goal} wait", waiting());
        thread::yield_now();
    }
}

#[test]
fn requests_that_wait_for_one_session_leave_the_places_to_others() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.serve(&school);
    let session = school.sessions().join("sess_teacher");
    let page = File::open(&session).unwrap();
    page.lock().unwrap();
    let mut clients = Vec::new();
    for count in [32, 64] {
        let request = school.get("get_menu_types");
        clients.extend((0..32).map(|_| sent(&socket, &request)));
        until_waiting(count, || waiting(&session).len());
    }
    for _ in 0..100 {
        school.get("get_menu_types").session("admin").ask(&socket.path).ok();
    }
    school.get("get_menu_types").ask(&socket.path).fails("BUSY");
    until_waiting(64, || waiting(&session).len());
    page.unlock().unwrap();
    clients.iter_mut().for_each(|client| assert_ok(&client.reply()));
    process.stop();
}

/// Writers, which wait longer than readers of a session: time enough for all of them to arrive.
#[test]
fn requests_that_wait_in_all_are_limited() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.serve(&school);
    let write = |aulario: usize| {
        let body = json!({"id": "basal", "label": "B"});
        school.post("rename_menu_type").aulario(&format!("a{aulario}")).json(&body)
    };
    let locks: Vec<_> = (0..5)
        .map(|aulario| {
            school.write(&format!("a{aulario}.json"), "{}");
            school.write(&format!("a{aulario}/.comedor.lock"), "");
            let path = school.path(&format!("a{aulario}/.comedor.lock"));
            let lock = File::open(&path).unwrap();
            lock.lock().unwrap();
            (lock, path)
        })
        .collect();
    let all = || locks.iter().map(|(_, path)| waiting(path).len()).sum::<usize>();
    let mut clients = Vec::new();
    for batch in 0..8 {
        clients.extend((0..32).map(|_| sent(&socket, &write(batch % 5))));
        until_waiting(clients.len(), all);
    }
    write(0).ask(&socket.path).fails("BUSY");
    school.get("get_menu_types").ask(&socket.path).ok();
    until_waiting(256, all);
    locks.iter().for_each(|(lock, _)| lock.unlock().unwrap());
    clients.iter_mut().for_each(|client| assert_ok(&client.reply()));
    process.stop();
}

#[test]
fn slow_clients_do_not_shut_out_others() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.serve(&school);
    let body = json!({"id": "t", "label": "T".repeat(100)});
    let records = school.post("add_menu_type").json(&body).records();
    let mut slow: Vec<Client> = (0..600)
        .map(|n| {
            let mut client = Client::connect(&socket.path);
            client.send(&records[..[1, 20, records.len() - 20][n % 3]]);
            client
        })
        .collect();
    for _ in 0..20 {
        school.get("get_menu_types").ask(&socket.path).ok();
    }
    // 88 of the first ones have given way, in about the order of their connections: a thread that has just
    // accepted one may be late. Each that has sent its parameters gets an answer.
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let has_answer = |client: &&mut Client| recv(&client.0, &mut [0; 1], flags).is_ok();
    let answered: Vec<_> = slow.iter_mut().skip(2).step_by(3).filter(has_answer).collect();
    assert!(answered.len() > 20, "{}", answered.len());
    for client in answered {
        let reply = client.reply();
        assert!(reply.stdout.starts_with("Status: 503 "), "{reply:?}");
        client.is_at_end();
    }
    process.stop();
}

#[test]
fn a_request_beyond_64_running_ones_is_busy_and_troubleshooting_md_says_so() {
    let (school, socket, folder) = (School::new(), Held::new(), tempfile::tempdir().unwrap());
    // A Redis server that does not answer.
    let path = folder.path().join("redis.sock");
    let redis = UnixListener::bind(&path).unwrap();
    let mut command = Held::command(&[], &school);
    command.env("COMEDOR_SESSION_DIR", format!("unix://{}", path.display()));
    let process = socket.spawn(command);
    let request = school.get("get_menu_types");
    let mut running: Vec<Client> = (0..64).map(|_| Client::connect(&socket.path)).collect();
    let accepted: Vec<_> = running
        .iter_mut()
        .map(|client| {
            client.send(request.records());
            redis.accept().unwrap()
        })
        .collect();
    let refused = request.ask(&socket.path);
    let sentence = refused.fails("BUSY").value()["error"].as_str().unwrap().to_owned();
    drop((accepted, redis));
    process.stop();
    let documented = Path::new(REPOSITORY).join("docs/troubleshooting.md");
    let documented = fs::read_to_string(documented).unwrap();
    let sentence = sentence.trim_end_matches('.');
    assert!(documented.contains(&format!("`{sentence}`")), "{sentence}");
}

#[test]
fn refusals_differ_by_origin_as_other_answers_do() {
    let (school, socket) = (School::new(), Held::new());
    let request = school.get("get_menu_types");
    let request = request.set("COMEDOR_TRUSTED_ORIGINS", "https://menus.example");
    let process = socket.spawn(request.responder());
    let answer = request.set("HTTP_COOKIE", "x".repeat(300_000)).ask(&socket.path);
    assert_eq!(answer.fails("TOO_LARGE").header("Vary"), Some("Origin"));
    process.stop();
}

#[test]
fn a_process_with_few_file_descriptors_lowers_its_limits_and_says_so() {
    let (school, socket) = (School::new(), Held::new());
    school.save(save("first"));
    // A soft limit is raised.
    for (limit, is_lowered) in [("256:", false), ("100:100", true)] {
        let process = socket.serve_under(&["prlimit", &format!("--nofile={limit}")], &school);
        let body = save("second");
        let records = school.post("save_menu").json(&body).records();
        let mut clients: Vec<Client> = (0..90).map(|_| Client::connect(&socket.path)).collect();
        for client in &mut clients {
            // Some give way.
            _ = std::io::Write::write_all(&mut client.0, &records);
        }
        let whole = clients.iter_mut().filter_map(|client| {
            let text = String::from_utf8_lossy(&client.received()).into_owned();
            Some(text[text.find("Status: ")?..][..11].to_owned())
        });
        let statuses: Vec<String> = whole.collect();
        let known = |status: &String| ["Status: 200", "Status: 503"].contains(&status.as_str());
        assert!(statuses.iter().all(known), "{statuses:?}");
        assert!(statuses.iter().any(|status| status == "Status: 200"));
        let log = process.stop();
        assert_eq!(log.contains("(RLIMIT_NOFILE) is 100 instead of"), is_lowered, "{log}");
        assert_eq!(log.lines().count(), usize::from(is_lowered), "{log}");
    }
}

#[test]
fn the_unit_and_the_container_allow_what_the_limits_need() {
    let read = |file| fs::read_to_string(Path::new(REPOSITORY).join(file)).unwrap();
    let (unit, overlay) = (read("systemd/comedor.service"), read("examples/compose.yaml"));
    let limits = comedor::fastcgi::Limits::default();
    for (file, name, needed) in [
        (&unit, "TasksMax=", limits.threads()),
        (&unit, "LimitNOFILE=", limits.file_descriptors()),
        (&overlay, "pids_limit: ", limits.threads()),
        (&overlay, "nofile: ", limits.file_descriptors()),
    ] {
        let allowed = file.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap();
        assert!(allowed.parse::<usize>().unwrap() >= needed, "{name}: {needed}");
    }
    let image = concat!("image: comedor:", env!("CARGO_PKG_VERSION"), "\n");
    assert!(overlay.contains(image), "{image}");
}

#[test]
fn restarts_lose_no_acknowledged_write_if_the_socket_stays_open() {
    const RESTARTS: usize = 8;
    let (school, socket) = (School::new(), Held::new());
    let done = AtomicBool::new(false);
    let answered = AtomicUsize::new(0);
    let acknowledged = thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|client| {
                let (socket, done, answered) = (&socket, &done, &answered);
                scope.spawn(move || {
                    let mut ids = Vec::new();
                    while !done.load(Ordering::Relaxed) {
                        let id = format!("t{client}-{}", ids.len());
                        let body = json!({"id": id, "label": "T"}).to_string();
                        let query = "action=add_menu_type&aulario=aula1";
                        let mut parameters = parameters("POST", query, "PHPSESSID=admin");
                        let length = body.len().to_string();
                        parameters.push(("CONTENT_LENGTH", &length));
                        let mut connection = Client::connect(&socket.path);
                        assert_ok(&connection.ask(false, &parameters, body.as_bytes()));
                        ids.push(id);
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                    ids
                })
            })
            .collect();
        for _ in 0..=RESTARTS {
            let process = socket.serve(&school);
            // Each process answers some requests before it is stopped.
            let before = answered.load(Ordering::Relaxed);
            while answered.load(Ordering::Relaxed) < before + 16 {
                assert!(!clients.iter().any(|client| client.is_finished()), "a client failed");
                thread::yield_now();
            }
            process.stop();
        }
        done.store(true, Ordering::Relaxed);
        // Serves the requests that connected after the last stop.
        let last = socket.serve(&school);
        let ids: Vec<String> =
            clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
        last.stop();
        ids
    });
    let types = school.get("get_menu_types").run().ok();
    let types = types["menu_types"].as_array().unwrap();
    for id in &acknowledged {
        assert!(types.iter().any(|menu_type| menu_type["id"] == **id), "{id} is lost");
    }
    println!("restarts: {RESTARTS}, acknowledged writes: {}, losses: 0", acknowledged.len());
}

#[test]
fn memory_of_large_requests_is_returned_to_the_system() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.serve(&school);
    // The answer to a management record shows that the rest was received.
    let receive = |part: &[u8]| {
        let mut client = Client::connect(&socket.path);
        client.send([part, &[1, 99, 0, 0, 0, 0, 0, 0]].concat()).record();
        client
    };
    let large = school.post("save_menu").body("application/json", vec![b' '; 1_000_000]).records();
    let small = school.get("get_menu").records();
    let [large, small] = [&large, &small].map(|records| &records[..records.len() - 8]);
    // Small blocks stay in use between the large ones.
    let clients: Vec<_> = (0..100).map(|_| (receive(large), receive(small))).collect();
    let used = process.status("VmRSS");
    assert!(used > 90 * 1024, "{used} KiB");
    let (large, small): (Vec<_>, Vec<_>) = clients.into_iter().unzip();
    drop(large);
    let started = Instant::now();
    while process.status("VmRSS") > 20 * 1024 {
        let resident = process.status("VmRSS");
        assert!(started.elapsed() < Duration::from_secs(5), "{resident} KiB");
        thread::yield_now();
    }
    drop(small);
    process.stop();
}

/// `COMEDOR_FASTCGI_REQUESTS=1000000` makes it a long run.
#[test]
fn memory_and_descriptors_do_not_leak() {
    let requests = std::env::var("COMEDOR_FASTCGI_REQUESTS").ok();
    let requests: usize = requests.and_then(|count| count.parse().ok()).unwrap_or(50_000);
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
                        let reply = connection.ask(keep, &parameters("GET", &query, session), b"");
                        assert!(reply.stdout.starts_with("Status: "), "{reply:?}");
                        if !keep {
                            connection = Client::connect(&socket.path);
                        }
                    }
                });
            }
        });
    };
    run(requests / 5);
    let (memory, descriptors) = (process.status("VmHWM"), process.descriptors());
    run(requests);
    let after = process.status("VmHWM");
    println!("requests: {requests}, peak memory: {memory} KiB, then {after} KiB");
    // A thread that starts late brings its buffer and its memory pool. A leak of 50 bytes per
    // request exceeds this.
    assert!(after <= memory + 2048, "{memory} KiB, then {after} KiB");
    // Without the pages of the executable, which are more in a debug build.
    let own = after - process.status("RssFile");
    println!("of its own: {own} KiB");
    assert!(own < 5 * 1024, "{own} KiB");
    assert!(process.descriptors() <= descriptors + 16);
    process.stop();
}

#[test]
fn parameter_named_like_a_setting_has_no_effect_and_is_reported_once() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.serve(&school);
    let mut query = parameters("GET", TYPES_QUERY, "PHPSESSID=teacher");
    query.push(("COMEDOR_DATA_DIR", "/nowhere"));
    let guide = Path::new(REPOSITORY).join("docs/troubleshooting.md");
    let guide = fs::read_to_string(guide).unwrap();
    for reported in [1, 0] {
        let reply = Client::connect(&socket.path).ask(false, &query, b"");
        assert!(reply.stdout.contains("\"success\":true"), "{reply:?}");
        assert_eq!(reply.stderr.len(), reported, "{reply:?}");
        assert!(
            reply.stderr.iter().all(|line| guide.contains(&format!("\n{line}\n"))),
            "{reply:?}"
        );
    }
    process.stop();
}

#[test]
fn invalid_setting_fails_each_request_but_not_the_start() {
    let (school, socket) = (School::new(), Held::new());
    let mut command = Command::new(program());
    command.env_clear().env("COMEDOR_SESSION_FORMAT", "yaml");
    let process = socket.spawn(command);
    let mut lines = Vec::new();
    for _ in 0..2 {
        let reply = read(&mut Client::connect(&socket.path), false, "teacher");
        assert!(reply.stdout.starts_with("Status: 500 "), "{reply:?}");
        assert!(reply.stderr[0].contains("COMEDOR_SESSION_FORMAT must be php"), "{reply:?}");
        lines.extend(reply.stderr);
    }
    // Once per request, for a web server that drops them.
    assert_eq!(process.stop().lines().collect::<Vec<_>>(), lines);
    drop(school);
}

#[test]
fn command_creates_the_socket_for_its_owner_and_group() {
    let school = School::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("comedor.sock");
    let start = || {
        let mut command = Command::new(program());
        command.env_clear().env("COMEDOR_DATA_DIR", school.data());
        command.env("COMEDOR_SESSION_DIR", school.sessions()).arg("fastcgi").arg(&path);
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        Process(command.spawn().unwrap())
    };
    // A socket on which no process listens is replaced.
    drop(UnixListener::bind(&path).unwrap());
    let process = start();
    while UnixStream::connect(&path).is_err() {
        thread::yield_now();
    }
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o660);
    assert_ok(&read(&mut Client::connect(&path), false, "teacher"));
    let is_refused = |why| {
        let mut second = start();
        let mut log = String::new();
        second.0.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        assert!(!second.0.wait().unwrap().success());
        assert!(log.contains(why), "{log}");
    };
    is_refused("another process listens on this socket");
    assert_ok(&read(&mut Client::connect(&path), false, "teacher"));
    process.stop();
    assert!(!path.exists());
    fs::write(&path, "a file").unwrap();
    is_refused("exists and is not a socket");
    assert_eq!(fs::read(&path).unwrap(), b"a file");
    // Any user can lock a folder that they may read.
    let locked = File::open(folder.path()).unwrap();
    locked.lock().unwrap();
    is_refused("another process has locked its folder (flock)");
}

#[test]
fn closed_standard_streams_are_dev_null() {
    let socket = Held::new();
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" >&- 2>&-"]).arg(program()).env_clear();
    let process = socket.spawn(command);
    Client::connect(&socket.path).ask(false, &[], b"");
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
        let output = Command::new(program()).env_clear().stdin(listener).output().unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{log}");
        assert!(log.contains("not a Unix socket with a path"), "{log}");
    }
}
