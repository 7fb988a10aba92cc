//! The menus of a day.

use std::mem;

use super::{Date, DocumentError, PlateKey, PlateName, put_strings_first};
use crate::php::json::{Map, Value};

/// The maximum number of plates in a menu. The pages have three; a client that adds plates in error cannot fill the file.
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

/// The keys that one step of a path follows.
enum Step<'p> {
    Key(&'p str),
    EveryKey,
}

impl Step<'_> {
    fn follows(&self, key: &str) -> bool {
        match self {
            Step::Key(wanted) => *wanted == key,
            Step::EveryKey => true,
        }
    }
}

/// The path of a value that is not a map.
struct NotMap(String);

/// Converts to maps the values in `map` at `path`. A list becomes a map; null is accepted as absent.
fn convert_to_maps(map: &mut Map, path: &[Step]) -> Result<(), NotMap> {
    let Some((step, inner)) = path.split_first() else {
        return Ok(());
    };
    for (key, value) in map.iter_mut() {
        if step.follows(key) && !matches!(value, Value::Null) {
            let map = value.as_php_map().ok_or_else(|| NotMap(key.to_owned()))?;
            convert_to_maps(map, inner).map_err(|NotMap(path)| NotMap(format!("{key}.{path}")))?;
        }
    }
    Ok(())
}

impl Day {
    /// The day in a file, which may be absent, to read or change the menu of the type `id`, or to read all its
    /// menus. Fails if the document, its menus, such a menu or one of its plates is not a map.
    pub fn from_json(file: Option<Value>, id: Option<&str>) -> Result<Day, DocumentError> {
        let mut value = file.unwrap_or(Value::Map(Map::default()));
        let day = value.as_php_map().ok_or(DocumentError::NotMap)?;
        let plates = [
            Step::Key("menus"),
            id.map_or(Step::EveryKey, Step::Key),
            Step::Key("plates"),
            Step::EveryKey,
        ];
        convert_to_maps(day, &plates).map_err(|NotMap(path)| DocumentError::PartNotMap { path })?;
        Ok(Day(mem::take(day)))
    }

    /// The ids of the types that have a menu on this day.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let menus = self.0.get("menus").and_then(Value::as_map);
        menus.into_iter().flat_map(Map::iter).map(|(id, _)| id)
    }

    /// The menu of the type `id` as a response shows it.
    pub fn menu(mut self, id: &str) -> Value {
        shown_menu(mem::take(self.entry(id)))
    }

    /// The menu of the type `id`, null if it is absent.
    fn entry(&mut self, id: &str) -> &mut Value {
        self.0.entry("menus").coerce_to_map().entry(id.to_owned())
    }

    /// Changes the names of `plates` in the menu of the type `id`; returns the menu as a response
    /// shows it. The first save of a menu stores the three plates that every menu shows. `None` if
    /// plates are added beyond [`MAX_PLATES`].
    pub fn save(
        &mut self,
        date: &Date,
        id: &str,
        plates: &[(PlateKey, PlateName)],
    ) -> Option<Value> {
        if self.0.get("date").is_none() {
            *self.0.move_to(0, "date") = Value::from(date.as_str());
        }
        let menu = self.entry(id);
        let stored = menu.coerce_to_map().entry("plates");
        let is_first_save = stored.as_map().is_none();
        let stored = stored.coerce_to_map();
        let known = stored.len();
        if is_first_save {
            for key in PLATES {
                *stored.entry(key) = new_plate("");
            }
        }
        for (key, name) in plates {
            match stored.entry(key.0.to_owned()) {
                Value::Map(plate) => *plate.entry("name") = Value::from(name.0),
                plate => *plate = new_plate(name.0),
            }
        }
        if stored.len() > MAX_PLATES.max(known) {
            return None;
        }
        Some(shown_menu(menu.clone()))
    }
}

/// The menu with the three plates that every menu shows first.
fn shown_menu(mut menu: Value) -> Value {
    let plates = menu.coerce_to_map().move_to(0, "plates").coerce_to_map();
    for (index, key) in PLATES.into_iter().enumerate() {
        plates.move_to(index, key);
    }
    for (_, plate) in plates.iter_mut() {
        put_strings_first(plate.coerce_to_map(), [("name", ""), ("pictogram", "")]);
    }
    menu
}

fn new_plate(name: &str) -> Value {
    Value::Map(Map::from([
        ("name", Value::from(name)),
        ("pictogram", Value::from("")),
    ]))
}
