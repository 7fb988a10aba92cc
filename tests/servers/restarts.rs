//! Restarts of the program, and workers that are killed, beside clients that never pause.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use ureq::Agent;

use crate::beside::Load;
use crate::support::site::{
    CADDIES, Connections, Php, Site, apache_with_fastcgi, apache_with_kept_connections,
    lighttpd_with_a_socket, nginx_with, wait_until,
};
use crate::support::{ADMIN, json, session};
use crate::{PAGES_OF_CADDY, caddy};

/// `COMEDOR_RESTARTS=500` makes it a long run.
fn restarts() -> usize {
    std::env::var("COMEDOR_RESTARTS").map_or(100, |number| number.parse().unwrap())
}

/// The name that a client saves: of this number.
fn name(number: usize) -> String {
    format!("plate {number}")
}

fn day(client: usize) -> String {
    format!("2026-05-{client:02}")
}

/// What a client was answered.
#[derive(Default)]
struct Answers {
    sent: usize,
    /// What was not answered with success
    failed: Vec<String>,
    /// The number of the last save that was
    saved: Option<usize>,
}

/// Reads, or saves, one request after the other, until `is_done`.
fn client(
    site: &Site,
    number: usize,
    answered: &AtomicUsize,
    is_done: impl Fn() -> bool,
) -> Answers {
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .build()
        .into();
    let (cookie, mut answers) = (format!("PHPSESSID={number}"), Answers::default());
    // A new connection comes to another process of the server, whose connection may have been idle.
    let connection = if number > 4 { "close" } else { "keep-alive" };
    while !is_done() {
        let result = if number.is_multiple_of(2) {
            let url = site.api("action=get_menu_types&aulario=aula1");
            let request = agent.get(url).header("Connection", connection);
            request.header("Cookie", &cookie).call()
        } else {
            let plates = json!({"primero": {"name": name(answers.sent)}});
            let body = json!({"date": day(number), "menu_type": "basal", "plates": plates});
            let request = agent.post(site.api("action=save_menu&aulario=aula1"));
            let request = request
                .header("Connection", connection)
                .header("Cookie", &cookie);
            let request = request.content_type("application/json");
            request.send(body.to_string())
        };
        let mut response = result.expect("an answer");
        let text = response.body_mut().read_to_string().expect("an answer");
        if response.status() == 200 {
            answers.saved = Some(answers.sent);
        } else {
            answers.failed.push(format!("{} {text}", response.status()));
        }
        answers.sent += 1;
        answered.fetch_add(1, Ordering::SeqCst);
    }
    answers
}

/// Restarts the program so often beside clients. Returns the requests that failed.
#[track_caller]
fn exercise(site: &Site) -> Vec<String> {
    let mut slowest = Duration::ZERO;
    let (sent, failed) = beside_clients(site, restarts(), |_| {
        let since = Instant::now();
        site.stop_responder();
        slowest = slowest.max(since.elapsed());
        site.start_responder();
    });
    println!(
        "{} restarts, {sent} requests, {} failed; the slowest stop took {slowest:?}",
        restarts(),
        failed.len()
    );
    failed
}

/// Ends the clients, after a panic too.
struct Done<'d>(&'d AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Takes so many steps beside six clients, of which three read and three save, while other processes keep all processors
/// busy. The last save of each client must be stored. Returns the number of requests, and those that failed.
#[track_caller]
fn beside_clients(site: &Site, steps: usize, mut step: impl FnMut(usize)) -> (usize, Vec<String>) {
    for client in 1..=6 {
        site.log_in(&client.to_string(), &session(ADMIN));
    }
    let _load = Load::start();
    let (answered, is_done) = (&AtomicUsize::new(0), &AtomicBool::new(false));
    let answers: Vec<Answers> = thread::scope(|scope| {
        let clients: Vec<_> = (1..=6)
            .map(|number| {
                let is_done = || is_done.load(Ordering::SeqCst);
                scope.spawn(move || client(site, number, answered, is_done))
            })
            .collect();
        let done = Done(is_done);
        for number in 1..=steps {
            // The program has work at each step.
            let goal = answered.load(Ordering::SeqCst) + 50;
            while answered.load(Ordering::SeqCst) < goal
                && !clients.iter().any(|one| one.is_finished())
            {
                thread::yield_now();
            }
            step(number);
        }
        drop(done);
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    });
    let failed = answers.iter().flat_map(|client| client.failed.clone());
    let failed: Vec<String> = failed.collect();
    let sent = answers.iter().map(|client| client.sent).sum();
    for (client, answers) in (1..).zip(answers).step_by(2) {
        let saved = site.plates("aula1", &day(client))["primero"]["name"].clone();
        assert_eq!(saved, name(answers.saved.expect("a save")));
    }
    (sent, failed)
}

