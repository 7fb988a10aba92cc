//! The menu types of an aulario.

use std::borrow::Cow;

use super::{Color, DocumentError, Label, TypeId, put_strings_first};
use crate::php::json::{Map, Value};

/// The list of types in the file, including unusable entries.
#[derive(Debug)]
pub struct MenuTypes(Vec<Value>);

impl From<MenuTypes> for Value {
    fn from(types: MenuTypes) -> Value {
        Value::List(types.0)
    }
}

fn menu_type(id: &str, label: &str, color: &str) -> Value {
    Value::Map(Map::from([
        ("id", Value::from(id)),
        ("label", Value::from(label)),
        ("color", Value::from(color)),
    ]))
}

/// The types of an aulario without stored types.
fn default_types() -> MenuTypes {
    MenuTypes(vec![
        menu_type("basal", "Menú basal", "#0d6efd"),
        menu_type("vegetariano", "Menú vegetariano", "#198754"),
        menu_type("alergias", "Menú alergias", "#dc3545"),
    ])
}

/// The id of an entry of the list, if it is usable: a number counts as its text.
fn id_of(entry: &Value) -> Option<Cow<'_, str>> {
    match entry.as_map()?.get("id")? {
        Value::String(id) => (!id.is_empty()).then_some(id.into()),
        id @ (Value::Int(_) | Value::Float(_)) => id.clone().into_text().map(Cow::Owned),
        _ => None,
    }
}

impl MenuTypes {
    /// The types in a file, which may be absent. Fails if they are not a list.
    pub fn from_json(file: Option<Value>) -> Result<MenuTypes, DocumentError> {
        let list = match file {
            None => Vec::new(),
            Some(Value::List(list)) => list,
            // PHP writes a map after an entry was removed.
            Some(Value::Map(map)) => map.into_values().collect(),
            Some(_) => return Err(DocumentError::NotTypes),
        };
        if list.is_empty() {
            return Ok(default_types());
        }
        Ok(MenuTypes(list))
    }

    /// The types as a response shows them, without the entries that have no usable id.
    pub fn shown(self) -> Value {
        Value::List(self.0.into_iter().filter_map(shown_type).collect())
    }

    /// The usable ids, in order.
    pub fn ids(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.0.iter().filter_map(id_of)
    }

    /// The id of the type `text`: looked up as sent, else cleaned. `None` if it is unknown.
    pub fn find(&self, text: &str) -> Option<Cow<'_, str>> {
        let exact = |id: &str| self.ids().find(|known| known == id);
        exact(text).or_else(|| exact(&TypeId::clean(text)))
    }

    /// Appends a type; returns it as a response shows it. `None` if the id is a duplicate.
    pub fn add(&mut self, id: &TypeId, label: Label, color: Color) -> Option<Value> {
        if self.ids().any(|known| known == id.as_str()) {
            return None;
        }
        self.0.push(menu_type(id.as_str(), label.0, color.0));
        self.0.last().cloned()
    }

    /// Changes label, colour or both of the type `text`; returns it as a response shows it. `None` if it is unknown.
    pub fn rename(
        &mut self,
        text: &str,
        label: Option<Label>,
        color: Option<Color>,
    ) -> Option<Value> {
        let id = self.find(text)?.into_owned();
        let entry = self
            .0
            .iter_mut()
            .find(|entry| id_of(entry).is_some_and(|known| known == id))?;
        let map = entry.coerce_to_map();
        if let Some(label) = label {
            *map.entry("label") = Value::from(label.0);
        }
        if let Some(color) = color {
            *map.entry("color") = Value::from(color.0);
        }
        shown_type(entry.clone())
    }

    /// Removes all entries of the type `text`. `None` if it is unknown.
    pub fn delete(&mut self, text: &str) -> Option<()> {
        let id = self.find(text)?.into_owned();
        self.0
            .retain(|entry| id_of(entry).is_none_or(|known| known != id));
        Some(())
    }
}

fn shown_type(mut entry: Value) -> Option<Value> {
    let id = id_of(&entry)?.into_owned();
    let fields = [
        ("id", id.as_str()),
        ("label", &id),
        ("color", Color::DEFAULT.0),
    ];
    put_strings_first(entry.coerce_to_map(), fields);
    Some(entry)
}
