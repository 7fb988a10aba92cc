//! Differential tests against the installed PHP (`php-cli`): `cargo test --test php`. Each run generates the same
//! input; with `PROPTEST_CASES`, that many cases of other input.
#![allow(
    clippy::too_many_lines,
    reason = "a test is one table, or one sequence of steps"
)]

#[path = "../support/mod.rs"]
mod support;

use std::io::{Seek, Write};
use std::process::{Command, Stdio};

use base64::prelude::{BASE64_STANDARD as BASE64, Engine};
use comedor::differential::{Form, Format, Json, PhpValue, Session};
use percent_encoding::percent_decode_str;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::support::{School, output, php, save, text_of};

const FIXTURE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/fixtures/oracle/sessions.php"
);

/// The number of cases and their generator, deterministic unless a number is set.
fn runner() -> (usize, TestRunner) {
    match std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
    {
        Some(cases) => (cases, TestRunner::default()),
        None => (4_000, TestRunner::deterministic()),
    }
}

fn cases<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>) -> Vec<T> {
    let (count, mut runner) = runner();
    let mut case = || strategy.new_tree(&mut runner).expect("a case").current();
    (0..count).map(|_| case()).collect()
}

/// The lines that PHP prints, one for each of `inputs`. It reads them in base64, one a line.
fn ask_php(arguments: &[&str], inputs: &[impl AsRef<[u8]>]) -> Vec<String> {
    let mut file = tempfile::tempfile().unwrap();
    let lines: String = inputs
        .iter()
        .map(|bytes| BASE64.encode(bytes) + "\n")
        .collect();
    file.write_all(lines.as_bytes()).unwrap();
    file.rewind().unwrap();
    let mut command = Command::new("php");
    let answer = output(command.args(arguments).stdin(Stdio::from(file)), "php-cli");
    let answers: Vec<_> = String::from_utf8(answer)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    assert_eq!(answers.len(), inputs.len());
    answers
}

/// The lines that this PHP code prints, one for each of `inputs`, which are `$input`.
fn run_php(code: &str, inputs: &[impl AsRef<[u8]>]) -> Vec<String> {
    let head = "while (($line = fgets(STDIN)) !== false) { $input = base64_decode($line);";
    ask_php(&["-r", &format!("{head} {code} }}")], inputs)
}

/// A text in base64, optionally an integer too.
fn text(value: &PhpValue, with_integers: bool) -> Option<String> {
    match value {
        PhpValue::Text(text) => Some(BASE64.encode(text)),
        PhpValue::Int(int) if with_integers => Some(BASE64.encode(int.to_string())),
        _ => None,
    }
}

/// The facts of a session, in the form of the PHP script.
fn facts(session: &Session) -> String {
    let texts = |value: PhpValue, with_integers: bool| {
        let Some(list) = value.as_array() else {
            return "-".to_owned();
        };
        let texts = list
            .values()
            .filter_map(|value| text(&value, with_integers));
        texts.collect::<Vec<_>>().join(",")
    };
    let data = session.get("auth_data").and_then(PhpValue::as_array);
    let unit = data
        .and_then(|data| data.get("service"))
        .and_then(PhpValue::as_array);
    let centro = unit
        .and_then(|unit| unit.get("centro"))
        .and_then(|value| text(&value, true));
    let permissions = data.and_then(|data| data.get("permissions"));
    let aulas = unit.and_then(|unit| unit.get("aulas"));
    format!(
        "{} permissions={} centro={} aulas={}",
        u8::from(matches!(session.get("auth_ok"), Some(PhpValue::Bool(true)))),
        permissions.map_or("-".to_owned(), |list| texts(list, false)),
        centro.unwrap_or("-".to_owned()),
        aulas.map_or("all".to_owned(), |list| texts(list, true)),
    )
}

const FORMATS: [(&str, Format); 3] = [
    ("php", Format::Php),
    ("php_serialize", Format::PhpSerialize),
    ("php_binary", Format::PhpBinary),
];

