//! A school in a temporary folder, requests to the program, and the tools that tests run.

#![allow(dead_code, reason = "each test binary uses a part of this")]

mod cgi;
pub mod disk;
pub mod fastcgi;
pub mod power_cuts;
pub mod redis;
pub mod site;
pub mod tracer;
pub mod writes;

use std::env;
use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{LazyLock, mpsc};
use std::thread;
use std::time::Duration;

pub use cgi::*;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
pub use serde_json::{Value, json};
use tempfile::TempDir;

/// The program under test, in a folder that every user can enter, with a settings file without settings,
/// which hides /etc/comedor/comedor.conf of this machine.
pub fn program() -> &'static str {
    static PROGRAM: LazyLock<String> = LazyLock::new(|| {
        let folder = open_folder().keep();
        // The end of this process, however it ends, closes the pipe.
        let mut remover = Command::new("sh");
        remover
            .args(["-c", "cat; rm -r \"$0\""])
            .arg(&folder)
            .stdin(Stdio::piped());
        std::mem::forget(remover.process_group(0).spawn().expect("sh"));
        program_in(&folder, NO_SETTINGS)
            .into_os_string()
            .into_string()
            .unwrap()
    });
    &PROGRAM
}

/// The program that `COMEDOR_PROGRAM` names, as tests/run does with that of cgi-bin/build.
pub static GIVEN: LazyLock<Option<OsString>> = LazyLock::new(|| env::var_os("COMEDOR_PROGRAM"));

/// A copy of the given program in `folder`, or of the one that cargo builds with the tests, with these
/// lines in the settings file beside it.
pub fn program_in(folder: &Path, settings: &str) -> PathBuf {
    let built = GIVEN
        .as_deref()
        .unwrap_or(env!("CARGO_BIN_EXE_comedor").as_ref());
    let (program, file) = (folder.join("comedor"), folder.join("comedor.conf"));
    // Not written by this process: a child that another test starts at this moment would have it open
    // for writing, and it could not be run (ETXTBSY).
    output(
        Command::new("install").arg(built).arg(&program),
        "coreutils",
    );
    fs::write(&file, settings).unwrap();
    chmod(file, 0o644);
    program
}

/// The Debian package of the repository, built once.
pub fn package() -> &'static str {
    static PACKAGE: LazyLock<String> = LazyLock::new(|| {
        let mut build = Command::new(Path::new(REPOSITORY).join("cgi-bin/package"));
        let lines = output(&mut build, "cargo-deb (cargo install cargo-deb)");
        String::from_utf8(lines)
            .unwrap()
            .lines()
            .last()
            .unwrap()
            .to_owned()
    });
    &PACKAGE
}

/// A temporary folder that every user can enter.
pub fn open_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    chmod(folder.path(), 0o755);
    folder
}

/// Whether the only argument of this benchmark is --quick. Ends it with its usage if there are others.
pub fn is_quick(benchmark: &str) -> bool {
    // Cargo adds an argument of its own.
    let words: Vec<String> = env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let is_quick = words == ["--quick"];
    if !is_quick && !words.is_empty() {
        eprintln!("usage: {benchmark} [--quick]");
        std::process::exit(2);
    }
    is_quick
}

/// Changes the mode of a file or folder.
#[track_caller]
pub fn chmod(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// An empty file counts as one that is being saved.
pub const NO_SETTINGS: &str = "# no settings\n";

pub const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

/// A text file of the repository.
#[track_caller]
pub fn text_of(file: impl AsRef<Path>) -> String {
    fs::read_to_string(Path::new(REPOSITORY).join(file)).unwrap()
}

/// The files and folders below a folder for which these tests of find(1) are true, sorted.
pub fn files_below(folder: &Path, tests: &[&str]) -> Vec<String> {
    let mut find = Command::new("find");
    find.arg(folder)
        .args(["-mindepth", "1"])
        .args(tests)
        .args(["-printf", "%P\\0"]);
    let found = String::from_utf8(output(&mut find, "findutils")).unwrap();
    let mut files: Vec<String> = found.split_terminator('\0').map(str::to_owned).collect();
    files.sort();
    files
}

/// The lines of a Markdown document outside of its code blocks.
pub fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// The targets of the links and pictures of a Markdown document that are files or headings.
pub fn relative_links(text: &str) -> Vec<String> {
    let text = prose(text);
    let links = text
        .split("](")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap());
    // The pages of releases and issues are beside the branches on the repository's site.
    let is_page = |link: &str| link.ends_with("/releases/latest") || link.ends_with("/issues");
    let links = links.filter(|link| !link.contains("://") && !is_page(link));
    links.map(str::to_owned).collect()
}

/// Whether this crate of tests sends its requests by FastCGI.
pub fn by_fastcgi() -> bool {
    env!("CARGO_CRATE_NAME").ends_with("_fastcgi")
}

/// A day in the past, for requests with a date.
pub const DATE: &str = "2026-11-20";

