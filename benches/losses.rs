//! What is lost at saves, with the program and with benches/comedor.php, which saves as the application's pages do.
//! Started by `benches/losses`; no test depends on its figures.
#![allow(
    clippy::too_many_lines,
    reason = "tests/support is compiled into each crate"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use support::fastcgi::{Client, Held, Process, parameters};
use support::{DATE, DAY, REPOSITORY, School, Value, json, open_folder, output, save};

/// The saves of each client on one day. A menu has at most 64 plates.
const SAVES: usize = 7;
const PAUSE: Duration = Duration::from_millis(500);
const CLIENTS: [usize; 3] = [2, 4, 8];

#[derive(Clone, Copy)]
enum Program {
    Comedor,
    Script,
}

const PROGRAMS: [Program; 2] = [Program::Comedor, Program::Script];

fn main() {
    let is_quick = support::is_quick("benches/losses");
    let (days, reads): (usize, usize) = if is_quick { (1, 100) } else { (50, 10_000) };
    println!("| | comedor | the script |\n|---|--:|--:|");
    let [comedor, script] = PROGRAMS.map(on_a_full_disk);
    println!("| a save on a full disk | {comedor} | {script} |");
    let [comedor, script] = PROGRAMS.map(|program| read_beside_a_page(program, reads));
    println!("| {reads} reads beside a page that saves without a pause | {comedor} | {script} |");
    for (pause, days) in [(None, days), (Some(PAUSE), days.div_ceil(10))] {
        for clients in CLIENTS {
            let [comedor, script] = PROGRAMS.map(|program| at_once(program, clients, days, pause));
            let shown = pause.map_or("no pause".to_owned(), |pause| {
                format!("{} s between saves", pause.as_secs_f64())
            });
            println!("| {clients} clients, {shown}: saves overwritten | {comedor} | {script} |");
        }
    }
}

/// A school and a responder: the program, or PHP with the script.
struct Server {
    school: School,
    socket: Held,
    process: Process,
}

impl Server {
    fn new(program: Program, school: School) -> Server {
        let socket = Held::new();
        let process = match program {
            Program::Comedor => socket.serve(&school),
            Program::Script => socket.spawn(php(&school)),
        };
        Server {
            school,
            socket,
            process,
        }
    }

    /// Sends a request of the administrator. Returns the body of a success.
    fn ask(&self, method: &str, query: &str, body: &[u8]) -> Option<Value> {
        let length = body.len().to_string();
        // The data folder is beside the document root.
        let root = self.school.sessions();
        let script = Path::new(REPOSITORY).join("benches/comedor.php");
        let mut pairs = parameters(method, query, "PHPSESSID=admin");
        pairs.extend([
            ("CONTENT_TYPE", "application/json"),
            ("CONTENT_LENGTH", length.as_str()),
            ("DOCUMENT_ROOT", root.to_str().unwrap()),
            ("SCRIPT_FILENAME", script.to_str().unwrap()),
        ]);
        let reply = Client::connect(&self.socket.path).ask(false, &pairs, body);
        let (_, body) = reply.stdout.split_once("\r\n\r\n")?;
        let body: Value = serde_json::from_str(body).ok()?;
        (body["success"] == true).then_some(body)
    }

    fn save(&self, body: &Value) -> Option<Value> {
        let query = "action=save_menu&aulario=aula1";
        self.ask("POST", query, body.to_string().as_bytes())
    }

    /// The name of the first plate, in a success.
    fn read(&self) -> Option<String> {
        let query = format!("action=get_menu&aulario=aula1&date={DATE}");
        let body = self.ask("GET", &query, b"")?;
        let name = &body["menu"]["plates"]["primero"]["name"];
        Some(name.as_str().unwrap().to_owned())
    }
}

/// PHP as a FastCGI responder with eight processes.
fn php(school: &School) -> Command {
    let mut command = Command::new("php-cgi");
    let sessions = format!("session.save_path={}", school.sessions().display());
    command
        .args(["-d", &sessions, "-d", "display_errors=0"])
        .env("PHP_FCGI_CHILDREN", "8")
        .env("PHP_FCGI_MAX_REQUESTS", "1000000");
    command
}

/// Killed, PHP would leave its processes.
impl Drop for Server {
    fn drop(&mut self) {
        kill_process(self.process.pid(), Signal::TERM).unwrap();
        _ = self.process.0.wait();
    }
}

