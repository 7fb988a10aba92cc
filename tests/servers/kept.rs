//! Connections that web servers keep to the program.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::children;
use crate::support::site::{CADDIES, Site, nginx_with_fastcgi, wait_until};
use crate::{PAGES_OF_CADDY, caddy};

/// Sends a request, or a part of one, on each of `count` connections at the same time. They stay open, so
/// that each occupies a process of Apache.
fn connections(site: &Site, count: usize, line: &str, more: &str) -> Vec<TcpStream> {
    let host = format!("127.0.0.1:{}", site.port);
    let request = format!("{line} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
    let connect = |_| TcpStream::connect(&host).unwrap();
    let mut clients: Vec<TcpStream> = (0..count).map(connect).collect();
    for client in &mut clients {
        client.write_all(request.as_bytes()).unwrap();
    }
    clients
}

/// Connections on which a request was answered
fn clients(site: &Site, count: usize) -> Vec<TcpStream> {
    let line = "GET /api/comedor.php?action=get_menu_types&aulario=aula1";
    let mut clients = connections(site, count, line, "");
    for client in &mut clients {
        let mut answer = [0; 12];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 400", "without a session");
    }
    clients
}

/// Restarts the server with this file of its configuration changed, and waits until its old processes have
/// ended, which would end the connections that they accept.
fn restart(site: &Site, file: &str, change: impl Fn(String) -> String) {
    let path = site.path().join(file);
    fs::write(&path, change(fs::read_to_string(&path).unwrap())).unwrap();
    let server = site.server_process();
    let before = children(server);
    kill_process(Pid::from_raw(server as i32).unwrap(), Signal::HUP).unwrap();
    let has_ended = |child: &Pid| !children(server).contains(child);
    wait_until("the end of the old processes", || {
        before.iter().all(has_ended)
    });
}

/// The connections that web servers keep take at most half of the workers.
const HALF: usize = 32;

/// The number of open connections to the program, if its workers had `before` descriptors without one.
fn kept(site: &Site, before: usize) -> usize {
    site.descriptors().saturating_sub(before)
}

#[test]
fn processes_of_nginx_keep_connections_to_at_most_half_of_the_workers_until_a_reload() {
    let site = nginx_with_fastcgi();
    wait_until("the workers", || site.has_started());
    let before = site.descriptors();
    restart(&site, "nginx.conf", |conf| {
        conf.replace("processes auto", "processes 4")
    });
    for _ in 0..5 {
        clients(&site, 200);
        // Those that are answered while less than half of the workers are free end, also all of them.
        wait_until("the end of the others", || kept(&site, before) <= HALF);
    }
    restart(&site, "nginx.conf", |conf| conf);
    wait_until("their end", || site.descriptors() == before);
    site.answers();
}

#[test]
fn caddy_with_slow_uploads_serves_others() {
    for program in CADDIES {
        let site = caddy(program, PAGES_OF_CADDY);
        wait_until("the workers", || site.has_started());
        let before = site.descriptors();
        let part = "Content-Length: 1000\r\n\r\n{";
        let slow = connections(&site, 530, "POST /api/comedor.php", part);
        for _ in 0..10 {
            site.answers();
        }
        assert!(site.descriptors() < before + 50, "uploads wait in Caddy");
        drop(slow);
    }
}
