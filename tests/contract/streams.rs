//! Standard streams that the web server has made non-blocking. The process is observed while it waits, and
//! goes on when its stream is ready.

use std::fs;
use std::io::{Read, Write, pipe};
use std::os::fd::AsFd;
use std::process::{Child, Stdio};

use rustix::fs::{OFlags, fcntl_setfl};

use crate::support::site::wait_until;
use crate::support::*;

fn make_non_blocking(stream: &impl AsFd) {
    fcntl_setfl(stream, OFlags::NONBLOCK).unwrap();
}

/// Waits until the process sleeps, or has exited (proc_pid_stat(5)).
#[track_caller]
fn wait_until_idle(child: &Child) {
    wait_until("the process is idle", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        matches!(&stat.rsplit(") ").next().unwrap()[..1], "S" | "Z")
    });
}

#[test]
fn an_answer_is_complete_on_a_standard_output_that_does_not_block() {
    let school = School::new();
    let entries: Vec<_> = (0..6_000)
        .map(|n| json!({"id": format!("t{n}"), "label": "x".repeat(40)}))
        .collect();
    school.write(TYPES, Value::from(entries).to_string());
    let (mut reader, writer) = pipe().unwrap();
    make_non_blocking(&writer);
    let mut command = school.get("get_menu_types").command();
    let mut child = command.stdout(writer).stdin(Stdio::null()).spawn().unwrap();
    // It holds the other end of the pipe.
    drop(command);
    wait_until_idle(&child);
    let mut answer = Vec::new();
    reader.read_to_end(&mut answer).unwrap();
    assert!(child.wait().unwrap().success());
    let body = answer
        .windows(4)
        .position(|bytes| bytes == b"\r\n\r\n")
        .unwrap()
        + 4;
    assert!(answer.len() > 300_000, "{}", answer.len());
    let answer: Value = serde_json::from_slice(&answer[body..]).expect("all of it");
    assert_eq!(answer["menu_types"].as_array().unwrap().len(), 6_000);
}

#[test]
fn a_body_is_awaited_on_a_standard_input_that_does_not_block() {
    let school = School::new();
    let body = save("Sopa").to_string();
    let request = school.post("save_menu").body("application/json", &body);
    for (session, status) in [("admin", 200), ("no", 400)] {
        let (reader, mut writer) = pipe().unwrap();
        make_non_blocking(&reader);
        let mut command = request.clone().session(session).command();
        let child = command.stdin(reader).spawn().unwrap();
        drop(command);
        for part in [&body[..9], &body[9..]] {
            wait_until_idle(&child);
            writer.write_all(part.as_bytes()).unwrap();
        }
        drop(writer);
        assert_eq!(Answer::of(child).status, status);
    }
}

#[test]
fn a_standard_input_that_cannot_be_read_is_a_fault_of_the_server() {
    let school = School::new();
    let folder = fs::File::open(school.folder()).unwrap();
    let request = school.post("save_menu").json(&save("Sopa"));
    let answer = request.command().stdin(folder).output().unwrap();
    let stdout = String::from_utf8(answer.stdout).unwrap();
    assert!(stdout.starts_with("Status: 500 "), "{stdout}");
    let log = String::from_utf8(answer.stderr).unwrap();
    assert!(log.contains("standard input: Is a directory"), "{log}");
}
