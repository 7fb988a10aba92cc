//! JSON as PHP reads and writes it.
//!
//! The data files belong to a PHP application. After `json_decode(…, true)` of the same input,
//! `json_encode(…, JSON_PRETTY_PRINT | JSON_UNESCAPED_UNICODE)` would write the same bytes as this
//! module, but for `-0`, which PHP writes as `0`. serde_json parses; this module adds what PHP does differently.
//!
//! Independent of files and menus.

mod encode;
mod map;

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use encode::Encoder;
pub use map::{Key, Map};

/// The maximum nesting of `json_decode` and `json_encode` with their default depth of 512.
const MAX_DEPTH: usize = 511;

/// A key as a constant of this program, if it is one.
pub type KnownKey = fn(&str) -> Option<&'static str>;

/// A JSON value with PHP's types.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    /// 64 bits; PHP reads larger integers as floats.
    Int(i64),
    Float(f64),
    String(String),
    List(Vec<Value>),
    /// An object; for PHP an array with keys
    Map(Map),
}

impl Value {
    /// Parses one JSON document. Fails in the same cases as PHP: invalid UTF-8, a byte order mark,
    /// lone surrogates, trailing characters, nesting over 511; and for a number that no float can hold (`1e999`),
    /// which PHP reads as infinite and cannot write.
    pub fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
        Value::parse_with(|_| None, usize::MAX, bytes)
    }

    /// Parses one JSON document without a copy of `known` keys. Fails at the first value of any kind after `count`.
    pub fn parse_with(
        known: KnownKey,
        count: usize,
        bytes: &[u8],
    ) -> Result<Value, serde_json::Error> {
        let text = str::from_utf8(bytes).map_err(serde::de::Error::custom)?;
        let mut reader = Reader {
            known,
            levels_left: MAX_DEPTH,
            values_left: count,
        };
        let mut deserializer = serde_json::Deserializer::from_str(text);
        deserializer.disable_recursion_limit();
        let value = reader.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    }

    /// The bytes that PHP would write.
    pub fn to_php(&self) -> Vec<u8> {
        Encoder::encode(self, true)
    }

    /// The value without white space, for a response.
    pub fn to_compact(&self) -> Vec<u8> {
        Encoder::encode(self, false)
    }

    /// This value as a map. A list becomes a map, because PHP writes an empty map, and a map with the
    /// keys 0, 1, 2 …, as a list. `None` for any other value.
    pub fn as_php_map(&mut self) -> Option<&mut Map> {
        if let Value::List(list) = self {
            *self = Value::Map(std::mem::take(list).into());
        }
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Replaces anything but a map by an empty map.
    pub fn coerce_to_map(&mut self) -> &mut Map {
        if !matches!(self, Value::Map(_)) {
            *self = Value::Map(Map::default());
        }
        self.as_php_map().expect("set above")
    }

    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Replaces the numbers in this value by their text.
    pub fn numbers_to_text(&mut self) {
        match self {
            Value::List(list) => list.iter_mut().for_each(Value::numbers_to_text),
            Value::Map(map) => map
                .iter_mut()
                .for_each(|(_, value)| value.numbers_to_text()),
            Value::Int(_) | Value::Float(_) => {
                *self = Value::String(std::mem::take(self).into_text().unwrap_or_default());
            }
            _ => {}
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// A scalar as PHP's `(string)` converts it: `true` to "1", `false` and null to "". `None` for lists and maps.
    pub fn into_text(self) -> Option<String> {
        match self {
            Value::Null | Value::Bool(false) => Some(String::new()),
            Value::Bool(true) => Some("1".to_owned()),
            Value::Int(int) => Some(int.to_string()),
            Value::Float(float) => Some(encode::float_to_string(float)),
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

/// Reads a document.
struct Reader {
    known: KnownKey,
    /// The number of lists and maps that may be opened in the current one
    levels_left: usize,
    values_left: usize,
}

impl Reader {
    /// Begins a list or map.
    fn descend<E: Error>(&mut self) -> Result<(), E> {
        let too_deep = || E::custom(format_args!("nesting over {MAX_DEPTH} levels"));
        self.levels_left = self.levels_left.checked_sub(1).ok_or_else(too_deep)?;
        Ok(())
    }

    /// Ends a list or map.
    fn ascend(&mut self) {
        self.levels_left += 1;
    }
}

impl<'de> DeserializeSeed<'de> for &mut Reader {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let too_many = || D::Error::custom("too many values");
        self.values_left = self.values_left.checked_sub(1).ok_or_else(too_many)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Reader {
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
        self.descend()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(&mut *self)? {
            list.push(item);
        }
        self.ascend();
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.descend()?;
        let mut map = Vec::new();
        while let Some(key) = entries.next_key_seed(KeySeed(self.known))? {
            map.push((key, entries.next_value_seed(&mut *self)?));
        }
        self.ascend();
        Ok(Value::Map(Map::from_entries(map)))
    }
}

/// Reads a key, which may be a known one.
struct KeySeed(KnownKey);

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, text: &str) -> Result<Key, E> {
        Ok((self.0)(text).map_or_else(|| Key::Owned(text.to_owned()), Key::Borrowed))
    }
}
