//! Settings, command line and socket.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::{Command, Stdio};

use super::*;
use crate::support::fastcgi::Process;

#[test]
fn the_number_of_workers_is_a_setting() {
    let (school, socket) = (School::new(), Held::new());
    for (setting, workers) in [(None, 64), (Some("3"), 3)] {
        let mut request = school.get("get_menu_types");
        if let Some(setting) = setting {
            request = request.set("COMEDOR_WORKERS", setting);
        }
        let process = socket.spawn(request.responder());
        wait_until("the workers", || process.has_started(workers));
        request.ask(&socket.path).ok();
        process.stop();
    }
    for setting in ["0", "513", "many"] {
        let request = school.get("get_menu_types").set("COMEDOR_WORKERS", setting);
        let answer = request.run();
        assert!(
            answer
                .fails("INTERNAL_ERROR")
                .log
                .contains("COMEDOR_WORKERS must be")
        );
    }
}

#[test]
fn the_unit_and_the_container_allow_as_many_workers_as_can_be_set() {
    let (unit, overlay) = (
        text_of("packaging/systemd/comedor.service"),
        text_of("examples/compose.yaml"),
    );
    let needed = comedor::sys::scoreboard::MAX_WORKERS + 1;
    for (file, name) in [(&unit, "TasksMax="), (&overlay, "pids_limit: ")] {
        let allowed = file
            .lines()
            .find_map(|line| line.trim().strip_prefix(name))
            .unwrap();
        assert!(
            allowed.parse::<usize>().unwrap() >= needed,
            "{name}: {needed}"
        );
    }
    let image = concat!("image: comedor:", env!("CARGO_PKG_VERSION"), "\n");
    assert!(overlay.contains(image), "{image}");
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
        assert!(
            reply
                .stderr
                .iter()
                .all(|line| line.contains("COMEDOR_DATA_DIR")),
            "{reply:?}"
        );
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
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o660
    );
    read.ask(&path).ok();
    let is_refused = |why| {
        let mut second = start();
        let mut log = String::new();
        second
            .0
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut log)
            .unwrap();
        assert!(!second.0.wait().unwrap().success());
        assert!(log.contains(why), "{log}");
    };
    is_refused("another process listens on this socket");
    read.ask(&path).ok();
    process.stop();
    assert!(!path.exists());
    let full = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&full, 0).unwrap();
    let _queued = UnixStream::connect(&path).unwrap();
    is_refused("another process listens on this socket");
    fs::remove_file(&path).unwrap();
    fs::write(&path, "a file").unwrap();
    is_refused("exists and is not a socket");
    assert_eq!(fs::read(&path).unwrap(), b"a file");
    fs::remove_file(&path).unwrap();
    symlink("nothing", &path).unwrap();
    is_refused("exists and is not a socket");
    fs::remove_file(&path).unwrap();
    // Any user can lock a folder that they may read, but not the file that is locked.
    let _folder = locked(folder.path());
    let process = start();
    wait_until("the socket", || UnixStream::connect(&path).is_ok());
    // It listens before it handles signals.
    read.ask(&path).ok();
    process.stop();
    let lock = folder.path().join("comedor.sock.lock");
    assert_eq!(fs::metadata(&lock).unwrap().mode() & 0o7777, 0o600);
    let other = locked(&lock);
    is_refused("comedor.sock.lock is locked by another process");
    drop(other);
    fs::remove_file(&lock).unwrap();
    symlink("elsewhere", &lock).unwrap();
    is_refused("(os error 40)"); // ELOOP
    assert!(!folder.path().join("elsewhere").exists());
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
    // Names without a file are those of the whole machine.
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().to_str().unwrap();
    let address = SocketAddr::from_abstract_name(name).unwrap();
    for listener in [
        OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap()),
        OwnedFd::from(UnixListener::bind_addr(&address).unwrap()),
    ] {
        let output = Command::new(program())
            .env_clear()
            .stdin(listener)
            .output()
            .unwrap();
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
    let output = check
        .arg("check")
        .stdin(OwnedFd::from(listener))
        .output()
        .unwrap();
    let findings = String::from_utf8(output.stdout).unwrap();
    assert!(findings.contains("settings: today is 20"), "{findings}");
}
