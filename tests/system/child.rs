//! A child process with limits. Without the test harness, which has several threads: a child needs a process
//! with one. Needs root.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc;
use std::thread::spawn;
use std::time::{Duration, Instant};

use comedor::admin::accounts;
use comedor::admin::child::Child;

/// Runs a shell command in a child: as `user`, else as this process.
fn ask(user: Option<&str>, command: &str) -> Result<String, String> {
    let user = user.map(|name| accounts::find(name).expect("a user of this machine"));
    let child = Child { user: user.as_ref(), time: Duration::from_secs(2), size: 10_000 };
    let said = child.output(|_| Err(Command::new("sh").args(["-c", command]).exec()));
    said.map(|said| String::from_utf8(said).unwrap()).map_err(|error| error.to_string())
}

fn a_child_has_no_right_of_root() {
    let status = ask(Some("www-data"), "cat /proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    let (user, none) = (accounts::find("www-data").unwrap(), "0000000000000000");
    for (name, value) in [
        ("Uid:", [user.uid.to_string().as_str(); 4].join(" ").as_str()),
        ("Gid:", &[user.gid.to_string().as_str(); 4].join(" ")),
        ("CapInh:", none),
        ("CapPrm:", none),
        ("CapEff:", none),
        ("CapAmb:", none),
        ("NoNewPrivs:", "1"),
    ] {
        assert_eq!(field(name), value, "{name}");
    }
    let groups: Vec<_> = field("Groups:").split(' ').map(str::to_owned).collect();
    assert!(!groups.contains(&"0".to_owned()), "{groups:?}");
    assert!(ask(Some("root"), "id").is_err());
}

fn a_child_has_no_terminal_and_no_file_of_its_parent() {
    let secret = fs::File::open("/etc/shadow").unwrap();
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
    let user = accounts::find("www-data").unwrap();
    let child = Child { user: Some(&user), time: Duration::from_secs(2), size: 10_000 };
    let files = child.output(|output| {
        for file in fs::read_dir("/proc/self/fd")? {
            writeln!(output, "{:?}", fs::read_link(file?.path()))?;
        }
        write!(output, "{:?}", fs::File::open("/dev/tty").map_err(|error| error.kind()))
    });
    let files = String::from_utf8(files.unwrap()).unwrap();
    assert!(!files.contains("shadow"), "{files}");
    assert_eq!(files.matches("/dev/null").count(), 2, "{files}");
    assert!(files.ends_with("Err(Uncategorized)") || files.ends_with("Err(NotFound)"), "{files}");
}

fn a_child_is_stopped_when_its_time_is_over() {
    for (command, cause) in [
        ("exec sleep 60", "no answer in time"),
        // A process that it leaves holds the pipe, or not.
        ("sleep 60 & exit", "no answer in time"),
        ("exec > /dev/null; sleep 60 & wait", "no answer in time"),
        ("kill -STOP $$", "no answer in time"),
        ("exec yes", "more than 10000 bytes"),
        ("echo a; echo it is broken; exit 3", "a; it is broken"),
    ] {
        let start = Instant::now();
        assert_eq!(ask(None, command).unwrap_err(), cause, "{command}");
        assert!(start.elapsed() < Duration::from_secs(5), "{command}");
    }
    let left = ask(None, "ps -eo stat=,ppid=,args= | grep '[s]leep 60' || true").unwrap();
    assert_eq!(left, "");
}

fn an_error_is_that_of_the_caller() {
    let child = Child { user: None, time: Duration::from_secs(2), size: 100 };
    let said = child.output(|_| Err(io::Error::other("why")));
    assert_eq!(said.unwrap_err().to_string(), "why");
    let (end, ended) = mpsc::channel::<()>();
    let thread = spawn(move || ended.recv());
    assert!(child.output(|_| Ok(())).unwrap_err().to_string().contains("several threads"));
    drop(end);
    _ = thread.join();
    assert_eq!(child.output(|output| output.write_all(b"said")).unwrap(), b"said");
}

/// A parent can ignore SIGCHLD, which its children inherit: then the system forgets how a process has ended.
fn the_end_of_a_child_is_known_though_sigchld_was_ignored() {
    let mut bash = Command::new("bash");
    bash.args(["-c", "trap '' CHLD; exec \"$0\""]).arg(env::current_exe().unwrap());
    assert!(bash.env(IGNORED, "").status().unwrap().success());
}

/// Set for the process with SIGCHLD ignored.
const IGNORED: &str = "SIGCHLD_IGNORED";

fn main() {
    if env::var_os(IGNORED).is_some() {
        return an_error_is_that_of_the_caller();
    }
    the_end_of_a_child_is_known_though_sigchld_was_ignored();
    a_child_has_no_right_of_root();
    a_child_has_no_terminal_and_no_file_of_its_parent();
    a_child_is_stopped_when_its_time_is_over();
    an_error_is_that_of_the_caller();
}
