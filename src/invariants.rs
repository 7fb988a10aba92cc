//! Invariants of the parsers of untrusted input, none of which may panic. The unit tests check them
//! with input generated from pieces of each format (`properties.rs`), and the coverage-guided fuzzer in
//! `fuzz/` with its own input.

use std::path::Path;

use crate::cgi::form::Form;
use crate::cgi::{Request, Variables, multipart, origin};
use crate::config::{Config, Settings};
use crate::fastcgi::{Limits, protocol};
use crate::json::Value;
use crate::model::{Color, Date, Day, Document, Label, MenuTypes, PlateKey, PlateName, TypeId};
use crate::session::redis::{Reply, take};
use crate::session::{self, Format, Session};

/// Panics if an invariant does not hold for the input.
pub type Check = fn(&[u8]);

/// The checks by the name of the parser.
pub const PARSERS: [(&str, Check); 9] = [
    ("cookie", cookie),
    ("fastcgi", fastcgi),
    ("form", form),
    ("json", json),
    ("multipart", multipart),
    ("redis", redis),
    ("request", request),
    ("session", session),
    ("settings", settings),
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
    let Some((&count, rest)) = input.split_last() else { return };
    let Some(length) = rest.len().checked_sub(count.into()) else { return };
    let (bytes, lengths) = rest.split_at(length);
    let mut rest = bytes;
    let mut pieces: Vec<&[u8]> = Vec::new();
    for &length in lengths {
        let (piece, after) = rest.split_at(rest.len().min(length.into()));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    let limits = Limits { params: 300, body: 50, ..Limits::default() };
    let outcome = protocol::outcome(&limits, [bytes]);
    assert_eq!(protocol::outcome(&limits, pieces), outcome, "split into pieces");
    assert_eq!(protocol::outcome(&limits, bytes.chunks(1)), outcome, "byte by byte");
    for request in outcome.0 {
        assert!(request.body.len() <= limits.body + 1);
        if let Ok(params) = request.params {
            let length = |(name, value): (&[u8], &[u8])| name.len() + value.len();
            assert!(params.iter().map(length).sum::<usize>() <= limits.params);
        }
    }
}

/// A query string, and a body of the type `application/x-www-form-urlencoded`.
pub fn form(bytes: &[u8]) {
    _ = Form::from_query(bytes).last("a");
    if let Some(map) = Form::from_body(bytes).map(Form::nested) {
        let written = Value::Map(map).to_php();
        assert!(Value::parse(&written).is_ok(), "what is accepted can be written and read again");
    }
}

/// A JSON body, and the data files.
pub fn json(bytes: &[u8]) {
    let Ok(value) = Value::parse(bytes) else { return };
    let written = value.to_php();
    let again = Value::parse(&written).expect("what is written can be read");
    assert_eq!(again.to_php(), written, "and is written the same");
    if let Ok(mut day) = Day::from_file(Some(value.clone())) {
        let date = Date::parse("2026-11-20").unwrap();
        let plate = (PlateKey::parse("a").unwrap(), PlateName::parse("b").unwrap());
        let saved = day.save(&date, "a", &[plate]);
        assert_eq!(day.ids().filter(|id| *id == "a").count(), 1);
        let stored = day.into_file();
        _ = stored.to_php();
        let shown = Day::from_file(Some(stored)).expect("a day").menu("a");
        assert_eq!(shown, saved.expect("few plates"), "is shown as it was saved");
    }
    if let Ok(mut types) = MenuTypes::from_file(Some(value)) {
        let entries = types.entries().count();
        let (id, label) = (TypeId::parse("x").unwrap(), Label::parse("X").unwrap());
        if types.add(&id, label, Color::DEFAULT).is_ok() {
            assert_eq!(types.entries().count(), entries + 1);
            types.rename("x", Some(label), None).expect("it is there");
            types.delete("x").expect("it is there");
        }
        assert_eq!(types.entries().count(), entries);
        _ = types.shown();
    }
}

/// A Content-Type, a line break and a body.
pub fn multipart(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |&byte| byte == b'\n');
    let (content_type, body) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    _ = multipart::parse(content_type, body);
    _ = multipart::parse(b"multipart/form-data; boundary=B", body);
}

/// The replies of a Redis server. The last byte is the length of the pieces in which they arrive.
pub fn redis(input: &[u8]) {
    let Some((&length, bytes)) = input.split_last() else { return };
    let whole = replies(&mut bytes.to_vec());
    let (mut received, mut found) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(usize::from(length).max(1)) {
        received.extend_from_slice(piece);
        found.extend(replies(&mut received));
        assert!(received.capacity() <= 2 * bytes.len() + 8, "a claimed length allocates nothing");
        if let Some(None) = found.last() {
            break;
        }
    }
    assert_eq!(found, whole, "split into pieces");
}

/// The replies at the start of `bytes`, which are removed, and `None` for bytes that are not a reply.
fn replies(bytes: &mut Vec<u8>) -> Vec<Option<Reply>> {
    let mut replies = Vec::new();
    while let Some(&kind) = bytes.first()
        && let Some(reply) = take(bytes, kind).transpose()
    {
        replies.push(reply.ok());
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
    if let Ok(request) = Request::from_variables(&variables) {
        _ = (request.parameter("a"), origin::is_another_site(&request, &[]));
    }
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