/// Sessions that PHP wrote, and can read.
fn written_by_php(format: &str) -> Vec<Vec<u8>> {
    let (count, mut runner) = runner();
    let seed = runner.rng().next_u32().to_string();
    let mut php = Command::new("php");
    php.args([FIXTURE, "write", format, &seed, &count.to_string()]);
    let text = String::from_utf8(output(&mut php, "php-cli")).unwrap();
    text.lines()
        .map(|line| BASE64.decode(line).unwrap())
        .collect()
}

/// Whether the session names an enum, or a class that rejects some properties or references.
fn depends_on_a_class(bytes: &[u8]) -> bool {
    let has = |name: &str| {
        bytes
            .windows(name.len())
            .any(|part| part == name.as_bytes())
    };
    ["E:", "Date", "ArrayObject", "Spl", "Exception", "Modern"]
        .into_iter()
        .any(has)
}

/// Each session that this program accepts is read as PHP reads it, and is no login if PHP refuses it. Returns
/// how many both accept.
fn assert_accepted_as_by_php(name: &str, format: Format, sessions: Vec<Vec<u8>>) -> usize {
    let mut accepted = 0;
    let verdicts = ask_php(&[FIXTURE, "read", name], &sessions);
    for (bytes, verdict) in sessions.into_iter().zip(verdicts) {
        let Ok(session) = Session::decode(bytes.clone(), format) else {
            continue;
        };
        let own = facts(&session);
        if verdict == "-" {
            let is_login = own.starts_with('1') && !depends_on_a_class(&bytes);
            assert!(!is_login, "PHP refuses {}", bytes.escape_ascii());
        } else {
            assert_eq!(own, verdict, "{}", bytes.escape_ascii());
            accepted += 1;
        }
    }
    accepted
}

#[test]
fn sessions_written_by_php_are_decoded_as_php_decodes_them() {
    for (name, format) in FORMATS {
        let sessions = written_by_php(name);
        let count = sessions.len();
        assert!(count > 1_000, "{count}");
        for bytes in &sessions {
            let session = Session::decode(bytes.clone(), format);
            assert!(session.is_ok(), "{}", bytes.escape_ascii());
        }
        assert_eq!(assert_accepted_as_by_php(name, format, sessions), count);
    }
}

