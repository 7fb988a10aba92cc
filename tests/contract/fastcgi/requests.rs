//! Requests, good and bad.

use std::io::{ErrorKind, Write};
use std::net::Shutdown;

use super::*;

#[test]
fn malformed_parameters_get_a_complete_error_answer() {
    let service = Service::with_workers(4);
    let mut client = service.client();
    let with = |pairs| {
        [
            begin(true),
            record(PARAMS, pairs),
            params(&[]),
            record(STDIN, b""),
        ]
        .concat()
    };
    let malformed: [&[u8]; 8] = [
        b"\x01", b"\x01\x7fN", b"\x02\x01Nv", b"\x80", b"\x80\0\0", b"\x01\x80\0\0",
        b"\xff\xff\xff\xff\xff\xff\xff\xffNv", b"\x01\x01Nv\x05",
    ];
    for pairs in malformed {
        assert_eq!(
            client.send(with(pairs)).reply(),
            answered("ParamsMalformed"),
            "{pairs:?}"
        );
    }
    // With lengths of one byte
    assert_eq!(
        client.send(with(b"\x01\0N\x02\x05DOearly")).reply(),
        answered("early")
    );
    assert_eq!(client.ask(true, &[], b"next"), answered("next"));
}

/// The record with another id.
fn of(id: u8, mut record: Vec<u8>) -> Vec<u8> {
    record[3] = id;
    record
}

#[test]
fn records_are_answered_or_ignored_and_invalid_ones_end_the_connection() {
    let service = Service::start(Limits {
        params: 100,
        workers: 7,
        ..hours()
    });
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
    let log = log
        .map(|(line, kind)| record(kind, line.as_bytes()))
        .concat();
    let long = [0; 90];
    // One parameter of this length, with its two lengths.
    let of_length = |length: usize| {
        let value = vec![b'v'; length - 3];
        record(PARAMS, &[&[1, value.len() as u8, b'N'], &*value].concat())
    };
    let asked = b"\x0e\0FCGI_MAX_CONNS\x0f\0FCGI_MPXS_CONNS\x01\0x\x0d\0FCGI_MAX_REQS";
    let values = b"\x0e\x01FCGI_MAX_CONNS7\x0d\x01FCGI_MAX_REQS7\x0f\x01FCGI_MPXS_CONNS0";
    for (name, input, output) in [
        (
            "padding",
            vec![
                begin(true),
                params(&[]),
                padded,
                record(STDIN, b"c"),
                record(STDIN, b""),
            ],
            vec![answer("abc")],
        ),
        (
            "a body before the end of the parameters",
            vec![half.clone(), record(STDIN, b"x"), ends.clone()],
            vec![],
        ),
        (
            "parameters at the limit",
            vec![begin(true), of_length(100), ends.clone()],
            vec![answer("")],
        ),
        (
            "parameters just over the limit",
            vec![begin(true), of_length(101), ends.clone()],
            vec![answer("ParamsTooLarge(100)")],
        ),
        (
            "parameters far over the limit",
            vec![
                begin(true),
                record(PARAMS, &long),
                record(PARAMS, &long),
                ends.clone(),
            ],
            vec![answer("ParamsTooLarge(100)")],
        ),
        (
            "the same id in the middle of a body",
            vec![
                begin(true),
                params(&[]),
                record(STDIN, b"old"),
                whole("new"),
            ],
            vec![answer("new")],
        ),
        (
            "the same id in the middle of the parameters",
            vec![half.clone(), whole("new")],
            vec![answer("new")],
        ),
        (
            "another id in the middle of a request",
            vec![
                half.clone(),
                of(2, begin(true)),
                of(2, record(PARAMS, b"\x7f")),
                of(2, record(STDIN, b"x")),
                ends.clone(),
            ],
            vec![refused(2, 1), answer("")],
        ),
        (
            "another id in the middle of a body",
            vec![
                begin(true),
                params(&[]),
                record(STDIN, b"a"),
                of(2, begin(true)),
                of(2, record(STDIN, b"x")),
                of(2, record(ABORT, b"")),
                record(STDIN, b"b"),
                ends.clone(),
            ],
            vec![refused(2, 1), answer("ab")],
        ),
        (
            "an abort of another id, and unknown types",
            vec![
                half.clone(),
                of(2, record(ABORT, b"")),
                record(99, b"x"),
                ends.clone(),
            ],
            vec![answer("")],
        ),
        (
            "no BEGIN_REQUEST",
            vec![record(STDIN, b"x"), whole("y")],
            vec![answer("y")],
        ),
        (
            "one that is too short",
            vec![record(BEGIN, &[0, 1, 0]), whole("")],
            vec![],
        ),
        (
            "another role",
            vec![role(2, 1), params(&[]), whole("x")],
            vec![refused(1, 3), answer("x")],
        ),
        (
            "another role, not kept",
            vec![role(3, 0), whole("")],
            vec![refused(1, 3)],
        ),
        (
            "not kept",
            vec![request(false, &[], b"x")],
            vec![answer("x")],
        ),
        (
            "each log line is a record",
            vec![request(true, &[("DO", "log")], b"")],
            vec![log, record(END, &[0; 8])],
        ),
        // More than the buffers hold: it is read to its end.
        (
            "not FastCGI",
            vec![b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![0; 1024 * 1024]],
            vec![],
        ),
        (
            "values",
            vec![half, of(0, record(9, asked)), ends],
            vec![of(0, record(10, values)), answer("")],
        ),
        (
            "one of the values",
            vec![of(0, record(9, b"\x0f\0FCGI_MPXS_CONNS"))],
            vec![of(0, record(10, b"\x0f\x01FCGI_MPXS_CONNS0"))],
        ),
        (
            "unknown management records",
            vec![of(0, record(99, b"anything")), of(0, begin(true))],
            vec![unknown(99), unknown(BEGIN)],
        ),
    ] {
        let mut client = service.client();
        // A client that has shut down sending still gets its answers.
        client
            .send(input.concat())
            .0
            .shutdown(Shutdown::Write)
            .unwrap();
        assert_eq!(client.received(), output.concat(), "{name}");
    }
}

