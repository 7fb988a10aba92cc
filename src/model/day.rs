//! The menus of a day.

use std::mem;

use super::{Date, Invalid, PlateKey, PlateName, with_strings_first};
use crate::php::json::{Map, Value};

/// The maximum number of plates in a menu.
pub const MAX_PLATES: usize = 64;

/// The plates that every menu shows.
const PLATES: [&str; 3] = ["primero", "segundo", "postre"];

/// The map in the file of a day, including unknown entries. A menu that is not used may be of any kind.
#[derive(Debug)]
pub struct Day(Map);

impl From<Day> for Value {
    fn from(day: Day) -> Value {
        Value::Map(day.0)
    }
}

/// Converts `value` to a map: a list becomes a map, null is accepted as absent.
fn map_at<'v>(value: &'v mut Value, path: &[&str]) -> Result<Option<&'v mut Map>, String> {
    match value {
        Value::Null => Ok(None),
        value => {
            value.as_php_map().map(Some).ok_or_else(|| format!("{} is not a map", path.join(".")))
        }
    }
}

/// Converts the value of `key`, if there is one, in the same way.
fn inner_map<'m>(
    map: &'m mut Map,
    key: &str,
    path: &[&str],
) -> Result<Option<&'m mut Map>, String> {
    Ok(map.get_mut(key).map(|value| map_at(value, path)).transpose()?.flatten())
}

impl Day {
    /// The day in a file, which may be absent, to read or change the menu of the type `id`. The error says what is not
    /// a map there: the document, its menus, this menu or one of its plates.
    pub fn with_menu(file: Option<Value>, id: &str) -> Result<Day, String> {
        let mut day = Day::with_menus(file)?;
        day.convert_menu(id)?;
        Ok(day)
    }

    /// The day in a file, which may be absent, to read all its menus.
    pub fn complete(file: Option<Value>) -> Result<Day, String> {
        let mut day = Day::with_menus(file)?;
        for id in day.ids().map(str::to_owned).collect::<Vec<_>>() {
            day.convert_menu(&id)?;
        }
        Ok(day)
    }

    fn with_menus(file: Option<Value>) -> Result<Day, String> {
        let mut value = file.unwrap_or(Value::Map(Map::default()));
        let day = value.as_php_map().ok_or("the document is not a map")?;
        inner_map(day, "menus", &["menus"])?;
        Ok(Day(mem::take(day)))
    }

    fn convert_menu(&mut self, id: &str) -> Result<(), String> {
        let Some(menus) = inner_map(&mut self.0, "menus", &["menus"])? else { return Ok(()) };
        let Some(menu) = inner_map(menus, id, &["menus", id])? else { return Ok(()) };
        let plates = inner_map(menu, "plates", &["menus", id, "plates"])?;
        for (key, plate) in plates.into_iter().flat_map(Map::iter_mut) {
            map_at(plate, &["menus", id, "plates", key])?;
        }
        Ok(())
    }

    /// The ids of the types that have a menu on this day.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let menus = self.0.get("menus").and_then(Value::as_map);
        menus.into_iter().flat_map(Map::iter).map(|(id, _)| id)
    }

    /// The menu of the type `id` as a response shows it.
    pub fn menu(self, id: &str) -> Value {
        let menus = self.0.into_value("menus").unwrap_or_default().into_map();
        shown_menu(menus.into_value(id).unwrap_or_default())
    }

    /// Changes the names of `plates` in the menu of the type `id`; returns the menu as a response
    /// shows it. The first save of a menu stores the three plates that every menu shows. Fails if
    /// plates are added beyond [`MAX_PLATES`].
    pub fn save(
        &mut self,
        date: &Date,
        id: &str,
        plates: &[(PlateKey, PlateName)],
    ) -> Result<Value, Invalid> {
        if self.0.get("date").is_none() {
            *self.0.move_to(0, "date") = Value::from(date.as_str());
        }
        let menu = self.0.entry("menus").coerce_to_map().entry(id.to_owned()).coerce_to_map();
        let is_first_save = menu.get("plates").and_then(Value::as_map).is_none();
        let stored = menu.entry("plates").coerce_to_map();
        let known = stored.len();
        if is_first_save {
            for key in PLATES {
                stored.set(key, new_plate(""));
            }
        }
        for (key, name) in plates {
            match stored.entry(key.0.to_owned()) {
                Value::Map(plate) => plate.set("name", Value::from(name.0)),
                plate => *plate = new_plate(name.0),
            }
        }
        if stored.len() > MAX_PLATES.max(known) {
            return Err(Invalid::TooManyPlates);
        }
        Ok(shown_menu(Value::Map(menu.clone())))
    }
}

/// The menu with the three plates that every menu shows first.
fn shown_menu(menu: Value) -> Value {
    let mut menu = menu.into_map();
    let plates = menu.move_to(0, "plates");
    let mut shown = mem::take(plates).into_map();
    for (index, key) in PLATES.into_iter().enumerate() {
        shown.move_to(index, key);
    }
    for (_, plate) in shown.iter_mut() {
        let fields = [("name", ""), ("pictogram", "")];
        *plate = Value::Map(with_strings_first(mem::take(plate).into_map(), fields));
    }
    *plates = Value::Map(shown);
    Value::Map(menu)
}

fn new_plate(name: &str) -> Value {
    Value::Map(Map::from([("name", Value::from(name)), ("pictogram", Value::from(""))]))
}
