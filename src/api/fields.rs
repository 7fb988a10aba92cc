//! The fields of a write's body, JSON or form.

use super::refused;
use crate::error::Error;
use crate::model::{Color, Label, MAX_PLATES, PlateKey, PlateName};
use crate::php::json::{Map, Value};
use crate::php::text::trim;

/// Fields by name. Null counts as absent, and so does a string that is blank once trimmed, but for the date: an empty
/// date picker must not overwrite today's menu.
#[derive(Debug, Default)]
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

    /// Whether `name` is present, of any type.
    pub fn has(&self, name: &str) -> bool {
        !matches!(self.text(name), Ok(None))
    }

    /// MISSING_PARAM if one of `names` is absent.
    pub fn require(&self, names: &[&str]) -> Result<(), Error> {
        match names.iter().find(|name| !self.has(name)) {
            None => Ok(()),
            Some(name) => Err(Error::missing_param(name)),
        }
    }

    /// The trimmed string `name`; INVALID_FORMAT for another type.
    pub fn text(&self, name: &str) -> Result<Option<&str>, Error> {
        let text = self.untrimmed(name)?.map(trim);
        Ok(text.filter(|text| !text.is_empty()))
    }

    /// The string `name` as it was sent; INVALID_FORMAT for another type.
    pub fn untrimmed(&self, name: &str) -> Result<Option<&str>, Error> {
        string(self.0.get(name), name)
    }

    pub fn label(&self) -> Result<Option<Label<'_>>, Error> {
        self.text("label")?
            .map(Label::parse)
            .transpose()
            .map_err(refused("label"))
    }

    pub fn color(&self) -> Result<Option<Color<'_>>, Error> {
        self.text("color")?
            .map(Color::parse)
            .transpose()
            .map_err(refused("color"))
    }

    /// The plates that have a name, by key. INVALID_FORMAT if they are absent.
    pub fn plates(&self) -> Result<Vec<(PlateKey<'_>, PlateName<'_>)>, Error> {
        let plates = self.0.get("plates").and_then(Value::as_map);
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

/// The string `value`; INVALID_FORMAT for another type.
fn string<'v>(value: Option<&'v Value>, name: &str) -> Result<Option<&'v str>, Error> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Error::invalid_format(format!("{name} must be a string."))),
    }
}

fn plate_name(plate: &Value) -> Result<Option<PlateName<'_>>, Error> {
    let name = match plate {
        Value::Map(plate) => plate.get("name"),
        Value::Null => None,
        // An empty map, as PHP writes it. Another list is rejected: it has no field `name`.
        Value::List(list) if list.is_empty() => None,
        _ => {
            return Err(Error::invalid_format(
                "A plate must be an object with a name.",
            ));
        }
    };
    let name = string(name, "The name of a plate")?
        .map(PlateName::parse)
        .transpose();
    name.map_err(refused("The name of a plate"))
}

pub fn too_many_plates() -> Error {
    Error::invalid_format(format!("A menu must have at most {MAX_PLATES} plates."))
}
