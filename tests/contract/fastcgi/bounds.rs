//! What clients and web servers can hold up, and for how long.

use std::io::Write;
use std::time::Instant;

use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

use super::*;

#[test]
fn half_of_the_workers_wait_for_one_file_and_three_quarters_in_all() {
    let service = Service::counting(8);
    let [one, other, third] = ["one", "other", "third"].map(|name| service.locked(name));
    let mut clients = Vec::new();
    for ((path, _), most) in [(&one, 4), (&other, 2)] {
        for count in 1..=most {
            clients.push(service.client());
            clients.last_mut().unwrap().send(lock_of(false, path));
            until_waiting(path, count);
        }
        let more = service.client().send(lock_of(false, path)).reply();
        assert_eq!(more, answered("busy"), "half for one file");
    }
    for _ in 0..20 {
        let more = service.client().send(lock_of(false, &third.0)).reply();
        assert_eq!(more, answered("busy"), "three quarters in all");
        assert_eq!(service.client().ask(false, &[], b"x"), answered("x"));
    }
    drop((one, other));
    for client in &mut clients {
        assert_eq!(client.reply(), answered("locked"));
    }
    let (path, file) = third;
    let mut client = service.client();
    client.send(lock_of(false, &path));
    until_waiting(&path, 1);
    drop(file);
    assert_eq!(
        client.reply(),
        answered("locked"),
        "the places are free again"
    );
}

/// Whoever has asked for the body: the worker before the handler, the handler, or the worker after the answer.
#[test]
fn half_of_the_workers_wait_for_web_servers_that_do_not_send_or_read() {
    let service = Service::counting(8);
    let mut slow = Vec::new();
    let handled = [begin(false), params(&[]), record(STDIN, b"bo")].concat();
    let large = request(false, &[("DO", "large")], b"");
    let without_body = [begin(false), params(&[])].concat();
    for input in [without_body, handled, large.clone(), large] {
        slow.push(service.client());
        slow.last_mut().unwrap().send(input);
        wait_until("it waits", || service.process().kept() == slow.len());
    }
    for _ in 0..20 {
        let mut more = service.client();
        let reply = more.send(half(false)).reply();
        assert_eq!(reply, answered("2 bytes, resource busy"));
        assert_eq!(service.client().ask(false, &[], b"x"), answered("x"));
    }
    for client in &mut slow {
        client.0.shutdown(std::net::Shutdown::Both).unwrap();
    }
    wait_until("the workers", || service.process().has_started(8));
}

/// A page that holds a lock for a moment, and clients for whom no worker is left.
#[test]
fn waits_of_a_moment_do_not_count() {
    let service = Service::start(Limits {
        workers: 8,
        prompt: HOUR,
        ..hours()
    });
    let (path, file) = service.locked("file");
    let mut clients = service.clients::<20>();
    for client in &mut clients {
        client.send(lock_of(false, &path));
    }
    until_waiting(&path, 8);
    drop(file);
    for client in &mut clients {
        assert_eq!(client.reply(), answered("locked"));
    }
}

/// Leaves no descriptors for the successors of workers that end: one after the other fails to make its epoll set. Returns
/// the limit of before.
fn without_successors(service: &Service) -> Rlimit {
    let full = Rlimit {
        current: Some(3),
        maximum: getrlimit(Resource::Nofile).maximum,
    };
    prlimit(Some(service.process().pid()), Resource::Nofile, full).unwrap()
}

fn is_there(process: &Pid) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

/// A worker whose replacement cannot be started.
#[test]
fn workers_that_cannot_be_started_are_left_out() {
    let service = Service::counting(8);
    let usual = without_successors(&service);
    let workers = service.process().workers();
    for &worker in &workers[..6] {
        kill_process(worker, Signal::KILL).unwrap();
    }
    wait_until("their end", || !workers[..6].iter().any(is_there));
    let (path, _file) = service.locked("file");
    let mut waits = service.client();
    waits.send(lock_of(false, &path));
    until_waiting(&path, 1);
    let more = service.client().send(lock_of(false, &path)).reply();
    assert_eq!(more, answered("busy"));
    assert_eq!(service.client().ask(false, &[], b"x"), answered("x"));
    let parent = service.process().pid();
    prlimit(Some(parent), Resource::Nofile, usual).unwrap();
    wait_until("all are there", || service.process().has_started(7));
    let mut second = service.client();
    second.send(lock_of(false, &path));
    until_waiting(&path, 2);
    drop(waits);
}

#[test]
fn kept_connections_and_waiting_requests_together_leave_a_quarter_of_the_workers() {
    let service = Service::counting(8);
    let mut kept = service.clients::<4>();
    for client in &mut kept {
        assert_eq!(client.ask(true, &[], b"x"), answered("x"));
    }
    wait_until("all are kept", || service.process().kept() == kept.len());
    let (path, _file) = service.locked("file");
    let (other, _other) = service.locked("other");
    let mut clients = service.clients::<2>();
    for (count, client) in (1..).zip(&mut clients) {
        client.send(lock_of(false, &path));
        until_waiting(&path, count);
    }
    for _ in 0..20 {
        let more = service.client().send(lock_of(false, &other)).reply();
        assert_eq!(more, answered("busy"));
        assert_eq!(service.client().ask(false, &[], b"x"), answered("x"));
    }
    for client in &mut kept {
        assert_eq!(
            client.ask(true, &[], b"next"),
            answered("next"),
            "it is still open"
        );
    }
}

