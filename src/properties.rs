//! Property tests of every parser of untrusted input: the invariants hold for input made of random
//! pieces of the format. Unlike a coverage-guided fuzzer, these tests need no other tools than the
//! unit tests. `PROPTEST_CASES` sets the number of cases.

use proptest::prelude::*;
use proptest::sample::select;

use crate::invariants;

/// Up to 40 of `pieces`, sometimes with a random byte between them.
fn made_of(pieces: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        9 => select(pieces).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

const FORM: &[&str] = &[
    "a", "plates", "[", "]", "[]", "[a]", "=", "&", "+", "%20", "%00", "%zz", "%c3%b1", "%ff", ".",
    "ñ",
];
const COOKIE: &[&str] =
    &["PHPSESSID", "=", ";", " ", "abc", "%2C", "%00", "[", "]", "[]", ",", "-", "\"", "\t"];
const MULTIPART: &[&str] = &[
    "--B", "--", "\r\n", "\n", "Content-Disposition: form-data", "; name=", "\"a\"", "a", "\"",
    "\\", "; filename=", ":", ";", "content-type: x", "\r\n\r\n", " ",
];
const CONTENT_TYPE: &[&str] =
    &["multipart/form-data", ";", " boundary=", "B", "\"", "=", ",", "\\", " "];
const JSON: &[&str] = &[
    "{", "}", "[", "]", ",", ":", "\"a\"", "\"id\"", "\"plates\"", "\"menus\"", "\"name\"",
    "\"\\ud800\"", "\"\\u00e9\"", "null", "true", "0", "-0", "1e999", "1.5",
    "18446744073709551616", " ", "\"", "\\", "{\"a\":1}", "[[1]]",
];
const SESSION: &[&str] = &[
    "auth_ok|", "auth_data|", "a:1:{", "a:2:{", "O:1:\"A\":1:{", "}", "i:0;", "i:1;", "s:1:\"a\";",
    "s:7:\"service\";", "b:1;", "N;", "d:0.5;", "R:1;", "R:2;", "r:1;", "C:1:\"A\":1:{x}",
    "C:1:\"A\":4:{i:1;}", "O:9:\"Exception\":1:{", "s:7:\"\0*\0line\";",
    "O:11:\"ArrayObject\":4:{", "O:7:\"Closure\":0:{}", "E:3:\"A:B\";", "\x07auth_ok",
    "s:99999999999:\"", "a:99999999999:{", "i:-0;",
];
const SETTINGS: &[&str] = &[
    "COMEDOR_SERVICE", "TZ", "=", "\n", "#", " ", "\"", "x", "/a", "\r", "COMEDOR_SESSION_DIR",
    "2;", "9;0600;", "tcp://", "unix:///", "?", "auth[]=", "&", "[::1]", ":1",
];
const REPLIES: &[&str] = &[
    "+OK\r\n", "-NOAUTH\r\n", ":1\r\n", ":", "$3\r\nabc\r\n", "$-1\r\n", "$0\r\n\r\n", "$2\r\n",
    "$16777216\r\n", "$16777217\r\n", "$99999999999999999999\r\n", "*1\r\n", "\r\n", "\r", "a",
    "-", "$",
];

pub(crate) fn cases() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(5_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn forms(bytes in made_of(FORM)) {
        invariants::form(&bytes);
    }

    #[test]
    fn cookies(header in made_of(COOKIE)) {
        invariants::cookie(&header);
    }

    #[test]
    fn multiparts(content_type in made_of(CONTENT_TYPE), body in made_of(MULTIPART)) {
        invariants::multipart(&[&content_type[..], b"\n", &body].concat());
    }

    #[test]
    fn json_and_documents(bytes in made_of(JSON)) {
        invariants::json(&bytes);
    }

    #[test]
    fn sessions(bytes in made_of(SESSION)) {
        invariants::session(&bytes);
    }

    #[test]
    fn settings(bytes in made_of(SETTINGS)) {
        invariants::settings(&bytes);
    }

    #[test]
    fn replies_of_redis(bytes in made_of(REPLIES), split in 1_u8..9) {
        invariants::redis(&[&bytes[..], &[split]].concat());
    }

    #[test]
    fn requests(length in "[0-9+ x-]{0,30}", query in made_of(FORM), host in ".{0,20}", site in ".{0,20}") {
        let query = String::from_utf8_lossy(&query);
        invariants::request([&length, &*query, &host, &site].join("\n").as_bytes());
    }
}
