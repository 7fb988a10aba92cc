//! The connections to Redis that a FastCGI process keeps.

use std::fs;
use std::io::Write;
use std::sync::mpsc::channel;
use std::thread;

use super::redis::key;
use crate::support::fastcgi::{Client, Held, Process, parameters};
use crate::support::redis::{Redis, fake_redis, replies, reply_with};
use crate::support::site::wait_until;
use crate::support::*;

fn serve(socket: &Held, school: &School, save_path: &str) -> Process {
    let process = socket.spawn(
        school
            .get("")
            .set("COMEDOR_SESSION_DIR", save_path)
            .responder(),
    );
    // Connections are kept only while half of the workers are free.
    wait_until("the workers", || process.has_started(64));
    process
}

/// The status of a read on a connection that stays open.
fn status(client: &mut Client, aulario: &str, id: &str) -> u16 {
    let query = format!("action=get_menu&aulario={aulario}&date={DATE}");
    let reply = client.ask(
        true,
        &parameters("GET", &query, &format!("PHPSESSID={id}")),
        b"",
    );
    reply.stdout.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_process_keeps_its_connection_and_survives_restarts_of_redis() {
    let (school, mut redis) = (School::new(), Redis::new());
    let socket = Held::new();
    for save_path in [
        redis.socket("?database=1"),
        redis.tcp("127.0.0.1", "?database=1"),
    ] {
        let process = serve(&socket, &school, &save_path);
        let mut client = Client::connect(&socket.path);
        for _ in 0..3 {
            redis.restart();
            // An empty database shows that the session was not cached.
            assert_eq!(status(&mut client, "aula1", "teacher"), 400);
            redis.command(&["-n", "1", "SET", &key("teacher"), &session(TEACHER)]);
            let open = process.descriptors();
            for _ in 0..20 {
                assert_eq!(status(&mut client, "aula1", "teacher"), 200);
            }
            assert_eq!(process.descriptors(), open);
            // One of the process, and redis-cli twice
            let stats = redis.command(&["INFO", "stats"]);
            let is_three = |line: &str| line.trim() == "total_connections_received:3";
            assert!(stats.lines().any(is_three), "{stats}");
        }
        redis.stop();
        assert_eq!(status(&mut client, "aula1", "teacher"), 500);
        redis.restart();
        assert_eq!(status(&mut client, "aula1", "teacher"), 400);
        drop(client);
        let log = process.stop();
        assert!(
            log.lines().count() == 1 && log.contains("Redis at "),
            "{log}"
        );
    }
}

/// A reply that comes late would be the session of another user.
#[test]
fn a_connection_is_not_reused_after_an_error_a_timeout_or_unexpected_bytes() {
    let school = School::new();
    let (sender, connections) = channel();
    let teacher = replies(&session(TEACHER));
    let of_connection = [
        [
            b"$-1\r\n-LOADING Redis is loading\r\n".to_vec(),
            teacher.clone(),
        ],
        [teacher.repeat(2), teacher.clone()],
        // The rest of the reply never comes: the program gives up after its timeout.
        [teacher[..10].to_vec(), teacher.clone()],
        [teacher.clone(), teacher.clone()],
        // As a restart at the worst moment
        [teacher.clone(), teacher[..10].to_vec()],
        // Replies of another kind than Redis sends; then those to the next request would be late.
        [b":0\r\n:0\r\n".to_vec(), teacher.clone()],
        [teacher.clone(), b"$-1\r\n:0\r\n".to_vec()],
    ];
    let save_path = fake_redis(move |number, stream| {
        sender.send(stream.try_clone().unwrap()).unwrap();
        let replies = of_connection[number].clone();
        thread::spawn(move || replies.iter().for_each(|reply| reply_with(&stream, reply)));
    });
    let socket = Held::new();
    let process = serve(&socket, &school, &save_path);
    let mut client = Client::connect(&socket.path);
    for (number, expected) in [500, 200, 500, 200, 200, 500, 200].into_iter().enumerate() {
        assert_eq!(status(&mut client, "aula1", "teacher"), expected);
        let mut connection = connections.try_recv().expect("a new connection");
        // What no request waits for
        if number == 3 {
            connection.write_all(&teacher).unwrap();
        }
    }
    assert_eq!(
        status(&mut client, "aula1", "teacher"),
        400,
        "on the last connection"
    );
    assert!(connections.try_recv().is_err(), "no other connection");
    drop(client);
    process.stop();
}

#[test]
fn requests_at_the_same_time_get_the_session_of_their_own_user() {
    let (school, redis) = (School::new(), Redis::new());
    for number in 0..8 {
        school.write(&format!("../../c{number}/Aularios/a{number}.json"), "{}");
        let content = session_of(&format!("c{number}"), TEACHER);
        redis.command(&["SET", &key(&format!("user{number}")), &content]);
    }
    let socket = Held::new();
    let process = serve(&socket, &school, &redis.socket(""));
    thread::scope(|scope| {
        for number in 0..8 {
            let path = &socket.path;
            scope.spawn(move || {
                let mut client = Client::connect(path);
                let (aulario, id) = (format!("a{number}"), format!("user{number}"));
                for _ in 0..200 {
                    // Each aulario exists only in the centre of its user.
                    assert_eq!(status(&mut client, &aulario, &id), 200);
                }
            });
        }
    });
    process.stop();
}

#[test]
fn a_new_password_in_the_settings_file_is_used_within_seconds() {
    let (school, redis) = (School::new(), Redis::new());
    redis.command(&["SET", &key("teacher"), &session(TEACHER)]);
    redis.command(&[
        "ACL", "SETUSER", "school", "on", ">one", ">two", "~*", "+get", "+expire",
    ]);
    let folder = tempfile::tempdir().unwrap();
    let program = program_in(folder.path(), NO_SETTINGS);
    let set = |password: &str| {
        let save_path = redis.socket(&format!("?auth[]=school&auth[]={password}"));
        let settings = format!("COMEDOR_SESSION_DIR={save_path}\n");
        fs::write(folder.path().join("comedor.conf"), settings).unwrap();
    };
    let socket = Held::new();
    set("one");
    let by_file = school
        .get("")
        .program(&program)
        .unset("COMEDOR_SESSION_DIR");
    let process = socket.spawn(by_file.responder());
    wait_until("the workers", || process.has_started(64));
    let mut client = Client::connect(&socket.path);
    for (password, expected) in [("one", 200), ("wrong", 500), ("two", 200)] {
        set(password);
        // A process looks at its settings at most once a second.
        wait_until(password, || {
            status(&mut client, "aula1", "teacher") == expected
        });
    }
    drop(client);
    process.stop();
}
