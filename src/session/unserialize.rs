//! PHP's `serialize` format (ext/standard/var_unserializer.re) and the three ways in which
//! `session.serialize_handler` puts it into a file (ext/session/session.c).
//!
//! Reading goes in two steps. [`Session::decode`] walks the whole file once: whatever PHP would
//! refuse is refused, and all that is kept is where each entry and each value starts. Then
//! [`Session::get`] and [`PhpArray`] read values in place. No tree is built, so a session of
//! megabytes costs little more than its bytes, and nothing recurses, so nesting can't
//! overflow the stack.
//!
//! Three things are decided otherwise than in PHP. `S:`, an escaped string that PHP reads but
//! never writes, is refused. No array, object or session may have a key twice: PHP never writes
//! that, and what it makes of references to the value that was
//! overwritten is not worth imitating. And which classes the application has can't be known
//! here: a class's own `__wakeup` may refuse what is accepted; of PHP's own classes those that
//! are never serialized are refused.

use std::cmp::Ordering;

use super::lexer::{Cursor, Error, Token, Visit};
use crate::config::Format;

/// Classes of PHP and its usual extensions that no session can hold: PHP refuses to write and
/// to read them ("Unserialization of '…' is not allowed").
const NEVER_SERIALIZED: &str = "AddressInfo Closure CurlHandle CurlMultiHandle CurlShareHandle \
    DeflateContext DirectoryIterator FFI FFI\\CData FFI\\CType FTP\\Connection Fiber \
    FilesystemIterator GdImage Generator GlobIterator InflateContext InternalIterator \
    OpenSSLAsymmetricKey OpenSSLCertificate OpenSSLCertificateSigningRequest PDO PDORow \
    PDOStatement Phar PharData PharFileInfo Random\\Engine\\Secure RecursiveDirectoryIterator \
    ReflectionAttribute ReflectionClass ReflectionClassConstant ReflectionEnum \
    ReflectionEnumBackedCase ReflectionEnumUnitCase ReflectionExtension ReflectionFiber \
    ReflectionFunction ReflectionFunctionAbstract ReflectionGenerator \
    ReflectionIntersectionType ReflectionMethod ReflectionNamedType ReflectionObject \
    ReflectionParameter ReflectionProperty ReflectionReference ReflectionType \
    ReflectionUnionType ReflectionZendExtension SensitiveParameterValue Shmop \
    SimpleXMLElement SimpleXMLIterator Socket SplFileInfo SplFileObject SplTempFileObject \
    SysvMessageQueue SysvSemaphore SysvSharedMemory WeakMap WeakReference finfo";

/// Classes of PHP's core that are never written with fewer properties than these, nor read so.
const FEWEST_PROPERTIES: [(&str, usize); 11] = [
    ("ArrayIterator", 3),
    ("ArrayObject", 3),
    ("DatePeriod", 6),
    ("DateTime", 3),
    ("DateTimeImmutable", 3),
    ("DateTimeZone", 2),
    ("RecursiveArrayIterator", 3),
    ("SplDoublyLinkedList", 3),
    ("SplObjectStorage", 2),
    ("SplQueue", 3),
    ("SplStack", 3),
];

/// A session that PHP accepts.
#[derive(Debug)]
pub struct Session {
    bytes: Vec<u8>,
    format: Format,
    /// Where the entries of `$_SESSION` start: their keys.
    entries: Vec<u32>,
    slots: Slots,
}

/// Where the values start that references count, in their order.
#[derive(Debug, Default)]
struct Slots {
    starts: Vec<u32>,
    /// How many there were up to the first `C:`. Its class may have counted values of its own,
    /// so what a reference beyond it leads to is not known.
    known: Option<usize>,
}

impl Slots {
    /// Where slot `number` starts, counted from 1; `Err` where that is not known.
    fn start(&self, number: usize) -> Result<Option<usize>, Unknown> {
        if self.known.is_some_and(|known| number > known) {
            return Err(Unknown);
        }
        let start = number.checked_sub(1).and_then(|index| self.starts.get(index));
        Ok(start.map(|&start| start as usize))
    }
}

