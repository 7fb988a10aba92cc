//! The systemd units: `systemd-analyze`, and `strace`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::{Signal, kill_process};
use tempfile::TempDir;

use crate::support::fastcgi::{Client, request};
use crate::support::*;

const ANALYZE: &str = "systemd-analyze, of Debian's systemd";

/// The units with the path of the program under test.
fn units() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["comedor.socket", "comedor.service"] {
        let unit = fs::read_to_string(Path::new(REPOSITORY).join("systemd").join(name)).unwrap();
        let unit = unit.replace("/usr/lib/cgi-bin/comedor", program());
        fs::write(folder.path().join(name), unit).unwrap();
    }
    folder
}

#[test]
fn systemd_accepts_the_units() {
    let units = units();
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no"]);
    verify.args(["comedor.socket", "comedor.service"].map(|name| units.path().join(name)));
    let result = verify.output().expect(ANALYZE);
    let messages = String::from_utf8(result.stderr).unwrap();
    assert!(result.status.success() && messages.is_empty(), "{messages}");
}

#[test]
fn the_service_has_an_exposure_of_at_most_2() {
    let units = units();
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=true", "--threshold=20", "--no-pager"]);
    let result = security.arg(units.path().join("comedor.service")).output().expect(ANALYZE);
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stdout));
}

/// The system calls that the service may make.
fn allowed() -> BTreeSet<String> {
    let mut list = Command::new("systemd-analyze");
    let list = String::from_utf8(output(list.arg("syscall-filter"), ANALYZE)).unwrap();
    let mut sets = BTreeMap::<&str, Vec<&str>>::new();
    let mut set = "";
    for line in list.lines() {
        if line.starts_with('@') {
            set = line;
        } else if !line.is_empty() && !line.trim_start().starts_with('#') {
            sets.entry(set).or_default().push(line.trim());
        }
    }
    fn calls(sets: &BTreeMap<&str, Vec<&str>>, name: &str) -> BTreeSet<String> {
        let Some(members) = sets.get(name) else { return BTreeSet::from([name.to_owned()]) };
        members.iter().flat_map(|member| calls(sets, member)).collect()
    }
    let unit = fs::read_to_string(Path::new(REPOSITORY).join("systemd/comedor.service")).unwrap();
    let filters = unit.lines().filter_map(|line| line.strip_prefix("SystemCallFilter="));
    // systemd always allows this set (systemd.exec(5)).
    filters.fold(calls(&sets, "@default"), |allowed, filter| {
        let listed = |names: &str| names.split(' ').flat_map(|name| calls(&sets, name)).collect();
        match filter.strip_prefix('~') {
            Some(names) => &allowed - &listed(names),
            None => &allowed | &listed(filter),
        }
    })
}

#[test]
fn the_service_may_make_every_system_call_that_a_request_needs() {
    let school = School::new();
    let path = school.data().join("socket");
    let listener = OwnedFd::from(UnixListener::bind(&path).unwrap());
    let trace = school.data().join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(&trace).arg(program()).env_clear();
    strace.env("COMEDOR_DATA_DIR", school.data()).env("COMEDOR_SESSION_DIR", school.sessions());
    let mut strace = strace.stdin(listener).stdout(Stdio::null()).spawn().expect("strace");
    let plates = json!({"primero": {"name": "Lentejas"}});
    let body = json!({"date": DATE, "menu_type": "basal", "plates": plates}).to_string();
    let session = school.sessions().join("sess_admin");
    // The first waits for its session and makes folders and a file, the second replaces the file.
    for has_to_wait in [true, false] {
        let parameters = [
            ("REQUEST_METHOD", "POST"),
            ("QUERY_STRING", "action=save_menu&aulario=aula1"),
            ("CONTENT_TYPE", "application/json"),
            ("CONTENT_LENGTH", &body.len().to_string()),
            ("HTTP_COOKIE", "PHPSESSID=admin"),
        ];
        let page = File::open(&session).unwrap();
        page.lock().unwrap();
        let mut client = Client::connect(&path);
        client.send(request(false, &parameters, body.as_bytes()));
        while has_to_wait && waiting(&session).is_empty() {
            thread::yield_now();
        }
        drop(page);
        let reply = client.reply();
        assert!(reply.stdout.starts_with("Status: 200"), "{reply:?}");
    }
    kill_process(child_of(strace.id()).expect("the program"), Signal::TERM).unwrap();
    assert!(strace.wait().unwrap().success());
    let trace = fs::read_to_string(trace).unwrap();
    // `PID call(arguments) = result`, `PID <... call resumed>`, `PID +++ exited +++`
    let calls = trace.lines().filter_map(|line| line.split_once(' ')?.1.trim().split_once('('));
    let calls: BTreeSet<String> = calls
        .map(|(name, _)| name.to_owned())
        .filter(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
        .collect();
    for needed in ["renameat2", "fcntl", "timer_create"] {
        assert!(calls.contains(needed), "{calls:?}");
    }
    assert_eq!(&calls - &allowed(), BTreeSet::new());
}
