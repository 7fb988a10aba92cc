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

use super::ini::Format;
use super::lexer::{Cursor, Error, Key, Token};

/// PHP's `unserialize_max_depth`
const MAX_DEPTH: usize = 4096;

/// A session that PHP accepts.
#[derive(Debug)]
pub struct Session {
    bytes: Vec<u8>,
    format: Format,
    /// The offsets of the keys of `$_SESSION`
    entries: Vec<u32>,
    slots: Slots,
}

/// The values, in the order in which references number them.
#[derive(Debug, Default)]
struct Slots {
    /// The offset of each value; for `r`, the offset of its object
    starts: Vec<u32>,
    /// The number of values up to the first `C:`. Its class may decode the content with
    /// `unserialize`, and values in it have numbers too
    known: Option<usize>,
    /// The maximum number of values in the content of all `C:`
    hidden: usize,
}

impl Slots {
    /// The offset of the value with this number, from 1; of the first `C:` for one that may be in it or after it.
    fn get(&self, number: usize) -> Option<usize> {
        if number > self.starts.len() + self.hidden {
            return None;
        }
        let known = self.known.map_or(number, |known| known.min(number));
        self.starts
            .get(known.checked_sub(1)?)
            .map(|&start| start as usize)
    }
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
        let cursor = Cursor {
            bytes: &bytes,
            at: 0,
        };
        cursor.require(u32::try_from(bytes.len()).is_ok(), "less than 4 GiB")?;
        // Room for most sessions, so that these do not grow three times.
        let room = || Vec::with_capacity(64);
        let slots = Slots {
            starts: room(),
            ..Slots::default()
        };
        let mut decoder = Decoder {
            cursor,
            slots,
            keys: room(),
            open: Vec::new(),
        };
        let entries = match format {
            Format::PhpSerialize => decoder.serialized()?,
            Format::Php | Format::PhpBinary => decoder.entries(format)?,
        };
        let slots = decoder.slots;
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
            let found = match self.format {
                Format::PhpSerialize => PhpValue::from(cursor.token().ok()?).is(key),
                format => cursor.entry_key(format).ok()? == key.as_bytes(),
            };
            if found {
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

/// The state while a whole file is decoded.
struct Decoder<'b> {
    cursor: Cursor<'b>,
    slots: Slots,
    /// The offsets of the keys of all open arrays and objects
    keys: Vec<u32>,
    open: Vec<Open<'b>>,
}

/// An array or object that has not ended yet
struct Open<'b> {
    /// The number of pairs that are still to be read
    pairs: usize,
    /// The number of keys of the open arrays and objects around it
    keys: usize,
    /// The last key, as long as all keys are ascending integers, as in a list
    last: Option<i64>,
    /// The name of an object's class
    class: Option<&'b [u8]>,
}

impl<'b> Decoder<'b> {
    /// `php` and `php_binary`: keys and values up to the end.
    fn entries(&mut self, format: Format) -> Result<Vec<u32>, Error> {
        let mut entries = Vec::new();
        while self.cursor.at < self.cursor.bytes.len() {
            entries.push(self.cursor.at as u32);
            self.cursor.entry_key(format)?;
            self.value()?;
            self.keys.clear();
        }
        let key_at = |at| {
            Cursor { at, ..self.cursor }
                .entry_key(format)
                .unwrap_or_default()
        };
        self.cursor
            .require(!repeats(&entries, key_at), "unique keys")?;
        Ok(entries)
    }

    /// `php_serialize`: one array, or another value, which is an empty session. PHP ignores bytes after it.
    fn serialized(&mut self) -> Result<Vec<u32>, Error> {
        let first = self.cursor.bytes.first();
        if first.is_some() {
            self.value()?;
        }
        Ok(if first == Some(&b'a') {
            std::mem::take(&mut self.keys)
        } else {
            Vec::new()
        })
    }