struct Unknown;

/// A value of a session, as far as anybody asks.
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

impl PhpValue<'_> {
    /// Whether it is the string `text`, or the integer of those decimal digits.
    pub fn is(&self, text: &str) -> bool {
        match self {
            PhpValue::Text(own) => *own == text.as_bytes(),
            PhpValue::Int(int) => int.to_string() == text,
            _ => false,
        }
    }

    /// A string of at most `longest` bytes, all UTF-8, or an integer in decimal digits.
    pub fn to_text(&self, longest: usize) -> Option<String> {
        match self {
            PhpValue::Text(text) if text.len() <= longest => {
                str::from_utf8(text).ok().map(str::to_owned)
            }
            PhpValue::Int(int) => Some(int.to_string()),
            _ => None,
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
    /// Takes the content of a session file. Refuses what PHP refuses; PHP then drops the whole
    /// session.
    pub fn decode(bytes: Vec<u8>, format: Format) -> Result<Session, Error> {
        let cursor = Cursor { bytes: &bytes, at: 0 };
        if u32::try_from(bytes.len()).is_err() {
            return cursor.fail("less than 4 GiB");
        }
        let mut decoder = Decoder {
            bytes: &bytes,
            slots: Slots::default(),
            keys: Vec::new(),
            arrays: Vec::new(),
        };
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
    fn value_at(&self, at: usize) -> Option<PhpValue<'_>> {
        let mut cursor = self.cursor_at(at);
        Some(match cursor.token().ok()? {
            Token::Bool(bool) => PhpValue::Bool(bool),
            Token::Int(int) => PhpValue::Int(int),
            Token::Text(text) => PhpValue::Text(text),
            Token::Array { pairs } => {
                PhpValue::Array(PhpArray { session: self, start: cursor.at, length: pairs })
            }
            Token::Reference(slot) => match self.slots.start(slot) {
                Ok(start) => self.value_at(start?)?,
                Err(Unknown) => PhpValue::Other,
            },
            _ => PhpValue::Other,
        })
    }
}

impl<'s> PhpArray<'s> {
    /// The value of `key`: a string, or an integer in decimal digits, which PHP makes the same
    /// key.
    pub fn get(self, key: &str) -> Option<PhpValue<'s>> {
        let (_, at) = self.pairs().find(|(name, _)| name.is_key(key))?;
        self.session.value_at(at)
    }

    /// The values, in their order.
    pub fn values(self) -> impl Iterator<Item = PhpValue<'s>> {
        self.pairs().filter_map(move |(_, at)| self.session.value_at(at))
    }

    /// Each key, and where its value starts.
    fn pairs(self) -> impl Iterator<Item = (Token<'s>, usize)> {
        let mut cursor = self.session.cursor_at(self.start);
        (0..self.length).map_while(move |_| {
            let key = cursor.token().ok()?;
            let at = cursor.at;
            cursor.skip_value(0, &mut ()).ok()?;
            Some((key, at))
        })
    }
}

/// Walks a whole file and keeps what is needed to read from it.
struct Decoder<'b> {
    bytes: &'b [u8],
    slots: Slots,
    /// Where the keys start of all arrays and objects that are open
    keys: Vec<u32>,
    /// Of each that is open: where its keys start among `keys`; the last of them, as long as all
    /// are integers that rise, as in a list
    arrays: Vec<(usize, Option<i64>)>,
}