/// The parent clears the slot of a worker that is killed while it waits. With those of four, which no successor clears, the
/// fifth request would be refused.
#[test]
fn killed_workers_leave_no_one_waiting() {
    let service = Service::counting(8);
    without_successors(&service);
    let (path, _file) = service.locked("file");
    for _ in 0..5 {
        let mut client = service.client();
        client.send(lock_of(false, &path));
        let waits = until_waiting(&path, 1);
        let worker = Pid::from_raw(waits[0] as i32).unwrap();
        kill_process(worker, Signal::KILL).unwrap();
        client.is_at_end();
        wait_until("its end", || !is_there(&worker));
    }
}

#[test]
fn connections_are_kept_only_while_half_of_the_workers_are_free() {
    let service = Service::with_workers(6);
    let mut kept = service.clients::<3>();
    for client in &mut kept {
        assert_eq!(client.ask(true, &[], b"x"), answered("x"));
    }
    // A worker decides after it has answered.
    wait_until("three are kept", || service.process().kept() == 3);
    for _ in 0..5 {
        let mut more = service.client();
        assert_eq!(more.ask(true, &[], b"x"), answered("x"));
        more.is_at_end();
    }
    for client in &mut kept {
        assert_eq!(client.ask(true, &[], b"next"), answered("next"));
    }
}

#[test]
fn another_connection_is_kept_after_one_has_ended() {
    let service = Service::with_workers(2);
    let mut first = service.client();
    assert_eq!(first.ask(true, &[], b"x"), answered("x"));
    wait_until("it is kept", || service.process().kept() == 1);
    drop(first);
    wait_until("both workers are free", || service.process().has_started(2));
    let mut second = service.client();
    assert_eq!(second.ask(true, &[], b"x"), answered("x"));
    wait_until("the second one is kept", || service.process().kept() == 1);
    assert_eq!(second.ask(true, &[], b"y"), answered("y"));
}

/// Connections are not kept: with one worker, half of them are never free; with the other limit, each is to end after its
/// first request.
fn not_kept() -> [Limits; 2] {
    let workers = Limits {
        workers: 1,
        ..hours()
    };
    let requests = Limits {
        requests: 1,
        ..hours()
    };
    [workers, requests]
}

#[test]
fn a_connection_that_is_not_kept_is_closed_after_its_answer() {
    for limits in not_kept() {
        let service = Service::start(limits);
        for _ in 0..20 {
            let mut client = service.client();
            client.send(request(true, &[], b"x"));
            wait_until("it is closed", || is_hung_up(&client));
            assert_eq!(client.reply(), answered("x"));
            client.is_at_end();
        }
    }
}

/// A save is answered before the end of its body is read, with which the next one can come.
#[test]
fn a_request_that_comes_before_the_end_of_a_connection_is_answered() {
    for limits in not_kept() {
        let service = Service::start(limits);
        for _ in 0..20 {
            let mut client = service.client();
            client.send([begin(true), params(EARLY), record(STDIN, b"part")].concat());
            assert_eq!(client.reply(), answered("early"));
            client.send([record(STDIN, b""), request(true, &[], b"next")].concat());
            assert_eq!(client.reply(), answered("next"));
            client.is_at_end();
        }
    }
}

#[test]
fn a_connection_waits_in_the_queue_until_a_worker_is_free() {
    let service = Service::with_workers(2);
    for keep in [true, false] {
        let mut busy = service.clients::<2>();
        for client in &mut busy {
            client.send([half(keep), PING.to_vec()].concat()).record();
        }
        let mut next = service.client();
        next.send(request(false, &[], b"x"));
        busy[0].send(record(STDIN, b""));
        assert_eq!(busy[0].reply(), answered("bo"));
        assert_eq!(next.reply(), answered("x"));
        busy[1].send(record(STDIN, b""));
        assert_eq!(busy[1].reply(), answered("bo"));
    }
}

/// As a responder has them. The next tests have others.
#[test]
fn parameters_have_two_seconds_and_the_parts_of_a_body_five_in_thirty() {
    let limits = Limits::default();
    let times = [limits.arrival, limits.pause, limits.transfer];
    assert_eq!(times.map(|time| time.as_secs()), [2, 5, 30]);
}

const SOON: Duration = Duration::from_millis(200);

/// Calls `test`, which must take as long as a limit that it waits for.
fn lasts_until(limit: Duration, test: impl FnOnce()) {
    let since = Instant::now();
    test();
    assert!(since.elapsed() >= limit, "{:?}", since.elapsed());
}

