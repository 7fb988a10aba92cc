//! Leaving before end-of-file: a matter of order, not of time.

use std::fs;
use std::io::Read;
use std::process::{Child, Stdio};

use crate::support::*;

/// The process's state (proc_pid_stat(5)); `Z` is gone but not reaped.
fn state(child: &Child) -> String {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    stat.rsplit(") ").next().unwrap()[..1].to_owned()
}

/// Reads standard output to its end, and says in which state the process is right then.
fn state_at_end_of_file(cgi: &Cgi) -> (String, String) {
    let mut child = cgi.start();
    let mut answer = String::new();
    child.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    let state = state(&child);
    assert!(child.wait().unwrap().success());
    (state, answer)
}

#[test]
fn under_apache_the_process_is_gone_at_end_of_file() {
    let school = School::new();
    let apache = school.get("get_menu").set("SERVER_SOFTWARE", "Apache/2.4.65 (Debian)");
    for _ in 0..300 {
        let (state, answer) = state_at_end_of_file(&apache);
        assert!(answer.starts_with("Status: 200 OK"));
        assert_eq!(state, "Z");
    }
    // An error has a line on standard error, and an answer of a megabyte fills the pipe.
    let (state, answer) = state_at_end_of_file(&apache.clone().aulario("no"));
    assert!(state == "Z" && answer.starts_with("Status: 404"));
    let entries: Vec<_> =
        (0..20_000).map(|n| json!({"id": format!("t{n}"), "label": "x".repeat(40)})).collect();
    school.write("aula1/Comedor-MenuTypes.json", Value::from(entries).to_string());
    let (state, answer) = state_at_end_of_file(&apache);
    assert!(state == "Z" && answer.len() > 1_000_000);
}

#[test]
fn nobody_is_left_behind_and_other_servers_see_no_fork() {
    let school = School::new();
    let calls = |cgi: &Cgi| {
        let (answer, text) = cgi.trace(&["-f"]);
        answer.ok();
        (text.matches("pidfd_open(").count(), text.matches("+++ exited with 0 +++").count())
    };
    let read = school.get("get_menu");
    let apache = read.clone().set("SERVER_SOFTWARE", "Apache");
    assert_eq!(calls(&apache), (1, 2), "both processes end");
    assert_eq!(calls(&read), (0, 1));
    assert_eq!(calls(&read.set("SERVER_SOFTWARE", "lighttpd/1.4")), (0, 1));
    assert_eq!(calls(&apache.clone().set("COMEDOR_LEAVE_EARLY", "off")), (0, 1));
    apache.set("COMEDOR_LEAVE_EARLY", "no").run().fails("INTERNAL_ERROR");
}

#[test]
fn where_it_cannot_be_done_the_answer_is_the_same() {
    let school = School::new();
    let apache = school.get("get_menu").set("SERVER_SOFTWARE", "Apache");
    let answer = apache.run();
    for fault in ["pidfd_open:error=ENOSYS", "clone:error=EAGAIN"] {
        let same = apache.clone().inject(fault).run();
        assert_eq!((same.status, same.body), (answer.status, answer.body.clone()), "{fault}");
    }
    // A server that has gone away is left alone as well.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = apache.command();
    let mut child = command.stdout(writer).stdin(Stdio::null()).spawn().unwrap();
    assert!(child.wait().unwrap().success());
}
