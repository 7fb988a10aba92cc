//! Invariants of the parsers of untrusted input, none of which may panic. A unit test checks them with
//! input made of random pieces of each format, and the coverage-guided fuzzer in `lab/fuzz/` with its own.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::path::Path;

use crate::cgi::{Variables, multipart, origin};
use crate::config::{Config, Settings};
use crate::fastcgi::Pairs;
use crate::fastcgi::requests::{FcgiRequest, Handled, Requests};
use crate::model::{Color, Date, Day, Label, MenuTypes, PlateKey, PlateName, TypeId};
use crate::php::form::Form;
use crate::php::json::Value;
use crate::session::redis::protocol::{Kind, Reply};
use crate::session::{self, Format, Session};

/// Panics if an invariant does not hold for the input.
pub type Check = fn(&[u8]);

/// A parser and its check.
pub struct Parser {
    pub name: &'static str,
    pub check: Check,
    /// Of its format
    pub pieces: &'static [&'static str],
}

impl Parser {
    const fn new(name: &'static str, check: Check, pieces: &'static [&'static str]) -> Parser {
        Parser {
            name,
            check,
            pieces,
        }
    }
}

pub const PARSERS: [Parser; 9] = [
    Parser::new("cookie", cookie, COOKIE),
    Parser::new("fastcgi", fastcgi, FASTCGI),
    Parser::new("form", form, FORM),
    Parser::new("json", json, JSON),
    Parser::new("multipart", multipart, MULTIPART),
    Parser::new("redis", redis, REDIS),
    Parser::new("request", request, REQUEST),
    Parser::new("session", session, SESSION),
    Parser::new("settings", settings, SETTINGS),
];

const COOKIE: &[&str] = &[
    "PHPSESSID", "=", ";", " ", "abc", "%2C", "%00", "[", "]", "[]", ",", "-", "\"", "\t",
];
const FASTCGI: &[&str] = &[
    // BEGIN_REQUEST: kept, not kept, and of another request
    "\x01\x01\0\x01\0\x08\0\0\0\x01\x01\0\0\0\0\0",
    "\x01\x01\0\x01\0\x08\0\0\0\x01\0\0\0\0\0\0",
    "\x01\x01\0\x02\0\x08\0\0\0\x02\x01\0\0\0\0\0",
    // PARAMS and STDIN with padding, and their ends
    "\x01\x04\0\x01\0\x04\x03\0\x01\x01Nvppp\x01\x04\0\x01\0\0\0\0",
    "\x01\x05\0\x01\0\x14\x02\0twenty bytes of bodypp",
    "\x01\x05\0\x01\0\0\0\0",
    // ABORT_REQUEST, GET_VALUES, an unknown type
    "\x01\x02\0\x01\0\0\0\0",
    "\x01\x09\0\0\0\x0f\0\0\x0d\0FCGI_MAX_REQS",
    "\x01c\0\0\0\x01\0\0x",
];
const FORM: &[&str] = &[
    "a", "plates", "[", "]", "[]", "[a]", "=", "&", "+", "%20", "%00", "%zz", "%c3%b1", "%ff", ".",
    "ñ",
];
const JSON: &[&str] = &[
    "{", "}", "[", "]", ",", ":", "\"a\"", "\"id\"", "\"plates\"", "\"menus\"", "\"name\"",
    "\"\\ud800\"", "\"\\u00e9\"", "null", "true", "0", "-0", "1e999", "1.5",
    "18446744073709551616", " ", "\"", "\\", "{\"a\":1}", "[[1]]",
];
const MULTIPART: &[&str] = &[
    "multipart/form-data", " boundary=", "B", "=", ",", "--B", "--", "\r\n", "\n",
    "Content-Disposition: form-data", "; name=", "\"a\"", "a", "\"", "\\", "; filename=", ":", ";",
    "content-type: x", "\r\n\r\n", " ",
];
const REDIS: &[&str] = &[
    "+OK\r\n", "-NOAUTH\r\n", ":1\r\n", ":", "$3\r\nabc\r\n", "$-1\r\n", "$0\r\n\r\n", "$2\r\n",
    "$16777216\r\n", "$16777217\r\n", "$99999999999999999999\r\n", "*1\r\n", "\r\n", "\r", "a",
    "-", "$", "\x01", "\x02", "\x05",
];
const REQUEST: &[&str] = &[
    "\n", "0", "12", "+", "-", "x", " ", "a", "[", "]", "=", "&", "%20", "%ff", "http", "://",
    "school.example", "127.0.0.1", "[::1]", ":", "80", "@", "/", ".", "ñ",
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

/// The `Cookie` header.
pub fn cookie(header: &[u8]) {
    if let Some(id) = session::session_id(header, "PHPSESSID") {
        assert!(!id.as_str().contains(['/', '.', '\0']));
    }
}

/// Records of the FastCGI protocol. The last byte is a number of cuts, the bytes before it are the
/// lengths between them.
pub fn fastcgi(input: &[u8]) {
    let Some((&count, rest)) = input.split_last() else {
        return;
    };
    let Some(length) = rest.len().checked_sub(count.into()) else {
        return;
    };
    let (bytes, lengths) = rest.split_at(length);
    let mut rest = bytes;
    let cut = |&length: &u8| {
        rest.split_off(..rest.len().min(length.into()))
            .unwrap_or_default()
    };
    let mut pieces: Vec<&[u8]> = lengths.iter().map(cut).collect();
    pieces.push(rest);
    let outcome = outcome([bytes]);
    assert_eq!(self::outcome(pieces), outcome, "split into pieces");
    assert_eq!(self::outcome(bytes.chunks(1)), outcome, "byte by byte");
    for Received { request, .. } in outcome.received {
        assert!(request.params.len() <= MAX_PARAMS + 1);
        if let Some(params) = Pairs::parse(&request.params) {
            let length = |(name, value): (&[u8], &[u8])| name.len() + value.len();
            assert!(params.map(length).sum::<usize>() <= request.params.len());
        }
    }
}

const MAX_PARAMS: usize = 300;

/// A request with its body, or a part of it.
#[derive(Debug, PartialEq)]
struct Received {
    request: FcgiRequest,
    body: Vec<u8>,
    handled: Handled<()>,
}

/// What happens on a connection.
#[derive(Debug, PartialEq)]
struct Outcome {
    received: Vec<Received>,
    replies: Vec<u8>,
    end: Result<(), ErrorKind>,
}

fn outcome<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> Outcome {
    let pieces = pieces.into_iter().filter(|piece| !piece.is_empty());
    let stream = Pieces {
        input: pieces.collect(),
        replies: Vec::new(),
    };
    let mut connection = Requests::new(stream, MAX_PARAMS, 1);
    let mut received = Vec::new();
    let end = loop {
        let request = match connection.receive() {
            Ok(Some(request)) => request,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error.kind()),
        };
        if let Err(error) = connection.await_body() {
            break Err(error.kind());
        }
        let limit = if request.keep { u64::MAX } else { 10 };
        let mut body = Vec::new();
        let handled = connection.handle(|input| {
            _ = input.take(limit).read_to_end(&mut body);
        });
        let is_broken = handled == Handled::Broken;
        received.push(Received {
            request,
            body,
            handled,
        });
        if is_broken {
            break Err(ErrorKind::UnexpectedEof);
        }
        if let Err(error) = connection.discard_body() {
            break Err(error.kind());
        }
    };
    Outcome {
        received,
        replies: connection.input.stream.replies,
        end,
    }
}

/// A connection whose input arrives in pieces.
struct Pieces<'b> {
    input: VecDeque<&'b [u8]>,
    replies: Vec<u8>,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(piece) = self.input.front_mut() else {
            return Ok(0);
        };
        let length = piece.read(buffer)?;
        if piece.is_empty() {
            self.input.pop_front();
        }
        Ok(length)
    }
}

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.replies.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A query string, and a body of the type `application/x-www-form-urlencoded`.
pub fn form(bytes: &[u8]) {
    _ = Form::from_query(bytes).last("a");
    if let Some(map) = Form::from_body(bytes).and_then(|form| form.nested(100)) {
        let written = Value::Map(map).to_php();
        assert!(
            Value::parse(&written).is_ok(),
            "what is accepted can be written and read again"
        );
    }
}

