//! Requests, good and bad.

use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::*;

#[test]
fn a_panic_fails_only_its_own_request_and_frees_its_place() {
    let limits = Limits { requests: 1, waiting: 1, waiting_for_one: 1, ..Limits::default() };
    let service = Service::start(limits);
    service.handler.open_gate();
    let mut client = service.client();
    for command in ["panic", "lock and panic"].repeat(5) {
        let reply = client.ask(true, &[("DO", command)], b"").stdout;
        assert!(reply.starts_with("Panicked(\"panicked at "), "{reply}");
        assert!(reply.contains("mod.rs:") && reply.contains("as asked"), "{reply}");
        assert_eq!(client.ask(true, LOCK, b"next"), answered("next"), "runs, and waits");
    }
}

#[test]
fn malformed_parameters_get_a_complete_error_answer() {
    let service = Service::start(Limits::default());
    let mut client = service.client();
    let with =
        |pairs| [begin(true), record(PARAMS, pairs), params(&[]), record(STDIN, b"")].concat();
    let malformed: [&[u8]; 8] = [
        b"\x01", b"\x01\x7fN", b"\x02\x01Nv", b"\x80", b"\x80\0\0", b"\x01\x80\0\0",
        b"\xff\xff\xff\xff\xff\xff\xff\xffNv", b"\x01\x01Nv\x05",
    ];
    for pairs in malformed {
        assert_eq!(client.send(with(pairs)).reply(), answered("ParamsMalformed"), "{pairs:?}");
    }
    assert_eq!(service.handler.handled(), 0);
    // With lengths of one byte
    assert_eq!(client.send(with(b"\x01\0N\x02\x05DOearly")).reply(), answered("early"));
    assert_eq!(client.ask(true, &[], b"next"), answered("next"));
}

/// The record with another id.
fn of(id: u8, mut record: Vec<u8>) -> Vec<u8> {
    record[3] = id;
    record
}

#[test]
fn records_are_answered_or_ignored_and_invalid_ones_end_the_connection() {
    let limits = Limits { params: 100, body: 50, connections: 7, requests: 3, ..Limits::default() };
    let service = Service::start(limits);
    let whole = |body: &str| request(true, &[], body.as_bytes());
    let answer = |body: &str| {
        let stdout = stream(STDOUT, body.as_bytes());
        [stdout, record(STDOUT, b""), record(END, &[0; 8])].concat()
    };
    let refused = |id, status| of(id, record(END, &[0, 0, 0, 0, status, 0, 0, 0]));
    let role = |role, keep| record(BEGIN, &[0, role, keep, 0, 0, 0, 0, 0]);
    let unknown = |kind| of(0, record(11, &[kind, 0, 0, 0, 0, 0, 0, 0]));
    let half = [begin(true), record(PARAMS, b"\x01\x01Nv")].concat();
    let ends = [record(PARAMS, b""), record(STDIN, b"")].concat();
    // Three bytes of padding
    let padded = [&[1, STDIN, 0, 1, 0, 2, 3, 0][..], b"abppp"].concat();
    let log = [("one", STDERR), ("two", STDERR), ("", STDERR), ("", STDOUT)];
    let log = log.map(|(line, kind)| record(kind, line.as_bytes())).concat();
    let (x, long) = ([b'x'; 60], [0; 90]);
    let asked = b"\x0e\0FCGI_MAX_CONNS\x0f\0FCGI_MPXS_CONNS\x01\0x\x0d\0FCGI_MAX_REQS";
    let values = b"\x0e\x01FCGI_MAX_CONNS7\x0d\x01FCGI_MAX_REQS3\x0f\x01FCGI_MPXS_CONNS0";
    for (name, input, output) in [
        ("padding", vec![half.clone(), padded, ends.clone()], vec![answer("ab")]),
        (
            "a body over the limit, before the parameters",
            vec![half.clone(), record(STDIN, b"aa"), record(STDIN, &x), ends.clone()],
            vec![answer(&format!("aa{}", "x".repeat(49)))],
        ),
        (
            "parameters over the limit, before the body",
            vec![begin(true), record(PARAMS, &long), record(PARAMS, &long), record(PARAMS, b"")],
            vec![answer("ParamsTooLarge(100)")],
        ),
        (
            "the same id in the middle of a body",
            vec![begin(true), params(&[]), record(STDIN, b"old"), whole("new")],
            vec![answer("new")],
        ),
        (
            "another id in the middle of a request",
            vec![half.clone(), of(2, begin(true)), of(2, record(STDIN, b"x")), ends.clone()],
            vec![answer(""), refused(2, 1)],
        ),
        (
            "an abort of another id, and unknown types",
            vec![half.clone(), of(2, record(ABORT, b"")), record(99, b"x"), ends.clone()],
            vec![answer("")],
        ),
        ("no BEGIN_REQUEST", vec![record(STDIN, b"x"), whole("y")], vec![answer("y")]),
        ("one that is too short", vec![record(BEGIN, &[0, 1, 0]), whole("")], vec![]),
        (
            "another role",
            vec![role(2, 1), params(&[]), whole("x")],
            vec![refused(1, 3), answer("x")],
        ),
        ("another role, not kept", vec![role(3, 0), whole("")], vec![refused(1, 3)]),
        ("not kept", vec![request(false, &[], b"x"), whole("y")], vec![answer("x")]),
        (
            "each log line is a record",
            vec![request(true, &[("DO", "log")], b"")],
            vec![log, record(END, &[0; 8])],
        ),
        // More than the buffers hold: it is read to its end.
        ("not FastCGI", vec![b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![0; 1024 * 1024]], vec![]),
        (
            "values",
            vec![half, of(0, record(9, asked)), ends],
            vec![answer(""), of(0, record(10, values))],
        ),
        (
            "unknown management records",
            vec![of(0, record(99, b"anything")), of(0, begin(true))],
            vec![unknown(99), unknown(BEGIN)],
        ),
    ] {
        let mut client = service.client();
        // A client that has shut down sending still gets its answers.
        client.send(input.concat()).0.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.received(), output.concat(), "{name}");
    }
}

