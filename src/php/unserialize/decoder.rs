//! Decoding a whole file: checks it as PHP does, and stores the offsets of entries and values.

use std::hash::{BuildHasher, Hash, RandomState};

use crate::php::lexer::{Cursor, Error, Key, Token};
use crate::php::session_settings::Format;

/// PHP's `unserialize_max_depth`
const MAX_DEPTH: usize = 4096;

/// The maximum length of the content
pub const MAX_LENGTH: usize = 16 * 1024 * 1024;

/// The room for keys and values of most sessions, so that these do not grow three times
const ROOM: usize = 64;

/// The offsets in a file that PHP accepts.
pub struct Decoded {
    /// Of the keys of `$_SESSION`
    pub entries: Vec<u32>,
    pub slots: Slots,
}

/// Decodes the content of a session file. Fails if PHP does.
pub fn decode(bytes: &[u8], format: Format) -> Result<Decoded, Error> {
    let cursor = Cursor { bytes, at: 0 };
    cursor.require(bytes.len() <= MAX_LENGTH, "at most 16 MiB")?;
    let mut decoder = Decoder {
        cursor,
        slots: Slots {
            starts: Vec::with_capacity(ROOM),
            ..Slots::default()
        },
        keys: Vec::with_capacity(ROOM),
        open: Vec::new(),
    };
    let entries = match format {
        Format::PhpSerialize => decoder.serialized()?,
        Format::Php | Format::PhpBinary => decoder.entries(format)?,
    };
    Ok(Decoded {
        entries,
        slots: decoder.slots,
    })
}

/// The values, in the order in which references number them.
#[derive(Debug, Default)]
pub struct Slots {
    /// The offset of each value; for `r`, the offset of its object
    starts: Vec<u32>,
    /// The number of values up to the first `C:`. Its class may decode the content with
    /// `unserialize`, and values in it have numbers too
    known: Option<usize>,
    /// The maximum number of values in the content of all `C:`
    hidden: usize,
}

impl Slots {
    /// The offset of the value with this `number`, which counts from 1. For a value that may be in the first `C:` or
    /// after it, the offset of that `C:`.
    pub fn get(&self, number: usize) -> Option<usize> {
        if number > self.starts.len() + self.hidden {
            return None;
        }
        let known = self.known.map_or(number, |known| known.min(number));
        self.starts
            .get(known.checked_sub(1)?)
            .map(|&start| start as usize)
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
    /// The last key, as long as all keys are ascending integers, as in a list: then none is there twice
    last: Option<i64>,
    /// The name of an object's class
    class: Option<&'b [u8]>,
}

impl<'b> Open<'b> {
    /// The key that starts at `cursor`, as PHP compares it with others.
    fn key_at(&self, mut cursor: Cursor<'b>) -> Key<'b> {
        match (cursor.token(), self.class) {
            (Ok(Token::Int(int)), _) => Key::Int(int),
            (Ok(Token::Text(name)), Some(class)) => Key::of(plain_name(name, class)),
            (Ok(Token::Text(key)), None) => Key::of(key),
            _ => Key::Text(b""),
        }
    }
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
        let key_at = |start| {
            let mut cursor = self.cursor.moved_to(start);
            cursor.entry_key(format).unwrap_or_default()
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
                self.open(class, pairs)?;
            }
            while self.open.last().is_some_and(|open| open.pairs == 0) {
                self.close()?;
            }
            if self.open.is_empty() {
                return Ok(());
            }
            self.key()?;
        }
    }

    /// The start of an array or object
    fn open(&mut self, class: Option<&'b [u8]>, pairs: usize) -> Result<(), Error> {
        // For PHP an empty array is not a level.
        let is_level = pairs > 0 || class.is_some();
        let is_too_deep = is_level && self.open.len() >= MAX_DEPTH;
        const { assert!(MAX_DEPTH == 4096) };
        self.cursor.require(!is_too_deep, "at most 4096 levels")?;
        self.open.push(Open {
            pairs,
            keys: self.keys.len(),
            last: Some(i64::MIN),
            class,
        });
        Ok(())
    }