/// A JSON body, and the data files.
pub fn json(bytes: &[u8]) {
    let Ok(value) = Value::parse(bytes) else {
        return;
    };
    let written = value.to_php();
    let again = Value::parse(&written).expect("what is written can be read");
    assert_eq!(again.to_php(), written, "and is written the same");
    if let Ok(day) = Day::from_json(Some(value.clone()), Some("a")) {
        save_menu(day);
    }
    if let Ok(types) = MenuTypes::from_json(Some(value.clone())) {
        change_menu_types(types, value);
    }
}

fn save_menu(mut day: Day) {
    let date = Date::parse("2026-11-20").unwrap();
    let key = PlateKey::parse("a").unwrap();
    let name = PlateName::parse("b").unwrap();
    let saved = day.save(&date, "a", &[(key, name)]);
    assert_eq!(day.ids().filter(|id| *id == "a").count(), 1);
    let stored = Value::from(day);
    _ = stored.to_php();
    let day = Day::from_json(Some(stored), Some("a")).expect("a day");
    let saved = saved.expect("few plates");
    assert_eq!(day.menu("a"), saved, "is shown as it was saved");
}

fn change_menu_types(mut types: MenuTypes, file: Value) {
    let id = TypeId::parse("x").unwrap().unwrap();
    let label = Label::parse("X").unwrap();
    if types.add(&id, label, Color::DEFAULT).is_some() {
        types.rename("x", Some(label), None).expect("it is there");
        types.delete("x").expect("it is there");
    }
    let again = || MenuTypes::from_json(Some(file.clone())).expect("types");
    assert_eq!(
        Value::from(types),
        Value::from(again()),
        "other types stay as they are"
    );
    _ = again().shown();
}

