//! PHP's `serialize` format (ext/standard/var_unserializer.re) and the three ways in which
//! `session.serialize_handler` stores it in a file (ext/session/session.c).
//!
//! [`Session::decode`] reads the whole file once. It fails if PHP does, and stores the offset of
//! each entry and each value. [`Session::get`] and [`PhpArray`] then read values in place. The
//! parser builds no tree, so memory is a small multiple of the file's size; with an arena of values a
//! large session takes twice as much. It does not recurse, so deep nesting cannot overflow the stack.
//!
//! Three differences from PHP:
//!
//! - Escaped strings (`S:`), which PHP reads but never writes, are rejected.
//! - Duplicate keys in an array, an object or the session, which PHP never writes, are rejected:
//!   references to the overwritten value have no useful meaning.
//! - Objects and enums are skipped by their form. Whether their class exists and would accept these
//!   properties depends on the application and the version of PHP.

mod decoder;

use super::lexer::{Cursor, Error, Token};
use super::session_settings::Format;
pub use decoder::MAX_LENGTH;
use decoder::{Decoded, Slots, decode};

/// A session that PHP accepts.
#[derive(Debug)]
pub struct Session {
    bytes: Vec<u8>,
    format: Format,
    /// The offsets of the keys of `$_SESSION`
    entries: Vec<u32>,
    slots: Slots,
}

/// A PHP value of a session.
#[derive(Clone, Copy, Debug)]
pub enum PhpValue<'s> {
    Bool(bool),
    Int(i64),
    Text(&'s [u8]),
    Array(PhpArray<'s>),
    Other,
}

impl<'s> PhpValue<'s> {
    pub fn as_array(self) -> Option<PhpArray<'s>> {
        match self {
            PhpValue::Array(array) => Some(array),
            _ => None,
        }
    }

    /// Whether the value is the string `text`, or the integer with the decimal digits `text`.
    pub fn is(self, text: &str) -> bool {
        match self {
            PhpValue::Text(own) => own == text.as_bytes(),
            PhpValue::Int(int) => int.to_string() == text,
            _ => false,
        }
    }

    /// A string, with U+FFFD for what is not valid UTF-8, or an integer in decimal digits.
    pub fn to_text(self) -> Option<String> {
        match self {
            PhpValue::Text(text) => Some(String::from_utf8_lossy(&Vec::from(text)).into_owned()),
            PhpValue::Int(int) => Some(int.to_string()),
            _ => None,
        }
    }
}

/// A scalar; any other token is [`PhpValue::Other`].
impl<'s> From<Token<'s>> for PhpValue<'s> {
    fn from(token: Token<'s>) -> PhpValue<'s> {
        match token {
            Token::Bool(bool) => PhpValue::Bool(bool),
            Token::Int(int) => PhpValue::Int(int),
            Token::Text(text) => PhpValue::Text(text),
            _ => PhpValue::Other,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct PhpArray<'s> {
    session: &'s Session,
    /// The offset of the first key
    start: usize,
    length: usize,
}

impl Session {
    /// Decodes the content of a session file. Fails if PHP does; PHP then drops the whole session.
    pub fn decode(bytes: Vec<u8>, format: Format) -> Result<Session, Error> {
        let Decoded { entries, slots } = decode(&bytes, format)?;
        Ok(Session {
            bytes,
            format,
            entries,
            slots,
        })
    }

    /// `$_SESSION[key]`
    pub fn get(&self, key: &str) -> Option<PhpValue<'_>> {
        self.entries.iter().find_map(|&start| {
            let mut cursor = self.cursor_at(start as usize);
            let is_wanted = match self.format {
                Format::PhpSerialize => PhpValue::from(cursor.token().ok()?).is(key),
                format => cursor.entry_key(format).ok()? == key.as_bytes(),
            };
            if is_wanted {
                self.value_at(cursor.at)
            } else {
                None
            }
        })
    }

    fn cursor_at(&self, at: usize) -> Cursor<'_> {
        Cursor {
            bytes: &self.bytes,
            at,
        }
    }

    /// The value at the offset `at`. A reference never leads to another `R`, so the recursion ends.
    fn value_at(&self, at: usize) -> Option<PhpValue<'_>> {
        let mut cursor = self.cursor_at(at);
        Some(match cursor.token().ok()? {
            Token::Open { class: None, pairs } => PhpValue::Array(PhpArray {
                session: self,
                start: cursor.at,
                length: pairs,
            }),
            Token::Reference(slot) => self.value_at(self.slots.get(slot)?)?,
            scalar => scalar.into(),
        })
    }
}

impl<'s> PhpArray<'s> {
    /// The value of `key`. For PHP a string of decimal digits and the integer are the same key.
    pub fn get(self, key: &str) -> Option<PhpValue<'s>> {
        let (_, at) = self.pairs().find(|(name, _)| name.is(key))?;
        self.session.value_at(at)
    }

    pub fn values(self) -> impl Iterator<Item = PhpValue<'s>> {
        self.entries().map(|(_, value)| value)
    }

    /// The keys, strings or integers, and the values, in order
    pub fn entries(self) -> impl Iterator<Item = (PhpValue<'s>, PhpValue<'s>)> {
        self.pairs()
            .filter_map(move |(key, at)| Some((key, self.session.value_at(at)?)))
    }

    /// The keys, and the offset of each value
    fn pairs(self) -> impl Iterator<Item = (PhpValue<'s>, usize)> {
        let mut cursor = self.session.cursor_at(self.start);
        (0..self.length).map_while(move |_| {
            let key = cursor.token().ok()?.into();
            let at = cursor.at;
            cursor.skip().ok()?;
            Some((key, at))
        })
    }
}
