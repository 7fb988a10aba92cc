//! PHP's `serialize` format (ext/standard/var_unserializer.re) and the three ways in which
//! `session.serialize_handler` stores it in a file (ext/session/session.c).
//!
//! [`Session::decode`] reads the whole file once. It fails if PHP does, and stores the offset of
//! each entry and each value. [`Session::get`] and [`PhpArray`] then read values in place. The
//! parser builds no tree, so memory is a small multiple of the file's size. It does not recurse, so
//! deep nesting cannot overflow the stack.
//!
//! Three differences from PHP:
//!
//! - Escaped strings (`S:`), which PHP reads but never writes, are rejected.
//! - Duplicate keys in an array, an object or the session, which PHP never writes, are rejected:
//!   references to the overwritten value have no useful meaning.
//! - Objects and enums are skipped by their form. Whether their class exists and would accept these
//!   properties depends on the application and the version of PHP.

use std::cmp::Ordering;

use super::lexer::{Cursor, Error, Token, Visit};
use super::settings::Format;

/// A session that PHP accepts.
#[derive(Debug)]
pub struct Session {
    bytes: Vec<u8>,
    format: Format,
    /// Where the keys of `$_SESSION` start
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

/// The target of a reference.
enum Slot {
    /// The value at this offset
    Start(usize),
    /// A value in, or after, the content of a `C:`
    Hidden,
}

impl Slots {
    /// The slot with this number, counted from 1.
    fn get(&self, number: usize) -> Option<Slot> {
        if self.known.is_some_and(|known| number > known) {
            return (number <= self.starts.len() + self.hidden).then_some(Slot::Hidden);
        }
        self.starts.get(number.checked_sub(1)?).map(|&start| Slot::Start(start as usize))
    }
}

/// A PHP value of a session.
#[derive(Clone, Copy, Debug)]
pub enum PhpValue<'s> {
    /// `true` or `false`
    Bool(bool),
    /// An integer
    Int(i64),
    /// A string, which is bytes in PHP
    Text(&'s [u8]),
    /// An array
    Array(PhpArray<'s>),
    /// Anything else
    Other,
}

impl<'s> PhpValue<'s> {
    /// The array, if it is one
    pub fn as_array(self) -> Option<PhpArray<'s>> {
        match self {
            PhpValue::Array(array) => Some(array),
            _ => None,
        }
    }

    /// Whether it is the string `text`, or the integer with the decimal digits `text`.
    pub fn is(self, text: &str) -> bool {
        match self {
            PhpValue::Text(own) => own == text.as_bytes(),
            PhpValue::Int(int) => int.to_string() == text,
            _ => false,
        }
    }

    /// A valid UTF-8 string of at most `longest` bytes, or an integer in decimal digits.
    pub fn to_text(self, longest: usize) -> Option<String> {
        match self {
            PhpValue::Text(text) if text.len() <= longest => {
                str::from_utf8(text).ok().map(str::to_owned)
            }
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

/// An array of a session.
#[derive(Clone, Copy, Debug)]
pub struct PhpArray<'s> {
    session: &'s Session,
    /// Where its first key starts
    start: usize,
    length: usize,
}

impl Session {
    /// Decodes the content of a session file. Fails if PHP does; PHP then drops the whole session.
    pub fn decode(bytes: Vec<u8>, format: Format) -> Result<Session, Error> {
        let cursor = Cursor { bytes: &bytes, at: 0 };
        if u32::try_from(bytes.len()).is_err() {
            return cursor.fail("less than 4 GiB");
        }
        // Room for most sessions, so that these do not grow three times.
        let room = || Vec::with_capacity(64);
        let slots = Slots { starts: room(), ..Slots::default() };
        let mut decoder = Decoder { bytes: &bytes, slots, keys: room(), open: Vec::new() };
        let entries = match format {
            Format::PhpSerialize => decoder.serialized()?,
            Format::Php | Format::PhpBinary => decoder.entries(format)?,
        };
        let slots = decoder.slots;
        Ok(Session { bytes, format, entries, slots })
    }

    /// `$_SESSION[key]`
    pub fn get(&self, key: &str) -> Option<PhpValue<'_>> {
        self.entries.iter().find_map(|&start| {
            let mut cursor = self.cursor_at(start as usize);
            let found = match self.format {
                Format::PhpSerialize => PhpValue::from(cursor.token().ok()?).is(key),
                format => cursor.entry_key(format).ok()? == key.as_bytes(),
            };
            if found { self.value_at(cursor.at) } else { None }
        })
    }

    fn cursor_at(&self, at: usize) -> Cursor<'_> {
        Cursor { bytes: &self.bytes, at }
    }

    /// The value at the offset `at`. The target of a reference is never another `R`, so the recursion
    /// ends.
    fn value_at(&self, at: usize) -> Option<PhpValue<'_>> {
        let mut cursor = self.cursor_at(at);
        Some(match cursor.token().ok()? {
            Token::Array { pairs } => {
                PhpValue::Array(PhpArray { session: self, start: cursor.at, length: pairs })
            }
            Token::Reference(slot) => match self.slots.get(slot)? {
                Slot::Start(start) => self.value_at(start)?,
                Slot::Hidden => PhpValue::Other,
            },
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

    /// The values, in order
    pub fn values(self) -> impl Iterator<Item = PhpValue<'s>> {
        self.entries().map(|(_, value)| value)
    }

    /// The keys, strings or integers, and the values, in order
    pub fn entries(self) -> impl Iterator<Item = (PhpValue<'s>, PhpValue<'s>)> {
        self.pairs().filter_map(move |(key, at)| Some((key, self.session.value_at(at)?)))
    }

    /// Each key, and where its value starts
    fn pairs(self) -> impl Iterator<Item = (PhpValue<'s>, usize)> {
        let mut cursor = self.session.cursor_at(self.start);
        (0..self.length).map_while(move |_| {
            let key = cursor.token().ok()?.into();
            let at = cursor.at;
            cursor.skip_value(&mut ()).ok()?;
            Some((key, at))
        })
    }
}

/// The state while a whole file is decoded.
struct Decoder<'b> {
    bytes: &'b [u8],
    slots: Slots,
    /// Where the keys of all open arrays and objects start
    keys: Vec<u32>,
    open: Vec<Open<'b>>,
}

/// An array or object that has not ended yet
struct Open<'b> {
    /// The number of keys of the open arrays and objects around it
    keys: usize,
    /// The last key, as long as all keys are ascending integers, as in a list
    last: Option<i64>,
    /// The name of an object's class
    class: Option<&'b [u8]>,
}

