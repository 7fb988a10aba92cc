//! Many concurrent writers, some of which are killed: by CGI the process of a request, by FastCGI a worker.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, pidfd_send_signal};

use super::SUCCESS;
use crate::support::fastcgi::{Client, Held, Process};
use crate::support::site::wait_until;
use crate::support::*;

const WRITERS: usize = 32;
const WRITES: usize = 40;

/// Half of them may wait for one aulario: all writers.
const WORKERS: usize = 2 * WRITERS;

/// The program under load: a process for each request, or the workers of one responder.
struct Server {
    socket: Held,
    responder: Option<Process>,
}

/// A plate that a writer has sent.
#[derive(Debug)]
struct Sent {
    aulario: String,
    date: String,
    menu_type: &'static str,
    plate: String,
    is_acknowledged: bool,
}

impl Sent {
    /// The write of this number of a writer, who has a menu of its own.
    fn new(writer: usize, write: usize, aulario: String) -> Sent {
        Sent {
            aulario,
            date: format!("2026-10-{:02}", 1 + writer % 11),
            menu_type: ["basal", "vegetariano", "alergias"][writer / 11],
            plate: format!("p{write}"),
            is_acknowledged: false,
        }
    }

    fn request(&self, school: &School) -> Cgi {
        let Sent { date, plate, .. } = self;
        let plates = json!({plate: {"name": plate}});
        let body = json!({"date": date, "menu_type": self.menu_type, "plates": plates});
        school.post("save_menu").aulario(&self.aulario).json(&body)
    }

    /// Whether the file, which must be whole, has it.
    fn is_stored(&self, school: &School) -> bool {
        let path = format!(
            "{}/Comedor/2026-10/{}/_datos.json",
            self.aulario,
            &self.date[8..]
        );
        let day: Value = serde_json::from_str(&school.read(&path)).expect("a whole file");
        day["menus"][self.menu_type]["plates"][&self.plate]["name"] == *self.plate
    }
}

impl Server {
    fn start(school: &School) -> Server {
        let socket = Held::new();
        let request = school.post("save_menu");
        let request = request.set("COMEDOR_WORKERS", WORKERS.to_string());
        Server {
            responder: by_fastcgi().then(|| socket.spawn(request.responder())),
            socket,
        }
    }

    /// Sends a write, up to five times if it gets no turn among the other writers (`BUSY`). Makes the kill that is due until the
    /// answer. Returns whether the write was acknowledged; only a kill, this one or that of another writer, can be the
    /// reason if not.
    fn send(&self, request: &Cgi, due: &mut Option<Kill>) -> bool {
        for _ in 0..5 {
            let (answer, may_be_killed) = self.answer(request, due);
            let text = String::from_utf8_lossy(&answer);
            if text.contains(SUCCESS) {
                return true;
            }
            if answer.is_empty() && may_be_killed {
                return false;
            }
            assert!(text.contains("\"BUSY\""), "{}", answer.escape_ascii());
        }
        panic!("the aulario stays BUSY")
    }

    /// The answer, and whether the process may have been killed.
    fn answer(&self, request: &Cgi, due: &mut Option<Kill>) -> (Vec<u8>, bool) {
        if by_fastcgi() {
            let mut client = Client::connect(&self.socket.path);
            // A worker that is killed does not read it.
            _ = client.0.write_all(&request.records());
            due.take_if(|kill| kill.is_made_until(|| client.has_received()));
            return (client.received(), true);
        }
        let mut child = request.start();
        due.take_if(|kill| kill.is_made_until(|| child.try_wait().unwrap().is_some()));
        let output = child.wait_with_output().unwrap();
        (output.stdout, output.status.signal() == Some(9))
    }

    /// With FastCGI the parent has stayed, has replaced each worker that was killed, and stops. Returns the number of
    /// these.
    fn stop(self) -> Option<usize> {
        let responder = self.responder?;
        wait_until("the workers", || responder.has_started(WORKERS));
        Some(responder.stop().matches("SIGKILL").count())
    }
}

/// A kill of a process that saves in an aulario, as by the kernel if memory runs out (`oom_kill_process`).
struct Kill {
    lock: PathBuf,
    /// So long after it was seen with the lock
    after: Duration,
}

impl Kill {
    /// Kills the process that has the lock. If that has released it in the meantime, kills the next one, sooner. Returns
    /// whether this was done before the answer to the own write.
    fn is_made_until(&mut self, mut is_answered: impl FnMut() -> bool) -> bool {
        while !is_answered() {
            thread::yield_now();
            let Some((number, saving)) = holding(&self.lock).pop() else {
                continue;
            };
            if self.after > Duration::ZERO {
                thread::sleep(self.after);
                if holding(&self.lock)
                    .iter()
                    .all(|(holder, _)| *holder != number)
                {
                    self.after = self.after.saturating_sub(Duration::from_micros(100));
                    continue;
                }
            }
            return pidfd_send_signal(saving, Signal::KILL).is_ok();
        }
        false
    }
}

/// Each writer writes 40 times. During every eighth write a process that saves in its aulario is killed: its own or that
/// of another writer.
fn crowd(aulario_of: impl Fn(usize) -> String + Sync) {
    let school = School::new();
    for writer in 0..WRITERS {
        school.write(&format!("{}.json", aulario_of(writer)), "{}");
    }
    let server = Server::start(&school);
    let sent = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (school, server, sent) = (&school, &server, &sent);
            let aulario = aulario_of(writer);
            scope.spawn(move || {
                let mut due = None;
                for write in 0..WRITES {
                    if (writer + write).is_multiple_of(8) {
                        due = Some(Kill {
                            lock: school.path(&format!("{aulario}/.comedor.lock")),
                            after: Duration::from_micros(100 * (write as u64 % 9)),
                        });
                    }
                    let mut plate = Sent::new(writer, write, aulario.clone());
                    plate.is_acknowledged = server.send(&plate.request(school), &mut due);
                    sent.lock().unwrap().push(plate);
                }
            });
        }
    });
    let sent = sent.into_inner().unwrap();
    // Each file is read, so each must be whole.
    let (stored, missing): (Vec<_>, Vec<_>) =
        sent.iter().partition(|plate| plate.is_stored(&school));
    let lost: Vec<_> = missing
        .iter()
        .filter(|plate| plate.is_acknowledged)
        .collect();
    assert!(lost.is_empty(), "{lost:?}");
    for writer in 0..WRITERS {
        let next = Sent::new(writer, WRITES, aulario_of(writer));
        assert!(server.send(&next.request(&school), &mut None));
    }
    assert!(!school.files().iter().any(|path| path.ends_with(".tmp")));
    let killed = server.stop();
    let acknowledged = sent.iter().filter(|plate| plate.is_acknowledged).count();
    let interrupted = sent.len() - acknowledged;
    println!(
        "writes: {}, kills: {interrupted} ({} after the file was replaced), acknowledged: {acknowledged}, losses: 0",
        sent.len(),
        stored.len() - acknowledged,
    );
    assert!(
        killed.is_none_or(|killed| killed >= interrupted),
        "a write failed without a kill"
    );
    assert!(
        interrupted >= sent.len() / 16,
        "half of the kills must interrupt a save"
    );
}

#[test]
fn writers_of_one_aulario_lose_no_acknowledged_write_when_some_are_killed() {
    crowd(|_| "aula1".to_owned());
}

#[test]
fn writers_of_many_aularios_lose_no_acknowledged_write_when_some_are_killed() {
    crowd(|writer| format!("crowd{}", writer / 4));
}
