//! Checks objects of PHP's own classes. Classes of the application are unknown: their objects can
//! have any properties.

use super::classes::{CLASSES, SHAPES};
use super::lexer::Token;

/// A built-in class of PHP.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// Its letter in [`Property::types`]
    pub letter: char,
    /// `None` if a session cannot contain objects of it: an interface, an abstract class, or a class
    /// that PHP does not serialize
    pub shape: Option<Shape>,
}

/// The properties that are required, or restricted to certain types.
#[derive(Clone, Copy, Debug)]
pub struct Shape(&'static str);

/// A property of a shape
#[derive(Clone, Copy, Debug)]
pub struct Property {
    /// A letter for each allowed type
    types: &'static str,
    /// Whether an object without it is invalid
    pub is_required: bool,
    /// Whether references to its value are invalid
    pub is_unshared: bool,
}

impl Class {
    /// Looks up a class by its name, which is case-insensitive.
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
    /// Whether the property accepts a value of the type `letter`; `?` is an object of an unknown
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
        // Such a class decodes its properties itself, and references to them are invalid.
        let is_unshared = self.0.contains('!');
        let mut words = self.0.split_ascii_whitespace();
        std::iter::from_fn(move || {
            let (name, types) = (words.next()?, words.next()?);
            let is_required = types.starts_with('!');
            let types = types.trim_start_matches('!');
            Some((name, Property { types, is_required, is_unshared }))
        })
    }

    /// The number of required properties
    pub fn required(self) -> usize {
        self.properties().filter(|(_, property)| property.is_required).count()
    }

    /// The property with the name `key`; `None` if it can have any value. An error if `serialize`
    /// does not write this name, and `unserialize` may treat it as an alias of a property.
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

/// The name that is unique among the properties of an object of `class`. For `unserialize`, a
/// protected, a public and an own private property of the same name are the same property; a private
/// property of a parent class is another one.
pub fn plain_name<'b>(name: &'b [u8], class: &[u8]) -> &'b [u8] {
    match unmangle(name) {
        Some((scope, plain)) if scope == b"*" || scope.eq_ignore_ascii_case(class) => plain,
        _ => name,
    }
}
