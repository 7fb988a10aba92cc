//! JSON as PHP reads and writes it.
//!
//! The data files belong to a PHP application, so what is written here must be, byte for
//! byte, what `json_encode(…, JSON_PRETTY_PRINT | JSON_UNESCAPED_UNICODE)` would have
//! written for what `json_decode(…, true)` read (ext/json/json_encoder.c). serde_json does
//! the parsing and the layout; this module adds what PHP does otherwise. One difference is
//! left: the integer `-0`, which PHP never writes, is read as the float it looks like.
//!
//! It knows nothing of files or menus.

use std::borrow::Cow;
use std::{fmt, io};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::ser::{CharEscape, Formatter, PrettyFormatter};

/// The deepest nesting that `json_decode` and `json_encode` take with their default depth
/// of 512.
const MAX_DEPTH: usize = 511;

/// From this many entries on, duplicate keys are looked for by sorting.
const FEW: usize = 16;

/// A JSON value with PHP's types. A map keeps the order of its keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer of 64 bits; PHP reads larger ones as floats.
    Int(i64),
    /// Any other number
    Float(f64),
    /// A string, always valid UTF-8
    String(String),
    /// An array without keys
    List(Vec<Value>),
    /// An object, or PHP's array with keys
    Map(Map),
}

/// The entries of an object in their order; no key stands twice.
pub type Map = Vec<(Key, Value)>;

/// A key of an object: of a file, or of this program's own.
pub type Key = Cow<'static, str>;

/// A map of `entries`.
pub fn map<const N: usize>(entries: [(&'static str, Value); N]) -> Map {
    entries.map(|(key, value)| (key.into(), value)).into()
}

/// The value of `key`.
pub fn get<'m>(map: &'m Map, key: &str) -> Option<&'m Value> {
    map.iter().find(|(k, _)| k == key).map(|(_, value)| value)
}

/// The value of `key`, moved to that `place` in the order, null where there was none. The places
/// before it are taken.
pub fn moved_to<'m>(map: &'m mut Map, place: usize, key: &'static str) -> &'m mut Value {
    match map.iter().position(|(k, _)| k == key) {
        Some(found) => map[place..=found].rotate_right(1),
        None => map.insert(place, (key.into(), Value::Null)),
    }
    &mut map[place].1
}

/// Sets `key` where it stands, or appends it.
pub fn set(map: &mut Map, key: impl Into<Key>, value: Value) {
    *entry(map, key) = value;
}

/// The value of `key`, appended as null where there is none.
pub fn entry(map: &mut Map, key: impl Into<Key>) -> &mut Value {
    let key = key.into();
    let at = map.iter().position(|(k, _)| *k == key).unwrap_or(map.len());
    if at == map.len() {
        map.push((key, Value::Null));
    }
    &mut map[at].1
}

/// The map that `value` is, or becomes where it is something else.
pub fn made_map(value: &mut Value) -> &mut Map {
    if !matches!(value, Value::Map(_)) {
        *value = Value::Map(Map::new());
    }
    match value {
        Value::Map(map) => map,
        _ => unreachable!("made a map above"),
    }
}

impl Value {
    /// Parses one JSON document. Refuses what PHP refuses: invalid UTF-8, a byte order mark,
    /// lone surrogates, anything behind the document, nesting over 511.
    pub fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
        let text = str::from_utf8(bytes).map_err(serde::de::Error::custom)?;
        let mut deserializer = serde_json::Deserializer::from_str(text);
        deserializer.disable_recursion_limit();
        let value = Nested(MAX_DEPTH).deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    }

    /// The bytes that PHP would have written.
    pub fn to_php(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1024);
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Php::new());
        self.serialize(&mut serializer)
            .expect("every value has a JSON form and memory takes every write");
        bytes
    }

    /// The value without any white space, for a response.
    pub fn to_compact(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1024);
        serde_json::to_writer(&mut bytes, self)
            .expect("every value has a JSON form and memory takes every write");
        bytes
    }

    /// A map as it is, a list as PHP sees it where a map is meant: keys 0, 1, 2 …
    /// Anything else is handed back.
    pub fn into_map(self) -> Result<Map, Value> {
        match self {
            Value::Map(map) => Ok(map),
            Value::List(list) => Ok(list
                .into_iter()
                .enumerate()
                .map(|(key, value)| (key.to_string().into(), value))
                .collect()),
            other => Err(other),
        }
    }

    /// The map, where it is one.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The string, where it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// A scalar as text: `true` as "1", `false` and null as nothing, as PHP's `(string)` has
    /// them; numbers as in JSON. `None` for lists and maps.
    pub fn into_text(self) -> Option<String> {
        match self {
            Value::Null | Value::Bool(false) => Some(String::new()),
            Value::Bool(true) => Some("1".to_owned()),
            Value::Int(int) => Some(int.to_string()),
            Value::Float(float) => Some(php_float(float)),
            Value::String(text) => Some(text),
            Value::List(_) | Value::Map(_) => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.to_owned())
    }
}

