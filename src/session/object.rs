//! What PHP requires of objects of its own classes. Those of the application are unknown here: an
//! object of one can hold anything.

use super::classes::{CLASSES, SHAPES};
use super::lexer::Token;

/// A class of PHP's own.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// Its letter in [`Property::types`]
    pub letter: char,
    /// `None` if there are no objects of it in a session: an interface, an abstract class, or one
    /// that PHP refuses to serialize
    pub shape: Option<Shape>,
}

/// The properties that are required, or restricted to certain types.
#[derive(Clone, Copy, Debug)]
pub struct Shape(&'static str);

/// A property of a shape
#[derive(Clone, Copy, Debug)]
pub struct Property {
    /// A letter for each type that it can have
    types: &'static str,
    /// Whether an object without it is refused
    pub is_required: bool,
    /// Whether it must not share its value with a reference
    pub is_unshared: bool,
}

impl Class {
    /// Looks up a class by its name, in which case does not matter.
    pub fn find(name: &[u8]) -> Option<Class> {
        /// A name of 40 characters, a space, a letter, a space, a letter, a line break
        const ROW: usize = 45;
        let (rows, _) = CLASSES.as_bytes().as_chunks::<ROW>();
        let row = rows.binary_search_by(|row| {
            let known = row.iter().copied().take_while(|&byte| byte != b' ');
            known.cmp(name.iter().map(u8::to_ascii_lowercase))
        });
        let [.., letter, _, shape, _] = rows[row.ok()?];
        let shape = SHAPES.get(usize::from(shape - b'a'))?;
        let shape = (*shape != "never").then_some(Shape(shape));
        Some(Class { letter: letter.into(), shape })
    }
}

impl Property {
    /// Whether it accepts a value of the type with that letter, `?` for an object of an unknown
    /// class.
    pub fn accepts(self, letter: char) -> bool {
        const OBJECTS: [char; 5] = ['T', 'D', 'I', 'G', 'O'];
        match letter {
            _ if self.types == "*" => true,
            '?' => self.types.contains(OBJECTS),
            letter => self.types.contains(letter),
        }
    }
}

impl Shape {
    fn properties(self) -> impl Iterator<Item = (&'static str, Property)> {
        // Such a class decodes its properties by itself, and expects no references among them.
        let is_unshared = self.0.contains('!');
        let mut words = self.0.split_ascii_whitespace();
        std::iter::from_fn(move || {
            let (name, types) = (words.next()?, words.next()?);
            let is_required = types.starts_with('!');
            let types = types.trim_start_matches('!');
            Some((name, Property { types, is_required, is_unshared }))
        })
    }

    /// How many of the properties are required
    pub fn required(self) -> usize {
        self.properties().filter(|(_, property)| property.is_required).count()
    }

    /// The property that `key` names; `None` if its value can be anything. The error: `serialize`
    /// does not write that name, and `unserialize` may take it for another of the same property.
    pub fn property(self, key: &Token) -> Result<Option<Property>, ()> {
        let mut is_alias = matches!(key, Token::Text([0, ..])) && !self.0.is_empty();
        for (name, property) in self.properties() {
            if key.is_key(name) {
                return Ok(Some(property));
            }
            is_alias |= name.rsplit('\0').next().is_some_and(|plain| key.is_key(plain));
        }
        if is_alias { Err(()) } else { Ok(None) }
    }
}

/// The scope and the name of a property: `\0*\0name` if it is protected, `\0Class\0name` if it is
/// private (`zend_unmangle_property_name_ex`).
pub fn unmangle(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let Some(name) = name.strip_prefix(b"\0") else { return Some((b"", name)) };
    let end = name.iter().position(|&byte| byte == 0)?;
    let (scope, plain) = (&name[..end], &name[end + 1..]);
    (!scope.is_empty() && !plain.is_empty()).then_some((scope, plain))
}

/// The name under which an object of `class` has one property only: a protected, an own private
/// and a public property of one name are the same to `unserialize`; a private one of a parent is
/// another.
pub fn plain_name<'b>(name: &'b [u8], class: &[u8]) -> &'b [u8] {
    match unmangle(name) {
        Some((scope, plain)) if scope == b"*" || scope.eq_ignore_ascii_case(class) => plain,
        _ => name,
    }
}
