//! PHP's `serialize` format (ext/standard/var_unserializer.re) and the three ways in which
//! `session.serialize_handler` puts it into a file (ext/session/session.c).
//!
//! Reading goes in two steps. [`Session::decode`] walks the whole file once: whatever PHP would
//! refuse is refused, and all that is kept is where each entry and each value starts. Then
//! [`Session::get`] and [`Array`] read values in place. No tree is built, so a session of
//! megabytes costs little more than its bytes, and nothing recurses, so nesting can't
//! overflow the stack.
//!
//! What can't be known here is which classes the application has: a class's own `__wakeup` may
//! refuse what is accepted here. Of PHP's own classes, those that are never serialized are
//! refused.

use std::borrow::Cow;
use std::fmt;

use crate::config::Format;

/// PHP's `unserialize_max_depth`.
const MAX_DEPTH: usize = 4096;

/// Classes of PHP's core that no session can hold: it refuses to write and to read them.
const NEVER_SERIALIZED: [&str; 16] = [
    "Closure",
    "DirectoryIterator",
    "Fiber",
    "FilesystemIterator",
    "Generator",
    "GlobIterator",
    "InternalIterator",
    "PDO",
    "PDOStatement",
    "RecursiveDirectoryIterator",
    "SensitiveParameterValue",
    "SplFileInfo",
    "SplFileObject",
    "SplTempFileObject",
    "WeakMap",
    "WeakReference",
];

/// Classes of PHP's core that are never written without a property, nor read so.
const NEVER_EMPTY: [&str; 11] = [
    "ArrayIterator",
    "ArrayObject",
    "DatePeriod",
    "DateTime",
    "DateTimeImmutable",
    "DateTimeZone",
    "RecursiveArrayIterator",
    "SplDoublyLinkedList",
    "SplObjectStorage",
    "SplQueue",
    "SplStack",
];

/// A session that PHP would accept.
#[derive(Debug)]
pub struct Session {
    bytes: Vec<u8>,
    format: Format,
    /// Where the entries of `$_SESSION` start: their keys.
    entries: Vec<u32>,
    /// Where the values start that references count, in their order.
    slots: Vec<u32>,
}

/// Why a session is refused: what was expected at which byte.
#[derive(Debug, thiserror::Error)]
#[error("byte {offset}: {expected}")]
pub struct Error {
    offset: usize,
    expected: Expected,
}

#[derive(Debug)]
enum Expected {
    Text(&'static str),
    Enum(String),
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Expected::Text(text) => write!(f, "expected {text}"),
            Expected::Enum(name) => write!(
                f,
                "holds the enum {name}, which PHP accepts where the application defines it; \
                 if it does, name it in COMEDOR_SESSION_ENUMS"
            ),
        }
    }
}

/// A value of a session, as far as anybody asks.
#[derive(Debug)]
pub enum Value<'s> {
    /// `true` or `false`
    Bool(bool),
    /// An integer
    Int(i64),
    /// A string, which is bytes in PHP
    String(Cow<'s, [u8]>),
    /// An array
    Array(Array<'s>),
    /// Anything else
    Other,
}

impl Value<'_> {
    /// The bytes of a string, the digits of an integer.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        match self {
            Value::String(bytes) => Some(bytes.to_vec()),
            Value::Int(int) => Some(int.to_string().into_bytes()),
            _ => None,
        }
    }
}

/// An array of a session.
#[derive(Clone, Copy, Debug)]
pub struct Array<'s> {
    session: &'s Session,
    /// Where its first key starts
    start: usize,
    pairs: usize,
}