#[test]
fn nginx_fails_no_request_in_restarts() {
    for connections in [Connections::AsShipped, Connections::New] {
        assert_eq!(exercise(&nginx_with(connections)), [""; 0]);
    }
}

#[test]
fn apache_event_fails_no_request_in_restarts() {
    assert_eq!(exercise(&apache_with_fastcgi("event", Php::Fpm)), [""; 0]);
}

#[test]
fn apache_prefork_fails_no_request_in_restarts() {
    assert_eq!(
        exercise(&apache_with_fastcgi("prefork", Php::Module)),
        [""; 0]
    );
}

/// It keeps connections, and Apache repeats no request: one fails if the connection ends after Apache has looked at it
/// and before it sends. What Apache could send is answered.
#[test]
fn apache_with_the_configuration_of_1_0_0_fails_only_requests_that_it_could_not_send() {
    let site = apache_with_kept_connections("event", Php::Fpm);
    let failed = exercise(&site);
    assert!(failed.len() <= unsent(&site), "{failed:?}");
}

/// The requests that Apache could not send: the connection had ended.
fn unsent(site: &Site) -> usize {
    let log = fs::read_to_string(site.path().join("log/error.log")).unwrap_or_default();
    log.matches("(32)Broken pipe: [client").count()
}

/// Changes the settings so often beside clients; each change is in force before the next one. Returns the requests that
/// failed.
fn change_settings(site: &Site) -> Vec<String> {
    let file = site.path().join("cgi/comedor.conf");
    let settings = fs::read_to_string(&file).unwrap();
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .build()
        .into();
    let changes = restarts().div_ceil(5);
    let (sent, failed) = beside_clients(site, changes, |change| {
        let origin = format!("http://a{change}.example");
        fs::write(
            &file,
            format!("{settings}COMEDOR_TRUSTED_ORIGINS={origin}\n"),
        )
        .unwrap();
        wait_until("the change", || {
            let request = agent.get(site.api("action=get_menu_types&aulario=aula1"));
            let request = request
                .header("Cookie", "PHPSESSID=1")
                .header("Origin", &origin);
            let answer = request.call().expect("an answer");
            answer.headers().contains_key("Access-Control-Allow-Origin")
        });
    });
    println!(
        "{changes} changes of the settings, {sent} requests, {} failed",
        failed.len()
    );
    failed
}

#[test]
fn no_request_fails_in_changes_of_the_settings() {
    let site = nginx_with(Connections::AsShipped);
    assert_eq!(change_settings(&site), [""; 0]);
    let site = apache_with_fastcgi("prefork", Php::Module);
    assert_eq!(change_settings(&site), [""; 0]);
    let site = apache_with_kept_connections("event", Php::Fpm);
    let failed = change_settings(&site);
    assert!(failed.len() <= unsent(&site), "{failed:?}");
}

#[test]
fn caddy_fails_no_request_in_restarts() {
    let site = caddy(CADDIES[0], PAGES_OF_CADDY);
    site.stop_responder();
    site.start_responder();
    assert_eq!(exercise(&site), [""; 0]);
}

#[test]
fn lighttpd_fails_no_request_in_restarts() {
    assert_eq!(exercise(&lighttpd_with_a_socket()), [""; 0]);
}

/// A worker that crashes costs the request that it has, at most.
#[test]
fn killed_workers_fail_few_requests_under_load() {
    let site = nginx_with(Connections::New);
    for client in 1..=6 {
        site.log_in(&client.to_string(), &session(ADMIN));
    }
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .build()
        .into();
    let read = |number: usize| {
        let url = site.api("action=get_menu_types&aulario=aula1");
        let cookie = format!("PHPSESSID={number}");
        agent
            .get(url)
            .header("Cookie", cookie)
            .call()
            .expect("an answer")
            .status()
    };
    let (failed, answered, is_done) = (
        &AtomicUsize::new(0),
        &AtomicUsize::new(0),
        &AtomicBool::new(false),
    );
    thread::scope(|scope| {
        let read = &read;
        for number in 1..=6 {
            scope.spawn(move || {
                while !is_done.load(Ordering::SeqCst) {
                    let status = read(number);
                    failed.fetch_add(usize::from(status != 200), Ordering::SeqCst);
                    assert!([200, 502].contains(&status.as_u16()), "{status}");
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for round in 1..=40 {
            wait_until("some requests", || {
                answered.load(Ordering::SeqCst) > 50 * round
            });
            let workers = site.workers();
            kill_process(workers[round % workers.len()], Signal::SEGV).unwrap();
        }
        is_done.store(true, Ordering::SeqCst);
    });
    let (failed, answered) = (
        failed.load(Ordering::SeqCst),
        answered.load(Ordering::SeqCst),
    );
    println!("40 kills: {failed} of {answered} requests failed");
    assert!(failed <= 40);
    wait_until("the workers", || site.workers().len() == 64);
}
