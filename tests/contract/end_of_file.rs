//! Under Apache the process exits before end-of-file (`src/sys/kept_output.rs` says why). The tests observe the
//! order of the two, not the time.

use std::fs;
use std::io::Read;

use crate::support::*;

/// The state of the process (proc_pid_stat(5)) at the end of its standard output, and the output. `Z` is a
/// process that has exited.
#[track_caller]
fn state_at_end_of_file(cgi: &Cgi) -> (String, String) {
    let mut child = cgi.start();
    let mut answer = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut answer)
        .unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    assert!(child.wait().unwrap().success());
    (stat.rsplit(") ").next().unwrap()[..1].to_owned(), answer)
}

#[test]
fn under_apache_the_process_has_exited_at_end_of_file() {
    let school = School::new();
    let apache = school
        .get("get_menu")
        .set("SERVER_SOFTWARE", "Apache/2.4.65 (Debian)");
    for _ in 0..300 {
        let (state, answer) = state_at_end_of_file(&apache);
        assert!(answer.starts_with("Status: 200 OK"));
        assert_eq!(state, "Z");
    }
    // The same for an error and for an answer of a megabyte, which fills the pipe.
    let (state, answer) = state_at_end_of_file(&apache.clone().aulario("no"));
    assert!(state == "Z" && answer.starts_with("Status: 404"));
    let entries: Vec<_> = (0..20_000)
        .map(|n| json!({"id": format!("t{n}"), "label": "x".repeat(40)}))
        .collect();
    school.write(TYPES, Value::from(entries).to_string());
    let (state, answer) = state_at_end_of_file(&apache);
    assert!(state == "Z" && answer.len() > 1_000_000);
}
