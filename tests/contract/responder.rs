//! The real program as a FastCGI responder: one process for many requests.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use crate::support::fastcgi::{Client, Held, PING, Process, STDIN, begin, parameters, record};
use crate::support::site::wait_until;
use crate::support::*;

const TYPES_QUERY: &str = "action=get_menu_types&aulario=aula1";

/// Readers of one session, then writers of five aularios, who wait longer: time enough for all to arrive.
#[test]
fn at_most_64_requests_wait_for_one_lock_and_256_in_all_and_others_are_answered() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.serve(&school);
    let aularios = (0..5).map(|n| {
        school.write(&format!("a{n}.json"), "{}");
        school.write(&format!("a{n}/.comedor.lock"), "");
        school.path(&format!("a{n}/.comedor.lock"))
    });
    let read = school.get("get_menu_types");
    let write = school.post("rename_menu_type").json(&json!({"id": "basal", "label": "B"}));
    let write = |n: usize| write.clone().aulario(&format!("a{n}"));
    for (paths, requests, one_more) in [
        (vec![school.sessions().join("sess_teacher")], vec![read.clone(); 64], read.clone()),
        (aularios.collect(), (0..256).map(|n| write(n / 32 % 5)).collect(), write(4)),
    ] {
        let locks: Vec<File> = paths.iter().map(|path| File::open(path).unwrap()).collect();
        locks.iter().for_each(|lock| lock.lock().unwrap());
        // A read of `/proc/locks` may see a lock twice, or not at all, while other locks come and go.
        let all = || paths.iter().map(|path| waiting(path).len()).sum::<usize>();
        let until_waiting = |goal| wait_until("as many as are sent wait", || all() == goal);
        let mut clients = Vec::new();
        for batch in requests.chunks(32) {
            for request in batch {
                clients.push(Client::connect(&socket.path));
                clients.last_mut().unwrap().send(request.records());
            }
            until_waiting(clients.len());
        }
        for _ in 0..100 {
            read.clone().session("admin").ask(&socket.path).ok();
        }
        one_more.ask(&socket.path).fails("BUSY");
        until_waiting(clients.len());
        locks.iter().for_each(|lock| lock.unlock().unwrap());
        for client in &mut clients {
            let reply = client.reply();
            assert!(reply.stdout.starts_with("Status: 200 "), "{reply:?}");
        }
    }
    // Of the threads that waited, no more stay than can run, besides one for events and the first one.
    wait_until("the end of threads", || process.status("Threads") <= 64 + 2);
    process.stop();
}

#[test]
fn requests_beyond_64_running_ones_and_with_large_header_fields_are_refused() {
    let (school, socket, folder) = (School::new(), Held::new(), tempfile::tempdir().unwrap());
    // A Redis server that does not answer.
    let path = folder.path().join("redis.sock");
    let redis = UnixListener::bind(&path).unwrap();
    let request = school.get("get_menu_types").set("COMEDOR_TRUSTED_ORIGINS", "https://a.example");
    let request = request.set("COMEDOR_SESSION_DIR", format!("unix://{}", path.display()));
    let process = socket.spawn(request.responder());
    let mut running: Vec<Client> = (0..64).map(|_| Client::connect(&socket.path)).collect();
    let accepted: Vec<_> = running
        .iter_mut()
        .map(|client| {
            client.send(request.records());
            redis.accept().unwrap()
        })
        .collect();
    let refused = [(); 20].map(|()| request.ask(&socket.path).fails("BUSY").value());
    let sentence = refused[0]["error"].as_str().unwrap().to_owned();
    let large = request.set("HTTP_COOKIE", "x".repeat(300_000)).ask(&socket.path);
    assert_eq!(large.fails("TOO_LARGE").header("Vary"), Some("Origin"));
    drop((accepted, redis));
    process.stop();
    let sentence = format!("`{}`", sentence.trim_end_matches('.'));
    assert!(text_of("docs/troubleshooting.md").contains(&sentence), "{sentence}");
}

#[test]
fn a_process_with_few_file_descriptors_lowers_its_limits_and_says_so() {
    let (school, socket) = (School::new(), Held::new());
    school.save(save("first"));
    // A soft limit is raised.
    for (limit, is_lowered) in [("256:", false), ("100:100", true)] {
        let limited = school.get("").under(&["prlimit", &format!("--nofile={limit}")]);
        let process = socket.spawn(limited.responder());
        let records = school.post("save_menu").json(&save("second")).records();
        let mut clients: Vec<Client> = (0..90).map(|_| Client::connect(&socket.path)).collect();
        for client in &mut clients {
            // Some give way.
            _ = std::io::Write::write_all(&mut client.0, &records);
        }
        let statuses = clients.iter_mut().filter_map(|client| {
            let text = String::from_utf8_lossy(&client.received()).into_owned();
            Some(text.split_once("Status: ")?.1[..3].to_owned())
        });
        let statuses: BTreeSet<String> = statuses.collect();
        assert!(statuses.contains("200"), "{statuses:?}");
        assert!(statuses.iter().all(|status| ["200", "503"].contains(&&**status)), "{statuses:?}");
        let log = process.stop();
        assert_eq!(log.contains("(RLIMIT_NOFILE) is 100 instead of"), is_lowered, "{log}");
        assert_eq!(log.lines().count(), usize::from(is_lowered), "{log}");
    }
}

