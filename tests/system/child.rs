//! A child process with limits.

use std::env;
use std::fs;
use std::io::{self, Read, Write, pipe, stderr};
use std::os::unix::process::CommandExt;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::mpsc;
use std::thread::spawn;
use std::time::{Duration, Instant};

use comedor::admin::{accounts, child};
use comedor::sys::process::run_in_child;
use rustix::process::{WaitOptions, waitpid};

use crate::support::output;

/// Runs a test in a process with one thread, as what starts a child needs: the test harness has several.
#[track_caller]
pub fn alone(test: impl FnOnce()) {
    let (mut end, mut passed) = pipe().unwrap();
    let process = run_in_child(|| {
        // Standard error as it is, not as the harness keeps it of a test.
        panic::set_hook(Box::new(|info| _ = writeln!(stderr(), "{info}")));
        let result = catch_unwind(AssertUnwindSafe(test));
        result.is_ok().then(|| passed.write_all(b"passed"));
        0
    });
    drop(passed);
    let mut said = String::new();
    end.read_to_string(&mut said).unwrap();
    // If SIGCHLD is ignored, nothing is known of it.
    _ = waitpid(Some(process.unwrap()), WaitOptions::empty());
    assert_eq!(said, "passed");
}

/// The end of a child
fn soon() -> Instant {
    Instant::now() + Duration::from_secs(2)
}

/// Runs a shell command in a child: as `user`, else as this process.
fn ask(user: Option<&str>, command: &str) -> Result<String, String> {
    let user = user.map(|name| accounts::find(name).expect("a user of this machine"));
    let run = |_: &mut _| Err(Command::new("sh").args(["-c", command]).exec());
    let said = child::output(user.as_ref(), soon(), 10_000, run);
    said.map(|said| String::from_utf8(said).unwrap()).map_err(|error| error.to_string())
}

#[test]
fn a_child_has_no_right_of_root() {
    alone(|| {
        let lines = "grep -E '^(Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs):'";
        let status = ask(Some("www-data"), &format!("{lines} /proc/self/status")).unwrap();
        let user = accounts::find("www-data").unwrap();
        let [uids, gids] = [user.uid, user.gid].map(|id| [id.to_string().as_str(); 4].join(" "));
        let groups: String = user.groups.iter().map(|group| format!("{group} ")).collect();
        let none = "0000000000000000";
        let expected = format!(
            "Uid: {uids} Gid: {gids} Groups: {groups}CapInh: {none} CapPrm: {none} CapEff: {none} \
             CapAmb: {none} NoNewPrivs: 1"
        );
        assert_eq!(status.split_whitespace().collect::<Vec<_>>().join(" "), expected);
        assert!(ask(Some("root"), "id").is_err());
    });
}

#[test]
fn a_child_has_no_terminal_and_no_file_of_its_parent() {
    alone(|| {
        let secret = fs::File::open("/etc/shadow").unwrap();
        rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
        let files = ask(Some("www-data"), "ls -l /proc/self/fd; ! cat /dev/tty").unwrap();
        assert!(!files.contains("shadow"), "{files}");
        assert_eq!(files.matches("/dev/null").count(), 2, "{files}");
    });
}

#[test]
fn a_child_is_stopped_when_its_time_is_over() {
    alone(|| {
        // No other process on this machine has this argument.
        let sleep = format!("sleep 60.{}", std::process::id());
        for (command, cause) in [
            (format!("exec {sleep}"), "no answer in time"),
            // A process that it leaves holds the pipe, or not.
            (format!("{sleep} & exit"), "no answer in time"),
            (format!("exec > /dev/null; {sleep} & wait"), "no answer in time"),
            ("kill -STOP $$".to_owned(), "no answer in time"),
            ("exec yes".to_owned(), "more than 10000 bytes"),
            ("echo a; echo it is broken; exit 3".to_owned(), "a; it is broken"),
        ] {
            let start = Instant::now();
            assert_eq!(ask(None, &command).unwrap_err(), cause, "{command}");
            assert!(start.elapsed() < Duration::from_secs(20), "{command}");
        }
        let left =
            ask(None, &format!("ps -eo stat=,args= | grep -v grep | grep '{sleep}' || true"));
        assert_eq!(left.unwrap(), "");
    });
}

#[test]
fn an_error_is_that_of_the_caller() {
    alone(|| {
        let say_why = |_: &mut _| Err(io::Error::other("why"));
        let said = child::output(None, soon(), 100, say_why);
        assert_eq!(said.unwrap_err().to_string(), "why");
        let (end, ended) = mpsc::channel::<()>();
        let thread = spawn(move || ended.recv());
        let said = child::output(None, soon(), 100, |_| Ok(()));
        assert!(said.unwrap_err().to_string().contains("several threads"));
        drop(end);
        _ = thread.join();
        let said = child::output(None, soon(), 100, |output| output.write_all(b"said"));
        assert_eq!(said.unwrap(), b"said");
    });
}

/// A parent can ignore SIGCHLD, which its children inherit: then the system forgets how a process has ended.
#[test]
fn the_end_of_a_child_is_known_though_sigchld_was_ignored() {
    let mut bash = Command::new("bash");
    bash.args(["-c", "trap '' CHLD; exec \"$0\" --exact child::an_error_is_that_of_the_caller"]);
    output(bash.arg(env::current_exe().unwrap()), "bash");
}
