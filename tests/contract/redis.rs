//! Servers in the place of Redis that misbehave. With Redis itself: tests/system/sessions/redis.rs.

use std::io::Write;
use std::net::Shutdown;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::redis::{commands, fake_redis, replies, reply_with};
use crate::support::*;

/// A read with the session of the teacher on this server.
fn read(school: &School, save_path: &str) -> Cgi {
    school.get("get_menu").set("COMEDOR_SESSION_DIR", save_path)
}

/// The timeout is 5 seconds in total, however the server spends them.
#[test]
fn a_slow_server_is_a_fault_after_five_seconds() {
    let school = School::new();
    let silent = fake_redis(|_, stream| std::mem::forget(stream));
    let half = fake_redis(|_, stream| {
        reply_with(&stream, b"$1000\r\nauth_ok|b:1;");
        std::mem::forget(stream);
    });
    let dripping = fake_redis(|_, stream| {
        while (&stream).write_all(b"$").is_ok() {
            thread::sleep(Duration::from_millis(300));
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let full = std::os::unix::net::UnixListener::bind(&path).unwrap();
    rustix::net::listen(&full, 0).unwrap();
    let _queued = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let full = format!("unix://{}", path.display());
    // Its queue is full too: as a firewall, the kernel drops the packets of further connections.
    let dropping = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&dropping, 0).unwrap();
    let dropping = dropping
        .local_addr()
        .map(|address| (dropping, address))
        .unwrap();
    let _first = std::net::TcpStream::connect(dropping.1).unwrap();
    let dropped = format!("tcp://{}", dropping.1);
    thread::scope(|scope| {
        for save_path in [silent, half, dripping, full, dropped] {
            let read = read(&school, &save_path);
            scope.spawn(move || {
                let start = Instant::now();
                // The server would keep it for ever.
                let answer = read.run();
                answer.fails("INTERNAL_ERROR");
                assert!(
                    answer.log.contains("no answer within 5 seconds"),
                    "{}",
                    answer.log
                );
                let seconds = start.elapsed().as_secs_f64();
                assert!(seconds >= 5., "{save_path}: {seconds}");
            });
        }
    });
}

#[test]
fn a_reply_that_is_an_error_or_not_of_redis_is_refused_without_reading_or_logging_all_of_it() {
    let school = School::new();
    let line = format!("$1{}", "0".repeat(5000));
    let unknown = "-ERR unknown command 'GET', with args beginning with: 'PHPREDIS_SESSION:…'\r\n";
    let old = "$-1\r\n-ERR wrong number of arguments for 'expire' command\r\n";
    let too_old = "'expire' command; it must be Redis 7 or Valkey 7.2, or later\n";
    for (reply, code, log) in [
        (unknown, "INTERNAL_ERROR", ": ERR unknown command 'GET'\n"),
        (old, "INTERNAL_ERROR", too_old),
        (
            "HTTP/1.1 400 Bad Request\r\n\r\n", "INTERNAL_ERROR", "not that of a Redis server",
        ),
        (
            ":1\r\n:1\r\n", "INTERNAL_ERROR", "not that of a Redis server",
        ),
        ("$-2\r\n", "INTERNAL_ERROR", "not that of a Redis server"),
        (
            "$3\r\nabcde", "INTERNAL_ERROR", "not that of a Redis server",
        ),
        (
            line.as_str(),
            "INTERNAL_ERROR",
            "not that of a Redis server",
        ),
        (
            "-ERR max number of clients reached\r\n", "INTERNAL_ERROR",
            ": ERR max number of clients",
        ),
        (
            "$99999999999999999999\r\n", "INTERNAL_ERROR", "not that of a Redis server",
        ),
        (
            "$9999999999999999\r\n", "INVALID_SESSION", "larger than 16 MiB",
        ),
        ("$16777217\r\n", "INVALID_SESSION", "larger than 16 MiB"),
        ("", "INTERNAL_ERROR", "end of file"),
        ("$10", "INTERNAL_ERROR", "end of file"),
        ("$10\r\nauth", "INTERNAL_ERROR", "end of file"),
    ] {
        let bytes = reply.as_bytes().to_vec();
        let redis = fake_redis(move |_, stream| {
            reply_with(&stream, &bytes);
            _ = stream.shutdown(Shutdown::Both);
        });
        let answer = read(&school, &redis).memory(64 << 20).run();
        assert!(
            answer.fails(code).log.contains(log),
            "{reply:.30}: {}",
            answer.log
        );
    }
    // The largest session that is read.
    let text = "x".repeat(16 * 1024 * 1024 - session(TEACHER).len() - 16);
    let content = format!("x|s:{}:\"{text}\";{}", text.len(), session(TEACHER));
    let redis = fake_redis(move |_, stream| reply_with(&stream, &replies(&content)));
    read(&school, &redis).run().ok();
}

/// As phpredis does. Their replies are not taken for the session.
#[test]
fn a_login_and_a_database_come_before_the_key() {
    let school = School::new();
    let (sender, sent) = channel();
    let redis = fake_redis(move |_, mut stream| {
        sender.send(commands(&stream).unwrap()).unwrap();
        let replies = [b"+OK\r\n+OK\r\n", &*replies(&session(TEACHER))].concat();
        stream.write_all(&replies).unwrap();
    });
    let save_path = format!("{redis}?auth[]=school&auth[]=s3cret&database=3");
    read(&school, &save_path).run().ok();
    let sent = String::from_utf8(sent.recv().unwrap()).unwrap();
    let login =
        "*3\r\n$4\r\nAUTH\r\n$6\r\nschool\r\n$6\r\ns3cret\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n";
    assert!(
        sent.starts_with(&format!("{login}*2\r\n$3\r\nGET\r\n")),
        "{sent}"
    );
}

#[test]
fn check_finds_a_server_that_refuses_the_login() {
    let school = School::new();
    let redis = fake_redis(|_, stream| reply_with(&stream, b"-WRONGPASS invalid password\r\n"));
    let request = read(&school, &format!("{redis}?auth=s3cret"));
    let check = request.responder().arg("check").output().unwrap();
    assert_eq!(check.status.code(), Some(2));
    let lines = String::from_utf8(check.stdout).unwrap();
    assert!(lines.contains("WRONGPASS"), "{lines}");
}

/// Not that of this machine: its sessions are of other users.
#[test]
fn an_unknown_host_is_a_fault_and_no_other_is_asked() {
    let school = School::new();
    let redis = fake_redis(|_, stream| reply_with(&stream, &replies(&session(TEACHER))));
    read(&school, &redis.replace("127.0.0.1", "localhost"))
        .run()
        .ok();
    let answer = read(&school, &redis.replace("127.0.0.1", "redis.invalid")).run();
    let log = &answer.fails("INTERNAL_ERROR").log;
    assert!(log.contains("unknown host redis.invalid"), "{log}");
}
