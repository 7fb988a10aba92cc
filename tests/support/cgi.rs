//! A request as a web server passes it to a CGI program (RFC 3875), and the answer.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Signal, kill_process};

use super::fastcgi::{self, Client, Held};
use super::tracer::Tracer;
use super::{Value, by_fastcgi, children};

/// One request.
#[derive(Clone, Default)]
pub struct Cgi {
    /// A command that runs the program: strace, setpriv …
    wrapper: Vec<OsString>,
    program: PathBuf,
    variables: BTreeMap<String, OsString>,
    query: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Cgi {
    /// Sets an environment variable.
    pub fn set(mut self, name: &str, value: impl AsRef<OsStr>) -> Cgi {
        self.variables
            .insert(name.to_owned(), value.as_ref().to_owned());
        self
    }

    pub fn unset(mut self, name: &str) -> Cgi {
        self.variables.remove(name);
        self
    }

    /// Sets a query parameter. It is not percent-encoded.
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

    /// Runs another copy of the program.
    pub fn program(mut self, program: &Path) -> Cgi {
        self.program = program.to_owned();
        self
    }

    /// Sets the body, its type and its length.
    pub fn body(mut self, content_type: &str, body: impl AsRef<[u8]>) -> Cgi {
        self.body = body.as_ref().to_vec();
        let length = self.body.len().to_string();
        self.set("CONTENT_TYPE", content_type)
            .set("CONTENT_LENGTH", length)
    }

    pub fn json(self, body: &Value) -> Cgi {
        self.body("application/json", body.to_string())
    }

    /// Runs the program under `command`, inside any set before: `["strace", "-f"]`.
    pub fn under(mut self, command: &[&str]) -> Cgi {
        self.wrapper.extend(command.iter().map(OsString::from));
        self
    }

    /// Limits the processor time of the program, which other processes do not lengthen. An unoptimized build gets ten times
    /// as much.
    pub fn cpu_seconds(self, limit: u32) -> Cgi {
        let limit = if super::GIVEN.is_none() {
            10 * limit
        } else {
            limit
        };
        self.under(&["prlimit", &format!("--cpu={limit}")])
    }

    /// Limits the memory of the program that can be written. (For each thread malloc also reserves 64 MiB of
    /// address space.)
    pub fn memory(self, bytes: u64) -> Cgi {
        self.under(&["prlimit", &format!("--data={bytes}")])
    }

    /// Runs the program by a line of shell in which `"$0"` is its path.
    pub fn shell(self, line: &str) -> Cgi {
        self.under(&["/bin/sh", "-c", line])
    }

    /// Makes a system call fail, or a signal arrive at it, with the `inject` of strace(1):
    /// `fsync:error=EIO:when=2`.
    pub fn inject(self, fault: &str) -> Cgi {
        self.under(&[
            "strace",
            "-o",
            "/dev/null",
            "-e",
            &format!("inject={fault}"),
        ])
    }

    /// The command with this request's environment and no other variable.
    pub fn command(&self) -> Command {
        let mut words = self
            .wrapper
            .iter()
            .map(OsString::as_os_str)
            .chain([self.program.as_ref()]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).env_clear().envs(self.environment());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The command that starts a FastCGI responder with the settings of this request.
    pub fn responder(&self) -> Command {
        let mut command = self.command();
        for name in self.environment().keys().filter(|name| !is_setting(name)) {
            command.env_remove(name);
        }
        command
    }

    /// With the query, unless it was set as a variable.
    fn environment(&self) -> BTreeMap<String, OsString> {
        let query: Vec<String> = self.query.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let mut variables = self.variables.clone();
        variables
            .entry("QUERY_STRING".to_owned())
            .or_insert(query.join("&").into());
        variables
    }

    /// The FastCGI records of this request, without its settings.
    pub fn records(&self) -> Vec<u8> {
        let variables = self.environment();
        let parameters = variables.iter().filter(|(name, _)| !is_setting(name));
        let parameters = parameters.map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
        fastcgi::request(false, &parameters.collect::<Vec<_>>(), &self.body)
    }

    /// Starts `command`, sends the body of this request and closes standard input.
    #[track_caller]
    pub fn send(&self, command: &mut Command) -> Child {
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => panic!("{command:?}: {error}; tests/run installs what is missing"),
        };
        // The program may exit without reading a body that it rejects.
        _ = child.stdin.take().unwrap().write_all(&self.body);
        child
    }

    #[track_caller]
    pub fn start(&self) -> Child {
        self.send(&mut self.command())
    }

    /// Starts the program under ptrace(2), with the body of this request on standard input.
    #[track_caller]
    pub fn trace_calls(&self) -> Tracer {
        Tracer::start(&mut self.command(), &self.body)
    }

    /// Sends it to the program; as a responder, the program is stopped after the answer.
    #[track_caller]
    pub fn run(&self) -> Answer {
        if !by_fastcgi() {
            return Answer::of(self.start());
        }
        let socket = Held::new();
        let process = socket.spawn(self.responder());
        let mut answer = self.ask(&socket.path);
        let log = process.stop();
        // It has the lines of the answer too, unless standard error is closed.
        if !log.is_empty() {
            answer.log = log;
        }
        answer
    }

    /// Sends it to the responder on this socket.
    #[track_caller]
    pub fn ask(&self, socket: &Path) -> Answer {
        let records = self.records();
        let mut client = Client::connect(socket);
        let reply = client.send(records).reply();
        client.is_at_end();
        let log = reply
            .stderr
            .iter()
            .map(|line| format!("{line}\n"))
            .collect();
        Answer::parse(reply.stdout.as_bytes(), log)
    }

    /// Runs the program under strace with these options; returns the answer and the trace.
    #[track_caller]
    pub fn trace(&self, options: &[&str]) -> (Answer, String) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let strace = ["strace", "-o", file.path().to_str().unwrap()];
        let answer = self.clone().under(&strace).under(options).run();
        (answer, fs::read_to_string(file.path()).unwrap())
    }

