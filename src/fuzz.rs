//! Property tests of every parser of untrusted input. The input is made of random pieces of the
//! format; the parser must not panic, hang or lose data. Unlike a coverage-guided fuzzer, these tests
//! need no other tools than the unit tests. `PROPTEST_CASES` sets the number of cases.

use std::path::PathBuf;

use proptest::prelude::*;
use proptest::sample::select;

use crate::cgi::form::Form;
use crate::cgi::{Request, Variables, multipart, origin};
use crate::config::{Config, Format, Settings, SettingsFile};
use crate::json::Value;
use crate::model::{Color, Date, Day, Document, Label, MenuTypes, PlateKey, PlateName, TypeId};
use crate::session::{self, Session};

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
    "--B",
    "--",
    "\r\n",
    "\n",
    "Content-Disposition: form-data",
    "; name=",
    "\"a\"",
    "a",
    "\"",
    "\\",
    "; filename=",
    ":",
    ";",
    "content-type: x",
    "\r\n\r\n",
    " ",
];
const CONTENT_TYPE: &[&str] =
    &["multipart/form-data", ";", " boundary=", "B", "\"", "=", ",", "\\", " "];
const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"a\"",
    "\"id\"",
    "\"plates\"",
    "\"menus\"",
    "\"name\"",
    "\"\\ud800\"",
    "\"\\u00e9\"",
    "null",
    "true",
    "0",
    "-0",
    "1e999",
    "1.5",
    "18446744073709551616",
    " ",
    "\"",
    "\\",
    "{\"a\":1}",
    "[[1]]",
];
const SESSION: &[&str] = &[
    "auth_ok|",
    "auth_data|",
    "a:1:{",
    "a:2:{",
    "O:1:\"A\":1:{",
    "}",
    "i:0;",
    "i:1;",
    "s:1:\"a\";",
    "s:7:\"service\";",
    "b:1;",
    "N;",
    "d:0.5;",
    "R:1;",
    "R:2;",
    "r:1;",
    "C:1:\"A\":1:{x}",
    "C:1:\"A\":4:{i:1;}",
    "O:9:\"Exception\":1:{",
    "s:7:\"\0*\0line\";",
    "O:11:\"ArrayObject\":4:{",
    "O:7:\"Closure\":0:{}",
    "E:3:\"A:B\";",
    "\x07auth_ok",
    "s:99999999999:\"",
    "a:99999999999:{",
    "i:-0;",
];
const SETTINGS: &[&str] = &[
    "COMEDOR_SERVICE",
    "TZ",
    "=",
    "\n",
    "#",
    " ",
    "\"",
    "x",
    "/a",
    "\r",
    "COMEDOR_SESSION_DIR",
    "2;",
    "9;0600;",
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
        _ = Form::from_query(&bytes).last("a");
        if let Some(map) = Form::from_body(&bytes).map(Form::nested) {
            // An accepted form can be written and read again.
            let written = Value::Map(map).to_php();
            prop_assert!(Value::parse(&written).is_ok());
        }
    }

    #[test]
    fn cookies(header in made_of(COOKIE)) {
        if let Some(id) = session::session_id(&header, "PHPSESSID") {
            prop_assert!(!id.as_str().contains(['/', '.', '\0']));
        }
    }

    #[test]
    fn multiparts(content_type in made_of(CONTENT_TYPE), body in made_of(MULTIPART)) {
        _ = multipart::parse(&content_type, &body);
        _ = multipart::parse(b"multipart/form-data; boundary=B", &body);
    }

    #[test]
    fn json_and_documents(bytes in made_of(JSON)) {
        if let Ok(value) = Value::parse(&bytes) {
            let written = value.to_php();
            let again = Value::parse(&written).expect("what is written can be read");
            prop_assert_eq!(again.to_php(), written, "and is written the same");
            if let Ok(mut day) = Day::from_file(Some(value.clone())) {
                let date = Date::parse("2026-11-20").unwrap();
                let plate = (PlateKey::parse("a").unwrap(), PlateName::parse("b").unwrap());
                let saved = day.save(&date, "a", &[plate]);
                prop_assert_eq!(day.ids().filter(|id| *id == "a").count(), 1);
                let stored = day.into_file();
                _ = stored.to_php();
                let shown = Day::from_file(Some(stored)).expect("a day").menu("a");
                prop_assert_eq!(shown, saved.expect("few plates"), "is shown as it was saved");
            }
            if let Ok(mut types) = MenuTypes::from_file(Some(value)) {
                let entries = types.entries();
                let (id, label) = (TypeId::parse("x").unwrap(), Label::parse("X").unwrap());
                if types.add(&id, label, Color::DEFAULT).is_ok() {
                    prop_assert_eq!(types.entries(), entries + 1);
                    types.rename("x", Some(label), None).expect("it is there");
                    types.delete("x").expect("it is there");
                }
                prop_assert_eq!(types.entries(), entries);
                _ = types.shown();
            }
        }
    }

    #[test]
    fn sessions(bytes in made_of(SESSION)) {
        for format in [Format::Php, Format::PhpSerialize, Format::PhpBinary] {
            if let Ok(session) = Session::decode(bytes.clone(), format) {
                for key in ["auth_ok", "auth_data", "a", ""] {
                    if let Some(session::PhpValue::Array(array)) = session.get(key) {
                        _ = (array.get("service"), array.values().count());
                    }
                }
            }
        }
    }

    #[test]
    fn settings(bytes in made_of(SETTINGS)) {
        if let Ok(file) = SettingsFile::parse(PathBuf::from("comedor.conf"), &bytes) {
            _ = Config::from_settings(&Settings::with_file(file, []));
        }
    }

    #[test]
    fn requests(length in "[0-9+ x-]{0,30}", query in made_of(FORM), host in ".{0,20}", site in ".{0,20}") {
        let query = String::from_utf8_lossy(&query).into_owned();
        let variables = Variables::from_pairs([
            ("CONTENT_LENGTH", length.as_str()),
            ("QUERY_STRING", &query),
            ("HTTP_HOST", &host),
            ("HTTP_ORIGIN", &site),
        ]);
        if let Ok(request) = Request::from_variables(&variables) {
            _ = (request.parameter("a"), origin::is_another_site(&request, &[]));
        }
    }
}
