//! The dining hall's own words: ids, dates, colours, menu types, menus and plates.
//!
//! Pure: from JSON values to JSON values. What a file holds beyond what is known here stays
//! in it, and stays where it is.

use std::mem;

use chrono::NaiveDate;

use crate::json::{self, Key, Map, Value};

/// The longest id, of a centre, an aulario or a menu type.
pub const MAX_ID: usize = 64;
/// The longest label, in characters.
pub const MAX_LABEL: usize = 200;
/// The longest name of a plate, in characters.
pub const MAX_NAME: usize = 2000;
/// The most plates of a menu.
pub const MAX_PLATES: usize = 64;
/// The colour of a type that has none.
pub const DEFAULT_COLOR: &str = "#0d6efd";
/// What an aulario has until its types are changed for the first time.
const DEFAULT_TYPES: [(&str, &str, &str); 3] = [
    ("basal", "Menú basal", DEFAULT_COLOR),
    ("vegetariano", "Menú vegetariano", "#198754"),
    ("alergias", "Menú alergias", "#dc3545"),
];
/// The plates that every menu shows.
const PLATES: [&str; 3] = ["primero", "segundo", "postre"];

/// Whether `text` can be the id of a centre or an aulario, and so a part of a path:
/// 1 to 64 of `A-Z a-z 0-9 . _ -`, no dot in front.
pub fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_ID
        && !text.starts_with('.')
        && text.chars().all(is_id_char)
}

