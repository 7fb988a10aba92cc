//! The child process that lets the program exit before end-of-file, seen with strace.

use std::process::Stdio;

use crate::support::*;

#[test]
fn only_under_apache_a_child_process_is_forked_and_exits() {
    let school = School::new();
    let calls = |cgi: &Cgi| {
        let (answer, text) = cgi.trace(&["-f"]);
        answer.ok();
        (
            text.matches("pidfd_open(").count(),
            text.matches("+++ exited with 0 +++").count(),
        )
    };
    let read = school.get("get_menu");
    let apache = read.clone().set("SERVER_SOFTWARE", "Apache");
    assert_eq!(calls(&apache), (1, 2), "both processes exit");
    assert_eq!(calls(&read), (0, 1));
    assert_eq!(calls(&read.set("SERVER_SOFTWARE", "lighttpd/1.4")), (0, 1));
}

#[test]
fn a_failed_fork_does_not_change_the_answer() {
    let school = School::new();
    let apache = school.get("get_menu").set("SERVER_SOFTWARE", "Apache");
    let answer = apache.run();
    for fault in ["pidfd_open:error=ENOSYS", "clone:error=EAGAIN"] {
        let same = apache.clone().inject(fault).run();
        assert_eq!(
            (same.status, same.body),
            (answer.status, answer.body.clone()),
            "{fault}"
        );
    }
    // Nor does a server that has closed the pipe change the exit status.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = apache
        .command()
        .stdout(writer)
        .stdin(Stdio::null())
        .status();
    assert!(status.unwrap().success());
}
