//! A Redis server in a temporary folder, PHP's sessions in it, and servers that misbehave.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use tempfile::TempDir;

use super::fastcgi::{Client, Held, Process, parameters};
use super::site::wait_until;
use super::{DATE, School, free_port, output, php};

/// A server on a Unix socket and on a port of the loopback interface. Each is empty after a restart.
pub struct Redis {
    process: Option<Process>,
    folder: TempDir,
    port: u16,
}

impl Redis {
    pub fn new() -> Redis {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        Redis {
            process: Some(start(folder.path(), port)),
            folder,
            port,
        }
    }

    /// The save_path of phpredis for the socket, with these parameters.
    pub fn socket(&self, parameters: &str) -> String {
        format!("unix://{}/socket{parameters}", self.folder.path().display())
    }

    /// The same for the port.
    pub fn tcp(&self, host: &str, parameters: &str) -> String {
        format!("tcp://{host}:{}{parameters}", self.port)
    }

    /// The answer to a command, without the end of the line.
    #[track_caller]
    pub fn command(&self, words: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        command
            .arg("-s")
            .arg(self.folder.path().join("socket"))
            .args(words);
        String::from_utf8(output(&mut command, "redis-tools"))
            .unwrap()
            .trim_end()
            .to_owned()
    }

    pub fn stop(&mut self) {
        self.process = None;
    }

    pub fn restart(&mut self) {
        self.stop();
        self.process = Some(start(self.folder.path(), self.port));
    }
}

/// Waits until the server accepts connections.
fn start(folder: &Path, port: u16) -> Process {
    let mut command = Command::new("redis-server");
    command.args([
        "--bind",
        "127.0.0.1",
        "--port",
        &port.to_string(),
        "--unixsocket",
    ]);
    command
        .arg(folder.join("socket"))
        .args(["--unixsocketperm", "777"]);
    command
        .arg("--dir")
        .arg(folder)
        .args(["--save", "", "--daemonize", "no"]);
    let process = command.stdout(Stdio::piped()).spawn();
    let mut process = process.expect("this test needs redis: apt-get install redis-server");
    let mut lines = BufReader::new(process.stdout.as_mut().unwrap()).lines();
    while !lines
        .next()
        .expect("the server starts")
        .unwrap()
        .contains("eady to accept")
    {}
    Process(process)
}

/// Runs `code` in the session `id` of phpredis with this save_path, or in a new one.
#[track_caller]
pub fn php_session(save_path: &str, format: &str, lifetime: &str, id: &str, code: &str) -> String {
    let start = "extension_loaded('redis') or
            exit(fwrite(STDERR, 'this test needs phpredis: apt-get install php-redis'));
        foreach (['save_handler' => 'redis', 'save_path' => $argv[1], 'serialize_handler' => $argv[2],
            'gc_maxlifetime' => $argv[3], 'use_cookies' => 0, 'cache_limiter' => ''] as $name => $value)
            ini_set(\"session.$name\", $value);
        if ($argv[4] != '') session_id($argv[4]);
        session_start() or exit(fwrite(STDERR, 'no session'));";
    let end = "echo session_id();";
    let arguments = [save_path, format, lifetime, id].map(Path::new);
    String::from_utf8(php(&format!("{start} {code} {end}"), &arguments)).unwrap()
}

/// A server that passes each connection to `serve` with its number, counted from 0. Returns its
/// save_path.
pub fn fake_redis(serve: impl Fn(usize, TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            serve(number, stream.unwrap());
        }
    });
    format!("tcp://{address}")
}

/// Waits for the commands of a request, and sends `reply`.
pub fn reply_with(mut stream: &TcpStream, reply: &[u8]) {
    if commands(stream).is_some() {
        // The program may have given up.
        _ = stream.write_all(reply);
    }
}

/// The commands of a request; `None` if the program closes the connection.
pub fn commands(mut stream: &TcpStream) -> Option<Vec<u8>> {
    let mut commands = Vec::new();
    while !commands.ends_with(b"GT\r\n") {
        let mut bytes = [0; 1000];
        match stream.read(&mut bytes) {
            Ok(length @ 1..) => commands.extend_from_slice(&bytes[..length]),
            _ => return None,
        }
    }
    Some(commands)
}

/// The replies to a request: the value of the key, and the result of EXPIRE.
pub fn replies(value: &str) -> Vec<u8> {
    format!("${}\r\n{value}\r\n:1\r\n", value.len()).into_bytes()
}

/// The program as a responder with the sessions at this save_path.
pub fn serve(socket: &Held, school: &School, save_path: &str) -> Process {
    let process = socket.spawn(
        school
            .get("")
            .set("COMEDOR_SESSION_DIR", save_path)
            .responder(),
    );
    // Connections are kept only while half of the workers are free.
    wait_until("the workers", || process.has_started(64));
    process
}

/// The status of a read on a connection that stays open.
pub fn status(client: &mut Client, aulario: &str, id: &str) -> u16 {
    let query = format!("action=get_menu&aulario={aulario}&date={DATE}");
    let reply = client.ask(
        true,
        &parameters("GET", &query, &format!("PHPSESSID={id}")),
        b"",
    );
    reply.stdout.split(' ').nth(1).unwrap().parse().unwrap()
}
