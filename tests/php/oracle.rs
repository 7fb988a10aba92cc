//! The installed PHP as the judge of thousands of made-up cases. They are the same in every run;
//! with `PROPTEST_CASES` there are more of them, and others.

use std::io::Write;
use std::process::{Command, Stdio};

use base64::Engine;
use comedor::cgi::form::Form;
use comedor::config::Format;
use comedor::json;
use comedor::session::{Session, Value as Php};
use percent_encoding::percent_decode_str;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::support::output;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/oracle/sessions.php");

/// How many cases, and where they come from: the same ones each time unless more are asked for.
fn runner() -> (usize, TestRunner) {
    match std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()) {
        Some(cases) => (cases, TestRunner::default()),
        None => (4_000, TestRunner::deterministic()),
    }
}

fn cases<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>) -> Vec<T> {
    let (count, mut runner) = runner();
    let mut case = || strategy.new_tree(&mut runner).expect("a case").current();
    (0..count).map(|_| case()).collect()
}

/// Gives `lines` to a PHP script and takes as many back.
fn ask_php(arguments: &[&str], lines: &[String]) -> Vec<String> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(lines.iter().map(|line| format!("{line}\n")).collect::<String>().as_bytes())
        .unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let mut command = Command::new("php");
    let answer = output(command.args(arguments).stdin(Stdio::from(file)), "php-cli");
    let answer = String::from_utf8(answer).unwrap();
    let answers: Vec<String> = answer.lines().map(str::to_owned).collect();
    assert_eq!(answers.len(), lines.len());
    answers
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn array(value: Php) -> Option<comedor::session::Array> {
    match value {
        Php::Array(array) => Some(array),
        _ => None,
    }
}

/// The facts of a session as the PHP script has them.
fn facts(session: &Session) -> String {
    let texts = |value: Php, with_integers: bool| {
        let Some(list) = array(value) else { return "-".to_owned() };
        let texts = list.values().filter_map(|value| match value {
            Php::Text(text) => Some(hex(text)),
            Php::Int(int) if with_integers => Some(hex(int.to_string().as_bytes())),
            _ => None,
        });
        texts.collect::<Vec<_>>().join(",")
    };
    let data = session.get("auth_data").and_then(array);
    let unit = data.and_then(|data| data.get("service")).and_then(array);
    let centro = match unit.and_then(|unit| unit.get("centro")) {
        Some(Php::Text(text)) => hex(text),
        Some(Php::Int(int)) => hex(int.to_string().as_bytes()),
        _ => "-".to_owned(),
    };
    let permissions = data.and_then(|data| data.get("permissions"));
    let aulas = unit.and_then(|unit| unit.get("aulas"));
    format!(
        "{} permissions={} centro={centro} aulas={}",
        u8::from(matches!(session.get("auth_ok"), Some(Php::Bool(true)))),
        permissions.map_or("-".to_owned(), |list| texts(list, false)),
        aulas.map_or("all".to_owned(), |list| texts(list, true)),
    )
}

const FORMATS: [(&str, Format); 3] = [
    ("php", Format::Php),
    ("php_serialize", Format::PhpSerialize),
    ("php_binary", Format::PhpBinary),
];

/// Sessions that PHP wrote, with what it reads from them.
fn written_by_php(format: &str) -> Vec<(Vec<u8>, String)> {
    let (count, mut runner) = runner();
    let seed = runner.rng().next_u32().to_string();
    let mut php = Command::new("php");
    php.args([FIXTURE, "write", format, &seed, &count.to_string()]);
    let text = String::from_utf8(output(&mut php, "php-cli")).unwrap();
    let sessions = text.lines().map(|line| {
        let (session, facts) = line.split_once('\t').unwrap();
        (from_base64(session), facts.to_owned())
    });
    sessions.collect()
}

#[test]
fn sessions_written_by_php_are_decoded_as_php_decodes_them() {
    for (name, format) in FORMATS {
        let sessions = written_by_php(name);
        assert!(sessions.len() > 1_000, "{}", sessions.len());
        for (bytes, expected) in sessions {
            let session = Session::decode(bytes.clone(), format);
            let session =
                session.unwrap_or_else(|error| panic!("{error}: {}", bytes.escape_ascii()));
            assert_eq!(facts(&session), expected, "{}", bytes.escape_ascii());
        }
    }
}

/// A piece of a session is dropped, doubled, put elsewhere or overwritten.
fn mutated(bytes: &[u8], (kind, from, length, to, byte): (u8, Index, usize, Index, u8)) -> Vec<u8> {
    const TELLING: &[u8] = b"0123456789;:{}\"|abdisONRrCE-+\0!";
    let mut bytes = bytes.to_vec();
    let from = from.index(bytes.len());
    let end = bytes.len().min(from + length);
    match kind {
        0 => drop(bytes.drain(from..end)),
        1 => bytes.insert(from, TELLING[usize::from(byte) % TELLING.len()]),
        2 => bytes[from] = TELLING[usize::from(byte) % TELLING.len()],
        3 => bytes.truncate(from),
        _ => {
            let piece = bytes[from..end].to_vec();
            let to = to.index(bytes.len());
            bytes.splice(to..to, piece);
        }
    }
    bytes
}

