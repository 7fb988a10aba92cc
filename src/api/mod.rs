//! The six actions: which there are, who may call them how, and what they do.

mod fields;

pub use fields::Fields;

use crate::cgi::Request;
use crate::clock;
use crate::config;
use crate::error::Error;
use crate::json::{self, Map, Value};
use crate::model;
use crate::store::{self, Aulario};

/// An action of the API.
#[derive(Debug)]
pub struct Action {
    name: &'static str,
    /// Whether it reads or writes
    pub kind: Kind,
    /// What it does
    pub run: fn(&Call) -> Result<Map, Error>,
}

/// What an action needs from its caller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Answers GET and HEAD, and POST, whose body it ignores.
    Read,
    /// Answers POST, and changes data.
    Write,
}

/// What an action works with.
#[derive(Debug)]
pub struct Call<'c> {
    /// The aulario, which exists and is open to the caller
    pub aulario: &'c Aulario,
    /// The query
    pub request: &'c Request<'c>,
    /// The body of a write
    pub fields: Fields,
    /// The zone of "today"
    pub zone: Option<&'c str>,
}

const ACTIONS: [Action; 6] = [
    Action { name: "get_menu_types", kind: Kind::Read, run: get_menu_types },
    Action { name: "get_menu", kind: Kind::Read, run: get_menu },
    Action { name: "save_menu", kind: Kind::Write, run: save_menu },
    Action { name: "add_menu_type", kind: Kind::Write, run: add_menu_type },
    Action { name: "rename_menu_type", kind: Kind::Write, run: rename_menu_type },
    Action { name: "delete_menu_type", kind: Kind::Write, run: delete_menu_type },
];

impl Action {
    /// The action that the query names. INVALID_ACTION where it names none.
    pub fn find(request: &Request) -> Result<&'static Action, Error> {
        let name = request.parameter("action");
        let action = ACTIONS.iter().find(|action| Some(action.name) == name);
        action.ok_or_else(|| {
            Error::invalid_action(
                "The parameter action must be get_menu_types, get_menu, save_menu, add_menu_type, \
                 rename_menu_type or delete_menu_type.",
            )
        })
    }

    /// Whether it is answered to `method`. INVALID_ACTION where it is not.
    pub fn takes(&self, method: &[u8]) -> Result<(), Error> {
        match (self.kind, method) {
            (Kind::Read, b"GET" | b"HEAD" | b"POST") | (Kind::Write, b"POST") => Ok(()),
            (Kind::Read, _) => Err(Error::invalid_method("GET, HEAD, POST")),
            (Kind::Write, _) => Err(Error::invalid_method("POST")),
        }
    }
}

/// The parameter `aulario`. MISSING_PARAM where it is absent or empty, INVALID_FORMAT where it
/// is no id.
pub fn aulario<'r>(request: &'r Request) -> Result<&'r str, Error> {
    let id = request.parameter("aulario").ok_or_else(|| Error::missing_param("aulario"))?;
    if !model::is_id(id) {
        return Err(Error::invalid_format(
            "The parameter aulario must be 1 to 64 of A-Z a-z 0-9 . _ - and start with no dot.",
        ));
    }
    Ok(id)
}

fn get_menu_types(call: &Call) -> Result<Map, Error> {
    let types = call.aulario.menu_types()?;
    Ok(json::map([("menu_types", types.shown())]))
}

fn get_menu(call: &Call) -> Result<Map, Error> {
    let date = call.date(call.request.parameter("date"))?;
    let types = call.aulario.menu_types()?;
    let id = match call.request.parameter("menu") {
        None => types.first(),
        Some(text) => types.find(text),
    };
    let id = id.ok_or_else(Error::invalid_menu_type)?.to_owned();
    let menu = call.aulario.day(&date)?.menu(&id);
    Ok(json::map([
        ("date", Value::String(date)),
        ("menu_type", Value::String(id)),
        ("menu_types", types.shown()),
        ("menu", menu),
    ]))
}

fn save_menu(call: &Call) -> Result<Map, Error> {
    let fields = &call.fields;
    fields.require(&["menu_type", "plates"])?;
    let date = call.date(fields.untrimmed("date")?)?;
    let menu_type = fields.text("menu_type")?.unwrap_or_default();
    let names = fields.plates()?;

    // A type that is deleted from here on keeps its saved menus, this one among them.
    let types = call.aulario.menu_types()?;
    let id = types.find(menu_type).ok_or_else(Error::invalid_menu_type)?;
    let menu = call
        .aulario
        .change_day(&date, |day| day.save(&date, id, &names).ok_or_else(fields::too_many_plates))?;
    Ok(json::map([("date", Value::String(date)), ("menu_type", Value::from(id)), ("menu", menu)]))
}

fn add_menu_type(call: &Call) -> Result<Map, Error> {
    let fields = &call.fields;
    fields.require(&["id", "label"])?;
    let id = fields.text("id")?.and_then(model::new_id);
    let id = id.ok_or_else(|| Error::missing_param("id"))?;
    if !model::is_short(&id) {
        return Err(Error::invalid_format("The field id must have at most 64 characters."));
    }
    let label = fields.label()?.unwrap_or_default();
    let color = fields.color()?.unwrap_or(model::DEFAULT_COLOR);
    let added = call
        .aulario
        .change_menu_types(|types| types.add(&id, label, color).ok_or_else(Error::duplicate))?;
    Ok(json::map([("menu_type", added), ("message", Value::from("Menu type added."))]))
}

fn rename_menu_type(call: &Call) -> Result<Map, Error> {
    let fields = &call.fields;
    fields.require(&["id"])?;
    if !fields.has("label") && !fields.has("color") {
        return Err(Error::missing_param("label or color"));
    }
    let id = fields.text("id")?.unwrap_or_default();
    let (label, color) = (fields.label()?, fields.color()?);
    let renamed = call.aulario.change_menu_types(|types| {
        types.rename(id, label, color).ok_or_else(|| Error::not_found("menu type"))
    })?;
    Ok(json::map([("menu_type", renamed), ("message", Value::from("Menu type changed."))]))
}

fn delete_menu_type(call: &Call) -> Result<Map, Error> {
    call.fields.require(&["id"])?;
    let id = call.fields.text("id")?.unwrap_or_default();
    call.aulario
        .change_menu_types(|types| types.delete(id).ok_or_else(|| Error::not_found("menu type")))?;
    Ok(json::map([("message", Value::from("Menu type deleted."))]))
}

impl Call<'_> {
    /// The date that was sent, or today.
    fn date(&self, sent: Option<&str>) -> Result<String, Error> {
        match sent {
            None => Ok(clock::today(self.zone)?),
            Some(date) if model::is_date(date) => Ok(date.to_owned()),
            Some(_) => Err(Error::invalid_format(
                "The date must be a day of the calendar in the form YYYY-MM-DD.",
            )),
        }
    }
}

impl From<config::Error> for Error {
    fn from(error: config::Error) -> Error {
        Error::internal(error.to_string())
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Error {
        match error {
            store::Error::Busy => Error::busy(),
            store::Error::Unflushed { .. } => Error::perhaps_stored(error.to_string()),
            store::Error::Io { .. } | store::Error::Unusable { .. } => {
                Error::internal(error.to_string())
            }
        }
    }
}
