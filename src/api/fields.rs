//! The fields of a write's body, of whichever kind the body was.

use crate::error::Error;
use crate::json::{self, Map, Value};
use crate::model::{self, trim};

/// Named values. Null is the same as absent, and so is a string that is blank once trimmed.
#[derive(Debug, Default)]
pub struct Fields(Map);

impl From<Map> for Fields {
    fn from(map: Map) -> Fields {
        Fields(map)
    }
}

impl Fields {
    /// Whether `name` was sent, as whatever.
    pub fn has(&self, name: &str) -> bool {
        match json::get(&self.0, name) {
            None | Some(Value::Null) => false,
            Some(Value::String(text)) => !trim(text).is_empty(),
            Some(_) => true,
        }
    }

    /// MISSING_PARAM where one of `names` is absent.
    pub fn require(&self, names: &[&str]) -> Result<(), Error> {
        match names.iter().find(|name| !self.has(name)) {
            None => Ok(()),
            Some(name) => Err(Error::missing_param(name)),
        }
    }

    /// The trimmed string `name`; INVALID_FORMAT where it is something else.
    pub fn text(&self, name: &str) -> Result<Option<&str>, Error> {
        let text = self.untrimmed(name)?.map(trim);
        Ok(text.filter(|text| !text.is_empty()))
    }

    /// The string `name` as it was sent, where it is not empty; INVALID_FORMAT where it is
    /// something else.
    pub fn untrimmed(&self, name: &str) -> Result<Option<&str>, Error> {
        match json::get(&self.0, name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
            Some(_) => Err(Error::invalid_format(format!("The field {name} must be a string."))),
        }
    }

    /// The field `label`.
    pub fn label(&self) -> Result<Option<&str>, Error> {
        match self.text("label")? {
            Some(label) if label.chars().count() > model::MAX_LABEL => {
                Err(Error::invalid_format("The field label must have at most 200 characters."))
            }
            label => Ok(label),
        }
    }

    /// The field `color`.
    pub fn color(&self) -> Result<Option<&str>, Error> {
        match self.text("color")? {
            Some(color) if !model::is_color(color) => {
                Err(Error::invalid_format("The field color must be # and six hexadecimal digits."))
            }
            color => Ok(color),
        }
    }

    /// The names that `plates` gives, trimmed, by plate key; plates without a name are left
    /// out.
    pub fn plates(&self) -> Result<Vec<(String, String)>, Error> {
        let plates = self.0.iter().find(|(key, _)| key == "plates");
        let plates = match plates.map(|(_, value)| value.clone().into_map()) {
            None => return Ok(Vec::new()),
            Some(Ok(plates)) => plates,
            Some(Err(_)) => {
                return Err(Error::invalid_format("The field plates must be an object."));
            }
        };
        if plates.len() > model::MAX_PLATES {
            return Err(too_many_plates());
        }
        let mut names = Vec::new();
        for (key, plate) in plates {
            if !model::is_plate_key(&key) {
                return Err(Error::invalid_format(
                    "The key of a plate must be 1 to 64 of A-Z a-z 0-9 _ -.",
                ));
            }
            if let Some(name) = plate_name(plate)? {
                names.push((key.into_owned(), name));
            }
        }
        Ok(names)
    }
}

fn plate_name(plate: Value) -> Result<Option<String>, Error> {
    let plate = match plate {
        Value::Map(plate) => plate,
        Value::Null => return Ok(None),
        // A map without entries, as PHP writes it. What else is in a list has no name.
        Value::List(list) if list.is_empty() => return Ok(None),
        _ => return Err(Error::invalid_format("A plate must be an object with a name.")),
    };
    match json::get(&plate, "name") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => {
            let name = trim(name);
            if name.chars().count() > model::MAX_NAME {
                return Err(Error::invalid_format(
                    "The name of a plate must have at most 2000 characters.",
                ));
            }
            Ok(Some(name.to_owned()))
        }
        Some(_) => Err(Error::invalid_format("The name of a plate must be a string.")),
    }
}

/// INVALID_FORMAT: more plates than a menu may have.
pub fn too_many_plates() -> Error {
    Error::invalid_format("A menu must have at most 64 plates.")
}
