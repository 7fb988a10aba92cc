//! Requests per second without a web server, also with many aularios and sessions. Started by
//! `benches/growth`; no test depends on its figures.
#![allow(
    clippy::too_many_lines,
    reason = "a measurement is one sequence of steps"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use support::fastcgi::{Client, Held, Process, parameters};
use support::{ADMIN, DATE, School, TEACHER, output, program, save, session};

const CLIENTS: usize = 8;
const AULARIOS: usize = 16;
const MANY_AULARIOS: usize = 100_000;
const MANY_SESSIONS: usize = 200_000;
/// A day without menus.
const EMPTY: &str = "2026-11-21";

fn main() {
    let is_quick = support::is_quick("benches/growth");
    let (share, rounds, span) = if is_quick {
        (1000, 1, Duration::from_millis(20))
    } else {
        (1, 15, Duration::from_millis(200))
    };
    eprintln!("creating files");
    let small = Server::new(AULARIOS, 1);
    let aularios = Server::new(MANY_AULARIOS / share, 1);
    let sessions = Server::new(AULARIOS, MANY_SESSIONS / share);
    small.save(0, DATE, "Lentejas");
    let command = small
        .school
        .get("get_menu")
        .query("date", DATE)
        .query("menu", "basal");
    let command = command.aulario("aula0");

    type Measure<'m> = Box<dyn Fn() -> f64 + 'm>;
    let measures: [(&str, Measure); 10] = [
        ("process starts, 8 at a time", {
            Box::new(|| {
                rate(CLIENTS, span, |_| {
                    |_| run(Command::new(program()).arg("--version"))
                })
            })
        }),
        ("`get_menu` by CGI, 8 clients", {
            Box::new(|| rate(CLIENTS, span, |_| |_| run(&mut command.command())))
        }),
        (
            "`get_menu` by FastCGI, 1 client",
            Box::new(|| small.saved_menus(1, span)),
        ),
        (
            "`get_menu` by FastCGI, 8 clients",
            Box::new(|| small.saved_menus(CLIENTS, span)),
        ),
        (
            "… of an empty day, 16 aularios and 1 session",
            Box::new(|| small.empty_days(span)),
        ),
        (
            "… of an empty day, 100,000 aularios",
            Box::new(|| aularios.empty_days(span)),
        ),
        (
            "… of an empty day, 200,000 sessions",
            Box::new(|| sessions.empty_days(span)),
        ),
        (
            "files created and flushed, 1 writer",
            Box::new(|| small.flushes(span)),
        ),
        (
            "saves in one aulario, 8 writers",
            Box::new(|| small.saves(1, span)),
        ),
        (
            "saves in 16 aularios, 8 writers",
            Box::new(|| small.saves(AULARIOS, span)),
        ),
    ];
    let cores = thread::available_parallelism().unwrap();
    let before = load();
    let mut rates = vec![Vec::new(); measures.len()];
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for ((_, measure), rates) in measures.iter().zip(&mut rates) {
            rates.push(measure());
        }
    }
    if is_quick {
        println!("From --quick: too few files and requests for reliable figures.\n");
    }
    println!(
        "{cores} cores; load average {before} before and {} after.\n",
        load()
    );
    println!("| per second | median of {rounds} rounds | best |\n|---|--:|--:|");
    for ((name, _), mut rates) in measures.iter().zip(rates) {
        rates.sort_unstable_by(f64::total_cmp);
        println!(
            "| {name} | {:.0} | {:.0} |",
            rates[rates.len() / 2],
            rates[rates.len() - 1]
        );
    }
    println!("\n{}", small.days());
}

/// A school with aularios `aula0` … and sessions `s0` …, and the program as a FastCGI responder.
struct Server {
    school: School,
    socket: Held,
    _process: Process,
    aularios: usize,
    sessions: usize,
    /// The number of the next read of an empty day
    next: AtomicUsize,
}

impl Server {
    fn new(aularios: usize, sessions: usize) -> Server {
        let (school, socket) = (School::new(), Held::new());
        for number in 0..aularios {
            fs::write(
                school.path(&format!("aula{number}.json")),
                "{\"name\":\"Aula\"}",
            )
            .unwrap();
            let folder = school.path(&format!("aula{number}"));
            fs::create_dir_all(folder).unwrap();
        }
        let content = session(TEACHER);
        for number in 0..sessions {
            school.log_in(&format!("s{number}"), &content);
        }
        school.log_in("admin", session(ADMIN));
        let process = socket.serve(&school);
        let next = AtomicUsize::new(0);
        let server = Server {
            school,
            socket,
            _process: process,
            aularios,
            sessions,
            next,
        };
        // The first read of a file costs more: the kernel caches it and sets its time of access.
        for number in 0..aularios.max(sessions) {
            server.get_menu(number % aularios, number % sessions, EMPTY);
        }
        server
    }