#[test]
fn sessions_that_php_rejects_never_authenticate() {
    let mutation = (0..6u8, any::<Index>(), 0..40usize, any::<Index>(), any::<u8>());
    for (name, format) in FORMATS {
        let written = written_by_php(name);
        let picked = cases((any::<Index>(), prop::collection::vec(mutation.clone(), 1..3)));
        let sessions: Vec<Vec<u8>> = picked
            .into_iter()
            .map(|(index, mutations)| {
                let start = written[index.index(written.len())].0.clone();
                let mutate =
                    |bytes: Vec<u8>, m| if bytes.is_empty() { bytes } else { mutated(&bytes, m) };
                mutations.into_iter().fold(start, mutate)
            })
            .collect();
        let lines: Vec<String> = sessions.iter().map(|bytes| to_base64(bytes)).collect();
        let verdicts = ask_php(&[FIXTURE, "read", name], &lines);
        let mut accepted = 0;
        for (bytes, verdict) in sessions.into_iter().zip(verdicts) {
            let Ok(session) = Session::decode(bytes.clone(), format) else { continue };
            let own = facts(&session);
            if verdict == "-" {
                // What a class makes of its own properties can't be judged from outside.
                let has =
                    |class: &str| bytes.windows(class.len()).any(|part| part == class.as_bytes());
                if ["Date", "ArrayObject", "Spl", "Modern", "Foo"].into_iter().any(has) {
                    continue;
                }
                assert!(own.starts_with('0'), "PHP refuses {}", bytes.escape_ascii());
            } else {
                assert_eq!(own, verdict, "{}", bytes.escape_ascii());
                accepted += 1;
            }
        }
        assert!(accepted > 50, "{accepted} that both accept");
    }
}

/// JSON of every kind, with what PHP and others disagree about.
fn json_text() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|bool| bool.to_string()),
        any::<i64>().prop_map(|int| int.to_string()),
        any::<u64>().prop_map(|int| int.to_string()),
        any::<f64>()
            .prop_filter("JSON has no NaN", |float| float.is_finite())
            .prop_map(|float| format!("{float:e}")),
        (1..9999999999999999i64, 0..30i32)
            .prop_map(|(int, exponent)| format!("{}.{int}e{exponent}", int % 10)),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        "[/\u{2028}\u{2029}\\\\\"\u{7f}ñ😀a-c]{0,8}"
            .prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    let key = prop_oneof![
        4 => (0..4u8).prop_map(|n| n.to_string()),
        4 => "[a-c]{0,2}",
        1 => Just("-0".to_owned()),
        1 => Just("00".to_owned()),
        1 => Just("9223372036854775808".to_owned()),
    ];
    scalar.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5)
                .prop_map(|list| format!("[{}]", list.join(", "))),
            prop::collection::vec((key.clone(), inner), 0..6).prop_map(|entries| {
                let entries = entries.into_iter().map(|(key, value)| format!("\"{key}\":{value}"));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

#[test]
fn json_is_rewritten_byte_for_byte_as_by_php() {
    let mutation =
        (any::<Index>(), prop::sample::select(b"0123456789,:{}[]\"\\ue.-+ \x0b".to_vec()));
    let texts = cases((json_text(), prop::option::weighted(0.3, mutation)));
    let texts: Vec<Vec<u8>> = texts
        .into_iter()
        .map(|(text, mutation)| {
            let mut bytes = text.into_bytes();
            if let Some((at, byte)) = mutation {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes
        })
        .collect();
    let code = "while (($line = fgets(STDIN)) !== false) {
        $value = json_decode(base64_decode(trim($line)), true);
        $text = json_last_error() ? false : json_encode($value, JSON_PRETTY_PRINT | JSON_UNESCAPED_UNICODE);
        echo $text === false ? '-' : base64_encode($text), PHP_EOL;
    }";
    let lines: Vec<String> = texts.iter().map(|bytes| to_base64(bytes)).collect();
    for (text, by_php) in texts.iter().zip(ask_php(&["-r", code], &lines)) {
        let Ok(value) = json::Value::parse(text) else { continue };
        let by_php = if by_php == "-" { b"-".to_vec() } else { from_base64(&by_php) };
        let own = value.to_php();
        // The one difference: the integer -0.
        let zero = |bytes: &[u8]| {
            String::from_utf8_lossy(bytes).replace("-0\n", "0\n").replace("-0,", "0,")
        };
        let same = own == by_php || zero(&own) == zero(&by_php) || own == b"-0";
        assert!(same, "{}: {} {}", text.escape_ascii(), own.escape_ascii(), by_php.escape_ascii());
    }
}

#[test]
fn forms_are_decoded_as_by_php() {
    let name = "([a-c .]|%20|\\[|\\]|\\[[a-c0-2 ]{0,2}\\]|\\[\\]){1,5}";
    let field = (name, "[a-z+%0-9]{0,4}").prop_map(|(name, value)| format!("{name}={value}"));
    let forms = cases(prop::collection::vec(field, 1..6).prop_map(|fields| fields.join("&")));
    let code = "while (($line = fgets(STDIN)) !== false) {
        parse_str(base64_decode(trim($line)), $fields);
        echo base64_encode(json_encode($fields, JSON_PRETTY_PRINT | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_IGNORE)), PHP_EOL;
    }";
    let lines: Vec<String> = forms.iter().map(|form| to_base64(form.as_bytes())).collect();
    for (form, by_php) in forms.iter().zip(ask_php(&["-r", code], &lines)) {
        if percent_decode_str(form).decode_utf8().is_err() || form.contains("%0") {
            continue;
        }
        let own = Form::utf8(form.as_bytes()).unwrap().nested().unwrap();
        let own = String::from_utf8(json::Value::Map(own).to_php()).unwrap();
        assert_eq!(own, String::from_utf8(from_base64(&by_php)).unwrap(), "{form}");
    }
}

fn to_base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn from_base64(text: &str) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD.decode(text).expect("base64 of PHP's")
}