fn is_id_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// Whether `text` can be the key of a plate.
pub fn is_plate_key(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// Whether `text` is `#` and six hexadecimal digits.
pub fn is_color(text: &str) -> bool {
    text.strip_prefix('#')
        .is_some_and(|digits| digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Whether `text` is exactly `YYYY-MM-DD` and a day of the calendar (as PHP's `checkdate`
/// has it: there is no year 0).
pub fn is_date(text: &str) -> bool {
    let Some((year, month, day)) = (match *text.as_bytes() {
        [a, b, c, d, b'-', e, f, b'-', g, h] => number(&[a, b, c, d])
            .zip(number(&[e, f]))
            .zip(number(&[g, h]))
            .map(|((year, month), day)| (year, month, day)),
        _ => None,
    }) else {
        return false;
    };
    year > 0 && NaiveDate::from_ymd_opt(year as i32, month, day).is_some()
}

fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0'))
    })
}

/// PHP's `trim()`.
pub fn trim(text: &str) -> &str {
    text.trim_matches(['\0', '\t', '\n', '\x0b', '\r', ' '])
}

/// What is left of `text` as an id: trimmed, the last part of a path, without the characters
/// that no id has.
fn clean_id(text: &str) -> String {
    let path = trim(text).trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or_default();
    name.chars().filter(|&c| is_id_char(c)).collect()
}

/// The id of a new menu type: cleaned and in lower case. `None` where nothing is left.
pub fn new_id(text: &str) -> Option<String> {
    Some(clean_id(&text.to_ascii_lowercase())).filter(|id| !id.is_empty())
}

/// Whether an id that [`new_id`] made is short enough.
pub fn is_short(id: &str) -> bool {
    id.len() <= MAX_ID
}

/// A value of a data file that is not what it must be, as the place in the file.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{place} is no {expected}")]
pub struct Misshapen {
    place: String,
    expected: &'static str,
}

fn misshapen(path: &[&str], expected: &'static str) -> Misshapen {
    let place = if path.is_empty() { "the whole".to_owned() } else { path.join(".") };
    Misshapen { place, expected }
}

/// What a data file holds.
pub trait Document: Sized {
    /// Takes what is in the file; nothing where there is none.
    fn from_file(value: Option<Value>) -> Result<Self, Misshapen>;
    /// What to write.
    fn into_file(self) -> Value;
}

/// The menu types of an aulario: the list in the file, with whatever else stands in it.
#[derive(Debug)]
pub struct MenuTypes(Vec<Value>);

impl Document for MenuTypes {
    fn from_file(value: Option<Value>) -> Result<MenuTypes, Misshapen> {
        let list = match value {
            None => Vec::new(),
            Some(Value::List(list)) => list,
            // What PHP writes after an entry was removed.
            Some(Value::Map(map)) => map.into_iter().map(|(_, value)| value).collect(),
            Some(_) => return Err(misshapen(&[], "list of menu types")),
        };
        if list.is_empty() {
            let defaults = DEFAULT_TYPES.iter();
            return Ok(MenuTypes(
                defaults.map(|(id, label, color)| menu_type(id, label, color)).collect(),
            ));
        }
        Ok(MenuTypes(list))
    }

    fn into_file(self) -> Value {
        Value::List(self.0)
    }
}

fn menu_type(id: &str, label: &str, color: &str) -> Value {
    Value::Map(json::map([
        ("id", Value::from(id)),
        ("label", Value::from(label)),
        ("color", Value::from(color)),
    ]))
}

/// The id of an entry of the list, where it is usable.
fn id_of(entry: &Value) -> Option<&str> {
    let Value::Map(map) = entry else { return None };
    json::get(map, "id")?.as_str().filter(|id| !id.is_empty())
}

impl MenuTypes {
    /// The types as a response shows them; entries without a usable id are left out.
    pub fn shown(self) -> Value {
        Value::List(self.0.into_iter().filter_map(shown_type).collect())
    }

    /// The usable ids, in their order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(id_of)
    }

    /// How many entries there are, usable or not.
    pub fn entries(&self) -> usize {
        self.0.len()
    }

    /// The id of the first type.
    pub fn first(&self) -> Option<&str> {
        self.ids().next()
    }

    /// The id of the type that `text` names: as it is, else cleaned.
    pub fn find(&self, text: &str) -> Option<&str> {
        let exact = |id: &str| self.ids().find(|known| *known == id);
        exact(text).or_else(|| exact(&clean_id(text)))
    }

    /// Appends a type and gives it as a response shows it. `None` where the id exists.
    pub fn add(&mut self, id: &str, label: &str, color: &str) -> Option<Value> {
        if self.ids().any(|known| known == id) {
            return None;
        }
        let added = menu_type(id, label, color);
        self.0.push(added.clone());
        shown_type(added)
    }

    /// Changes label, colour or both of the type that `text` names and gives it as a response
    /// shows it. `None` where there is no such type.
    pub fn rename(
        &mut self,
        text: &str,
        label: Option<&str>,
        color: Option<&str>,
    ) -> Option<Value> {
        let id = self.find(text)?.to_owned();
        let entry = self.0.iter_mut().find(|entry| id_of(entry) == Some(&id))?;
        if let Value::Map(map) = entry {
            for (key, text) in [("label", label), ("color", color)] {
                if let Some(text) = text {
                    json::set(map, key, Value::from(text));
                }
            }
        }
        shown_type(entry.clone())
    }

    /// Removes the type that `text` names, however often its id stands in the list. `None`
    /// where there is no such type.
    pub fn delete(&mut self, text: &str) -> Option<()> {
        let id = self.find(text)?.to_owned();
        self.0.retain(|entry| id_of(entry) != Some(&id));
        Some(())
    }
}

fn shown_type(entry: Value) -> Option<Value> {
    let id = id_of(&entry)?.to_owned();
    let shown = [("id", id.as_str()), ("label", &id), ("color", DEFAULT_COLOR)];
    Some(with_texts_first(entry, shown))
}

/// The map that `value` is, else an empty one, with the texts of these fields in front; a field
/// that has none gets its default.
fn with_texts_first<const N: usize>(value: Value, fields: [(&'static str, &str); N]) -> Value {
    let mut map = map_of(value);
    for (place, (key, default)) in fields.into_iter().enumerate() {
        let field = json::moved_to(&mut map, place, key);
        let text = match mem::take(field) {
            Value::Null => None,
            value => value.into_text(),
        };
        *field = Value::String(text.unwrap_or_else(|| default.to_owned()));
    }
    Value::Map(map)
}

/// The menus of a day: the map in the file, with whatever else stands in it.
#[derive(Debug)]
pub struct Day(Map);

impl Document for Day {
    fn from_file(value: Option<Value>) -> Result<Day, Misshapen> {
        let mut value = value.unwrap_or(Value::Map(Map::new()));
        let day = map_at(&mut value, &[])?.ok_or_else(|| misshapen(&[], "map"))?;
        for (id, menu) in entries_at(day, "menus", &["menus"])? {
            let Some(menu) = map_at(menu, &["menus", id])? else { continue };
            for (key, plate) in entries_at(menu, "plates", &["menus", id, "plates"])? {
                map_at(plate, &["menus", id, "plates", key])?;
            }
        }
        Ok(Day(mem::take(day)))
    }

    fn into_file(self) -> Value {
        Value::Map(self.0)
    }
}

/// Turns `value` into the map it stands for: PHP writes an empty map, and one with the keys
/// 0, 1, 2 …, as a list. Null is no map, and no fault.
fn map_at<'v>(value: &'v mut Value, place: &[&str]) -> Result<Option<&'v mut Map>, Misshapen> {
    if matches!(value, Value::List(_)) {
        *value = mem::take(value).into_map().map_or_else(|other| other, Value::Map);
    }
    match value {
        Value::Map(map) => Ok(Some(map)),
        Value::Null => Ok(None),
        _ => Err(misshapen(place, "map")),
    }
}

