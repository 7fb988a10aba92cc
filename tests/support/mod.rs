//! A school in a temporary folder, and requests to it.

#![allow(dead_code, reason = "each test binary uses a part of this")]

pub mod site;

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Once;

pub use serde_json::{Value, json};
use tempfile::TempDir;

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_comedor");

/// A day that has passed, for requests that name their date.
pub const DATE: &str = "2026-11-20";

/// The permissions of a teacher, and those of an administrator.
pub const TEACHER: &[&str] = &["service:docente"];
pub const ADMIN: &[&str] = &["service:docente", "sysadmin:access"];

/// A centre `centro1` with the aularios `aula1`, `aula2`, and `compartida`, which shows the
/// dining hall of `aula1`; logged in are `teacher` and `admin`.
pub struct School {
    folder: TempDir,
}

impl School {
    pub fn new() -> School {
        // An empty settings file beside the program, so that none of the machine's own counts.
        static SETTINGS: Once = Once::new();
        SETTINGS.call_once(|| {
            fs::write(Path::new(PROGRAM).with_file_name("comedor.conf"), "").unwrap()
        });
        let school = School { folder: tempfile::tempdir().expect("a temporary folder") };
        fs::create_dir(school.sessions()).unwrap();
        fs::create_dir_all(school.aularios()).unwrap();
        for (aulario, settings) in [
            ("aula1", r#"{"name":"Aula 1","icon":"a.png"}"#),
            ("aula2", r#"{"name":"Aula 2","icon":"b.png"}"#),
            ("compartida", r#"{"name":"C","shared_comedor_from":"aula1"}"#),
        ] {
            school.write(&format!("{aulario}.json"), settings);
        }
        school.log_in("teacher", session(TEACHER));
        school.log_in("admin", session(ADMIN));
        school
    }

    pub fn sessions(&self) -> PathBuf {
        self.folder.path().join("sessions")
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The folder of the aularios; the paths below are relative to it.
    pub fn aularios(&self) -> PathBuf {
        self.data().join("Centros/centro1/Aularios")
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.aularios().join(path)
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Every file and folder below the aularios, in order.
    pub fn files(&self) -> Vec<String> {
        fn walk(folder: &Path, base: &Path, files: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                files.push(path.strip_prefix(base).unwrap().to_str().unwrap().to_owned());
                if path.is_dir() {
                    walk(&path, base, files);
                }
            }
        }
        let mut files = Vec::new();
        walk(&self.aularios(), &self.aularios(), &mut files);
        files.sort();
        files
    }

    /// Writes a session file as PHP does.
    pub fn log_in(&self, id: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.sessions().join(format!("sess_{id}"));
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
        file.unwrap().write_all(content.as_ref()).unwrap();
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
        let cgi = Cgi {
            program: PROGRAM.into(),
            variables: Vec::new(),
            query: Vec::new(),
            body: Vec::new(),
        };
        cgi.set("GATEWAY_INTERFACE", "CGI/1.1")
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

    /// What the aulario's types and the menu of [`DATE`] are for the teacher.
    pub fn menu(&self, menu: &str) -> Value {
        self.get("get_menu").query("date", DATE).query("menu", menu).run().ok()
    }

    pub fn save(&self, body: Value) -> Value {
        self.post("save_menu").json(&body).run().ok()
    }
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

/// One request.
#[derive(Clone)]
pub struct Cgi {
    program: PathBuf,
    variables: Vec<(String, Vec<u8>)>,
    query: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Cgi {
    /// Sets a variable.
    pub fn set(mut self, name: &str, value: impl AsRef<OsStr>) -> Cgi {
        self = self.unset(name);
        self.variables.push((name.to_owned(), value.as_ref().as_bytes().to_vec()));
        self
    }

    pub fn unset(mut self, name: &str) -> Cgi {
        self.variables.retain(|(known, _)| known != name);
        self
    }

    /// Sets a parameter of the query; it must need no encoding.
    pub fn query(mut self, name: &str, value: &str) -> Cgi {
        self.query.retain(|(known, _)| known != name);
        self.query.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn aulario(self, id: &str) -> Cgi {
        self.query("aulario", id)
    }

    pub fn session(self, id: &str) -> Cgi {
        self.set("HTTP_COOKIE", format!("PHPSESSID={id}"))
    }

    pub fn method(self, method: &str) -> Cgi {
        self.set("REQUEST_METHOD", method)
    }

    /// Runs that copy of the program.
    pub fn program(mut self, program: &Path) -> Cgi {
        self.program = program.to_owned();
        self
    }

    /// Gives it a body with its length and type.
    pub fn body(mut self, content_type: &str, body: impl AsRef<[u8]>) -> Cgi {
        self.body = body.as_ref().to_vec();
        let length = self.body.len().to_string();
        self.set("CONTENT_TYPE", content_type).set("CONTENT_LENGTH", length)
    }

    pub fn json(self, body: &Value) -> Cgi {
        self.body("application/json", body.to_string())
    }

    /// The command that runs it, behind the words of `before` (strace …), with no other variable.
    pub fn command(&self, before: &[&str]) -> Command {
        let mut words = before.iter().map(OsStr::new).chain([self.program.as_os_str()]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).env_clear();
        let query: Vec<String> = self.query.iter().map(|(k, v)| format!("{k}={v}")).collect();
        command.env("QUERY_STRING", query.join("&"));
        for (name, value) in &self.variables {
            command.env(name, OsStr::from_bytes(value));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts it behind the words of `before` and sends its body.
    pub fn start_behind(&self, before: &[&str]) -> Child {
        let mut child = self.command(before).spawn().unwrap_or_else(|error| {
            panic!("{before:?}: {error}; tests/run installs what is missing")
        });
        // It need not read what it refuses.
        _ = child.stdin.take().unwrap().write_all(&self.body);
        child
    }

    pub fn start(&self) -> Child {
        self.start_behind(&[])
    }

    pub fn run(&self) -> Answer {
        Answer::of(self.start())
    }

    pub fn run_behind(&self, before: &[&str]) -> Answer {
        Answer::of(self.start_behind(before))
    }

    /// Runs it under strace, which stops it behind the system call `at` ("fsync:when=1"); then
    /// `meanwhile` happens, with its process id, and it goes on.
    pub fn stopped(&self, at: &str, meanwhile: impl FnOnce(&str)) -> Answer {
        let trace = format!("trace={}", at.split(':').next().unwrap());
        let inject = format!("inject={at}:signal=STOP");
        let mut child = self.start_behind(&["strace", "-e", &trace, "-e", &inject]);
        let mut trace = BufReader::new(child.stderr.take().unwrap()).lines();
        while !trace.next().expect("a stop").unwrap().contains("stopped by SIGSTOP") {}
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let children = fs::read_to_string(children).unwrap();
        let pid = children.trim();
        meanwhile(pid);
        output(Command::new("sh").args(["-c", &format!("kill -CONT {pid}")]), "dash");
        trace.for_each(drop);
        Answer::of(child)
    }
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub log: String,
}

impl Answer {
    /// Waits for `child` and takes its output apart; it must be one well-formed response and
    /// the exit status 0.
    pub fn of(child: Child) -> Answer {
        let output = child.wait_with_output().unwrap();
        let log = String::from_utf8(output.stderr).expect("UTF-8 on standard error");
        assert!(output.status.success(), "{:?} {log}", output.status);
        let end = output.stdout.windows(4).position(|window| window == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no header block; standard error: {log}"));
        let head = std::str::from_utf8(&output.stdout[..end]).unwrap();
        let headers: Vec<(String, String)> = head
            .split("\r\n")
            .map(|line| line.split_once(": ").expect("a header"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let answer = Answer {
            status: headers[0].1.split(' ').next().unwrap().parse().unwrap(),
            headers,
            body: output.stdout[end + 4..].to_vec(),
            log,
        };
        assert_eq!(answer.headers[0].0, "Status");
        for (name, value) in [
            ("Content-Type", "application/json; charset=utf-8"),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ] {
            assert_eq!(answer.header(name), Some(value));
        }
        answer
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} twice");
        value
    }

    pub fn value(&self) -> Value {
        let length = self.body.len().to_string();
        assert_eq!(self.header("Content-Length"), Some(length.as_str()));
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    /// The body of a success.
    pub fn ok(&self) -> Value {
        let value = self.value();
        assert_eq!(self.status, 200, "{value} {}", self.log);
        assert_eq!(value["success"], true, "{value}");
        assert_eq!(self.log, "", "a success leaves the log alone");
        value
    }

    /// Checks that this is the error `code`, in its shape and with its status, and that only
    /// errors of the administrator's are logged.
    #[track_caller]
    pub fn fails(&self, code: &str) -> &Answer {
        let value = self.value();
        assert_eq!(value["code"], code, "{value} {}", self.log);
        let status = match code {
            "FORBIDDEN" => 403,
            "NOT_FOUND" => 404,
            "TOO_LARGE" => 413,
            "INTERNAL_ERROR" => 500,
            "BUSY" => 503,
            _ => 400,
        };
        assert_eq!(self.status, status);
        assert_eq!(value["success"], false);
        let sentence = value["error"].as_str().expect("a sentence");
        assert!(sentence.ends_with('.'), "{sentence}");
        assert_eq!(value.as_object().unwrap().len(), 3);
        assert_eq!(self.header("Retry-After").is_some(), code == "BUSY");
        let logged = self.log.lines().count();
        match code {
            "INTERNAL_ERROR" => assert_eq!(logged, 1, "{}", self.log),
            "INVALID_SESSION" => assert!(logged <= 1, "{}", self.log),
            _ => assert_eq!(self.log, ""),
        }
        self
    }
}

/// What `php` prints for `code`, which reads its arguments from `$argv`.
pub fn php(code: &str, arguments: &[&Path]) -> Vec<u8> {
    let mut command = Command::new("php");
    command.args(["-d", "display_errors=stderr", "-r", code, "--"]).args(arguments);
    output(&mut command, "php-cli")
}

/// Runs a tool that Debian's `package` brings; it must succeed.
pub fn output(command: &mut Command, package: &str) -> Vec<u8> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().unwrap_or_else(|error| {
        panic!("{name}: {error}; this test needs it: apt-get install {package}")
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {errors}");
    output.stdout
}
