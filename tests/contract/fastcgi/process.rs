//! Starting, stopping, and processes that end.

use std::os::unix::net::UnixListener;
use std::thread;

use rustix::io::ioctl_fionread;
use rustix::process::{Resource, Rlimit, prlimit};

use super::*;

#[test]
fn stopping_serves_what_has_arrived_and_closes_idle_connections() {
    // More than half of the workers wait for a body. On a busy machine that lasts longer than what does not count.
    let mut service = Service::start(Limits {
        workers: 16,
        prompt: HOUR,
        ..hours()
    });
    let (path, file) = service.locked("file");
    let mut kept = service.clients::<8>();
    for client in &mut kept {
        client.ask(true, &[], b"");
    }
    wait_until("all are kept", || service.process().kept() == kept.len());
    let [waits, busy, idle @ ..] = &mut kept;
    waits.send(lock_of(true, &path));
    wait_until("the request waits", || waiting(&path).len() == 1);
    busy.send([half(true), PING.to_vec()].concat()).record();
    // Seven are free. One more is in the queue.
    let mut arriving = service.clients::<8>();
    for client in &mut arriving {
        client.send([half(false), PING.to_vec()].concat()).record();
    }
    let mut queued = service.client();
    queued.send(request(true, &[], b"queued"));
    service.stop();
    for client in idle {
        client.is_at_end();
    }
    for client in &mut arriving {
        client.send(record(STDIN, b""));
        assert_eq!(client.reply(), answered("bo"));
    }
    assert_eq!(queued.reply(), answered("queued"));
    queued.is_at_end();
    // A web server may send its next request before it notices the end of the connection.
    busy.send([record(STDIN, b""), request(true, &[], b"next")].concat());
    assert_eq!(busy.reply(), answered("bo"));
    assert_eq!(busy.reply(), answered("next"));
    busy.is_at_end();
    drop(file);
    assert_eq!(waits.reply(), answered("locked"));
    waits.is_at_end();
    assert_eq!(service.finish(), "");
}

#[test]
fn stopping_closes_a_connection_in_use_after_its_answer() {
    let mut service = Service::with_workers(4);
    let mut client = service.client();
    client.send([half(true), PING.to_vec()].concat()).record();
    service.stop();
    client.send(record(STDIN, b""));
    wait_until("it is closed", || is_hung_up(&client));
    assert_eq!(client.reply(), answered("bo"));
    client.is_at_end();
    assert_eq!(service.finish(), "");
}

/// A service whose only worker has its last request. That waits until the file is closed, or unlocked.
fn with_a_last_request() -> (Service, File, Client) {
    let service = Service::start(Limits {
        workers: 1,
        requests: 1,
        ..hours()
    });
    let (path, file) = service.locked("file");
    let mut running = service.client();
    running.send(lock_of(false, &path));
    wait_until("the request waits", || waiting(&path).len() == 1);
    (service, file, running)
}

/// A worker that has answered all of its requests ends, and none is started after the stop.
#[test]
fn stopping_serves_the_queue_after_the_last_request_of_the_last_worker() {
    let (mut service, file, mut running) = with_a_last_request();
    let mut queued = service.clients::<2>();
    for client in &mut queued {
        client.send(request(false, &[], b"queued"));
    }
    service.stop();
    drop(file);
    assert_eq!(running.reply(), answered("locked"));
    for client in &mut queued {
        assert_eq!(client.reply(), answered("queued"));
    }
    assert_eq!(service.finish(), "");
}

#[test]
fn stopping_closes_a_connection_that_never_ends() {
    let mut service = Service::start(Limits {
        arrival: Limits::default().arrival,
        ..hours()
    });
    let [_unread, mut half] = service.clients();
    half.send([&begin(true)[..], &PING].concat()).record();
    service.finish();
    half.is_at_end();
}

#[test]
fn a_stop_ends_without_descriptors_for_what_is_in_the_queue() {
    let mut service = Service::start(Limits {
        workers: 1,
        arrival: Limits::default().arrival,
        ..hours()
    });
    let full = Rlimit {
        current: Some(3),
        maximum: Some(3),
    };
    prlimit(Some(service.process().workers()[0]), Resource::Nofile, full).unwrap();
    let mut queued = service.client();
    let log = service.process().0.stderr.as_ref().unwrap();
    wait_until("an attempt", || ioctl_fionread(log).unwrap() > 0);
    let log = service.finish();
    queued.is_at_end();
    assert!(log.contains("Too many open files"), "{log}");
}

