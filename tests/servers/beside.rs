//! Clients beside other processes that keep all processors busy, and beside pages that hold their session.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use ureq::Agent;

use crate::support::site::{
    CADDIES, Php, Site, apache_with_fastcgi, lighttpd_with_a_socket, nginx_with_fastcgi,
};
use crate::support::{ADMIN, json, session};
use crate::{PAGES_OF_CADDY, caddy};

/// As many as half of the workers: none of them is ever BUSY.
const CLIENTS: usize = 32;

/// `COMEDOR_LOAD_REQUESTS=110000` makes it a long run, in which workers end after their 5,000th request.
fn requests() -> usize {
    std::env::var("COMEDOR_LOAD_REQUESTS").map_or(2000, |number| number.parse().unwrap())
}

/// Processes that keep each processor busy until this is dropped.
pub struct Load(Vec<Child>);

impl Load {
    pub fn start() -> Load {
        let processors = thread::available_parallelism().map_or(2, usize::from);
        let busy = |_| {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]);
            command.spawn().unwrap()
        };
        Load((0..processors).map(busy).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            _ = child.kill();
            _ = child.wait();
        }
    }
}

fn agent() -> Agent {
    // Each request has a connection of its own to the web server, which may close an idle one at any time.
    Agent::config_builder()
        .http_status_as_error(false)
        .max_idle_connections(0)
        .build()
        .into()
}

/// A read with this session. Returns the answer if it is not a success.
fn read(site: &Site, agent: &Agent, session: &str) -> Option<String> {
    let request = agent.get(site.api("action=get_menu_types&aulario=aula1"));
    let request = request.header("Cookie", format!("PHPSESSID={session}"));
    failure(request.call())
}

/// A save on the day of the client. With `more` the worker ends after it: its input is large.
fn save(site: &Site, agent: &Agent, client: usize, more: usize) -> Option<String> {
    let day = format!("2026-05-{:02}", 1 + client % 28);
    let plates = json!({"primero": {"name": "Lentejas"}});
    let body = json!({"date": day, "menu_type": "basal", "plates": plates, "x": "y".repeat(more)});
    let request = agent.post(site.api("action=save_menu&aulario=aula1"));
    let request = request.header("Cookie", format!("PHPSESSID={client}"));
    failure(
        request
            .content_type("application/json")
            .send(body.to_string()),
    )
}

fn failure(result: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Option<String> {
    let mut response = result.expect("an answer");
    let text = response.body_mut().read_to_string().expect("an answer");
    (response.status() != 200).then(|| format!("{} {text}", response.status()))
}

/// Each client sends requests, with the number of the client and of all requests until now, until `count` were sent.
/// Returns those that failed.
fn failed(
    count: usize,
    send: impl Fn(&Agent, usize, usize) -> Option<String> + Sync,
) -> Vec<String> {
    let sent = AtomicUsize::new(0);
    thread::scope(|scope| {
        let clients: Vec<_> = (1..=CLIENTS)
            .map(|client| {
                let (sent, send) = (&sent, &send);
                scope.spawn(move || {
                    let (agent, mut failed) = (agent(), Vec::new());
                    loop {
                        let number = sent.fetch_add(1, Ordering::SeqCst);
                        if number >= count {
                            return failed;
                        }
                        failed.extend(send(&agent, client, number));
                    }
                })
            })
            .collect();
        clients
            .into_iter()
            .flat_map(|client| client.join().unwrap())
            .collect()
    })
}

/// Runs `test` beside a page that holds the session 1 for `held`, again and again.
fn beside_a_page(site: &Site, held: Duration, test: impl FnOnce() -> Vec<String>) -> Vec<String> {
    let path = site.path().join("sessions/sess_1");
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let file = File::open(path).unwrap();
            while !is_done.load(Ordering::SeqCst) {
                file.lock().unwrap();
                thread::sleep(held);
                file.unlock().unwrap();
                thread::sleep(Duration::from_millis(30));
            }
        });
        let failed = catch_unwind(AssertUnwindSafe(test));
        is_done.store(true, Ordering::SeqCst);
        failed.expect("an answer to each request")
    })
}

/// No request fails, and none is BUSY.
#[track_caller]
fn answers_all(site: &Site) {
    for client in 1..=CLIENTS {
        site.log_in(&client.to_string(), &session(ADMIN));
    }
    let _load = Load::start();
    let count = requests();
    let (reads, saves) = (count / 6, count / 15);
    // Screens with one login
    for held in [20, 100].map(Duration::from_millis) {
        let failed = beside_a_page(site, held, || {
            failed(reads, |agent, _, _| read(site, agent, "1"))
        });
        assert_eq!(
            failed, [""; 0],
            "a page that holds the session for {held:?}"
        );
    }
    let failed_saves = failed(saves, |agent, client, _| save(site, agent, client, 0));
    assert_eq!(
        failed_saves, [""; 0],
        "saves of one aulario at the same moment"
    );
    let before = site.workers();
    let failed = failed(count, |agent, client, number| match number % 11 {
        0 if number % 22 == 0 => save(site, agent, client, 130 * 1024),
        0 => save(site, agent, client, 0),
        _ => read(site, agent, &client.to_string()),
    });
    let ended = before
        .iter()
        .filter(|worker| !site.workers().contains(worker));
    println!(
        "{count} requests, {} failed, {} workers ended; before them twice {reads} reads of one session, {saves} saves of one \
         aulario: 0 failed",
        failed.len(),
        ended.clone().count()
    );
    assert_eq!(failed, [""; 0]);
    assert!(ended.count() > 0);
}

#[test]
fn apache_event_answers_all_clients_beside_load() {
    answers_all(&apache_with_fastcgi("event", Php::Fpm));
}

#[test]
fn apache_prefork_answers_all_clients_beside_load() {
    answers_all(&apache_with_fastcgi("prefork", Php::Module));
}

#[test]
fn nginx_answers_all_clients_beside_load() {
    answers_all(&nginx_with_fastcgi());
}

#[test]
fn caddy_answers_all_clients_beside_load() {
    answers_all(&caddy(CADDIES[0], PAGES_OF_CADDY));
}

#[test]
fn lighttpd_answers_all_clients_beside_load() {
    answers_all(&lighttpd_with_a_socket());
}
