//! The domain: ids, dates, colours, menu types, menus and plates.
//!
//! No I/O: text and JSON values in, JSON values out. Unknown content of a file keeps its position.

mod day;
mod menu_types;
mod values;

pub use day::{Day, MAX_PLATES};
pub use menu_types::MenuTypes;
pub use values::{Color, Date, Id, Label, PlateKey, PlateName, TypeId};

use crate::php::json::{Map, Value};

/// Why the document of a data file cannot be used: a part of it has another type than the pages write.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("the document is not a map")]
    NotMap,
    #[error("the document is not a list of menu types")]
    NotTypes,
    /// `path` is the keys that lead to the part.
    #[error("{path} is not a map")]
    PartNotMap { path: String },
}

/// The keys of nearly every data file, which need no copy.
pub fn known_key(text: &str) -> Option<&'static str> {
    const KEYS: [&str; 11] = [
        "id", "label", "color", "date", "menus", "plates", "name", "pictogram", "primero",
        "segundo", "postre",
    ];
    KEYS.into_iter().find(|known| *known == text)
}

/// Moves `fields` to the front, all of them strings; an absent or null field gets its default.
fn put_strings_first<const N: usize>(map: &mut Map, fields: [(&'static str, &str); N]) {
    for (index, (key, default)) in fields.into_iter().enumerate() {
        let field = map.move_to(index, key);
        let text = match std::mem::take(field) {
            Value::Null => None,
            value => value.into_text(),
        };
        *field = Value::String(text.unwrap_or_else(|| default.to_owned()));
    }
}