/// The files of `aula1`, by their paths below [`School::aularios`]: the menus of [`DATE`], the menu
/// types and the lock.
pub const DAY: &str = "aula1/Comedor/2026-11/20/_datos.json";
pub const TYPES: &str = "aula1/Comedor-MenuTypes.json";
pub const LOCK: &str = "aula1/.comedor.lock";

/// The permissions of a teacher and of an administrator.
pub const TEACHER: &[&str] = &["service:docente"];
pub const ADMIN: &[&str] = &["service:docente", "sysadmin:access"];

/// Runs a command as the user `nobody` of the group `nogroup`. Needs root.
pub const AS_NOBODY: &[&str] = &[
    "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
];

/// A centre `centro1` with the aularios `aula1`, `aula2` and `compartida`, which shares the menus of
/// `aula1`, in a folder that every user can enter. `teacher` and `admin` are logged in.
pub struct School {
    folder: TempDir,
    _limit: TimeLimit,
}

/// Ends all tests of this crate, and names the one that has created this, if it is not dropped in time: a test that
/// hangs fails.
struct TimeLimit {
    _end: mpsc::Sender<()>,
}

impl TimeLimit {
    fn start() -> TimeLimit {
        let minutes = env::var("COMEDOR_TEST_MINUTES").map_or(10, |text| text.parse().unwrap());
        let name = thread::current()
            .name()
            .unwrap_or("a thread of a test")
            .to_owned();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let ended = receiver.recv_timeout(Duration::from_secs(60 * minutes));
            if ended == Err(RecvTimeoutError::Timeout) {
                // Not captured, in contrast to `eprintln`.
                _ = writeln!(
                    io::stderr(),
                    "test {name} FAILED: not ended after {minutes} minutes"
                );
                std::process::exit(101);
            }
        });
        TimeLimit { _end: sender }
    }
}

impl School {
    pub fn new() -> School {
        School::new_in(&env::temp_dir())
    }

