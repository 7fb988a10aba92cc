//! Requests that wait for sessions, files, Redis or web servers that are held, and who may wait.

use std::io::Write;
use std::mem;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;

use super::*;
use crate::support::fastcgi::{STDIN, record};
use crate::support::redis::{commands, fake_redis, replies, status};

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
        // A read of /proc/locks can have a line twice, or not at all, while locks of other processes come and go.
        wait_until("those that wait", || waiting(&path).len() == may_wait);
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

/// Those who may save can hold three quarters of the workers with slow uploads, and are told that the others are kept free.
#[test]
fn slow_uploads_are_busy_while_three_quarters_of_the_workers_wait() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.spawn(school.get("").set("COMEDOR_WORKERS", "8").responder());
    let records = school.post("save_menu").json(&save("x")).records();
    let part = &records[..records.len() - 20];
    let mut clients: Vec<Client> = (0..24).map(|_| Client::connect(&socket.path)).collect();
    for client in &mut clients {
        client.send(part);
    }
    school.get("get_menu_types").ask(&socket.path).ok();
    let answers = clients.iter_mut().map(|client| client.reply().stdout);
    let (busy, others): (Vec<_>, Vec<_>) = answers.partition(|answer| answer.contains("BUSY"));
    assert!(!busy.is_empty());
    for answer in others {
        let is_late = answer.contains("The body did not arrive in time.");
        assert!(is_late, "{answer}");
    }
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

/// It has answered a request of five workers, which keep the connection.
#[test]
fn half_of_the_workers_wait_for_a_redis_that_stops_answering_and_further_requests_are_busy() {
    let (school, socket) = (School::new(), Held::new());
    let (connections, is_stalled) = <(Arc<AtomicUsize>, Arc<AtomicBool>)>::default();
    let (connected, stalled) = (connections.clone(), is_stalled.clone());
    let redis = fake_redis(move |_, mut stream| {
        connected.fetch_add(1, SeqCst);
        let stalled = stalled.clone();
        thread::spawn(move || {
            while commands(&stream).is_some() && !stalled.load(SeqCst) {
                stream.write_all(&replies(&session(TEACHER))).unwrap();
            }
            mem::forget(stream);
        });
    });
    let request = school
        .get("get_menu_types")
        .set("COMEDOR_SESSION_DIR", redis);
    let process = socket.spawn(request.clone().set("COMEDOR_WORKERS", "8").responder());
    wait_until("the workers", || process.has_started(8));
    // Half of the workers may keep the connection of a client. The next request is for one of the others.
    let mut kept: Vec<Client> = (0..4).map(|_| Client::connect(&socket.path)).collect();
    for client in &mut kept {
        assert_eq!(status(client, "aula1", "teacher"), 200);
    }
    request.ask(&socket.path).ok();
    assert_eq!(connections.load(SeqCst), 5);
    drop(kept);
    is_stalled.store(true, SeqCst);
    for mut client in but_busy(send_all(&socket, &request, 24), 4) {
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
