//! The connections that a FastCGI process keeps, and the check of a Redis server.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::thread;

use crate::redis::{LOGIN, key};
use crate::support::fastcgi::{Client, Held, Process, parameters};
use crate::support::redis::{Redis, fake_redis, php_session, replies, reply_with};
use crate::support::*;

fn serve(socket: &Held, program: &Path, school: &School, save_path: Option<&str>) -> Process {
    let mut command = Command::new(program);
    command.env_clear().env("COMEDOR_DATA_DIR", school.data());
    command.envs(save_path.map(|save_path| ("COMEDOR_SESSION_DIR", save_path)));
    socket.spawn(command)
}

/// The status of a read on a connection that stays open.
fn status(client: &mut Client, id: &str) -> u16 {
    let query = format!("action=get_menu&aulario=aula1&date={DATE}");
    let reply = client.ask(true, &parameters("GET", &query, &format!("PHPSESSID={id}")), b"");
    reply.stdout.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_process_keeps_its_connection_and_survives_restarts_of_redis() {
    let (school, mut redis) = (School::new(), Redis::new());
    let socket = Held::new();
    for save_path in [redis.socket("?database=1"), redis.tcp("127.0.0.1", "?database=1")] {
        let process = serve(&socket, Path::new(program()), &school, Some(&save_path));
        let mut client = Client::connect(&socket.path);
        for _ in 0..3 {
            redis.restart();
            // An empty database shows that the session was not cached.
            assert_eq!(status(&mut client, "teacher"), 400);
            redis.command(&["-n", "1", "SET", &key("teacher"), &session(TEACHER)]);
            let open = process.descriptors();
            for _ in 0..20 {
                assert_eq!(status(&mut client, "teacher"), 200);
            }
            assert_eq!(process.descriptors(), open);
            let received = redis.command(&["INFO", "stats"]);
            let received = received.lines().find_map(|line| {
                line.strip_prefix("total_connections_received:")?.trim().parse::<u32>().ok()
            });
            assert_eq!(received, Some(3), "one of the process, and redis-cli twice");
        }
        redis.stop();
        assert_eq!(status(&mut client, "teacher"), 500);
        redis.restart();
        assert_eq!(status(&mut client, "teacher"), 400);
        drop(client);
        let log = process.stop();
        assert!(log.lines().count() == 1 && log.contains("Redis at "), "{log}");
    }
}

/// A reply that comes late would be the session of another user.
#[test]
fn a_connection_is_not_reused_after_an_error_a_timeout_or_unexpected_bytes() {
    let school = School::new();
    let (sender, connections) = channel();
    let answered = Arc::new(Barrier::new(2));
    let teacher = replies(&session(TEACHER));
    let after_the_answer = answered.clone();
    let save_path = fake_redis(move |number, stream| {
        let (sender, teacher) = (sender.clone(), teacher.clone());
        let answered = after_the_answer.clone();
        thread::spawn(move || {
            sender.send(number).unwrap();
            match number {
                0 => {
                    reply_with(&stream, b"$-1\r\n-LOADING Redis is loading\r\n");
                    reply_with(&stream, &teacher);
                }
                1 => {
                    reply_with(&stream, &[teacher.as_slice(), &teacher].concat());
                    reply_with(&stream, &teacher);
                }
                2 => {
                    reply_with(&stream, &teacher[..10]);
                    // Longer than the timeout: until the program closes the connection.
                    reply_with(&stream, &teacher);
                }
                3 => {
                    reply_with(&stream, &teacher);
                    answered.wait();
                    (&stream).write_all(&teacher).unwrap();
                    answered.wait();
                    reply_with(&stream, &teacher);
                }
                4 => {
                    reply_with(&stream, &teacher);
                    // As a restart at the worst moment.
                    reply_with(&stream, &teacher[..10]);
                }
                // Replies of another kind than Redis sends; then those to the next request would be late.
                5 => {
                    reply_with(&stream, b":0\r\n:0\r\n");
                    reply_with(&stream, &teacher);
                }
                _ => {
                    reply_with(&stream, &teacher);
                    reply_with(&stream, b"$-1\r\n:0\r\n");
                }
            }
        });
    });
    let socket = Held::new();
    let process = serve(&socket, Path::new(program()), &school, Some(&save_path));
    let mut client = Client::connect(&socket.path);
    for (connection, expected) in
        [(0, 500), (1, 200), (2, 500), (3, 200), (4, 200), (5, 500), (6, 200)]
    {
        assert_eq!(status(&mut client, "teacher"), expected);
        assert_eq!(connections.try_recv(), Ok(connection), "a new connection");
        if connection == 3 {
            answered.wait();
            answered.wait();
        }
    }
    assert_eq!(status(&mut client, "teacher"), 400, "on the last connection");
    assert!(connections.try_recv().is_err(), "no other connection");
    drop(client);
    process.stop();
}

#[test]
fn requests_at_the_same_time_get_the_session_of_their_own_user() {
    let (school, redis) = (School::new(), Redis::new());
    for number in 0..8 {
        let aulario = school.data().join(format!("Centros/c{number}/Aularios/a{number}.json"));
        fs::create_dir_all(aulario.parent().unwrap()).unwrap();
        fs::write(aulario, "{}").unwrap();
        let content = session_of(&format!("c{number}"), TEACHER);
        redis.command(&["SET", &key(&format!("user{number}")), &content]);
    }
    let socket = Held::new();
    let process = serve(&socket, Path::new(program()), &school, Some(&redis.socket("")));
    thread::scope(|scope| {
        for number in 0..8 {
            let path = &socket.path;
            scope.spawn(move || {
                let mut client = Client::connect(path);
                let query = format!("action=get_menu&aulario=a{number}&date={DATE}");
                let cookie = format!("PHPSESSID=user{number}");
                for _ in 0..200 {
                    let reply = client.ask(true, &parameters("GET", &query, &cookie), b"");
                    // Each aulario exists only in the centre of its user.
                    assert!(reply.stdout.starts_with("Status: 200"), "{reply:?}");
                }
            });
        }
    });
    let open = process.descriptors();
    assert!(open < 40, "{open} descriptors");
    process.stop();
}

#[test]
fn a_new_password_in_the_settings_file_is_used_by_the_next_request() {
    let (school, redis) = (School::new(), Redis::new());
    redis.command(&["SET", &key("teacher"), &session(TEACHER)]);
    redis.command(&["ACL", "SETUSER", "school", "on", ">one", ">two", "~*", "+get", "+expire"]);
    let folder = tempfile::tempdir().unwrap();
    let program = program_in(folder.path(), NO_SETTINGS);
    let set = |password: &str| {
        let save_path = redis.socket(&format!("?auth[]=school&auth[]={password}"));
        let settings = format!("COMEDOR_SESSION_DIR={save_path}\n");
        fs::write(folder.path().join("comedor.conf"), settings).unwrap();
    };
    let socket = Held::new();
    set("one");
    let process = serve(&socket, &program, &school, None);
    let mut client = Client::connect(&socket.path);
    for (password, expected) in [("one", 200), ("wrong", 500), ("two", 200)] {
        set(password);
        assert_eq!(status(&mut client, "teacher"), expected, "{password}");
    }
    drop(client);
    process.stop();
}

/// Runs the check of the program in `folder`, whose settings file has this save_path and no data.
fn check(
    folder: &Path,
    wrapper: &[&str],
    save_path: &str,
    options: &[&str],
    input: &str,
) -> Output {
    fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
    let data = folder.display();
    let settings = format!(
        "\n# School\r\n COMEDOR_SESSION_DIR = {save_path} \r\nTZ=UTC\nCOMEDOR_DATA_DIR={data}\n"
    );
    let program = program_in(folder, &settings);
    let words =
        [crate::check::ALONE, wrapper, &[program.to_str().unwrap(), "check"], options].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env_clear().env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn check_names_the_server_and_says_whether_it_accepts_a_request() {
    let mut redis = Redis::new();
    let folder = tempfile::tempdir().unwrap();
    redis.command(&["ACL", "SETUSER", "school", "on", ">s3cret", "~*", "+get", "+expire"]);
    let check = |save_path: &str, finding: &str| {
        let output = check(folder.path(), &[], save_path, &[], "");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().any(|line| line.starts_with(finding)), "{finding}: {text}");
        assert!(!text.contains("s3cret"), "{text}");
        text
    };
    let (socket, tcp) = (redis.socket(""), redis.tcp("127.0.0.1", ""));
    check(&socket, &format!("ok      {socket}: Redis answers and accepts the commands"));
    let login = redis.socket("?auth[]=school&auth[]=s3cret");
    let text =
        check(&login, &format!("ok      {socket}?auth=…: Redis answers and accepts the commands"));
    let place = format!("{}/comedor.conf line 3", folder.path().display());
    assert!(text.contains(&format!("COMEDOR_SESSION_DIR={socket}?auth=… ({place})")), "{text}");
    assert!(text.contains("every user of this machine can read the password"), "{text}");
    check(
        &format!("{tcp}?auth=s3cret"),
        &format!("error   {tcp}?auth=…: ERR AUTH <password> called"),
    );
    check(&format!("{login}&database=1"), &format!("error   {socket}?auth=…&database=1: NOPERM"));
    check("tcp://no.example", "error   tcp://no.example:6379: unknown host no.example");
    redis.stop();
    let refused = "Connection refused (os error 111); until this is fixed (docs/redis.md#set-up)";
    check(&tcp, &format!("error   {tcp}: {refused}"));
}

#[test]
fn check_never_shows_the_password_in_a_save_path_of_php() {
    let school = School::new();
    for (save_path, shown) in [
        ("tcp://a:1?auth=s3cret", "tcp://a:1?auth=…"),
        ("tcp://a:1?auth=s3cret, tcp://b:2?auth=s3cret", "tcp://…"),
        ("tls://a:1?auth=s3cret", "tls://…"),
        ("seed[]=a:1&seed[]=b:1&auth=s3cret", "seed[]=…"),
        ("host=db password=s3cret", "host=…"),
        ("/run/redis.sock?auth=s3cret", "/run/redis.sock?auth=…"),
        ("2;/srv/sessions", "2;/srv/sessions"),
    ] {
        let ini = format!("session.save_path=\"{save_path}\"\n");
        let files = [("php/8.2/fpm/php.ini", ini.as_str())];
        let findings = crate::check_machine::check_with(&school, &[], &files, "true");
        let text = format!("PHP's session.save_path is {shown} (/etc/php/");
        crate::check::found(&findings, "warning", "COMEDOR_SESSION_DIR", &text);
        assert!(!format!("{findings:?}").contains("s3cret"), "{findings:#?}");
    }
}

#[test]
fn check_names_a_closed_folder_of_the_socket() {
    let redis = Redis::new();
    let path = PathBuf::from(redis.socket("").strip_prefix("unix://").unwrap());
    let closed = path.parent().unwrap();
    fs::set_permissions(closed, PermissionsExt::from_mode(0o750)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = check(folder.path(), AS_NOBODY, &redis.socket(""), &[], "");
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = format!(
        "{}: nobody needs execute permission for this folder to reach the socket of Redis",
        closed.display()
    );
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn check_of_a_session_reads_it_from_redis_and_does_not_extend_its_lifetime() {
    let redis = Redis::new();
    let folder = tempfile::tempdir().unwrap();
    let id = php_session(&redis.socket(""), "php", "100", "", LOGIN);
    let check = |id: &str| {
        let output = self::check(folder.path(), &[], &redis.socket(""), &["--session"], id);
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(check(&id).contains("the centre is centro1"), "{}", check(&id));
    let left: u32 = redis.command(&["TTL", &key(&id)]).parse().unwrap();
    assert!(left <= 100, "{left}");
    let text = check("missing");
    assert!(text.contains("other settings than COMEDOR_SESSION_DIR=unix:///"), "{text}");
}
