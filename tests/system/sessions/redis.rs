//! Sessions that phpredis keeps in Redis. Servers that misbehave: tests/contract/redis.rs.

use crate::support::redis::{Redis, php_session};
use crate::support::*;

pub const LOGIN: &str = "$_SESSION['auth_ok'] = true; $_SESSION['auth_data'] = ['permissions' =>
    ['service:docente'], 'service' => ['centro' => 'centro1']];";

/// A read with the session `id` in Redis.
fn read(school: &School, save_path: &str, id: &str) -> Cgi {
    school
        .get("get_menu")
        .set("COMEDOR_SESSION_DIR", save_path)
        .session(id)
}

pub fn key(id: &str) -> String {
    format!("PHPREDIS_SESSION:{id}")
}

#[test]
fn sessions_of_phpredis_are_read_with_its_save_path_and_in_every_format() {
    let (school, redis) = (School::new(), Redis::new());
    for save_path in [
        redis.socket(""),
        redis.socket("?database=2&weight=2&timeout=2.5&persistent=1"),
        redis.socket("?prefix="),
        redis.socket("?prefix=school%3A+%C3%B1%2f&read_timeout=3"),
        redis.tcp("127.0.0.1", "/5?database=3"),
        redis.tcp("localhost", "?prefix=x"),
    ] {
        for format in ["php", "php_serialize", "php_binary"] {
            let id = php_session(&save_path, format, "1440", "", LOGIN);
            let read = read(&school, &save_path, &id);
            read.clone()
                .set("COMEDOR_SESSION_FORMAT", format)
                .run()
                .ok();
            let other = if format == "php" { "php_binary" } else { "php" };
            read.set("COMEDOR_SESSION_FORMAT", other)
                .run()
                .fails("INVALID_SESSION");
        }
    }
}

#[test]
fn a_request_extends_the_lifetime_of_a_session_as_php_does_and_never_shortens_it() {
    let (school, redis) = (School::new(), Redis::new());
    let id = php_session(&redis.socket(""), "php", "100", "", LOGIN);
    let content = redis.command(&["GET", &key(&id)]);
    let left = || redis.command(&["TTL", &key(&id)]).parse::<i64>().unwrap();
    let read = read(&school, &redis.socket(""), &id);
    read.run().ok();
    assert!((1400..=1440).contains(&left()), "the default: {}", left());
    read.clone()
        .set("COMEDOR_SESSION_LIFETIME", "5000")
        .run()
        .ok();
    assert!((4900..=5000).contains(&left()), "{}", left());
    read.clone()
        .set("COMEDOR_SESSION_LIFETIME", "10")
        .run()
        .ok();
    assert!((4900..=5000).contains(&left()), "not shortened: {}", left());
    redis.command(&["PERSIST", &key(&id)]);
    read.run().ok();
    assert_eq!(left(), -1, "a key without an end gets none");
    assert_eq!(redis.command(&["GET", &key(&id)]), content);
}

#[test]
fn an_expired_or_destroyed_session_is_not_created_again() {
    let (school, redis) = (School::new(), Redis::new());
    let read = |id: &str| read(&school, &redis.socket(""), id).run();
    let expired = php_session(&redis.socket(""), "php", "1440", "", LOGIN);
    redis.command(&["PEXPIRE", &key(&expired), "0"]);
    read(&expired).fails("INVALID_SESSION");

    let destroyed = php_session(&redis.socket(""), "php", "1440", "", LOGIN);
    read(&destroyed).ok();
    php_session(
        &redis.socket(""),
        "php",
        "1440",
        &destroyed,
        "session_destroy();",
    );
    assert_eq!(read(&destroyed).fails("INVALID_SESSION").log, "");

    let empty = php_session(&redis.socket(""), "php", "1440", "", LOGIN);
    php_session(&redis.socket(""), "php", "1440", &empty, "$_SESSION = [];");
    read(&empty).fails("INVALID_SESSION");
    assert_eq!(redis.command(&["DBSIZE"]), "1", "the empty session");
}