/// A Content-Type, a line break and a body.
pub fn multipart(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |&byte| byte == b'\n');
    let content_type = parts.next().unwrap_or_default();
    let body = parts.next().unwrap_or_default();
    _ = multipart::parse(content_type, body);
    _ = multipart::parse(b"multipart/form-data; boundary=B", body);
}

/// The replies of a Redis server. The last byte is the length of the pieces in which they arrive.
pub fn redis(input: &[u8]) {
    let Some((&length, bytes)) = input.split_last() else {
        return;
    };
    let pieces = BufReader::with_capacity(usize::from(length).max(1), bytes);
    assert_eq!(replies(pieces), replies(bytes), "split into pieces");
}

/// The replies at the start of `input`, and `None` for bytes that are not a reply.
fn replies(mut input: impl BufRead) -> Vec<Option<Reply>> {
    let mut replies = Vec::new();
    while let Some(&first) = input.fill_buf().unwrap().first() {
        let kind = match first {
            b'$' => Kind::BulkString,
            b':' => Kind::Integer,
            _ => Kind::SimpleString,
        };
        replies.push(Reply::read(&mut input, kind).ok());
        if let Some(None) = replies.last() {
            break;
        }
    }
    replies
}

/// Lines with the values of meta-variables.
pub fn request(lines: &[u8]) {
    let names = ["CONTENT_LENGTH", "QUERY_STRING", "HTTP_HOST", "HTTP_ORIGIN"];
    let names = names.into_iter().map(str::as_bytes);
    let variables = Variables::of_parameters(names.zip(lines.split(|&byte| byte == b'\n')));
    _ = (
        variables.query().last("a"),
        origin::is_another_site(&variables, &[]),
    );
}

/// A session file, in each format.
pub fn session(bytes: &[u8]) {
    for format in [Format::Php, Format::PhpSerialize, Format::PhpBinary] {
        if let Ok(session) = Session::decode(bytes.to_vec(), format) {
            for key in ["auth_ok", "auth_data", "a", ""] {
                if let Some(session::PhpValue::Array(array)) = session.get(key) {
                    _ = (array.get("service"), array.values().count());
                }
            }
        }
    }
}

/// `comedor.conf`.
pub fn settings(bytes: &[u8]) {
    if let Ok(settings) = Settings::default().with_file(Path::new("comedor.conf"), bytes) {
        _ = Config::from_settings(&settings);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;
    use proptest::test_runner::TestRunner;

    use super::*;

    /// `PROPTEST_CASES` sets the number of inputs for each parser.
    #[test]
    fn invariants_hold_for_input_made_of_pieces_of_the_format() {
        let cases = std::env::var("PROPTEST_CASES")
            .ok()
            .and_then(|cases| cases.parse().ok());
        let cases = cases.unwrap_or(5_000);
        for Parser {
            name,
            check,
            pieces,
        } in PARSERS
        {
            let piece = prop_oneof![
                9 => select(pieces).prop_map(|piece| piece.as_bytes().to_vec()),
                1 => any::<u8>().prop_map(|byte| vec![byte]),
            ];
            let input = prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat());
            let config = ProptestConfig {
                cases,
                failure_persistence: None,
                ..Default::default()
            };
            let checked = TestRunner::new(config).run(&input, |input| {
                check(&input);
                Ok(())
            });
            assert!(checked.is_ok(), "{name}: {checked:?}");
        }
    }
}