    fn saved_menus(&self, clients: usize, span: Duration) -> f64 {
        rate(clients, span, |_| move |_| self.get_menu(0, 0, DATE))
    }

    /// Each request is to another aulario, with another session.
    fn empty_days(&self, span: Duration) -> f64 {
        rate(CLIENTS, span, |_| {
            move |_| {
                // A prime: neighbours in the folders are not neighbours in time.
                let number = self.next.fetch_add(1, Ordering::Relaxed) * 7919;
                self.get_menu(number % self.aularios, number % self.sessions, EMPTY);
            }
        })
    }

    fn flushes(&self, span: Duration) -> f64 {
        rate(1, span, |_| {
            |number| {
                let path = self.school.data().join(format!("flush{number}"));
                let mut file = File::create(&path).unwrap();
                file.write_all(b"a menu").unwrap();
                file.sync_all().unwrap();
                fs::remove_file(path).unwrap();
            }
        })
    }

    /// Each writer saves its own day, in these aularios in turn.
    fn saves(&self, aularios: usize, span: Duration) -> f64 {
        rate(CLIENTS, span, |writer| {
            let date = format!("2026-05-{:02}", writer + 1);
            move |number| {
                let aulario = (writer + CLIENTS * number) % aularios;
                self.save(aulario, &date, &format!("Lentejas {number}"));
            }
        })
    }

    fn save(&self, aulario: usize, date: &str, name: &str) {
        let mut body = save(name);
        body["date"] = date.into();
        let body = body.to_string();
        let (query, length) = (
            format!("action=save_menu&aulario=aula{aulario}"),
            body.len().to_string(),
        );
        let mut pairs = parameters("POST", &query, "PHPSESSID=admin");
        pairs.extend([
            ("CONTENT_TYPE", "application/json"),
            ("CONTENT_LENGTH", &length),
        ]);
        self.ask(&pairs, &body);
    }

    fn get_menu(&self, aulario: usize, session: usize, date: &str) {
        let query = format!("action=get_menu&aulario=aula{aulario}&date={date}&menu=basal");
        let cookie = format!("PHPSESSID=s{session}");
        self.ask(&parameters("GET", &query, &cookie), "");
    }

    /// On a new connection, as under Apache: a kept one can end while the next request is sent.
    fn ask(&self, pairs: &[(&str, &str)], body: &str) {
        let reply = Client::connect(&self.socket.path).ask(false, pairs, body.as_bytes());
        assert!(reply.stdout.starts_with("Status: 200"), "{reply:?}");
    }

    /// Disk usage of the menus of 28 days of an aulario.
    fn days(&self) -> String {
        for day in 1..=28 {
            self.save(1, &format!("2026-02-{day:02}"), "Lentejas con verduras");
        }
        let files = self.school.files();
        let files = files
            .iter()
            .filter(|path| path.starts_with("aula1/Comedor/2026-02"));
        let sizes = files.map(|path| fs::metadata(self.school.path(path)).unwrap().blocks() * 512);
        let sizes: Vec<u64> = sizes.collect();
        let (inodes, size) = (sizes.len(), sizes.iter().sum::<u64>() / 1024);
        format!("28 days of an aulario, with the folder of the month: {inodes} inodes, {size} KiB.")
    }
}

fn run(command: &mut Command) {
    output(command.stdin(Stdio::null()), "comedor");
}

/// Requests per second of `clients` that each wait for an answer before the next request.
fn rate<R: FnMut(usize)>(
    clients: usize,
    span: Duration,
    client: impl Fn(usize) -> R + Sync,
) -> f64 {
    let barrier = Barrier::new(clients);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|number| {
                let (client, barrier) = (&client, &barrier);
                scope.spawn(move || {
                    let mut request = client(number);
                    request(0);
                    barrier.wait();
                    let started = Instant::now();
                    let mut count = 0;
                    while started.elapsed() < span {
                        count += 1;
                        request(count);
                    }
                    count as f64 / started.elapsed().as_secs_f64()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    })
}

/// The load average of the last minute.
fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap();
    load.split(' ').next().unwrap().to_owned()
}
