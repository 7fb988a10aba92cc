//! At the limits: of connections, of handlers that run, and of those that wait.

use std::time::Duration;

use super::*;

/// With a limit on threads, those that there are must not all wait.
#[test]
fn the_last_thread_does_not_wait_if_no_other_can_be_started() {
    // No thread gets a stack of this size.
    let service = Service::start(Limits { stack: 1 << 60, ..Limits::default() });
    let mut waiting = service.client();
    waiting.send(request(true, LOCK, b"a"));
    assert_eq!(service.client().ask(false, &[], b"x"), answered("x"));
    assert_eq!(waiting.reply(), answered("too many wait"));
    assert!(service.handler.log.lock().unwrap()[0].starts_with("cannot start another thread"));
}

#[test]
fn a_new_client_is_served_when_a_busy_connection_becomes_idle_or_closes() {
    for keep in [true, false] {
        let service = Service::start(Limits { connections: 2, ..Limits::default() });
        let mut busy = service.clients::<2>();
        for client in &mut busy {
            client.send(request(keep, WAIT, b""));
        }
        service.handler.wait_for(2);
        let mut next = service.client();
        next.send(request(false, &[], b"x"));
        service.handler.open_gate();
        assert_eq!(next.reply(), answered("x"));
        for client in &mut busy {
            assert_eq!(client.reply(), answered(""));
        }
    }
}

#[test]
fn at_the_limit_a_new_connection_replaces_the_longest_idle_one_then_the_longest_arriving_one() {
    let service = Service::start(Limits { connections: 3, ..Limits::default() });
    let arriving = || {
        let mut client = service.client();
        client.send([&begin(true)[..], &PING].concat()).record();
        client
    };
    let mut first = arriving();
    let mut kept = service.clients::<2>();
    let mut ask = |client: usize| {
        assert_eq!(kept[client].ask(true, &[], b"x"), answered("x"));
        // The connection is idle shortly after its answer, and nothing shows when.
        thread::sleep(Duration::from_millis(200));
    };
    // Without another client, they stay open.
    [0, 1, 0].into_iter().for_each(&mut ask);
    let mut second = arriving();
    ask(0);
    let _third = arriving();
    kept.iter_mut().for_each(Client::is_at_end);
    let mut next = service.client();
    assert_eq!(next.ask(true, &[], b"x"), answered("x"));
    first.is_at_end();
    second.send([params(&[]), record(STDIN, b"")].concat());
    assert_eq!(second.reply(), answered(""));
}

#[test]
fn without_an_idle_one_it_replaces_one_whose_request_is_arriving() {
    let body = stream(STDIN, &vec![b'x'; 1_100_000]);
    for (part, answer) in [
        ([begin(true), params(&[]), record(STDIN, b"bo"), PING.to_vec()].concat(), "Overloaded"),
        ([begin(false), record(PARAMS, b"\x01"), PING.to_vec()].concat(), ""),
        (begin(true)[..1].to_vec(), ""),
        // The rest of an answered request.
        ([begin(false), params(EARLY), body].concat(), "early"),
    ] {
        let service = Service::start(Limits { connections: 1, ..Limits::default() });
        let mut arriving = service.client();
        arriving.send(&part);
        if part.ends_with(&PING) {
            arriving.record();
        }
        if answer == "early" {
            assert_eq!(arriving.reply(), answered(answer));
        }
        let mut next = service.client();
        assert_eq!(next.ask(true, &[], b"x"), answered("x"));
        if answer == "Overloaded" {
            assert_eq!(arriving.reply(), answered(answer));
        }
        arriving.is_at_end();
    }
}

#[test]
fn connections_that_do_not_read_their_answers_give_way_last() {
    let service = Service::start(Limits { connections: 3, ..Limits::default() });
    let mut half = service.client();
    half.send([&begin(true)[..], &PING].concat()).record();
    let mut unread = service.clients::<2>();
    for client in &mut unread {
        client.send(request(false, &[("DO", "large")], b""));
    }
    service.handler.wait_for(2);
    // The first has sent its request when the second connects: else it would give way to it.
    let mut next = [3, 4].map(|handled| {
        let mut client = service.client();
        client.send(request(true, WAIT, b"x"));
        service.handler.wait_for(handled);
        client
    });
    half.is_at_end();
    service.handler.open_gate();
    for client in &mut next {
        assert_eq!(client.reply(), answered("x"));
    }
    let whole = unread.map(|mut client| client.received().len() > LARGE);
    assert_eq!(whole.iter().filter(|whole| **whole).count(), 1, "one gave way");
}
