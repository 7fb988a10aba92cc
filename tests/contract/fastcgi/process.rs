//! Starting, stopping, and running out of descriptors.

use std::env;
use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::*;
use crate::support::output;

#[test]
fn stopping_serves_what_has_arrived_and_closes_idle_connections() {
    let mut service = Service::start(Limits::default());
    let mut kept = service.clients::<300>();
    for client in &mut kept {
        client.ask(true, &[], b"");
    }
    for client in &mut kept[..2] {
        client.send(request(true, WAIT, b"waited"));
    }
    service.handler.wait_for(302);
    let (mut unread, mut half) = (service.client(), service.client());
    half.send(begin(true));
    service.stop = None;
    for client in &mut kept[2..] {
        client.is_at_end();
    }
    assert_eq!(unread.ask(true, &[], b"unread"), answered("unread"));
    unread.is_at_end();
    half.send([params(&[]), record(STDIN, b"")].concat());
    assert_eq!(half.reply(), answered(""));
    // A web server may send its next request before it notices the end of the connection.
    kept[0].send(request(true, &[], b"next"));
    service.handler.open_gate();
    assert_eq!(kept[0].reply(), answered("waited"));
    assert_eq!(kept[0].reply(), answered("next"));
    assert_eq!(kept[1].reply(), answered("waited"));
    for client in &mut kept[..2] {
        client.is_at_end();
    }
    service.finish();
}

#[test]
fn stopping_closes_a_connection_that_never_ends() {
    let mut service =
        Service::start(Limits { stop: Duration::from_millis(50), ..Limits::default() });
    let (_unread, mut half) = (service.client(), service.client());
    half.send(begin(true));
    service.finish();
    half.is_at_end();
}

#[test]
fn stopping_keeps_a_socket_that_has_replaced_its_own() {
    let mut service = Service::start(Limits::default());
    fs::remove_file(&service.path).unwrap();
    let _other = UnixListener::bind(&service.path).unwrap();
    service.finish();
    assert!(service.path.exists());
}

#[test]
fn only_one_of_several_processes_binds_a_stale_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("socket");
    for _ in 0..20 {
        drop(UnixListener::bind(path).unwrap());
        let bound: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(move || Socket::bind(path))).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap().ok()).collect()
        });
        assert_eq!(bound.len(), 1);
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn running_out_of_file_descriptors_causes_no_busy_loop_and_a_blocked_log_no_delay() {
    // In a process of its own.
    if env::var_os("COMEDOR_TEST_ALONE").is_none() {
        let mut process = Command::new(env::current_exe().unwrap());
        process.args(["--exact", thread::current().name().unwrap()]).env("COMEDOR_TEST_ALONE", "1");
        let said = String::from_utf8(output(&mut process, "this program")).unwrap();
        return assert!(said.contains("ok. 1 passed"), "{said}");
    }
    let service = Service::start(Limits::default());
    let mut held = service.client();
    held.send(begin(true));
    let mut waiting = service.clients::<4>();
    for client in &mut waiting {
        client.ask(true, &[], b"");
    }
    for client in &mut waiting {
        client.send(request(true, WAIT, b"x"));
    }
    service.handler.wait_for(8);
    // One file descriptor is left, for the client's end of a connection.
    let limits = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..limits }).unwrap();
    let mut files: Vec<File> = (0..64).map_while(|_| File::open("/dev/null").ok()).collect();
    files.pop();
    let log = service.handler.log.lock().unwrap();
    let mut next = service.client();
    next.send(request(false, &[], b"y"));
    // Now the line about it waits, as in a write to a full pipe.
    service.handler.wait_for(9);
    let cpu_time = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap();
    let before = cpu_time();
    thread::sleep(Duration::from_millis(500));
    assert!(cpu_time() - before < Duration::from_millis(100), "it waits without work");
    held.send([params(&[]), record(STDIN, b"")].concat());
    assert_eq!(held.reply(), answered(""), "open connections are served");
    drop((log, files));
    assert_eq!(next.reply(), answered("y"), "and the others once there are descriptors");
    assert_eq!(service.handler.log.lock().unwrap().len(), 1);
    service.handler.open_gate();
}