/// One lexical element: a scalar, the opening of an array or object, or a reference.
#[derive(Debug)]
enum Token<'b> {
    Null,
    Bool(bool),
    Int(i64),
    Float,
    String(&'b [u8]),
    /// The body of `S:`, escapes and all
    Escaped(&'b [u8]),
    Array {
        pairs: usize,
    },
    Object {
        class: &'b [u8],
        pairs: usize,
    },
    /// `C:`, whose content only its class understands
    Custom,
    Enum(&'b [u8]),
    /// `R:`, another name of a slot
    Reference(usize),
    /// `r:`, the object in a slot
    SameObject(usize),
}

impl Session {
    /// Takes the content of a session file. Refuses what PHP refuses; PHP then drops the whole
    /// session. `enums` are those that the application defines.
    pub fn decode(bytes: Vec<u8>, format: Format, enums: &[String]) -> Result<Session, Error> {
        let cursor = Cursor { bytes: &bytes, at: 0 };
        if u32::try_from(bytes.len()).is_err() {
            return cursor.fail("less than 4 GiB");
        }
        let mut decoder = Decoder { cursor, enums, slots: Vec::new(), known_slots: usize::MAX };
        let entries = match format {
            Format::PhpSerialize => decoder.serialized()?,
            Format::Php | Format::PhpBinary => decoder.entries(format)?,
        };
        let slots = decoder.slots;
        Ok(Session { bytes, format, entries, slots })
    }

    /// `$_SESSION[key]`; the last of several entries of one key counts.
    pub fn get(&self, key: &str) -> Option<Value<'_>> {
        self.entries.iter().rev().find_map(|&start| {
            let mut cursor = self.cursor_at(start as usize);
            let found = match self.format {
                Format::Php => cursor.php_key().ok()? == key.as_bytes(),
                Format::PhpBinary => cursor.binary_key().ok()? == key.as_bytes(),
                Format::PhpSerialize => cursor.token().ok()?.is_key(key),
            };
            if found { self.value_at(cursor.at) } else { None }
        })
    }

    fn cursor_at(&self, at: usize) -> Cursor<'_> {
        Cursor { bytes: &self.bytes, at }
    }

    /// The value that starts at `at`. References lead to slots, and a slot never starts with a
    /// reference, so this ends.
    fn value_at(&self, at: usize) -> Option<Value<'_>> {
        let mut cursor = self.cursor_at(at);
        Some(match cursor.token().ok()? {
            Token::Bool(bool) => Value::Bool(bool),
            Token::Int(int) => Value::Int(int),
            Token::String(bytes) => Value::String(Cow::Borrowed(bytes)),
            Token::Escaped(body) => Value::String(Cow::Owned(unescaped(body))),
            Token::Array { pairs } => {
                Value::Array(Array { session: self, start: cursor.at, pairs })
            }
            Token::Reference(slot) => {
                self.value_at(*self.slots.get(slot.checked_sub(1)?)? as usize)?
            }
            _ => Value::Other,
        })
    }
}

impl<'s> Array<'s> {
    /// The value of `key`: a string, or an integer in decimal digits, which PHP makes the same
    /// key. The last of several counts.
    pub fn get(self, key: &str) -> Option<Value<'s>> {
        let start = self.pairs().filter(|(name, _)| name.is_key(key)).last();
        start.and_then(|(_, at)| self.session.value_at(at))
    }

    /// The values, in their order.
    pub fn values(self) -> impl Iterator<Item = Value<'s>> {
        self.pairs().filter_map(move |(_, at)| self.session.value_at(at))
    }

    /// Each key, and where its value starts.
    fn pairs(self) -> impl Iterator<Item = (Token<'s>, usize)> {
        let mut cursor = self.session.cursor_at(self.start);
        (0..self.pairs).map_while(move |_| {
            let key = cursor.token().ok()?;
            let at = cursor.at;
            cursor.skip_value(0, |_, _| Ok(())).ok()?;
            Some((key, at))
        })
    }
}

impl Token<'_> {
    fn is_key(&self, key: &str) -> bool {
        match self {
            Token::Int(int) => int.to_string() == key,
            Token::String(bytes) => *bytes == key.as_bytes(),
            Token::Escaped(body) => unescaped(body) == key.as_bytes(),
            _ => false,
        }
    }
}

/// Walks a whole file and keeps what is needed to read from it.
struct Decoder<'b> {
    cursor: Cursor<'b>,
    enums: &'b [String],
    slots: Vec<u32>,
    /// How many slots there were before the first `C:`. Its class may have counted values of its
    /// own, so what a reference beyond it means is not known.
    known_slots: usize,
}