impl<'b> Decoder<'b> {
    fn cursor_at(&self, at: usize) -> Cursor<'b> {
        Cursor { bytes: self.bytes, at }
    }

    /// `php` and `php_binary`: keys and values up to the end.
    fn entries(&mut self, format: Format) -> Result<Vec<u32>, Error> {
        let mut entries = Vec::new();
        let mut cursor = self.cursor_at(0);
        let key = |cursor: &mut Cursor<'b>| match format {
            Format::PhpBinary => cursor.binary_key(),
            _ => cursor.php_key(),
        };
        while cursor.at < self.bytes.len() {
            entries.push(cursor.at as u32);
            key(&mut cursor)?;
            cursor.skip_value(0, self)?;
        }
        let key_at = |start| key(&mut self.cursor_at(start as usize)).unwrap_or_default();
        if repeats(&entries, |a, b| key_at(a).cmp(key_at(b))) {
            return cursor.fail("no key twice");
        }
        Ok(entries)
    }

    /// `php_serialize`: one array; what is behind it is ignored. Another value is accepted and
    /// has no entries.
    fn serialized(&mut self) -> Result<Vec<u32>, Error> {
        let mut entries = Vec::new();
        if self.bytes.is_empty() {
            return Ok(entries);
        }
        let mut cursor = self.cursor_at(0);
        let Token::Array { pairs } = cursor.token()? else {
            self.cursor_at(0).skip_value(0, self)?;
            return Ok(entries);
        };
        self.slots.starts.push(0);
        self.open();
        for _ in 0..pairs {
            let start = cursor.at;
            entries.push(start as u32);
            let key = cursor.key()?;
            self.key(start, &key);
            cursor.skip_value(1, self)?;
        }
        cursor.expect(b"}", "the end of the array")?;
        self.close(cursor.at)?;
        Ok(entries)
    }
}

impl<'b> Visit<'b> for Decoder<'b> {
    fn value(&mut self, start: usize, token: &Token<'b>) -> Result<(), Error> {
        let refuse = |expected| Err(Error { offset: start, expected });
        match token {
            // Every value takes a slot, but for `R`.
            Token::Reference(slot) => {
                return match self.slots.start(*slot) {
                    Ok(None) => refuse("a reference to a value before it"),
                    _ => Ok(()),
                };
            }
            Token::SameObject(slot) => {
                if let Ok(start) = self.slots.start(*slot) {
                    let kind = start.and_then(|start| self.bytes.get(start));
                    if !matches!(kind, Some(b'O' | b'C' | b'E' | b'r')) {
                        return refuse("a reference to an object before it");
                    }
                }
            }
            Token::Object { class, pairs } => {
                let is = |name: &str| class.eq_ignore_ascii_case(name.as_bytes());
                if NEVER_SERIALIZED.split_ascii_whitespace().any(is)
                    || FEWEST_PROPERTIES.iter().any(|(name, fewest)| pairs < fewest && is(name))
                {
                    return refuse("an object that PHP serializes");
                }
            }
            Token::Custom if self.slots.known.is_none() => {
                self.slots.known = Some(self.slots.starts.len() + 1);
            }
            _ => {}
        }
        self.slots.starts.push(start as u32);
        Ok(())
    }

    fn open(&mut self) {
        self.arrays.push((self.keys.len(), Some(i64::MIN)));
    }

    fn key(&mut self, start: usize, token: &Token<'b>) {
        self.keys.push(start as u32);
        if let Some((_, last)) = self.arrays.last_mut() {
            *last = match (*last, token) {
                (Some(last), Token::Int(int)) if *int > last => Some(*int),
                _ => None,
            };
        }
    }

    fn close(&mut self, end: usize) -> Result<(), Error> {
        let Some((first, rising)) = self.arrays.pop() else { return Ok(()) };
        let key_at = |start| self.cursor_at(start as usize).token().unwrap_or(Token::Null);
        let keys = self.keys.get(first..).unwrap_or_default();
        if rising.is_none() && repeats(keys, |a, b| key_at(a).compare_keys(&key_at(b))) {
            return self.cursor_at(end).fail("no key twice in front");
        }
        self.keys.truncate(first);
        Ok(())
    }
}

/// Whether two of `keys` are equal.
fn repeats(keys: &[u32], compare: impl Fn(u32, u32) -> Ordering) -> bool {
    let mut keys = keys.to_vec();
    keys.sort_unstable_by(|&a, &b| compare(a, b));
    keys.windows(2).any(|pair| compare(pair[0], pair[1]) == Ordering::Equal)
}