#[test]
fn the_login_to_redis_is_taken_from_the_save_path_and_never_logged() {
    let (school, redis) = (School::new(), Redis::new());
    redis.command(&["SET", &key("teacher"), &session(TEACHER), "EX", "1440"]);
    // What docs/several-servers.md says a user needs.
    let rights = ["~PHPREDIS_SESSION:*", "+get", "+expire", "+select"];
    redis.command(
        &[
            &["ACL", "SETUSER", "comedor", "on", ">s3cret&#"],
            rights.as_slice(),
        ]
        .concat(),
    );
    redis.command(&["ACL", "SETUSER", "reader", "on", ">s3cret&#", "~*", "+get"]);
    redis.command(&["ACL", "SETUSER", "default", ">d3fault"]);
    for (parameters, log) in [
        ("?auth=d3fault", ""),
        ("?auth=no&auth=d3fault", ""),
        ("?auth[]=d3fault", ""),
        ("?auth[pass]=d3fault", ""),
        ("?auth[]=comedor&auth[]=s3cret%26#", ""),
        ("?auth[user]=comedor&auth[pass]=s3cret%26%23&database=0", ""),
        // The words that follow differ between versions of Redis.
        ("", ": NOAUTH "),
        ("?auth=s3cret%26#", ": WRONGPASS "),
        ("?auth[]=comedor&auth[]=d3fault", ": WRONGPASS "),
        ("?auth[]=reader&auth[]=s3cret%26%23", ": NOPERM "),
        ("?auth[]=d3fault&database=16", ": ERR "),
    ] {
        for save_path in [redis.socket(parameters), redis.tcp("127.0.0.1", parameters)] {
            let answer = read(&school, &save_path, "teacher").run();
            if log.is_empty() {
                answer.ok();
                continue;
            }
            answer.fails("INTERNAL_ERROR");
            let (server, _) = save_path.split_once('?').unwrap_or((&save_path, ""));
            assert!(
                answer.log.contains(&format!(" Redis at {server}")),
                "{}",
                answer.log
            );
            assert!(answer.log.contains(log), "{parameters}: {}", answer.log);
            assert!(!answer.log.contains("s3cret"), "{}", answer.log);
            assert!(!answer.log.contains("d3fault"), "{}", answer.log);
        }
    }
}

#[test]
fn a_value_that_is_no_session_is_refused_and_any_other_fault_is_named_in_the_log() {
    let (school, mut redis) = (School::new(), Redis::new());
    redis.command(&["SET", &key("teacher"), &session(TEACHER)]);
    redis.command(&["SET", &key("garbage"), "auth_ok|b:1"]);
    redis.command(&["LPUSH", &key("list"), "x"]);
    let (socket, tcp) = (redis.socket(""), redis.tcp("127.0.0.1", ""));
    let fails = |save_path: &str, id: &str, code: &str, log: &str| {
        let answer = read(&school, save_path, id).run();
        assert!(answer.fails(code).log.contains(log), "{}", answer.log);
    };
    read(&school, &socket, "teacher").run().ok();
    let garbage = "PHPREDIS_SESSION:garb… in Redis at unix:///";
    fails(&socket, "garbage", "INVALID_SESSION", garbage);
    assert_eq!(redis.command(&["GET", &key("garbage")]), "auth_ok|b:1");
    fails(&socket, "list", "INTERNAL_ERROR", "WRONGTYPE");
    redis.command(&["REPLICAOF", "127.0.0.1", "1"]);
    fails(&socket, "teacher", "INTERNAL_ERROR", "READONLY");
    redis.stop();
    for (save_path, log) in [
        (socket.as_str(), "socket: Connection refused"),
        (&tcp, ": Connection refused"),
        ("unix:///nowhere/socket", "/nowhere/socket: No such file"),
        (
            "tcp://redis.example",
            "unknown host redis.example: use an IP address",
        ),
    ] {
        fails(save_path, "teacher", "INTERNAL_ERROR", log);
    }
}