    /// The next key of the innermost array or object
    fn key(&mut self) -> Result<(), Error> {
        let start = self.cursor.at;
        let token = self.cursor.token()?;
        let Some(open) = self.open.last_mut() else {
            return Ok(());
        };
        let index = match token {
            Token::Int(index) => Some(index),
            Token::Text(name) if open.class.is_some() && Property::parse(name).is_none() => {
                return Err(Error {
                    offset: start,
                    expected: "the name of a property",
                });
            }
            Token::Text(_) => None,
            _ => {
                return Err(self
                    .cursor
                    .error("an integer or a string as key before this"));
            }
        };
        open.last = index.filter(|index| open.last.is_some_and(|last| *index > last));
        open.pairs -= 1;
        self.keys.push(start as u32);
        Ok(())
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
        let key_at = |start| open.key_at(self.cursor.moved_to(start));
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

/// Up to this number of keys a sort is cheaper than a hash table, whose secret comes from the kernel (getrandom(2)).
const FEW: usize = 32;

/// Whether two of the keys that start at these offsets are equal.
fn repeats<K: Ord + Hash>(starts: &[u32], key_at: impl Fn(u32) -> K) -> bool {
    if starts.len() > FEW {
        return repeats_among_many(starts, key_at);
    }
    let mut starts = starts.to_vec();
    starts.sort_unstable_by_key(|start| key_at(*start));
    starts
        .windows(2)
        .any(|pair| key_at(pair[0]) == key_at(pair[1]))
}

/// The same in linear time, by a hash table. An entry is an offset and, in the bits above it, a part of the key's hash, so
/// that a key is rarely read again to be compared. (A table of keys takes four times the memory.)
fn repeats_among_many<K: Eq + Hash>(starts: &[u32], key_at: impl Fn(u32) -> K) -> bool {
    const FREE: u32 = 0;
    const OFFSET: u32 = MAX_LENGTH as u32 - 1;
    const { assert!(MAX_LENGTH.is_power_of_two() && MAX_LENGTH <= 1 << 31) };
    let secret = RandomState::new();
    let mut table = vec![FREE; starts.len() * 5 / 4];
    starts.iter().any(|&start| {
        let key = key_at(start);
        let hash = secret.hash_one(&key);
        // Never equal to the mark of a free entry
        let mark = (hash as u32 & !OFFSET) | (OFFSET + 1);
        let mut slot = (hash >> 32) as usize % table.len();
        while table[slot] != FREE {
            if table[slot] & !OFFSET == mark && key_at(table[slot] & OFFSET) == key {
                return true;
            }
            slot = (slot + 1) % table.len();
        }
        table[slot] = mark | start;
        false
    })
}

/// The name of a property: `\0*\0name` if it is protected, `\0Class\0name` if it is private
/// (`zend_unmangle_property_name_ex`).
struct Property<'b> {
    /// Empty if it is public, `*`, or a class
    scope: &'b [u8],
    name: &'b [u8],
}

impl<'b> Property<'b> {
    fn parse(mangled: &'b [u8]) -> Option<Property<'b>> {
        let Some(mangled) = mangled.strip_prefix(b"\0") else {
            return Some(Property {
                scope: b"",
                name: mangled,
            });
        };
        let end = mangled.iter().position(|&byte| byte == 0)?;
        let scope = &mangled[..end];
        let name = &mangled[end + 1..];
        (!scope.is_empty() && !name.is_empty()).then_some(Property { scope, name })
    }
}

/// The name that is unique among the properties of an object of `class`. For `unserialize`, a
/// protected, a public and an own private property of the same name are the same property; a private
/// property of a parent class is a different property.
fn plain_name<'b>(mangled: &'b [u8], class: &[u8]) -> &'b [u8] {
    match Property::parse(mangled) {
        Some(Property { scope, name }) if scope == b"*" || scope.eq_ignore_ascii_case(class) => {
            name
        }
        _ => mangled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_and_own_private_properties_have_the_name_of_a_public_one() {
        for (mangled, plain) in [
            (&b"a"[..], &b"a"[..]),
            (b"\0*\0a", b"a"),
            (b"\0Own\0a", b"a"),
            (b"\0own\0a", b"a"),
            (b"\0Parent\0a", b"\0Parent\0a"),
        ] {
            assert_eq!(plain_name(mangled, b"Own"), plain);
        }
    }

    /// PHP cannot access such a property (`object_common`).
    #[test]
    fn a_property_whose_name_starts_with_half_a_class_is_refused() {
        for (name, is_property) in [
            ("a", true),
            ("\0*\0a", true),
            ("\0a", false),
            ("\0\0a", false),
            ("\0A\0", false),
        ] {
            let length = name.len();
            let file = format!("x|O:8:\"stdClass\":1:{{s:{length}:\"{name}\";i:1;}}");
            let decoded = decode(file.as_bytes(), Format::Php);
            assert_eq!(decoded.is_ok(), is_property, "{name:?}");
        }
    }

    #[test]
    fn a_key_is_unique_among_few_and_among_many() {
        for count in [2, FEW, FEW + 1, 10 * FEW] {
            for (last, is_accepted) in [(count, true), (0, false), (count - 1, false)] {
                let keys = (0..count)
                    .chain([last])
                    .map(|key| format!("s:9:\"key{key:06}\";N;"));
                let keys: String = keys.collect();
                let array = format!("x|a:{}:{{{keys}}}", count + 1);
                let decoded = decode(array.as_bytes(), Format::Php);
                assert_eq!(decoded.is_ok(), is_accepted, "{count} {last}");
                let variables = (0..count).chain([last]).map(|key| format!("key{key}|N;"));
                let decoded = decode(variables.collect::<String>().as_bytes(), Format::Php);
                assert_eq!(decoded.is_ok(), is_accepted, "{count} {last}");
            }
        }
    }

    #[test]
    fn integer_keys_are_unique_in_any_order() {
        for (keys, is_accepted) in [
            ([0, 1, 2], true),
            ([5, 1, 3], true),
            ([0, 0, 1], false),
            ([3, 5, 3], false),
        ] {
            let entries = keys.map(|key| format!("i:{key};b:1;")).concat();
            let decoded = decode(format!("x|a:3:{{{entries}}}").as_bytes(), Format::Php);
            assert_eq!(decoded.is_ok(), is_accepted, "{keys:?}");
        }
    }

    /// The content of `C:` is that of its class; each of its values has two bytes or more.
    #[test]
    fn a_reference_can_be_to_a_value_in_the_content_of_a_class() {
        for (number, is_accepted) in [(1, true), (6, true), (7, false)] {
            let file = format!("x|C:1:\"A\":10:{{0123456789}}y|R:{number};");
            let decoded = decode(file.as_bytes(), Format::Php);
            assert_eq!(decoded.is_ok(), is_accepted, "{number}");
        }
    }
}
