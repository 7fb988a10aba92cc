//! Sessions: what PHP has written, and what it rejects.

use super::*;

const FIXTURE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/fixtures/oracle/sessions.php"
);

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

/// Compares each session that this program accepts with PHP's reading: the same content, and nobody is logged in where
/// PHP refuses it. Returns how many both accept.
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
