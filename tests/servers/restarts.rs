//! Restarts of the program, and workers that are killed, beside clients that never pause.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use rustix::process::{Signal, kill_process};
use ureq::Agent;

use crate::support::site::{
    CADDIES, Connections, Php, Site, apache_with, lighttpd_with_a_socket, nginx_with, wait_until,
};
use crate::support::{ADMIN, json, session};
use crate::{PAGES_OF_CADDY, caddy};

const RESTARTS: usize = 100;

/// The name that a client saves: of this number.
fn name(number: usize) -> String {
    format!("plate {number}")
}

fn day(client: usize) -> String {
    format!("2026-05-{client:02}")
}

/// Reads, or saves, one request after the other, until `is_done`. Each must succeed. Returns their number.
fn client(site: &Site, number: usize, answered: &AtomicUsize, is_done: impl Fn() -> bool) -> usize {
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .build()
        .into();
    let (cookie, mut sent) = (format!("PHPSESSID={number}"), 0);
    // A new connection comes to another process of the server, whose connection may have been idle.
    let connection = if number > 4 { "close" } else { "keep-alive" };
    while !is_done() {
        let result = if number.is_multiple_of(2) {
            let url = site.api("action=get_menu_types&aulario=aula1");
            let request = agent.get(url).header("Connection", connection);
            request.header("Cookie", &cookie).call()
        } else {
            let plates = json!({"primero": {"name": name(sent)}});
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
        assert_eq!(response.status(), 200, "{text}");
        sent += 1;
        answered.fetch_add(1, Ordering::SeqCst);
    }
    sent
}

/// Restarts the program beside six clients, of which three read and three save.
#[track_caller]
fn exercise(site: &Site) {
    for client in 1..=6 {
        site.log_in(&client.to_string(), &session(ADMIN));
    }
    let (answered, is_done) = (&AtomicUsize::new(0), &AtomicBool::new(false));
    let sent: Vec<usize> = thread::scope(|scope| {
        let clients: Vec<_> = (1..=6)
            .map(|number| {
                let is_done = || is_done.load(Ordering::SeqCst);
                scope.spawn(move || client(site, number, answered, is_done))
            })
            .collect();
        for _ in 0..RESTARTS {
            // The program has work when it is stopped.
            let goal = answered.load(Ordering::SeqCst) + 50;
            while answered.load(Ordering::SeqCst) < goal
                && !clients.iter().any(|one| one.is_finished())
            {
                thread::yield_now();
            }
            site.stop_responder();
            site.start_responder();
        }
        is_done.store(true, Ordering::SeqCst);
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    });
    println!(
        "{RESTARTS} restarts, {} requests",
        sent.iter().sum::<usize>()
    );
    for (client, sent) in (1..).zip(sent).step_by(2) {
        let saved = site.plates("aula1", &day(client))["primero"]["name"].clone();
        assert_eq!(saved, name(sent - 1));
    }
}

#[test]
fn nginx_fails_no_request_in_restarts() {
    for connections in [Connections::AsShipped, Connections::New] {
        exercise(&nginx_with(connections));
    }
}

#[test]
fn apache_event_fails_no_request_in_restarts() {
    for connections in [Connections::AsShipped, Connections::New] {
        exercise(&apache_with("event", Php::Fpm, connections));
    }
}

#[test]
fn apache_prefork_fails_no_request_in_restarts() {
    for connections in [Connections::AsShipped, Connections::New] {
        exercise(&apache_with("prefork", Php::Module, connections));
    }
}

#[test]
fn caddy_fails_no_request_in_restarts() {
    let site = caddy(CADDIES[0], PAGES_OF_CADDY);
    site.stop_responder();
    site.start_responder();
    exercise(&site);
}

#[test]
fn lighttpd_fails_no_request_in_restarts() {
    exercise(&lighttpd_with_a_socket());
}

/// Connections that Apache keeps are closed by workers that have answered their 5,000 requests, or if less than half of
/// the workers are free.
#[test]
fn apache_fails_no_request_on_kept_connections() {
    const REQUESTS: usize = 50_000;
    for (mpm, php) in [("event", Php::Fpm), ("prefork", Php::Module)] {
        let site = &apache_with(mpm, php, Connections::AsShipped);
        site.log_in("2", &session(ADMIN));
        let answered = &AtomicUsize::new(0);
        let is_done = || answered.load(Ordering::SeqCst) >= REQUESTS;
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(move || client(site, 2, answered, is_done));
            }
        });
    }
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