/// Reads a value with at most this many further levels of nesting.
struct Nested(usize);

impl<'de> DeserializeSeed<'de> for Nested {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Nested {
    fn deeper<E: serde::de::Error>(&self) -> Result<usize, E> {
        self.0.checked_sub(1).ok_or_else(|| E::custom("nested too deeply"))
    }
}

impl<'de> Visitor<'de> for Nested {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, bool: bool) -> Result<Value, E> {
        Ok(Value::Bool(bool))
    }

    fn visit_i64<E>(self, int: i64) -> Result<Value, E> {
        Ok(Value::Int(int))
    }

    fn visit_u64<E>(self, int: u64) -> Result<Value, E> {
        Ok(i64::try_from(int).map_or(Value::Float(int as f64), Value::Int))
    }

    fn visit_f64<E>(self, float: f64) -> Result<Value, E> {
        Ok(Value::Float(float))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let deeper = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Nested(deeper))? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let deeper = self.deeper()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(Nested(deeper))?;
            if map.len() < FEW {
                set(&mut map, key, value);
            } else {
                map.push((key.into(), value));
            }
        }
        if map.len() > FEW {
            merge_duplicates(&mut map);
        }
        Ok(Value::Map(map))
    }
}

/// The last of several entries with one key counts, at the place of the first, as in a PHP
/// array; without comparing each key with each other.
fn merge_duplicates(map: &mut Map) {
    let mut entries: Vec<_> = std::mem::take(map).into_iter().enumerate().collect();
    entries.sort_by(|(_, (a, _)), (_, (b, _))| a.cmp(b));
    entries.dedup_by(|(_, later), (_, first)| {
        let same = later.0 == first.0;
        if same {
            std::mem::swap(&mut later.1, &mut first.1);
        }
        same
    });
    entries.sort_by_key(|(place, _)| *place);
    map.extend(entries.into_iter().map(|(_, entry)| entry));
}

impl Serialize for Value {
    /// PHP has one type for both kinds of array: keys that are exactly 0, 1, 2 … in order are
    /// written as a list, and so is an empty map.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(bool) => serializer.serialize_bool(*bool),
            Value::Int(int) => serializer.serialize_i64(*int),
            Value::Float(float) => serializer.serialize_f64(*float),
            Value::String(text) => serializer.serialize_str(text),
            Value::List(list) => serializer.collect_seq(list),
            Value::Map(map) if is_list(map) => {
                serializer.collect_seq(map.iter().map(|(_, value)| value))
            }
            Value::Map(map) => {
                let mut entries = serializer.serialize_map(Some(map.len()))?;
                for (key, value) in map {
                    entries.serialize_entry(key, value)?;
                }
                entries.end()
            }
        }
    }
}

fn is_list(map: &Map) -> bool {
    map.iter().enumerate().all(|(index, (key, _))| {
        key.starts_with(|c: char| c.is_ascii_digit()) && *key == index.to_string()
    })
}