/// Another worker could not accept them either.
#[test]
fn a_stop_ends_while_no_worker_can_accept_what_is_in_the_queue() {
    // After the number of the parent's first pipe: too few for the epoll set of a new worker, or for a connection.
    for more in [2, 3] {
        let (mut service, file, mut running) = with_a_last_request();
        let mut queued = service.client();
        queued.send(request(false, &[], b"queued"));
        let parent = service.process().pid();
        let is_pipe = |file: &u64| {
            let link = fs::read_link(format!("/proc/{parent}/fd/{file}"));
            link.is_ok_and(|link| link.to_string_lossy().starts_with("pipe:"))
        };
        let all = (3..).find(is_pipe).map(|pipe| pipe + more);
        let full = Rlimit {
            current: all,
            maximum: all,
        };
        prlimit(Some(parent), Resource::Nofile, full).unwrap();
        service.stop();
        drop(file);
        assert_eq!(running.reply(), answered("locked"));
        let log = service.finish();
        queued.is_at_end();
        assert!(log.contains("Too many open files"), "{log}");
    }
}

#[test]
fn a_stop_right_after_the_start_ends_all_workers() {
    for _ in 0..20 {
        let mut service = Service::with_workers(2);
        // Its replacement may not have started yet.
        kill_process(service.process().workers()[0], Signal::KILL).unwrap();
        service.finish();
    }
}

#[test]
fn each_signal_that_ends_a_program_stops_it() {
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT, Signal::USR1] {
        let mut service = Service::with_workers(2);
        let mut client = service.client();
        client.send([half(false), PING.to_vec()].concat()).record();
        service.signal(signal);
        wait_until("it is stopping", || !service.path.exists());
        client.send(record(STDIN, b""));
        assert_eq!(client.reply(), answered("bo"), "{signal:?}");
        assert_eq!(service.finish(), "");
    }
}

#[test]
fn stopping_keeps_a_socket_that_has_replaced_its_own() {
    let mut service = Service::with_workers(2);
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
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(move || Socket::bind(path)))
                .collect();
            threads
                .into_iter()
                .filter_map(|thread| thread.join().unwrap().ok())
                .collect()
        });
        assert_eq!(bound.len(), 1);
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_panic_fails_only_its_own_request_and_ends_its_worker() {
    let mut service = Service::with_workers(2);
    let mut panicked = Vec::new();
    for _ in 0..5 {
        let mut client = service.client();
        panicked.push(client.ask(true, &[("DO", "panic")], b"").stdout);
        client.is_at_end();
        assert_eq!(service.client().ask(true, &[], b"next"), answered("next"));
    }
    for reply in panicked {
        assert!(reply.starts_with("panicked at "), "{reply}");
        assert!(
            reply.contains("mod.rs:") && reply.contains("as asked"),
            "{reply}"
        );
    }
    assert_eq!(service.finish(), "");
}

#[test]
fn a_worker_that_crashes_fails_only_its_own_request_and_is_replaced() {
    let mut service = Service::with_workers(2);
    for command in ["abort", "overflow", "fault"] {
        for _ in 0..5 {
            service
                .client()
                .send(request(false, &[("DO", command)], b""))
                .is_at_end();
            assert_eq!(
                service.client().ask(true, &[], b"next"),
                answered("next"),
                "{command}"
            );
        }
    }
    wait_until("the workers", || service.process().workers().len() == 2);
    let log = service.finish();
    let lines: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("worker process"))
        .collect();
    assert_eq!(lines.len(), 15, "{log}");
    // An overflow of the stack is one of the two: the test harness has a handler for it.
    for signal in ["(signal: 6 ", "(signal: 11 "] {
        assert!(
            lines.iter().filter(|line| line.contains(signal)).count() >= 5,
            "{log}"
        );
    }
}

#[test]
fn workers_end_with_their_parent_after_their_request() {
    let service = Service::with_workers(4);
    let (path, file) = service.locked("file");
    let [mut waits, mut kept] = service.clients();
    kept.ask(true, &[], b"");
    waits.send(lock_of(true, &path));
    wait_until("the request waits", || waiting(&path).len() == 1);
    let workers = service.process().workers();
    kill_process(service.process().pid(), Signal::KILL).unwrap();
    kept.is_at_end();
    let is_running = |worker: &Pid| {
        let status = fs::read_to_string(format!("/proc/{worker}/status")).unwrap_or_default();
        !status.is_empty() && !status.contains("State:\tZ")
    };
    wait_until("the others", || {
        workers.iter().filter(|worker| is_running(worker)).count() == 1
    });
    drop(file);
    assert_eq!(waits.reply(), answered("locked"));
    waits.is_at_end();
    wait_until("the last one", || !workers.iter().any(is_running));
    std::mem::forget(service);
}