impl<'b> Decoder<'b> {
    fn cursor_at(&self, at: usize) -> Cursor<'b> {
        Cursor { bytes: self.bytes, at }
    }

    /// `php` and `php_binary`: keys and values up to the end.
    fn entries(&mut self, format: Format) -> Result<Vec<u32>, Error> {
        let mut entries = Vec::new();
        let mut cursor = self.cursor_at(0);
        while cursor.at < self.bytes.len() {
            entries.push(cursor.at as u32);
            cursor.entry_key(format)?;
            cursor.skip_value(self)?;
            self.keys.clear();
        }
        let key_at = |start| self.cursor_at(start as usize).entry_key(format).unwrap_or_default();
        if repeats(&entries, |a, b| key_at(a).cmp(key_at(b))) {
            return cursor.fail("unique keys");
        }
        Ok(entries)
    }

    /// `php_serialize`: one array. PHP ignores bytes after it. PHP also accepts a value of another
    /// type; the session is then empty.
    fn serialized(&mut self) -> Result<Vec<u32>, Error> {
        let first = self.bytes.first();
        if first.is_some() {
            self.cursor_at(0).skip_value(self)?;
        }
        Ok(if first == Some(&b'a') { std::mem::take(&mut self.keys) } else { Vec::new() })
    }
}

impl<'b> Visit<'b> for Decoder<'b> {
    fn value(&mut self, start: usize, token: &Token<'b>) -> Result<(), Error> {
        let refuse = |expected| Err(Error { offset: start, expected });
        let is_reference = matches!(token, Token::Reference(_));
        let mut value = start;
        if let Token::Reference(number) | Token::SameObject(number) = token {
            match self.slots.get(*number) {
                Some(Slot::Start(target)) if !is_reference => match self.bytes.get(target) {
                    // The target is an `r` if that one refers to a hidden object.
                    Some(b'O' | b'C' | b'E' | b'r') => value = target,
                    _ => return refuse("a reference to an earlier object"),
                },
                Some(_) => {}
                None => return refuse("a reference to an earlier value"),
            }
        }
        // Every value has a slot, except `R`.
        if !is_reference {
            self.slots.starts.push(value as u32);
        }
        if let Token::Custom { length: content @ 2.. } = token {
            // The shortest value has two bytes.
            self.slots.known.get_or_insert(self.slots.starts.len());
            self.slots.hidden += content / 2;
        }
        if let Token::Array { .. } | Token::Object { .. } = token {
            let class = match token {
                Token::Object { class, .. } => Some(*class),
                _ => None,
            };
            self.open.push(Open { keys: self.keys.len(), last: Some(i64::MIN), class });
        }
        Ok(())
    }

    fn key(&mut self, start: usize, token: &Token<'b>) -> Result<(), Error> {
        self.keys.push(start as u32);
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        open.last = match (open.last, token) {
            (Some(last), Token::Int(int)) if *int > last => Some(*int),
            _ => None,
        };
        match (open.class, token) {
            (Some(_), Token::Text(name)) if unmangle(name).is_none() => {
                self.cursor_at(start).fail("the name of a property")
            }
            _ => Ok(()),
        }
    }

    fn close(&mut self, end: usize) -> Result<(), Error> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let cursor = self.cursor_at(end);
        let key_at = |start| match self.cursor_at(start as usize).token() {
            Ok(Token::Text(name)) => {
                Token::Text(open.class.map_or(name, |class| plain_name(name, class)))
            }
            Ok(key) => key,
            Err(_) => Token::Null,
        };
        let keys = self.keys.get(open.keys..).unwrap_or_default();
        if open.last.is_none() && repeats(keys, |a, b| key_at(a).compare_keys(&key_at(b))) {
            return cursor.fail("unique keys");
        }
        // Those of the outermost array stay: with `php_serialize` they are the keys of `$_SESSION`.
        if !self.open.is_empty() {
            self.keys.truncate(open.keys);
        }
        Ok(())
    }
}

/// Whether two of `keys` are equal.
fn repeats(keys: &[u32], compare: impl Fn(u32, u32) -> Ordering) -> bool {
    let mut keys = keys.to_vec();
    keys.sort_unstable_by(|&a, &b| compare(a, b));
    keys.windows(2).any(|pair| compare(pair[0], pair[1]) == Ordering::Equal)
}

/// The scope and the name of a property: `\0*\0name` if it is protected, `\0Class\0name` if it is
/// private (`zend_unmangle_property_name_ex`).
fn unmangle(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let Some(name) = name.strip_prefix(b"\0") else { return Some((b"", name)) };
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
