//! What the self-check finds about a Redis server.

use std::path::PathBuf;

use super::{check, found};
use crate::sessions::redis::{LOGIN, key};
use crate::support::redis::{Redis, php_session};
use crate::support::*;

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
    let refused = "Connection refused (os error 111); until this is fixed (docs/several-servers.md#set-up-redis)";
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