impl Decoder<'_> {
    /// `php` and `php_binary`: keys and values up to the end.
    fn entries(&mut self, format: Format) -> Result<Vec<u32>, Error> {
        let mut entries = Vec::new();
        while self.cursor.at < self.cursor.bytes.len() {
            entries.push(self.cursor.at as u32);
            match format {
                Format::PhpBinary => self.cursor.binary_key()?,
                _ => self.cursor.php_key()?,
            };
            self.value(0)?;
        }
        Ok(entries)
    }

    /// `php_serialize`: one array; what is behind it is ignored. Another value is accepted and
    /// has no entries.
    fn serialized(&mut self) -> Result<Vec<u32>, Error> {
        let mut entries = Vec::new();
        if self.cursor.bytes.is_empty() {
            return Ok(entries);
        }
        let start = self.cursor.at;
        match self.cursor.token()? {
            Token::Array { pairs } => {
                self.slots.push(start as u32);
                for _ in 0..pairs {
                    entries.push(self.cursor.at as u32);
                    self.cursor.key()?;
                    self.value(1)?;
                }
                self.cursor.expect(b"}", "the end of the array")?;
            }
            _ => {
                self.cursor.at = start;
                self.value(0)?;
            }
        }
        Ok(entries)
    }

    /// Checks the value at the cursor, which lies `depth` arrays deep, and passes it.
    fn value(&mut self, depth: usize) -> Result<(), Error> {
        let Decoder { cursor, enums, slots, known_slots } = self;
        let bytes = cursor.bytes;
        cursor.skip_value(depth, |start, token| {
            let fail = |expected| Error { offset: start, expected };
            let refuse = |expected| Err(fail(Expected::Text(expected)));
            match token {
                // Every value takes a slot, but for `R`.
                Token::Reference(slot) => {
                    return if (1..=slots.len().min(*known_slots)).contains(slot) {
                        Ok(())
                    } else {
                        refuse("a reference to a value before it")
                    };
                }
                Token::SameObject(slot) => {
                    let target = slot.checked_sub(1).filter(|slot| slot < known_slots);
                    let kind = target.and_then(|slot| bytes.get(*slots.get(slot)? as usize));
                    if !matches!(kind, Some(b'O' | b'C' | b'E' | b'r')) {
                        return refuse("a reference to an object before it");
                    }
                }
                Token::Object { class, pairs } => {
                    let is = |name: &&str| class.eq_ignore_ascii_case(name.as_bytes());
                    if NEVER_SERIALIZED.iter().any(is) || *pairs == 0 && NEVER_EMPTY.iter().any(is)
                    {
                        return refuse("an object that PHP serializes");
                    }
                }
                Token::Custom => *known_slots = (*known_slots).min(slots.len() + 1),
                Token::Enum(case) => {
                    let name = case.split(|&byte| byte == b':').next().unwrap_or_default();
                    let name = String::from_utf8_lossy(name);
                    if !enums.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
                        return Err(fail(Expected::Enum(name.into_owned())));
                    }
                }
                _ => {}
            }
            slots.push(start as u32);
            Ok(())
        })
    }
}

