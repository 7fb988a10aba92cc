//! Sequences of records.

use super::*;

/// A record with padding of `padding` bytes.
fn padded(kind: u8, id: u8, content: &[u8], padding: u8) -> Vec<u8> {
    let [.., length1, length0] = content.len().to_be_bytes();
    let header = [1, kind, 0, id, length1, length0, padding, 0];
    [&header, content, &vec![b'P'; padding.into()]].concat()
}

fn begin(id: u8, role: u8, flags: u8) -> Vec<u8> {
    padded(kind::BEGIN_REQUEST, id, &[0, role, flags, 0, 0, 0, 0, 0], 0)
}

fn params(id: u8, content: &[u8]) -> Vec<u8> {
    padded(kind::PARAMS, id, content, 3)
}

fn stdin(id: u8, content: &[u8]) -> Vec<u8> {
    padded(kind::STDIN, id, content, 5)
}

fn end(id: u8, status: u8) -> Vec<u8> {
    padded(kind::END_REQUEST, id, &[0, 0, 0, 0, status, 0, 0, 0], 0)
}

const PAIR: &[u8] = b"\x01\x01Nv";

/// A kept request with a parameter and `body`.
fn whole(id: u8, body: &[u8]) -> Vec<u8> {
    let head = [begin(id, 1, 1), params(id, PAIR), params(id, b""), stdin(id, body)].concat();
    if body.is_empty() { head } else { [head, stdin(id, b"")].concat() }
}

/// The requests, the replies and whether the protocol ends.
#[track_caller]
fn assert_outcome(name: &str, input: &[u8], expected: (Vec<FcgiRequest>, Vec<u8>, bool)) {
    let limits = Limits { params: 100, body: 50, connections: 7, requests: 3, ..Limits::default() };
    assert_eq!(outcome(&limits, [input]), expected, "{name}");
    assert_eq!(outcome(&limits, input.chunks(1)), expected, "{name}, byte by byte");
}

fn request(id: u16, body: &[u8]) -> FcgiRequest {
    let params = Params::parse(PAIR.to_vec()).ok_or(Refusal::ParamsMalformed);
    FcgiRequest { id, keep: true, params, body: body.to_vec(), is_whole: true, is_check: false }
}

/// Else the close would meet unread input, which makes it a reset.
#[test]
fn input_after_the_last_request_is_read_while_its_answer_is_sent() {
    let limits = Limits::default();
    let mut protocol = Protocol::new(&limits);
    protocol.feed(&whole(1, b""));
    let request = protocol.take_request().unwrap();
    protocol.go_on(&request, false);
    assert!(protocol.wants_input());
}

#[test]
fn requests_are_received() {
    let early = |body: &[u8]| FcgiRequest { is_whole: false, ..request(1, body) };
    let half = [begin(1, 1, 1), params(1, PAIR)].concat();
    let all_params = [&half[..], &params(1, b"")].concat();
    let ends = [params(1, b""), stdin(1, b"")].concat();
    for (name, input, requests) in [
        (
            "two in a row, with padding",
            vec![whole(1, b"ab"), whole(1, b"")],
            vec![request(1, b"ab"), request(1, b"")],
        ),
        (
            "parameters and body in several records",
            vec![half[..].into(), params(1, b""), stdin(1, b"a"), stdin(1, b"b"), stdin(1, b"")],
            vec![request(1, b"ab")],
        ),
        (
            "a body over the limit that comes before the parameters is not kept",
            vec![half.clone(), stdin(1, b"aa"), stdin(1, &[b'x'; 60]), ends.clone()],
            vec![early(&[&b"aa"[..], &[b'x'; 49]].concat())],
        ),
        (
            "the same id in the middle of a body replaces the request",
            vec![all_params, stdin(1, b"old"), whole(1, b"new")],
            vec![request(1, b"new")],
        ),
        (
            "an abort of another id is ignored",
            vec![half.clone(), padded(kind::ABORT_REQUEST, 2, b"", 0), ends.clone()],
            vec![request(1, b"")],
        ),
        (
            "an unknown type within a request is ignored, as is FCGI_DATA",
            vec![half, padded(99, 1, b"x", 0), padded(8, 1, b"x", 0), ends],
            vec![request(1, b"")],
        ),
        (
            "parameters over the limit are refused before the body",
            vec![begin(1, 1, 1), params(1, &[0; 90]), params(1, &[0; 90]), params(1, b"")],
            vec![FcgiRequest { params: Err(Refusal::ParamsTooLarge(100)), ..early(b"") }],
        ),
        ("records before a request", vec![stdin(1, b"x"), params(1, b"x")], vec![]),
    ] {
        assert_outcome(name, &input.concat(), (requests, Vec::new(), false));
    }
}

#[test]
fn records_are_answered_and_invalid_ones_end_the_connection() {
    let asked = b"\x0e\0FCGI_MAX_CONNS\x0f\0FCGI_MPXS_CONNS\x01\0x\x0d\0FCGI_MAX_REQS";
    let values = b"\x0e\x01FCGI_MAX_CONNS7\x0d\x01FCGI_MAX_REQS3\x0f\x01FCGI_MPXS_CONNS0";
    let get_values = padded(kind::GET_VALUES, 0, asked, 0);
    let values = padded(kind::GET_VALUES_RESULT, 0, values, 0);
    let unknown = |kind| padded(kind::UNKNOWN_TYPE, 0, &[kind, 0, 0, 0, 0, 0, 0, 0], 0);
    let half = [begin(1, 1, 1), params(1, PAIR)].concat();
    let ends = [params(1, b""), stdin(1, b"")].concat();
    let one = || vec![request(1, b"")];
    let unkept = [begin(1, 1, 0), params(1, PAIR), ends.clone()].concat();
    for (name, input, requests, replies, ended) in [
        (
            "another id in the middle of a request is rejected, with all its records",
            vec![half.clone(), whole(2, b"x"), ends.clone()],
            one(),
            end(2, 1),
            false,
        ),
        (
            "another role is rejected, the connection kept",
            vec![begin(1, 2, 1), params(1, b""), whole(1, b"")],
            one(),
            end(1, 3),
            false,
        ),
        (
            "another role is rejected, the connection not kept",
            vec![begin(1, 3, 0), whole(1, b"")],
            vec![],
            end(1, 3),
            true,
        ),
        (
            "values are answered in the middle of a request",
            vec![half, get_values, ends],
            one(),
            values,
            false,
        ),
        (
            "an unknown type of management record",
            vec![padded(99, 0, b"anything", 0), padded(kind::BEGIN_REQUEST, 0, &[0; 8], 0)],
            vec![],
            [unknown(99), unknown(1)].concat(),
            false,
        ),
        (
            "a BEGIN_REQUEST that is too short",
            vec![padded(kind::BEGIN_REQUEST, 1, &[0, 1, 0], 0), whole(1, b"")],
            vec![],
            vec![],
            true,
        ),
        (
            "nothing counts after a request that is not kept",
            vec![unkept, whole(1, b"")],
            vec![FcgiRequest { keep: false, ..request(1, b"") }],
            vec![],
            true,
        ),
    ] {
        assert_outcome(name, &input.concat(), (requests, replies, ended));
    }
}
