//! The connections that a FastCGI process keeps, and the check of a Redis server.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::thread;

use super::redis::{LOGIN, key};
use crate::check::{check, found};
use crate::support::fastcgi::{Client, Held, Process, parameters};
use crate::support::redis::{Redis, fake_redis, php_session, replies, reply_with};
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

/// The findings of the check with this save_path.
fn check_with(school: &School, wrapper: &[&str], save_path: &str) -> Vec<Value> {
    let setting = format!("COMEDOR_SESSION_DIR={save_path}");
    check(school, &[wrapper, &["env", &setting]].concat(), &[], "")
}

#[test]
fn check_names_the_server_and_says_whether_it_accepts_a_request() {
    let (school, mut redis, folder) = (School::new(), Redis::new(), open_folder());
    redis.command(&[
        "ACL", "SETUSER", "school", "on", ">s3cret", "~*", "+get", "+expire",
    ]);
    let (socket, tcp) = (redis.socket(""), redis.tcp("127.0.0.1", ""));
    let login = redis.socket("?auth[]=school&auth[]=s3cret");
    let accepted = "Redis answers and accepts the commands";
    let finds = |save_path: &str, level, about: &str, text| {
        let findings = check_with(&school, &[], save_path);
        found(&findings, level, about, text);
        assert!(!format!("{findings:?}").contains("s3cret"), "{findings:#?}");
    };
    finds(&socket, "ok", &socket, accepted);
    finds(&login, "ok", &format!("{socket}?auth=…"), accepted);
    let password = format!("{tcp}?auth=s3cret");
    finds(
        &password,
        "error",
        &format!("{tcp}?auth=…"),
        "ERR AUTH <password> called",
    );
    let database = format!("{login}&database=1");
    finds(
        &database,
        "error",
        &format!("{socket}?auth=…&database=1"),
        "NOPERM",
    );
    finds(
        "tcp://no.example", "error", "tcp://no.example:6379", "unknown host no.example",
    );

    let settings = format!("\n# School\r\n COMEDOR_SESSION_DIR = {login} \r\n");
    let program = program_in(folder.path(), &settings);
    let shell = "unset COMEDOR_SESSION_DIR; shift; exec \"$0\" \"$@\"";
    let wrapper = ["sh", "-c", shell, program.to_str().unwrap()];
    let findings = check(&school, &wrapper, &[], "");
    let file = format!("{}/comedor.conf", folder.path().display());
    let setting = format!("COMEDOR_SESSION_DIR={socket}?auth=… ({file} line 3)");
    found(&findings, "ok", "settings", &setting);
    found(
        &findings,
        "warning",
        &file,
        "every user of this machine can read the password",
    );
    assert!(!format!("{findings:?}").contains("s3cret"), "{findings:#?}");

    redis.stop();
    let refused = "Connection refused (os error 111); until this is fixed (docs/redis.md#set-up)";
    finds(&tcp, "error", &tcp, refused);
}

#[test]
fn check_names_a_closed_folder_of_the_socket() {
    let redis = Redis::new();
    let path = PathBuf::from(redis.socket("").strip_prefix("unix://").unwrap());
    let closed = path.parent().unwrap();
    chmod(closed, 0o750);
    let findings = check_with(&School::new(), AS_NOBODY, &redis.socket(""));
    let text = "nobody cannot reach the socket of Redis (COMEDOR_SESSION_DIR): Permission denied";
    found(&findings, "error", closed.to_str().unwrap(), text);
}

#[test]
fn check_of_a_session_reads_it_from_redis_and_does_not_extend_its_lifetime() {
    let (school, redis) = (School::new(), Redis::new());
    let id = php_session(&redis.socket(""), "php", "100", "", LOGIN);
    let setting = format!("COMEDOR_SESSION_DIR={}", redis.socket(""));
    let check = |id: &str| check(&school, &["env", &setting], &["--session"], id);
    found(&check(&id), "ok", "session", "the centre is centro1");
    let left: u32 = redis.command(&["TTL", &key(&id)]).parse().unwrap();
    assert!(left <= 100, "{left}");
    let text = "other settings than COMEDOR_SESSION_DIR=unix:///";
    found(&check("missing"), "error", "session", text);
}