    /// In memory, if the machine has such a file system: for tests that need no disk and write much.
    pub fn in_memory() -> School {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            School::new_in(memory)
        } else {
            School::new()
        }
    }

    pub fn new_in(folder: &Path) -> School {
        let folder = tempfile::tempdir_in(folder).expect("a temporary folder");
        let school = School {
            folder,
            _limit: TimeLimit::start(),
        };
        chmod(school.folder(), 0o755);
        fs::create_dir(school.sessions()).unwrap();
        fs::create_dir_all(school.aularios()).unwrap();
        for (aulario, settings) in [
            ("aula1", r#"{"name":"Aula 1","icon":"a.png"}"#),
            ("aula2", r#"{"name":"Aula 2","icon":"b.png"}"#),
            (
                "compartida",
                r#"{"name":"C","shared_comedor_from":"aula1"}"#,
            ),
        ] {
            school.write(&format!("{aulario}.json"), settings);
        }
        school.log_in("teacher", session(TEACHER));
        school.log_in("admin", session(ADMIN));
        school
    }

    /// The same with a saved day: see [`save`].
    pub fn with_menu(name: &str) -> School {
        let school = School::new();
        school.save(save(name));
        school
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn sessions(&self) -> PathBuf {
        self.folder().join("sessions")
    }

    pub fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    /// The folder of the aularios; the paths below are relative to it.
    pub fn aularios(&self) -> PathBuf {
        self.data().join("Centros/centro1/Aularios")
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.aularios().join(path)
    }

    #[track_caller]
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect(path)
    }

    /// Every file and folder below the aularios, sorted.
    pub fn files(&self) -> Vec<String> {
        files_below(&self.aularios(), &[])
    }

    /// Writes a session file with the mode that PHP gives it.
    pub fn log_in(&self, id: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.sessions().join(format!("sess_{id}"));
        fs::write(&path, content).unwrap();
        chmod(&path, 0o600);
        path
    }

    /// A read of `aula1` by the teacher.
    pub fn get(&self, action: &str) -> Cgi {
        self.request("GET", action).session("teacher")
    }

    /// A write to `aula1` by the administrator.
    pub fn post(&self, action: &str) -> Cgi {
        self.request("POST", action).session("admin")
    }

    fn request(&self, method: &str, action: &str) -> Cgi {
        Cgi::default()
            .program(Path::new(program()))
            .set("GATEWAY_INTERFACE", "CGI/1.1")
            .set("SERVER_PROTOCOL", "HTTP/1.1")
            .set("SERVER_NAME", "school.example")
            .set("HTTP_HOST", "school.example")
            .set("SCRIPT_NAME", "/api/comedor.php")
            .set("REQUEST_METHOD", method)
            .set("COMEDOR_DATA_DIR", self.data())
            .set("COMEDOR_SESSION_DIR", self.sessions())
            .query("action", action)
            .query("aulario", "aula1")
    }

    /// The answer to `get_menu` for [`DATE`].
    #[track_caller]
    pub fn menu(&self, menu: &str) -> Value {
        self.get("get_menu")
            .query("date", DATE)
            .query("menu", menu)
            .run()
            .ok()
    }

    /// The answer to `save_menu`, which must be a success.
    #[track_caller]
    pub fn save(&self, body: Value) -> Value {
        self.post("save_menu").json(&body).run().ok()
    }
}

/// A body for `save_menu`: on [`DATE`] the first plate of the type `basal` has this name.
pub fn save(name: &str) -> Value {
    json!({"date": DATE, "menu_type": "basal", "plates": {"primero": {"name": name}}})
}

/// A session in the format `php` with these permissions, in `centro1` with all its aularios.
pub fn session(permissions: &[&str]) -> String {
    session_of("centro1", permissions)
}

pub fn session_of(centro: &str, permissions: &[&str]) -> String {
    let list: String = permissions
        .iter()
        .enumerate()
        .map(|(index, text)| format!("i:{index};s:{}:\"{text}\";", text.len()))
        .collect();
    format!(
        "auth_user|s:2:\"u1\";auth_ok|b:1;auth_data|a:2:{{s:11:\"permissions\";a:{}:{{{list}}}\
         s:7:\"service\";a:1:{{s:6:\"centro\";s:{}:\"{centro}\";}}}}",
        permissions.len(),
        centro.len(),
    )
}

/// Waits until so many processes wait for a lock on the file at `path`. Returns their numbers: a second read of /proc/locks
/// can lack one, while locks of other processes come and go.
#[track_caller]
pub fn until_waiting(path: &Path, count: usize) -> Vec<u32> {
    let mut processes = Vec::new();
    site::wait_until("as many as are sent wait", || {
        processes = waiting(path);
        processes.len() == count
    });
    processes
}

/// The numbers of the processes that wait for a lock on the file at `path`.
pub fn waiting(path: &Path) -> Vec<u32> {
    locking(fs::metadata(path).unwrap().ino(), true)
}

/// The processes that hold a lock on the file at `path`. By a file descriptor: the number can be that of another process
/// later.
pub fn holding(path: &Path) -> Vec<(u32, OwnedFd)> {
    let opened = |process: u32| {
        let holder = pidfd_open(Pid::from_raw(process as i32)?, PidfdFlags::empty()).ok()?;
        // A file of another file system can have the same inode number.
        let files = fs::read_dir(format!("/proc/{process}/fd")).ok()?;
        let mut files = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
        files.any(|file| file == path).then_some((process, holder))
    };
    let file = fs::metadata(path).into_iter();
    file.flat_map(|file| locking(file.ino(), false))
        .filter_map(opened)
        .collect()
}

/// The numbers of the processes that wait for a lock (flock(2)) on the file with this number, or of those that hold one
/// (proc_locks(5)).
fn locking(inode: u64, is_waiting: bool) -> Vec<u32> {
    let inode = format!(":{inode}");
    let locks = fs::read_to_string("/proc/locks").unwrap();
    let process = |line: &str| {
        let mut fields: Vec<&str> = line.split_whitespace().skip(1).collect();
        let waits = fields.first() == Some(&"->");
        fields.drain(..usize::from(waits));
        let is_asked = waits == is_waiting && fields[0] == "FLOCK" && fields[4].ends_with(&inode);
        is_asked.then(|| fields[3].parse().unwrap())
    };
    locks.lines().filter_map(process).collect()
}

/// The processes that the process `parent` has started, such as the program under strace.
pub fn children(parent: impl Display) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children: String = children.collect();
    children
        .split_whitespace()
        .map(|child| Pid::from_raw(child.parse().unwrap()).unwrap())
        .collect()
}

/// The output of `php` for `code`, which reads its arguments from `$argv`.
#[track_caller]
pub fn php(code: &str, arguments: &[&Path]) -> Vec<u8> {
    let mut command = Command::new("php");
    command
        .args(["-d", "display_errors=stderr", "-r", code, "--"])
        .args(arguments);
    output(&mut command, "php-cli")
}

/// The output of a tool, which must succeed. `package` is what contains it, mostly a package of Debian.
#[track_caller]
pub fn output(command: &mut Command, package: &str) -> Vec<u8> {
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => panic!("{command:?}: {error}; this test needs {package}"),
    };
    let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{command:?}\n{out}\n{errors}");
    output.stdout
}

/// A free port that was not returned before. A socket whose name has the port reserves it among all
/// processes of tests. The range of ports that the kernel assigns to clients (ip(7),
/// `ip_local_port_range`) is avoided, since the tests use many of those.
pub fn free_port() -> u16 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id() + COUNT.fetch_add(1, Ordering::Relaxed);
        let port = 20_000 + (number % 12_000) as u16;
        let name = SocketAddr::from_abstract_name(format!("comedor-tests-{port}")).unwrap();
        if let Ok(reserved) = UnixListener::bind_addr(&name)
            && TcpListener::bind(("127.0.0.1", port)).is_ok()
        {
            std::mem::forget(reserved);
            return port;
        }
    }
}
