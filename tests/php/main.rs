//! Differential tests against the installed PHP (`php-cli`): `cargo test --test php`. Each run generates the same
//! input; with `PROPTEST_CASES`, that many cases of other input.
#![allow(
    clippy::too_many_lines,
    reason = "a test is one table, or one sequence of steps"
)]

mod sessions;
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