/// Clients that each save plates of their own, of the same days. How many of the acknowledged ones are missing in the
/// end.
fn at_once(program: Program, clients: usize, days: usize, pause: Option<Duration>) -> String {
    let server = Server::new(program, School::new());
    let (mut saved, mut missing, mut failed) = (0, 0, 0);
    for day in 0..days {
        let date = format!("2027-{:02}-{:02}", day / 28 + 1, day % 28 + 1);
        let plates = thread::scope(|scope| {
            let of_client = |client| {
                let (server, date) = (&server, &date);
                scope.spawn(move || plates_of(server, date, client, day, pause))
            };
            let clients: Vec<_> = (0..clients).map(of_client).collect();
            let plates = clients.into_iter().map(|client| client.join().unwrap());
            plates.flatten().collect::<Vec<_>>()
        });
        let path = format!("aula1/Comedor/{}/{}/_datos.json", &date[..7], &date[8..]);
        let file: Value = serde_json::from_str(&server.school.read(&path)).unwrap_or_default();
        let is_there = |plate: &String| !file["menus"]["basal"]["plates"][plate].is_null();
        failed += clients * SAVES - plates.len();
        saved += plates.len();
        missing += plates.iter().filter(|plate| !is_there(plate)).count();
    }
    match failed {
        0 => format!("{missing} of {saved}"),
        _ => format!("{missing} of {saved}, and {failed} failed"),
    }
}

/// The plates that this client has saved, each in one save that was answered with success.
fn plates_of(
    server: &Server,
    date: &str,
    client: usize,
    day: usize,
    pause: Option<Duration>,
) -> Vec<String> {
    // The clients do not know of each other: each begins at another moment.
    let moment = ((day * 7919 + client * 104_729) % 1000) as u32;
    let wait = |share| pause.map(|pause| thread::sleep(pause * share / 1000));
    wait(moment);
    let mut plates = Vec::new();
    for number in 0..SAVES {
        let plate = format!("c{client}n{number}");
        let body = json!({"date": date, "menu_type": "basal", "plates": {&plate: {"name": "x"}}});
        if server.save(&body).is_some() {
            plates.push(plate);
        }
        wait(1000);
    }
    plates
}

/// The page saves the same menu again and again, in place. In memory: on a disk the script's file would be empty most of the
/// time.
fn read_beside_a_page(program: Program, reads: usize) -> String {
    let server = Server::new(program, School::in_memory());
    server.save(&save("whole")).expect("a saved menu");
    let (path, content) = (server.school.path(DAY), server.school.read(DAY));
    let is_done = AtomicBool::new(false);
    let (mut empty, mut failed) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                fs::write(&path, &content).unwrap();
            }
        });
        for _ in 0..reads {
            match server.read().as_deref() {
                Some("whole") => {}
                Some(_) => empty += 1,
                None => failed += 1,
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
    format!("{empty} empty, {failed} failed")
}

/// The answer to a save that the disk is too full for, and whether the old file stays.
fn on_a_full_disk(program: Program) -> String {
    let disk = open_folder();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=1m,mode=755", "tmpfs"]);
    output(mount.arg(disk.path()), "util-linux");
    let said = {
        let server = Server::new(program, School::new_in(disk.path()));
        server.save(&save("old")).expect("room for a small file");
        let old = server.school.read(DAY);
        let mut filler = fs::File::create(disk.path().join("filler")).unwrap();
        while filler.write_all(&[0; 4096]).is_ok() {}
        let name = "x".repeat(1900);
        let plates =
            json!({"primero": {"name": name}, "segundo": {"name": name}, "postre": {"name": name}});
        let body = json!({"date": DATE, "menu_type": "basal", "plates": plates});
        let answer = match server.save(&body) {
            Some(_) => "success",
            None => "an error",
        };
        let file = server.school.read(DAY);
        let is_whole = serde_json::from_str::<Value>(&file).is_ok();
        let state = match (file == old, is_whole) {
            (true, _) => "the old file stays".to_owned(),
            (false, true) => "the new file is whole".to_owned(),
            (false, false) => format!("the file is cut off after {} bytes", file.len()),
        };
        format!("{answer}; {state}")
    };
    output(Command::new("umount").arg(disk.path()), "util-linux");
    said
}