/// So that records begin at every byte of the buffer, and some headers are received in two parts.
#[test]
fn a_body_of_many_short_records_arrives_whole() {
    let service = Service::with_workers(1);
    let body: Vec<u8> = (b'a'..=b'z').cycle().take(20_000).collect();
    let records = body.iter().map(|byte| record(STDIN, &[*byte]));
    let records = records.collect::<Vec<_>>().concat();
    let input = [begin(false), params(&[]), records, record(STDIN, b"")].concat();
    let reply = service.client().send(input).reply();
    assert_eq!(reply, answered(str::from_utf8(&body).unwrap()));
}

#[test]
fn another_protocol_is_found_by_its_first_byte() {
    let service = Service::with_workers(4);
    let mut client = service.client();
    client.send(b"GET");
    wait_until("it is closed", || client.has_received());
    client.is_at_end();
}

#[test]
fn a_request_answered_before_the_end_of_its_body_is_drained() {
    // So many that a connection is kept while workers still have those before.
    let service = Service::with_workers(12);
    let body = stream(STDIN, &vec![b'x'; 1_100_000]);
    let part = |keep| [begin(keep), params(EARLY), body.clone()].concat();
    // nginx stops sending at the answer and waits for the end of the connection.
    let mut client = service.client();
    client.send([begin(false), params(EARLY), record(STDIN, b"a part")].concat());
    assert_eq!(client.reply(), answered("early"));
    client.is_at_end();
    // Other servers send the whole body before they read.
    let rest = stream(STDIN, &vec![b'x'; 16 * 1024 * 1024]);
    let mut client = service.client();
    client.send(part(false)).send(rest).send(record(STDIN, b""));
    assert_eq!(client.reply(), answered("early"));
    client.is_at_end();
    // A kept connection takes the next request.
    for rest in [&[][..], &stream(STDIN, b"the rest"), &record(STDIN, b"")] {
        let mut client = service.client();
        client.send([begin(true), params(EARLY), record(STDIN, b"a part")].concat());
        assert_eq!(client.reply(), answered("early"));
        assert_eq!(client.send(rest).ask(true, &[], b"next"), answered("next"));
    }
}

#[test]
fn a_truncated_request_is_not_answered() {
    let service = Service::with_workers(4);
    let whole = request(false, &[], b"body");
    for length in [1, 20, whole.len() - 9, whole.len() - 1] {
        let mut client = service.client();
        client.send(&whole[..length]);
        client.0.shutdown(Shutdown::Write).unwrap();
        client.is_at_end();
    }
    // Nor if the handler would not have read its body.
    let mut client = service.client();
    client.send([begin(false), params(EARLY)].concat());
    client.0.shutdown(Shutdown::Write).unwrap();
    client.is_at_end();
}

#[test]
fn a_client_that_reads_slowly_or_only_after_sending_does_not_delay_others() {
    let service = Service::with_workers(2);
    let mut slow = service.client();
    let large = &[("DO", "large")];
    let body = stream(STDIN, &vec![b'x'; 100_000]);
    slow.send([begin(false), params(large), body, record(STDIN, b"")].concat());
    for _ in 0..10 {
        assert_eq!(service.client().ask(false, &[], b"x"), answered("x"));
    }
    assert_eq!(slow.reply().stdout.len(), LARGE);
}

#[test]
fn an_abort_is_answered_and_a_closed_connection_is_released() {
    // Some may still have the connections before.
    let service = Service::with_workers(8);
    for parts in [
        vec![record(PARAMS, b"\x01")],
        vec![params(&[])],
        vec![params(&[]), record(STDIN, b"a part")],
    ] {
        let mut client = service.client();
        client.send([begin(true), parts.concat(), record(ABORT, b"")].concat());
        assert_eq!(client.reply(), answered(""));
        assert_eq!(client.ask(false, &[], b"next"), answered("next"));
    }
    for _ in 0..10 {
        let mut gone = service.client();
        gone.send(request(false, &[("DO", "large")], b""));
    }
    assert_eq!(service.client().ask(false, &[], b"x"), answered("x"));
}

#[test]
fn a_flood_of_management_records_closes_the_connection() {
    let pause = Duration::from_millis(100);
    let service = Service::start(Limits {
        workers: 2,
        pause,
        arrival: pause,
        ..hours()
    });
    let mut client = service.client();
    let sent = client.0.write_all(&PING.repeat(100_000));
    assert_eq!(
        sent.map_err(|error| error.kind()),
        Err(ErrorKind::BrokenPipe)
    );
}

/// Web servers do not send a request before the answer to the last one, but a balancer may.
#[test]
fn requests_that_arrive_together_are_all_answered() {
    let service = Service::with_workers(2);
    let mut client = service.client();
    client.send([request(true, &[], b"a"), request(true, &[], b"b")].concat());
    assert_eq!(client.reply(), answered("a"));
    assert_eq!(client.reply(), answered("b"));
    assert_eq!(client.ask(false, &[], b"c"), answered("c"));
}