/// The entries of the map under `key`, likewise.
fn entries_at<'v>(
    map: &'v mut Map,
    key: &str,
    place: &[&str],
) -> Result<&'v mut [(Key, Value)], Misshapen> {
    match map.iter_mut().find(|(known, _)| known == key) {
        None => Ok(&mut []),
        Some((_, value)) => Ok(map_at(value, place)?.map_or(&mut [], Vec::as_mut_slice)),
    }
}

impl Day {
    /// The ids of the types that it has menus of.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        inner(&self.0, "menus").into_iter().flatten().map(|(id, _)| &**id)
    }

    /// The menu of the type `id` as a response shows it.
    pub fn menu(self, id: &str) -> Value {
        let menus = self.0.into_iter().find(|(key, _)| key == "menus");
        let mut menus = menus.into_iter().flat_map(|(_, menus)| map_of(menus));
        shown_menu(menus.find(|(key, _)| key == id).map_or(Value::Null, |(_, menu)| menu))
    }

    /// Names plates of the menu of the type `id` and gives it as a response shows it; what is
    /// not named stays as it is. The first save of a menu stores the three plates that every
    /// menu has. `None` where the menu would get more than [`MAX_PLATES`].
    pub fn save(&mut self, date: &str, id: &str, names: &[(String, String)]) -> Option<Value> {
        if json::get(&self.0, "date").is_none() {
            self.0.insert(0, ("date".into(), Value::from(date)));
        }
        let menus = json::made_map(json::entry(&mut self.0, "menus"));
        let menu = json::made_map(json::entry(menus, id.to_owned()));
        let first_save = inner(menu, "plates").is_none();
        let plates = json::made_map(json::entry(menu, "plates"));
        let known = plates.len();
        if first_save {
            plates.extend(PLATES.map(|key| (key.into(), new_plate(""))));
        }
        for (key, name) in names {
            match json::entry(plates, key.clone()) {
                Value::Map(plate) => json::set(plate, "name", Value::from(name.as_str())),
                plate => *plate = new_plate(name),
            }
        }
        let is_small = plates.len() <= MAX_PLATES.max(known);
        is_small.then(|| shown_menu(Value::Map(menu.clone())))
    }
}

/// The menu with the three plates that every menu has in front of any others.
fn shown_menu(menu: Value) -> Value {
    let mut menu = map_of(menu);
    let plates = json::moved_to(&mut menu, 0, "plates");
    let mut shown = map_of(mem::take(plates));
    for (place, key) in PLATES.into_iter().enumerate() {
        json::moved_to(&mut shown, place, key);
    }
    for (_, plate) in &mut shown {
        *plate = with_texts_first(mem::take(plate), [("name", ""), ("pictogram", "")]);
    }
    *plates = Value::Map(shown);
    Value::Map(menu)
}

/// The map that `value` is, else an empty one.
fn map_of(value: Value) -> Map {
    match value {
        Value::Map(map) => map,
        _ => Map::new(),
    }
}

/// The map under `key`.
fn inner<'m>(map: &'m Map, key: &str) -> Option<&'m Map> {
    json::get(map, key)?.as_map()
}

fn new_plate(name: &str) -> Value {
    Value::Map(json::map([("name", Value::from(name)), ("pictogram", Value::from(""))]))
}