/// A position in the file. A method that succeeds leaves it behind what it names, one that
/// fails leaves it somewhere.
#[derive(Clone, Copy)]
struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Cursor<'b> {
    fn rest(&self) -> &'b [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn fail<T>(&self, expected: &'static str) -> Result<T, Error> {
        Err(Error { offset: self.at, expected: Expected::Text(expected) })
    }

    fn expect(&mut self, text: &[u8], expected: &'static str) -> Result<(), Error> {
        if !self.rest().starts_with(text) {
            return self.fail(expected);
        }
        self.at += text.len();
        Ok(())
    }

    /// The next `length` bytes.
    fn take(&mut self, length: usize, expected: &'static str) -> Result<&'b [u8], Error> {
        match self.rest().get(..length) {
            Some(taken) => {
                self.at += length;
                Ok(taken)
            }
            None => self.fail(expected),
        }
    }

    /// All bytes that `belong`, as many as there are.
    fn take_while(&mut self, belong: impl Fn(u8) -> bool) -> &'b [u8] {
        let rest = self.rest();
        let end = rest.iter().position(|&byte| !belong(byte));
        let (taken, _) = rest.split_at(end.unwrap_or(rest.len()));
        self.at += taken.len();
        taken
    }

    /// The key of an entry of `php`: all up to the next `|`.
    fn php_key(&mut self) -> Result<&'b [u8], Error> {
        let key = self.take_while(|byte| byte != b'|');
        self.expect(b"|", "a | behind the key")?;
        Ok(key)
    }

    /// The key of an entry of `php_binary`: a length of seven bits and as many bytes.
    fn binary_key(&mut self) -> Result<&'b [u8], Error> {
        let length = self.take(1, "the length of a key")?;
        self.take(usize::from(length[0] & 0x7f), "as many bytes of the key")
    }

    /// An unsigned number.
    fn number(&mut self) -> Result<usize, Error> {
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        match str::from_utf8(digits).map(str::parse) {
            Ok(Ok(number)) => Ok(number),
            _ => self.fail("a number"),
        }
    }

    /// `:length:"` … bytes … `"`
    fn quoted(&mut self) -> Result<&'b [u8], Error> {
        self.expect(b":", ":")?;
        let length = self.number()?;
        self.expect(b":\"", ":\"")?;
        let bytes = self.take(length, "as many bytes of the string")?;
        self.expect(b"\"", "a \" behind the string")?;
        Ok(bytes)
    }

    /// The name of a class, as `quoted`.
    fn class(&mut self) -> Result<&'b [u8], Error> {
        let class = self.quoted()?;
        let belongs = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'\\' | 0x7f..);
        if class.is_empty() || !class.iter().all(belongs) {
            return self.fail("the name of a class in front");
        }
        Ok(class)
    }

    /// `:count:{`. A pair has four bytes at least; PHP refuses what has more pairs than half of
    /// the bytes that are left.
    fn opening(&mut self) -> Result<usize, Error> {
        self.expect(b":", ":")?;
        let pairs = self.number()?;
        self.expect(b":{", ":{")?;
        if pairs > self.rest().len() / 2 {
            return self.fail("as many elements");
        }
        Ok(pairs)
    }

    /// The key of an array's or object's pair.
    fn key(&mut self) -> Result<Token<'b>, Error> {
        match self.token()? {
            key @ (Token::Int(_) | Token::String(_) | Token::Escaped(_)) => Ok(key),
            _ => self.fail("an integer or a string as key in front"),
        }
    }

    /// One value, or the opening of one.
    fn token(&mut self) -> Result<Token<'b>, Error> {
        let kind = self.take(1, "a value")?;
        let token = match kind[0] {
            b'N' => Token::Null,
            b'b' => {
                self.expect(b":", ":")?;
                match self.take(1, "0 or 1")? {
                    b"0" => Token::Bool(false),
                    b"1" => Token::Bool(true),
                    _ => return self.fail("0 or 1 in front"),
                }
            }
            b'i' => {
                self.expect(b":", ":")?;
                Token::Int(self.int()?)
            }
            b'd' => {
                self.expect(b":", ":")?;
                let number = self.take_while(|byte| byte != b';');
                if !is_float(number) {
                    return self.fail("a float in front");
                }
                Token::Float
            }
            b's' => Token::String(self.quoted()?),
            b'S' => Token::Escaped(self.escaped()?),
            b'R' | b'r' => {
                self.expect(b":", ":")?;
                let slot = self.number()?;
                if kind == b"R" { Token::Reference(slot) } else { Token::SameObject(slot) }
            }
            b'E' => {
                let case = self.quoted()?;
                if !case.contains(&b':') {
                    return self.fail("an enum and its case in front");
                }
                Token::Enum(case)
            }
            b'a' => return Ok(Token::Array { pairs: self.opening()? }),
            b'O' => {
                let class = self.class()?;
                return Ok(Token::Object { class, pairs: self.opening()? });
            }
            b'C' => {
                self.class()?;
                self.expect(b":", ":")?;
                let length = self.number()?;
                self.expect(b":{", ":{")?;
                self.take(length, "as many bytes of the object")?;
                self.expect(b"}", "the end of the object")?;
                return Ok(Token::Custom);
            }
            _ => return self.fail("another letter in front"),
        };
        self.expect(b";", "; behind the value")?;
        Ok(token)
    }

    /// A signed number, held at the ends of 64 bits as PHP does.
    fn int(&mut self) -> Result<i64, Error> {
        let (sign, digits) = self.signed_digits();
        if digits.is_empty() {
            return self.fail("an integer");
        }
        Ok(digits.iter().fold(0i64, |int, digit| {
            let digit = i64::from(digit - b'0');
            let int = int.saturating_mul(10);
            if sign { int.saturating_sub(digit) } else { int.saturating_add(digit) }
        }))
    }

    /// Whether there was a minus, and the digits.
    fn signed_digits(&mut self) -> (bool, &'b [u8]) {
        let sign = self.rest().first().filter(|byte| matches!(byte, b'+' | b'-'));
        self.at += usize::from(sign.is_some());
        (sign == Some(&b'-'), self.take_while(|byte| byte.is_ascii_digit()))
    }

    /// `:length:"` … `"` of `S:`, where `\hh` stands for a byte and `length` counts bytes.
    fn escaped(&mut self) -> Result<&'b [u8], Error> {
        self.expect(b":", ":")?;
        let length = self.number()?;
        self.expect(b":\"", ":\"")?;
        let start = self.at;
        for _ in 0..length {
            if self.take(1, "as many bytes of the string")? == b"\\" {
                let hex = self.take(2, "two hexadecimal digits")?;
                if !hex.iter().all(u8::is_ascii_hexdigit) {
                    return self.fail("two hexadecimal digits in front");
                }
            }
        }
        let body = &self.bytes[start..self.at];
        self.expect(b"\"", "a \" behind the string")?;
        Ok(body)
    }

    /// Passes the value that starts here, all that is in it too; shows each of its values, where
    /// it starts and what it is, to `visit`. It lies `depth` arrays deep.
    fn skip_value(
        &mut self,
        depth: usize,
        mut visit: impl FnMut(usize, &Token<'b>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        // How many pairs are left in each array and object that is open.
        let mut open: Vec<usize> = Vec::new();
        loop {
            let start = self.at;
            let token = self.token()?;
            visit(start, &token)?;
            if let Token::Array { pairs } | Token::Object { pairs, .. } = token {
                let counts = pairs > 0 || matches!(token, Token::Object { .. });
                if counts && depth + open.len() >= MAX_DEPTH {
                    return self.fail("no deeper nesting");
                }
                open.push(pairs);
            }
            while open.last() == Some(&0) {
                self.expect(b"}", "the end of the array or object")?;
                open.pop();
            }
            match open.last_mut() {
                None => return Ok(()),
                Some(pairs) => *pairs -= 1,
            }
            self.key()?;
        }
    }
}

/// `NAN`, `INF`, `-INF`, or a sign, digits, a point, digits and an exponent, as PHP's lexer
/// has them.
fn is_float(number: &[u8]) -> bool {
    if matches!(number, b"NAN" | b"INF" | b"-INF") {
        return true;
    }
    let mut cursor = Cursor { bytes: number, at: 0 };
    let (_, whole) = cursor.signed_digits();
    let mut digits = whole.len();
    if cursor.expect(b".", ".").is_ok() {
        digits += cursor.take_while(|byte| byte.is_ascii_digit()).len();
    }
    if matches!(cursor.rest().first(), Some(b'e' | b'E')) {
        cursor.at += 1;
        if cursor.signed_digits().1.is_empty() {
            return false;
        }
    }
    digits > 0 && cursor.rest().is_empty()
}

fn unescaped(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len());
    let mut rest = body;
    while let [first, tail @ ..] = rest {
        let escape = tail.first_chunk::<2>().filter(|_| *first == b'\\');
        let byte = escape.and_then(|hex| u8::from_str_radix(str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    bytes
}