    /// Stops the program with strace after the system call `at` (`fsync:when=1`), calls `meanwhile`
    /// with its process id, then lets it continue.
    #[track_caller]
    pub fn stopped(&self, at: &str, meanwhile: impl FnOnce(&str)) -> Answer {
        let call = at.split(':').next().unwrap();
        let (shown, stop) = (format!("trace={call}"), format!("inject={at}:signal=STOP"));
        self.traced(
            &["-e", &shown, "-e", &stop],
            &["stopped by SIGSTOP"],
            meanwhile,
        )
        .0
    }

    /// Runs the program under strace with these options. Calls `meanwhile` with its process id after a line of the
    /// trace with the first of `parts`, then one with the next; then lets it continue. Returns the trace too.
    #[track_caller]
    pub fn traced(
        &self,
        options: &[&str],
        parts: &[&str],
        meanwhile: impl FnOnce(&str),
    ) -> (Answer, Vec<String>) {
        let mut child = self.clone().under(&["strace"]).under(options).start();
        let mut lines = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map(Result::unwrap);
        let mut trace: Vec<String> = Vec::new();
        for part in parts {
            while !trace.last().is_some_and(|line| line.contains(part)) {
                trace.push(lines.next().expect("another line of the trace"));
            }
        }
        let program = children(child.id())[0];
        meanwhile(&program.to_string());
        // It may have ended, if it was not stopped.
        _ = kill_process(program, Signal::CONT);
        trace.extend(lines);
        (Answer::of(child), trace)
    }
}

/// The system calls in a trace: the name, the number among those of this name, and the line.
pub fn calls(trace: &str) -> Vec<(&str, usize, &str)> {
    let mut times = BTreeMap::new();
    let call = |line| {
        let (call, _) = str::split_once(line, '(')?;
        let time = times.entry(call).or_insert(0);
        *time += 1;
        Some((call, *time, line))
    };
    trace.lines().filter_map(call).collect()
}