    /// A value, with everything in it
    fn value(&mut self) -> Result<(), Error> {
        loop {
            let start = self.cursor.at;
            let token = self.cursor.token()?;
            self.add_slot(start, &token)?;
            if let Token::Open { class, pairs } = token {
                let counts = pairs > 0 || class.is_some();
                let is_deep = counts && self.open.len() >= MAX_DEPTH;
                self.cursor.require(!is_deep, "at most 4096 levels")?;
                let (keys, last) = (self.keys.len(), Some(i64::MIN));
                self.open.push(Open {
                    pairs,
                    keys,
                    last,
                    class,
                });
            }
            while self.open.last().is_some_and(|open| open.pairs == 0) {
                self.close()?;
            }
            let Some(open) = self.open.last_mut() else {
                return Ok(());
            };
            open.pairs -= 1;
            let start = self.cursor.at;
            self.keys.push(start as u32);
            open.last = match (self.cursor.token()?, open.last) {
                (Token::Int(int), Some(last)) if int > last => Some(int),
                (Token::Text(name), _) if open.class.is_some() && unmangle(name).is_none() => {
                    return Err(Error {
                        offset: start,
                        expected: "the name of a property",
                    });
                }
                (Token::Int(_) | Token::Text(_), _) => None,
                _ => {
                    return Err(self
                        .cursor
                        .error("an integer or a string as key before this"));
                }
            };
        }
    }

    /// Numbers the value that starts with `token`. Every value has a slot, except `R`.
    fn add_slot(&mut self, start: usize, token: &Token<'b>) -> Result<(), Error> {
        let missing = |expected| Error {
            offset: start,
            expected,
        };
        let is_object = |at: &usize| matches!(self.cursor.bytes.get(*at), Some(b'O' | b'C' | b'E'));
        let value = match *token {
            Token::Reference(number) => {
                let target = self.slots.get(number);
                return target
                    .map(drop)
                    .ok_or(missing("a reference to an earlier value"));
            }
            Token::SameObject(number) => {
                let target = self.slots.get(number).filter(is_object);
                target.ok_or(missing("a reference to an earlier object"))?
            }
            _ => start,
        };
        self.slots.starts.push(value as u32);
        if let Token::Custom {
            length: content @ 2..,
        } = token
        {
            // The shortest value has two bytes.
            self.slots.known.get_or_insert(self.slots.starts.len());
            self.slots.hidden += content / 2;
        }
        Ok(())
    }

    /// The end of the innermost array or object
    fn close(&mut self) -> Result<(), Error> {
        self.cursor.expect(b"}", "the end of the array or object")?;
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let key_at = |at| match (Cursor { at, ..self.cursor }.token(), open.class) {
            (Ok(Token::Int(int)), _) => Key::Int(int),
            (Ok(Token::Text(name)), Some(class)) => Key::of(plain_name(name, class)),
            (Ok(Token::Text(key)), None) => Key::of(key),
            _ => Key::Text(b""),
        };
        let keys = self.keys.get(open.keys..).unwrap_or_default();
        self.cursor
            .require(open.last.is_some() || !repeats(keys, key_at), "unique keys")?;
        // The keys of the outermost array stay: with `php_serialize` they are the keys of `$_SESSION`.
        if !self.open.is_empty() {
            self.keys.truncate(open.keys);
        }
        Ok(())
    }
}

/// Whether two of the keys that start at these offsets are equal.
fn repeats<K: Ord>(starts: &[u32], key_at: impl Fn(usize) -> K) -> bool {
    let key_at = |start: &u32| key_at(*start as usize);
    let mut starts = starts.to_vec();
    starts.sort_unstable_by_key(key_at);
    starts
        .windows(2)
        .any(|pair| key_at(&pair[0]) == key_at(&pair[1]))
}

/// The scope and the name of a property: `\0*\0name` if it is protected, `\0Class\0name` if it is
/// private (`zend_unmangle_property_name_ex`).
fn unmangle(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let Some(name) = name.strip_prefix(b"\0") else {
        return Some((b"", name));
    };
    let end = name.iter().position(|&byte| byte == 0)?;
    let (scope, plain) = (&name[..end], &name[end + 1..]);
    (!scope.is_empty() && !plain.is_empty()).then_some((scope, plain))
}

/// The name that is unique among the properties of an object of `class`. For `unserialize`, a
/// protected, a public and an own private property of the same name are the same property; a private
/// property of a parent class is another one.
fn plain_name<'b>(name: &'b [u8], class: &[u8]) -> &'b [u8] {
    match unmangle(name) {
        Some((scope, plain)) if scope == b"*" || scope.eq_ignore_ascii_case(class) => plain,
        _ => name,
    }
}