/// serde_json's pretty layout with PHP's four spaces, escapes and floats.
struct Php(PrettyFormatter<'static>);

impl Php {
    fn new() -> Php {
        Php(PrettyFormatter::with_indent(b"    "))
    }
}

/// Hands the named calls on to the pretty formatter.
macro_rules! laid_out_by_pretty {
    ($($method:ident($($argument:ident: $kind:ty),*);)*) => {
        $(fn $method<W: ?Sized + io::Write>(&mut self, w: &mut W, $($argument: $kind),*) -> io::Result<()> {
            self.0.$method(w, $($argument),*)
        })*
    };
}

impl Formatter for Php {
    laid_out_by_pretty! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        begin_object_value();
        end_object_value();
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, w: &mut W, float: f64) -> io::Result<()> {
        w.write_all(php_float(float).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        w: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(['/', '\u{2028}', '\u{2029}']) {
            w.write_all(&rest.as_bytes()[..at])?;
            let mut tail = rest[at..].chars();
            w.write_all(match tail.next() {
                Some('\u{2028}') => b"\\u2028",
                Some('\u{2029}') => b"\\u2029",
                _ => b"\\/",
            })?;
            rest = tail.as_str();
        }
        w.write_all(rest.as_bytes())
    }

    fn write_char_escape<W: ?Sized + io::Write>(
        &mut self,
        w: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        self.0.write_char_escape(w, escape)
    }
}

/// A float as `php_gcvt` prints it with 17 digits and `serialize_precision` −1: the shortest
/// digits that read back the same, in exponent form below 1e-4 and from 1e17 on
/// (main/snprintf.c). The digits are serde_json's: of several equally short ones it takes the
/// nearest, as PHP does and Rust's own formatting does not.
fn php_float(float: f64) -> String {
    let shortest = serde_json::to_string(&float).expect("a float has a JSON form");
    let (sign, shortest) = shortest.strip_prefix('-').map_or(("", &*shortest), |rest| ("-", rest));
    let (number, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let leading_zeros = digits.len() - digits.trim_start_matches('0').len();
    let digits = digits.trim_matches('0');
    if digits.is_empty() {
        return format!("{sign}0");
    }
    // Of the first digit that is not 0.
    let exponent = exponent.parse().unwrap_or(0) + whole.len() as i32 - 1 - leading_zeros as i32;
    let (first, rest) = digits.split_at(1);
    match exponent {
        0..=16 => {
            let point = exponent as usize + 1;
            let whole = format!("{digits:0<point$}");
            let fraction = digits.get(point..).filter(|fraction| !fraction.is_empty());
            let fraction = fraction.map(|fraction| format!(".{fraction}")).unwrap_or_default();
            format!("{sign}{}{fraction}", &whole[..point])
        }
        -4..0 => format!("{sign}0.{}{digits}", "0".repeat((-1 - exponent) as usize)),
        _ => format!("{sign}{first}.{}e{exponent:+}", if rest.is_empty() { "0" } else { rest }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(json: &str) -> String {
        String::from_utf8(Value::parse(json.as_bytes()).unwrap().to_php()).unwrap()
    }

    #[test]
    fn numbers_are_written_as_php_writes_them() {
        for (read, written) in [
            ("1.0", "1"),
            ("-0.0", "-0"),
            ("1e2", "100"),
            ("0.0001", "0.0001"),
            ("0.00001", "1.0e-5"),
            ("1.5e-5", "1.5e-5"),
            ("1e16", "10000000000000000"),
            ("1e17", "1.0e+17"),
            ("1.5e300", "1.5e+300"),
            ("123456789012345678", "123456789012345678"),
            ("9223372036854775807", "9223372036854775807"),
            ("9223372036854775808", "9.223372036854776e+18"),
            ("-9223372036854775809", "-9.223372036854776e+18"),
            ("0.1", "0.1"),
            ("-12.50", "-12.5"),
            ("692298717322660.2", "692298717322660.2"),
            ("1.2345678901234567e16", "12345678901234568"),
            ("5e-324", "5.0e-324"),
        ] {
            assert_eq!(rewritten(read), written, "{read}");
        }
    }

    #[test]
    fn strings_are_escaped_as_php_escapes_them() {
        assert_eq!(
            rewritten(r#""a/b\\\"\u0000\u001F\b\f\n\r\t\u2028x\u2029\u007f\u00e9\ud83d\ude00""#),
            "\"a\\/b\\\\\\\"\\u0000\\u001f\\b\\f\\n\\r\\t\\u2028x\\u2029\u{7f}é😀\""
        );
    }

    #[test]
    fn arrays_are_laid_out_as_php_lays_them_out() {
        assert_eq!(rewritten("{}"), "[]");
        assert_eq!(rewritten(r#"{"0":1,"1":{}}"#), "[\n    1,\n    []\n]");
        assert_eq!(rewritten(r#"{"1":1}"#), "{\n    \"1\": 1\n}");
        assert_eq!(rewritten(r#"{"00":1}"#), "{\n    \"00\": 1\n}");
    }

    #[test]
    fn the_last_of_duplicate_keys_counts_at_the_place_of_the_first() {
        assert_eq!(rewritten(r#"{"a":1,"b":2,"a":3}"#), "{\n    \"a\": 3,\n    \"b\": 2\n}");
        let many: Vec<String> = (0..100).map(|n| format!("\"k{}\":{n}", n % 40)).collect();
        let Ok(Value::Map(map)) = Value::parse(format!("{{{}}}", many.join(",")).as_bytes()) else {
            panic!("a map");
        };
        assert_eq!(map.len(), 40);
        assert_eq!(map[19], ("k19".into(), Value::Int(99)));
        assert_eq!(map[39], ("k39".into(), Value::Int(79)));
    }

    #[test]
    fn what_php_refuses_is_refused() {
        let deep = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(Value::parse(deep(511).as_bytes()).is_ok());
        let too_deep = deep(512);
        for bad in [
            b"".as_slice(),
            b"\xef\xbb\xbf[]",
            b"[1,]",
            b"\"\xff\"",
            b"{\"\xff\":1}",
            br#""\ud800""#,
            b"[] x",
            b"{\"a\":1",
            too_deep.as_bytes(),
        ] {
            assert!(Value::parse(bad).is_err(), "{}", bad.escape_ascii());
        }
    }
}