#[test]
fn a_body_over_the_limit_is_answered_before_its_end_and_then_drained() {
    let service = Service::start(Limits::default());
    let body = stream(STDIN, &vec![b'x'; 1_100_000]);
    let part = |keep| [begin(keep), params(EARLY), body.clone()].concat();
    // nginx stops sending at the answer and waits for the end of the connection.
    let mut client = service.client();
    assert_eq!(client.send(part(false)).reply(), answered("early"));
    client.is_at_end();
    // Other servers send the whole body before they read.
    let mut client = service.client();
    let rest = stream(STDIN, &vec![b'x'; 16 * 1024 * 1024]);
    client.send(part(false)).send(rest).send(record(STDIN, b""));
    assert_eq!(client.reply(), answered("early"));
    client.is_at_end();
    // A kept connection takes the next request.
    for rest in [&[][..], &stream(STDIN, b"the rest"), &record(STDIN, b"")] {
        let mut client = service.client();
        assert_eq!(client.send(part(true)).reply(), answered("early"));
        assert_eq!(client.send(rest).ask(true, &[], b"next"), answered("next"));
    }
}

#[test]
fn a_truncated_request_is_not_handled() {
    let service = Service::start(Limits::default());
    let whole = request(false, &[], b"body");
    for length in [1, 20, whole.len() - 8, whole.len() - 1] {
        let mut client = service.client();
        client.send(&whole[..length]);
        client.0.shutdown(Shutdown::Write).unwrap();
        client.is_at_end();
    }
    assert_eq!(service.handler.handled(), 0);
    // Input after a request is read while its answer is sent: else the close would make that a reset.
    let mut client = service.client();
    client.send(request(false, &[("DO", "large")], b"")).send(vec![0; 1024 * 1024]);
    assert_eq!(client.reply().stdout.len(), LARGE);
    client.is_at_end();
}

#[test]
fn a_client_that_reads_slowly_or_only_after_sending_does_not_delay_others() {
    let service = Service::start(Limits { requests: 1, ..Limits::default() });
    let mut slow = service.client();
    let large = &[("DO", "large")];
    let body = stream(STDIN, &vec![b'x'; 3_000_000]);
    slow.send([begin(true), params(large), body, record(STDIN, b"")].concat());
    for _ in 0..10 {
        assert_eq!(service.client().ask(false, &[], b"x"), answered("x"));
    }
    assert_eq!(slow.reply().stdout.len(), LARGE);
    assert_eq!(slow.ask(true, &[], b"next"), answered("next"));
}

#[test]
fn an_abort_is_answered_and_a_closed_connection_is_released() {
    let service = Service::start(Limits { connections: 2, ..Limits::default() });
    let mut client = service.client();
    client.send([begin(true), params(&[]), record(ABORT, b""), record(STDIN, b"")].concat());
    assert_eq!(client.reply(), answered(""));
    assert_eq!(client.ask(false, &[], b"next"), answered("next"));
    assert_eq!(service.handler.handled(), 1);
    for _ in 0..10 {
        let mut gone = service.client();
        gone.send(request(false, &[("DO", "large")], b""));
    }
    assert_eq!(service.client().ask(false, &[], b"x"), answered("x"));
}

#[test]
fn a_flood_of_management_records_closes_the_connection() {
    let service = Service::start(Limits::default());
    let mut client = service.client();
    let sent = client.0.write_all(&PING.repeat(100_000));
    assert_eq!(sent.map_err(|error| error.kind()), Err(ErrorKind::BrokenPipe));
}

#[test]
fn idle_connections_and_partial_requests_time_out() {
    let soon = Duration::from_millis(50);
    let whole = request(true, &[], b"body");
    let service =
        Service::start(Limits { idle: soon, receive: soon, send: soon, ..Limits::default() });
    let mut kept = service.client();
    kept.ask(true, &[], b"");
    kept.is_at_end();
    for length in [0, 1, 30, whole.len() - 1] {
        let mut half = service.client();
        half.send(&whole[..length]);
        half.is_at_end();
    }
    // A client that does not read its answer.
    let mut unread = service.client();
    unread.send(request(true, &[("DO", "large")], b""));
    let mut hang_up = [PollFd::new(&unread.0, PollFlags::empty())];
    let patience = Timespec { tv_sec: 30, tv_nsec: 0 };
    assert_eq!(poll(&mut hang_up, Some(&patience)), Ok(1), "it is closed");
}