#[test]
fn a_connection_without_all_parameters_ends_when_their_time_is_over() {
    let service = Service::start(Limits {
        arrival: SOON,
        ..hours()
    });
    let whole = [begin(true), params(&[("DO", "early")])].concat();
    for length in [0, 1, 20, whole.len() - 1] {
        lasts_until(SOON, || {
            let mut client = service.client();
            // On a busy machine the time may be over.
            _ = client.0.write_all(&whole[..length]);
            client.is_at_end();
        });
    }
}

/// The handler decides what a body means that does not arrive.
#[test]
fn a_body_ends_after_a_pause_or_when_the_time_for_all_of_it_is_over() {
    let service = Service::start(Limits {
        pause: SOON,
        ..hours()
    });
    lasts_until(SOON, || {
        let reply = service.client().send(half(false)).reply();
        assert_eq!(reply, answered("2 bytes, timed out"));
    });
    let service = Service::start(Limits {
        transfer: SOON,
        ..hours()
    });
    lasts_until(SOON, || {
        let mut client = service.client();
        client.send(half(false));
        // Parts that come in time, until there is an answer.
        let mut answer = [PollFd::new(&client.0, PollFlags::IN)];
        let between = Timespec {
            tv_sec: 0,
            tv_nsec: 10_000_000,
        };
        while poll(&mut answer, Some(&between)) == Ok(0) {
            (&client.0).write_all(&record(STDIN, b"a part")).unwrap();
        }
        assert!(client.reply().stdout.ends_with("timed out"));
    });
}

#[test]
fn an_answer_that_is_not_read_ends_its_connection_after_a_pause() {
    let service = Service::start(Limits {
        pause: SOON,
        ..hours()
    });
    lasts_until(SOON, || {
        let mut unread = service.client();
        unread.send(request(true, &[("DO", "large")], b""));
        wait_until("it is closed", || is_hung_up(&unread));
    });
}

/// The worker waits for it as long as for parameters, for it could be the next request.
#[test]
fn the_rest_of_a_body_that_is_answered_is_waited_for() {
    let arrival = Limits::default().arrival;
    let service = Service::start(Limits {
        arrival,
        pause: SOON,
        ..hours()
    });
    lasts_until(SOON + arrival, || {
        let mut client = service.client();
        let reply = client.send(half(true)).reply();
        assert_eq!(reply, answered("2 bytes, timed out"));
        client.is_at_end();
    });
}

#[test]
fn a_kept_connection_is_closed_when_its_own_time_is_over() {
    let service = Service::start(Limits {
        idle: SOON,
        ..hours()
    });
    let mut kept = service.client();
    assert_eq!(kept.ask(true, &[], b"x"), answered("x"));
    kept.is_at_end();
}

#[test]
fn a_worker_ends_after_a_large_request_and_after_many() {
    let service = Service::start(Limits {
        workers: 1,
        requests: 100,
        ..hours()
    });
    let process = |body: &[u8]| {
        let reply = service.client().ask(false, &[("DO", "process")], body);
        reply.stdout
    };
    let first = process(b"");
    assert_eq!(process(b""), first);
    service.client().ask(false, &[], &vec![b'x'; 130 * 1024]);
    assert_ne!(process(b""), first);
    let mut others = std::collections::BTreeSet::new();
    for _ in 0..1000 {
        others.insert(process(b""));
    }
    assert!((10..=11).contains(&others.len()), "{others:?}");
}

#[test]
fn a_request_is_large_from_one_byte_over_the_limit_on() {
    let input = request(false, &[("DO", "process")], b"");
    let length = input.len() as u64;
    for (large, stays) in [(length, true), (length - 1, false)] {
        let service = Service::start(Limits {
            workers: 1,
            large,
            ..hours()
        });
        let [first, next] = [(); 2].map(|()| service.client().send(&input).reply());
        assert_eq!(first == next, stays, "{large}");
    }
}

/// The next request may come later than the parameters of one that has begun.
#[test]
fn a_kept_connection_outlasts_one_whose_parameters_do_not_arrive() {
    let service = Service::start(Limits {
        arrival: Limits::default().arrival,
        ..hours()
    });
    let mut kept = service.client();
    kept.ask(true, &[], b"");
    wait_until("it is kept", || service.process().kept() == 1);
    service.client().is_at_end();
    assert_eq!(kept.ask(true, &[], b"x"), answered("x"));
}

#[test]
fn parameters_over_the_limit_take_no_memory() {
    let service = Service::start(Limits {
        workers: 1,
        // Else the worker ends.
        large: u64::MAX,
        ..hours()
    });
    let peak = || service.process().of_workers("VmHWM");
    let before = peak();
    let input = [begin(true), stream(PARAMS, &vec![0; 32 << 20])].concat();
    let ends = [record(PARAMS, b""), record(STDIN, b"")].concat();
    let mut client = service.client();
    let reply = client.send(input).send(ends).reply();
    assert_eq!(reply, answered("ParamsTooLarge(262144)"));
    assert!(peak() - before < 4 << 10, "{before} KiB, then {}", peak());
}