fn is_setting(name: &str) -> bool {
    name.starts_with("COMEDOR_") || name == "TZ"
}

/// The response to a request.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub log: String,
}

impl Answer {
    /// Waits for `child` and parses its output, which must be one well-formed response. The exit
    /// status must be 0.
    #[track_caller]
    pub fn of(child: Child) -> Answer {
        Answer::of_output(child.wait_with_output().unwrap())
    }

    /// The answer in the output of a program that has ended.
    #[track_caller]
    pub fn of_output(output: Output) -> Answer {
        let log = String::from_utf8(output.stderr).expect("UTF-8 on standard error");
        assert!(output.status.success(), "{:?} {log}", output.status);
        Answer::parse(&output.stdout, log)
    }

    /// Parses the output of the program for a request.
    #[track_caller]
    fn parse(stdout: &[u8], log: String) -> Answer {
        let end = stdout.windows(4).position(|window| window == b"\r\n\r\n");
        let Some(end) = end else {
            panic!("no header block; standard error: {log}")
        };
        let head = std::str::from_utf8(&stdout[..end]).unwrap();
        let headers: Vec<(String, String)> = head
            .split("\r\n")
            .map(|line| line.split_once(": ").expect("a header"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let answer = Answer {
            status: headers[0].1.split(' ').next().unwrap().parse().unwrap(),
            headers,
            body: stdout[end + 4..].to_vec(),
            log,
        };
        assert_eq!(answer.headers[0].0, "Status");
        for (name, value) in [
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Powered-By", "comedor"),
        ] {
            assert_eq!(answer.header(name), Some(value));
        }
        let content_type = (answer.status != 204).then_some("application/json; charset=utf-8");
        assert_eq!(answer.header("Content-Type"), content_type);
        answer
    }

    #[track_caller]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "duplicate header {name}");
        value
    }

    /// The body, whose length must be that of `Content-Length`.
    #[track_caller]
    pub fn value(&self) -> Value {
        let length = self.body.len().to_string();
        assert_eq!(self.header("Content-Length"), Some(length.as_str()));
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    /// The body of a success, which must not log anything.
    #[track_caller]
    pub fn ok(&self) -> Value {
        let value = self.value();
        assert_eq!(self.status, 200, "{value} {}", self.log);
        assert_eq!(value["success"], true, "{value}");
        assert_eq!(self.log, "", "a success must not log");
        value
    }

    /// Checks that this is INVALID_SESSION for this reason.
    #[track_caller]
    pub fn invalid_session(&self, reason: &str) -> &Answer {
        assert_eq!(self.fails("INVALID_SESSION").value()["reason"], reason);
        self
    }

    /// Checks that this is FORBIDDEN for this reason.
    #[track_caller]
    pub fn forbidden(&self, reason: &str) {
        assert_eq!(self.fails("FORBIDDEN").value()["reason"], reason);
    }

    /// Checks that this is a well-formed error `code` with its status. Only errors that an
    /// administrator can fix, or whose cause is another program, may be logged, in one line.
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
        let has_reason = ["INVALID_SESSION", "FORBIDDEN"].contains(&code);
        assert_eq!(value["reason"].is_string(), has_reason, "{value}");
        let fields = if has_reason { 4 } else { 3 };
        assert_eq!(value.as_object().unwrap().len(), fields, "{value}");
        assert_eq!(self.header("Retry-After").is_some(), code == "BUSY");
        let logged = self.log.lines().count();
        match code {
            "INTERNAL_ERROR" => assert_eq!(logged, 1, "{}", self.log),
            "INVALID_SESSION" | "BUSY" => assert!(logged <= 1, "{}", self.log),
            _ => assert_eq!(self.log, ""),
        }
        self
    }
}
