//! The fields of a write's body, JSON or form.

use super::{parse_date, refused};
use crate::error::Error;
use crate::model::{Date, MAX_PLATES, PlateKey, PlateName};
use crate::php::json::{Map, Value};
use crate::php::text::trim;

/// Fields by name. Null counts as absent, and so does a string that is blank once trimmed, but for the date: an empty
/// date picker must not overwrite today's menu.
#[derive(Debug)]
pub struct Fields(Map);

impl Fields {
    /// The fields of a body. A list of plates, as PHP writes some maps, becomes a map, and a number its text.
    pub fn new(mut map: Map) -> Fields {
        for (name, value) in map.iter_mut() {
            value.numbers_to_text();
            if name == "plates" {
                value.as_php_map();
            }
        }
        Fields(map)
    }

    /// The field `name`; MISSING_PARAM if it is absent.
    pub fn required(&self, name: &'static str) -> Result<Field<'_>, Error> {
        self.optional(name)
            .ok_or_else(|| Error::missing_param(name))
    }

    /// The field `name`, if it is present, of any type.
    pub fn optional(&self, name: &'static str) -> Option<Field<'_>> {
        let value = not_null(self.0.get(name)?)?;
        let is_blank = matches!(value, Value::String(text) if trim(text).is_empty());
        (!is_blank).then_some(Field { name, value })
    }

    /// The date, if it is present. INVALID_FORMAT if it is not one, or blank.
    pub fn date(&self) -> Result<Option<Date>, Error> {
        let value = self.0.get("date").and_then(not_null);
        value
            .map(|value| parse_date(string(value, "date")?))
            .transpose()
    }
}

/// A field that is present. An action gets all that it requires before it parses one, so that clients are told of an
/// absent field first.
#[derive(Clone, Copy, Debug)]
pub struct Field<'f> {
    name: &'static str,
    value: &'f Value,
}

impl<'f> Field<'f> {
    /// The trimmed string; INVALID_FORMAT for another type.
    pub fn text(self) -> Result<&'f str, Error> {
        string(self.value, self.name).map(trim)
    }

    /// The trimmed string, parsed. INVALID_FORMAT for another type, and for a string that `parse` rejects.
    pub fn parse<T>(
        self,
        parse: impl FnOnce(&'f str) -> Result<T, &'static str>,
    ) -> Result<T, Error> {
        parse(self.text()?).map_err(refused(self.name))
    }

    /// The plates that have a name, by key. INVALID_FORMAT if it is not a map.
    pub fn plates(self) -> Result<Vec<(PlateKey<'f>, PlateName<'f>)>, Error> {
        let plates = self.value.as_map();
        let plates = plates.ok_or_else(|| Error::invalid_format("plates must be an object."))?;
        if plates.len() > MAX_PLATES {
            return Err(too_many_plates());
        }
        let mut named = Vec::with_capacity(plates.len());
        for (key, plate) in plates.iter() {
            let key = PlateKey::parse(key).map_err(refused("The key of a plate"))?;
            if let Some(name) = plate_name(plate)? {
                named.push((key, name));
            }
        }
        Ok(named)
    }
}

fn not_null(value: &Value) -> Option<&Value> {
    (!matches!(value, Value::Null)).then_some(value)
}

/// The string `value`; INVALID_FORMAT for another type.
fn string<'v>(value: &'v Value, name: &str) -> Result<&'v str, Error> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(Error::invalid_format(format!("{name} must be a string."))),
    }
}

fn plate_name(plate: &Value) -> Result<Option<PlateName<'_>>, Error> {
    const NAME: &str = "The name of a plate";
    let name = match plate {
        Value::Map(plate) => plate.get("name").and_then(not_null),
        Value::Null => None,
        // An empty map, as PHP writes it. Another list is rejected: it has no field `name`.
        Value::List(list) if list.is_empty() => None,
        _ => {
            let sentence = "A plate must be an object with a name.";
            return Err(Error::invalid_format(sentence));
        }
    };
    name.map(|name| PlateName::parse(string(name, NAME)?).map_err(refused(NAME)))
        .transpose()
}

pub fn too_many_plates() -> Error {
    Error::invalid_format(format!("A menu must have at most {MAX_PLATES} plates."))
}
