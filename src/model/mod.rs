//! The domain: ids, dates, colours, menu types, menus and plates.
//!
//! No I/O: text and JSON values in, JSON values out. Unknown content of a file keeps its position.

mod day;
mod menu_types;
mod values;

pub use day::{Day, MAX_PLATES};
pub use menu_types::MenuTypes;
pub use values::{Color, Date, Id, Label, PlateKey, PlateName, TypeId, trim};

use crate::php::json::{Map, Value};

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
