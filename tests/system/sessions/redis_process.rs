//! The connections to Redis that a FastCGI process keeps.

use std::fs;
use std::thread;

use super::redis::key;
use crate::support::fastcgi::{Client, Held};
use crate::support::redis::{Redis, serve, status};
use crate::support::site::wait_until;
use crate::support::*;

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
    for (password, expected) in [("one", 200), ("wrong", 500), ("two", 200)] {
        set(password);
        // The workers with the old settings end, and their connections too.
        wait_until(password, || {
            let mut client = Client::connect(&socket.path);
            status(&mut client, "aula1", "teacher") == expected
        });
    }
    process.stop();
}