#[test]
fn the_unit_and_the_container_allow_what_the_limits_need() {
    let (unit, overlay) = (text_of("systemd/comedor.service"), text_of("examples/compose.yaml"));
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

/// A client whose request has arrived, except for its end.
fn arriving(socket: &Held, request: &Cgi) -> Client {
    let records = request.records();
    let mut client = Client::connect(&socket.path);
    client.send([&records[..records.len() - 8], &PING].concat()).record();
    client
}

#[test]
fn memory_of_large_requests_is_returned_to_the_system() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.serve(&school);
    let large = school.post("save_menu").body("application/json", vec![b' '; 1_000_000]);
    // Small blocks stay in use between the large ones.
    let small = school.get("get_menu");
    let pair = |_| (arriving(&socket, &large), arriving(&socket, &small));
    let (large, small): (Vec<_>, Vec<_>) = (0..100).map(pair).unzip();
    let used = process.status("VmRSS");
    assert!(used > 90 * 1024, "{used} KiB");
    drop(large);
    wait_until("20 MiB resident", || process.status("VmRSS") <= 20 * 1024);
    drop(small);
    process.stop();
}

/// The unit allows 1 GiB.
#[test]
fn as_many_large_bodies_as_run_at_once_take_512_mib_and_leave_64() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.serve(&school);
    let many = format!("{{\"plates\":[{}0]}}", "[0],".repeat(262_000));
    // Of as many values as a body may have, those that take most memory.
    let nested = format!("{}0{},", "{\"a\":".repeat(498), "}".repeat(498)).repeat(20);
    let most = format!("{{\"x\":[{nested}0],\"y\":\"{}\"}}", "y".repeat(900_000));
    for (body, code) in [(many, "INVALID_FORMAT"), (most, "MISSING_PARAM")] {
        let request = school.post("save_menu").body("application/json", body);
        let mut clients: Vec<_> = (0..64).map(|_| arriving(&socket, &request)).collect();
        for client in &mut clients {
            client.send(record(STDIN, b""));
        }
        for mut client in clients {
            let answer = client.reply().stdout;
            assert!(answer.contains(code), "{answer}");
        }
        let peak = process.status("VmHWM");
        assert!(peak <= 512 * 1024, "{peak} KiB");
        // An idle thread gives back what is left. Stacks stay.
        wait_until("64 MiB resident", || process.status("VmRSS") <= 64 * 1024);
    }
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
    run(requests / 5);
    let (memory, descriptors) = (process.status("VmHWM"), process.descriptors());
    run(requests);
    let after = process.status("VmHWM");
    println!("requests: {requests}, peak memory: {memory} KiB, then {after} KiB");
    // A thread that starts late brings its buffer and its memory pool. A leak of 50 bytes per
    // request exceeds this.
    assert!(after <= memory + 2048, "{memory} KiB, then {after} KiB");
    // Without the pages of the executable: a debug build has more of them, and the kernel takes them back.
    let own = process.status("RssAnon");
    println!("of its own: {own} KiB");
    assert!(own < 5 * 1024, "{own} KiB");
    wait_until("the end of connections", || process.descriptors() <= descriptors);
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
        assert!(reply.stderr.iter().all(|line| line.contains("COMEDOR_DATA_DIR")), "{reply:?}");
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
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o660);
    read.ask(&path).ok();
    let is_refused = |why| {
        let mut second = start();
        let mut log = String::new();
        second.0.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        assert!(!second.0.wait().unwrap().success());
        assert!(log.contains(why), "{log}");
    };
    is_refused("another process listens on this socket");
    read.ask(&path).ok();
    process.stop();
    assert!(!path.exists());
    fs::write(&path, "a file").unwrap();
    is_refused("exists and is not a socket");
    assert_eq!(fs::read(&path).unwrap(), b"a file");
    fs::remove_file(&path).unwrap();
    symlink("nothing", &path).unwrap();
    is_refused("exists and is not a socket");
    // Any user can lock a folder that they may read.
    let locked = File::open(folder.path()).unwrap();
    locked.lock().unwrap();
    is_refused("another process has locked its folder (flock)");
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
        let output = Command::new(program()).env_clear().stdin(listener).output().unwrap();
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
    let output = check.arg("check").stdin(OwnedFd::from(listener)).output().unwrap();
    let findings = String::from_utf8(output.stdout).unwrap();
    assert!(findings.contains("settings: today is 20"), "{findings}");
}