/// The session with a piece dropped, inserted, overwritten, cut off or copied elsewhere.
fn mutated(
    mut bytes: Vec<u8>,
    (kind, from, length, to, byte): (u8, Index, usize, Index, u8),
) -> Vec<u8> {
    if bytes.is_empty() {
        return bytes;
    }
    let from = from.index(bytes.len());
    let end = bytes.len().min(from + length);
    match kind {
        0 => drop(bytes.drain(from..end)),
        1 => bytes.insert(from, byte),
        2 => bytes[from] = byte,
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
fn mutated_sessions_that_php_rejects_never_authenticate() {
    let telling = prop::sample::select(b"0123456789;:{}\"|abdisONRrCE-+\0!");
    let mutation = (0..6u8, any::<Index>(), 0..40usize, any::<Index>(), telling);
    for (name, format) in FORMATS {
        let written = written_by_php(name);
        let picked = cases((
            any::<Index>(),
            prop::collection::vec(mutation.clone(), 1..3),
        ));
        let sessions = picked.into_iter().map(|(index, mutations)| {
            mutations
                .into_iter()
                .fold(index.get(&written).clone(), mutated)
        });
        let accepted = assert_accepted_as_by_php(name, format, sessions.collect());
        assert!(accepted > 50, "{accepted} that both accept");
    }
}

/// A value with objects of any properties.
fn object_value() -> impl Strategy<Value = String> {
    const CLASSES: &[&str] = &["stdClass", "Own", "Foo", "__PHP_Incomplete_Class"];
    const NAMES: &[&str] = &[
        "a", "\0*\0a", "\0Own\0a", "\0Other\0a", "b", "\0*\0b", "c", "\0*\0c", "\0Foo\0c", "\0",
        "\0\0", "\0x", "\0x\0", "", "0", "__PHP_Incomplete_Class_Name",
    ];
    const WHOLE: &[&str] = &[
        "O:8:\"DateTime\":3:{s:4:\"date\";s:26:\"2020-01-01 00:00:00.000000\";s:13:\"timezone_type\";i:3;s:8:\"timezone\";s:3:\"UTC\";}",
        "O:12:\"DateTimeZone\":2:{s:13:\"timezone_type\";i:3;s:8:\"timezone\";s:3:\"UTC\";}",
        "O:11:\"ArrayObject\":4:{i:0;i:0;i:1;a:1:{i:0;b:1;}i:2;a:0:{}i:3;N;}",
        "O:16:\"SplObjectStorage\":2:{i:0;a:0:{}i:1;a:0:{}}",
        "O:8:\"SplStack\":3:{i:0;i:6;i:1;a:1:{i:0;b:1;}i:2;a:0:{}}",
        "O:9:\"Exception\":1:{s:7:\"\0*\0line\";i:5;}",
        "C:3:\"Own\":0:{}",
        "C:3:\"Own\":1:{x}",
        "E:7:\"Role:Ok\";",
    ];
    let name = prop_oneof![
        4 => prop::sample::select(NAMES).prop_map(|name| format!("s:{}:\"{name}\";", name.len())),
        1 => (0..5u8).prop_map(|n| format!("i:{n};")),
    ];
    let leaf = prop_oneof![
        6 => prop::sample::select(&["N;", "b:1;", "b:0;", "i:5;", "d:0.5;", "s:1:\"x\";", "a:0:{}"][..])
            .prop_map(str::to_owned),
        2 => (0..12u8).prop_map(|n| format!("R:{n};")),
        2 => (0..12u8).prop_map(|n| format!("r:{n};")),
        3 => prop::sample::select(WHOLE).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(3, 20, 4, move |inner| {
        let pairs = prop::collection::vec((name.clone(), inner), 0..4).prop_map(|pairs| {
            let text: String = pairs.iter().flat_map(|(k, v)| [k.as_str(), v]).collect();
            format!("{}:{{{text}}}", pairs.len())
        });
        prop_oneof![
            3 => (prop::sample::select(CLASSES), pairs.clone())
                .prop_map(|(class, pairs)| format!("O:{}:\"{class}\":{pairs}", class.len())),
            1 => pairs.prop_map(|pairs| format!("a:{pairs}")),
        ]
    })
}

#[test]
fn objects_that_php_rejects_never_authenticate() {
    let session = (
        prop::collection::vec(object_value(), 1..4),
        0..16usize,
        any::<Index>(),
    );
    let sessions = cases(session.prop_map(|(values, slot, at)| {
        let login = if slot < 12 {
            format!("auth_ok|R:{slot};")
        } else {
            "auth_ok|b:1;".to_owned()
        };
        let mut entries: Vec<String> = values
            .iter()
            .enumerate()
            .map(|(n, value)| format!("v{n}|{value}"))
            .collect();
        entries.insert(at.index(entries.len() + 1), login);
        entries.concat().into_bytes()
    }));
    let accepted = assert_accepted_as_by_php("php", Format::Php, sessions);
    assert!(accepted > 100, "{accepted} that both accept");
}

/// JSON of every kind, and the cases in which PHP differs from other parsers.
fn json_text() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|bool| bool.to_string()),
        any::<i64>().prop_map(|int| int.to_string()),
        any::<u64>().prop_map(|int| int.to_string()),
        any::<f64>()
            .prop_filter("JSON cannot express NaN", |float| float.is_finite())
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
        1 => Just("00".to_owned()),
        1 => Just("9223372036854775808".to_owned()),
    ];
    scalar.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5)
                .prop_map(|list| format!("[{}]", list.join(", "))),
            prop::collection::vec((key.clone(), inner), 0..6).prop_map(|entries| {
                let entries = entries
                    .into_iter()
                    .map(|(key, value)| format!("\"{key}\":{value}"));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

/// JSON that generated text rarely has: keys of lists, escapes, numbers at the limits, what is refused.
const JSON: &[&str] = &[
    "1.0", "-0.0", "1e2", "0.0001", "0.00001", "1.5e-5", "1e16", "1e17", "1.5e300", "5e-324",
    "123456789012345678", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
    "0.1", "-12.50", "692298717322660.2", "1.2345678901234567e16", "{}", r#"{"0":1,"1":{}}"#,
    r#"{"1":1}"#, r#"{"00":1}"#, r#"{"a":1,"b":2,"a":3}"#, r#""\ud83d\ude00""#, r#""\ud800""#,
    r#""a/b\\\"\u0000\u001F\b\f\n\r\t""#, r#""\u2028x\u2029\u007f\u00e9""#, "", "\u{feff}[]",
    "[1,]", "[] x", r#"{"a":1"#, "[-0.0,-0e0,1e-0,\"-0\\\"-0,\"]", r#"{"-0":0}"#,
    "51098826389481690.0", "1e15", "-1e-400",
];

#[test]
fn json_is_rewritten_byte_for_byte_as_by_php() {
    let mutation = (
        any::<Index>(),
        prop::sample::select(b"0123456789,:{}[]\"\\ue.-+ \x0b".to_vec()),
    );
    let generated = cases((json_text(), prop::option::weighted(0.3, mutation)));
    let generated = generated.into_iter().map(|(text, mutation)| {
        let mut bytes = text.into_bytes();
        if let Some((at, byte)) = mutation {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    });
    // The number -0 is an integer for PHP, and a float here.
    let generated = generated.filter(|bytes| !bytes.windows(2).any(|pair| pair == b"-0"));
    let nested = |levels| ["[".repeat(levels), "]".repeat(levels)].concat();
    let duplicates = |distinct| {
        let entries: Vec<_> = (0..100)
            .map(|n| format!("\"k{}\":{n}", n % distinct))
            .collect();
        format!("{{{}}}", entries.join(","))
    };
    let large = [nested(511), nested(512), duplicates(40), duplicates(100)].map(Vec::from);
    let not_utf8 = [b"\"\xff\"".to_vec(), b"{\"\xff\":1}".to_vec()];
    let named = JSON
        .iter()
        .map(|text| text.as_bytes().to_vec())
        .chain(large)
        .chain(not_utf8);
    let texts: Vec<Vec<u8>> = named.chain(generated).collect();
    let code = "$value = json_decode($input, true);
        $text = json_last_error() ? false : json_encode($value, JSON_PRETTY_PRINT | JSON_UNESCAPED_UNICODE);
        $answer = json_encode($value, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_LINE_TERMINATORS);
        echo base64_encode($text === false ? '-' : \"$text $answer\"), PHP_EOL;";
    for (text, by_php) in texts.iter().zip(run_php(code, &texts)) {
        let own = match Json::parse(text) {
            Ok(value) => [value.to_php(), value.to_compact()].join(&b' '),
            // PHP reads such a number, but cannot write it.
            Err(error) if error.to_string().contains("number out of range") => continue,
            Err(_) => b"-".to_vec(),
        };
        let by_php = BASE64.decode(by_php).unwrap();
        let (own, by_php) = (own.escape_ascii(), by_php.escape_ascii());
        assert_eq!(
            own.to_string(),
            by_php.to_string(),
            "{}",
            text.escape_ascii()
        );
    }
}

#[test]
fn floats_are_converted_to_text_as_by_php() {
    let named = [
        "1e25", "1e14", "1e13", "123456789012345678", "0.30000000000000004", "1e-5", "0.0001",
        "467536121623805", "-100000000000005", "467536121623815", "467536121623805.5",
        "4675361216238050", "-0", "-1.5", "99999999999999.9", "5e-324",
    ];
    let named = named.map(|text| text.parse::<f64>().unwrap());
    let any_float = any::<f64>().prop_filter("of JSON", |float| float.is_finite());
    let floats: Vec<f64> = named.into_iter().chain(cases(any_float)).collect();
    let bytes: Vec<_> = floats.iter().map(|float| float.to_be_bytes()).collect();
    let by_php = run_php("echo unpack('E', $input)[1], PHP_EOL;", &bytes);
    for (float, by_php) in floats.into_iter().zip(by_php) {
        assert_eq!(Json::Float(float).into_text(), Some(by_php), "{float:e}");
    }
}

/// Forms that generated text rarely is: ends of names and brackets, indices at the limits, prefixes of
/// cookies.
const FORMS: &[&str] = &[
    "a%00b=1", "[a]=x", "=x", "a[b=1", "a[b][c=1", "%20a.b=1", "a b[c d]=1", "a[b.c]=1",
    "a[b]c[d]=1", "a[]=1&a[]=2&a[x]=3", "a[01]=1&a[]=2", "a[ ]=1&[b=2", "a[b[c=1", "a[5]=1&a[]=2",
    "a=1&a[b]=2", "a[b]=1&a=2", "a]=1", "a[[b]=1", "&&a", "+a=1+2%2B%zz&a%5Bb%5D=3", "b=1+2%2B%zz",
    "+__Host-a=1", ". Host-b=1", "_[Host-c=1", "..Secure-d[]=1", "a[9223372036854775808]=1&a[]=2",
];

#[test]
fn forms_are_decoded_as_by_php() {
    let name = "([a-c .]|%20|\\[|\\]|\\[[a-c0-2 ]{0,2}\\]|\\[\\]){1,5}";
    let field = (name, "[a-z+%0-9]{0,4}").prop_map(|(name, value)| format!("{name}={value}"));
    let generated = cases(prop::collection::vec(field, 1..6).prop_map(|fields| fields.join("&")));
    let nested = |brackets| format!("id=a&x=1&id{}=b", "[k]".repeat(brackets));
    let named = FORMS
        .iter()
        .map(|form| form.to_string())
        .chain([nested(64)]);
    let forms: Vec<String> = named.chain(generated).collect();
    let code = "parse_str($input, $fields);
        echo base64_encode(json_encode($fields, JSON_PRETTY_PRINT | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_IGNORE)), PHP_EOL;";
    for (form, by_php) in forms.iter().zip(run_php(code, &forms)) {
        if percent_decode_str(form).decode_utf8().is_err() {
            continue;
        }
        let own = Form::from_body(form.as_bytes())
            .unwrap()
            .nested(10_000)
            .unwrap();
        let own = String::from_utf8(Json::Map(own).to_php()).unwrap();
        assert_eq!(
            own,
            String::from_utf8(BASE64.decode(&by_php).unwrap()).unwrap(),
            "{form}"
        );
    }
    // PHP drops such a pair.
    for form in [&nested(65), "a[9223372036854775807]=1&a[]=2"] {
        assert_eq!(
            Form::from_body(form.as_bytes()).unwrap().nested(10_000),
            None,
            "{form}"
        );
    }
}

/// `cargo test` compares this file with the program.
#[test]
fn golden_file_is_what_php_prints() {
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/oracle/golden.php"
    );
    let printed = output(Command::new("php").arg(script), "php-cli");
    assert!(String::from_utf8(printed).unwrap() == text_of("tests/fixtures/golden.json"));
}

#[test]
fn the_login_that_files_md_shows_may_read_and_change() {
    let document = text_of("docs/files.md");
    let login = document
        .split("```php\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let login = login
        .expect("the example")
        .replace("colegio", "centro1")
        .replace("entreaulas", "service");
    let school = School::new();
    php(
        &format!("session_save_path($argv[1]); session_id('shown'); {login}"),
        &[&school.sessions()],
    );
    school
        .post("save_menu")
        .session("shown")
        .json(&save("Lentejas"))
        .run()
        .ok();
    school
        .get("get_menu")
        .session("shown")
        .aulario("aula2")
        .run()
        .fails("FORBIDDEN");
}
