//! The six actions: how they are called, what they require and what they do.

pub mod caller;
mod fields;
pub mod today;

pub use fields::Fields;

use std::fmt;

use crate::cgi::Method;
use crate::error::Error;
use crate::model::{Color, Date, Id, Invalid, MAX_PLATES, TypeId};
use crate::php::form::Form;
use crate::php::json::{Map, Value};
use crate::store::Aulario;

/// An action of the API.
#[derive(Debug)]
pub struct Action {
    name: &'static str,
    pub kind: Kind,
    /// Performs the action and returns the fields of the response.
    pub run: fn(&Call) -> Result<Map, Error>,
}

/// What an action requires of the request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Accepts GET, HEAD and POST, and ignores the body.
    Read,
    /// Accepts POST, and changes data.
    Write,
}

/// The input of an action.
#[derive(Debug)]
pub struct Call<'c> {
    /// An aulario that exists and that the caller may use
    pub aulario: &'c Aulario,
    pub query: &'c Form,
    /// The body of a write
    pub fields: &'c Fields,
    /// The time zone of "today"
    pub zone: Option<&'c str>,
}

static ACTIONS: [Action; 6] = [
    Action { name: "get_menu_types", kind: Kind::Read, run: get_menu_types },
    Action { name: "get_menu", kind: Kind::Read, run: get_menu },
    Action { name: "save_menu", kind: Kind::Write, run: save_menu },
    Action { name: "add_menu_type", kind: Kind::Write, run: add_menu_type },
    Action { name: "rename_menu_type", kind: Kind::Write, run: rename_menu_type },
    Action { name: "delete_menu_type", kind: Kind::Write, run: delete_menu_type },
];

impl Action {
    /// INVALID_ACTION if the action does not accept `method`.
    pub fn accepts(&self, method: Method) -> Result<(), Error> {
        match (self.kind, method) {
            (Kind::Read, Method::Get | Method::Head) | (_, Method::Post) => Ok(()),
            (Kind::Read, _) => Err(Error::invalid_method("GET, HEAD, POST")),
            (Kind::Write, _) => Err(Error::invalid_method("POST")),
        }
    }
}

/// The action and the aulario that a query names. Each is an error only when it is asked for.
#[derive(Debug)]
pub struct Target {
    action: Option<&'static Action>,
    /// `None` if the parameter is absent or empty
    aulario: Option<Result<Id, Invalid>>,
}

impl Target {
    pub fn of(query: &Form) -> Target {
        let name = query.last("action");
        let action = ACTIONS.iter().find(|action| Some(action.name) == name);
        Target { action, aulario: query.last("aulario").map(Id::parse) }
    }

    /// INVALID_ACTION if there is no such action.
    pub fn action(&self) -> Result<&'static Action, Error> {
        self.action.ok_or_else(|| {
            let [others @ .., last] = ACTIONS.each_ref().map(|action| action.name);
            Error::invalid_action(format!("action must be {} or {last}.", others.join(", ")))
        })
    }

    /// The aulario. MISSING_PARAM if it is absent or empty, INVALID_FORMAT if it is not an id.
    pub fn aulario(&self) -> Result<&Id, Error> {
        let id = self.aulario.as_ref().ok_or_else(|| Error::missing_param("aulario"))?;
        id.as_ref().map_err(|invalid| refused("aulario")(*invalid))
    }
}

/// Action and aulario for the log; empty unless both are valid. No other input of the client is logged.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match (self.action, &self.aulario) {
            (Some(action), Some(Ok(id))) => write!(f, "{} {}: ", action.name, id.as_str()),
            _ => Ok(()),
        }
    }
}

fn get_menu_types(call: &Call) -> Result<Map, Error> {
    let types = call.aulario.menu_types()?;
    Ok(Map::from([("menu_types", types.shown())]))
}

fn get_menu(call: &Call) -> Result<Map, Error> {
    let date = call.date(call.query.last("date"))?;
    let types = call.aulario.menu_types()?;
    let id = match call.query.last("menu") {
        None => types.first(),
        Some(text) => types.find(text),
    };
    let id = id.map_err(refused("menu"))?.into_owned();
    let menu = call.aulario.day(&date, &id)?.menu(&id);
    Ok(Map::from([
        ("date", Value::from(date.as_str())),
        ("menu_type", Value::String(id)),
        ("menu_types", types.shown()),
        ("menu", menu),
    ]))
}

fn save_menu(call: &Call) -> Result<Map, Error> {
    let fields = call.fields;
    fields.require(&["menu_type", "plates"])?;
    let date = call.date(fields.untrimmed("date")?)?;
    let menu_type = fields.text("menu_type")?.unwrap_or_default();
    let plates = fields.plates()?;

    // If the type is deleted after this check, its saved menus stay in their files, as does this one.
    let types = call.aulario.menu_types()?;
    let id = types.find(menu_type).map_err(refused("menu_type"))?;
    let menu = call
        .aulario
        .change_day(&date, &id, |day| day.save(&date, &id, &plates).map_err(refused("plates")))?;
    Ok(Map::from([
        ("date", Value::from(date.as_str())),
        ("menu_type", Value::String(id.into_owned())),
        ("menu", menu),
    ]))
}

fn add_menu_type(call: &Call) -> Result<Map, Error> {
    let fields = call.fields;
    fields.require(&["id", "label"])?;
    let id = TypeId::parse(fields.text("id")?.unwrap_or_default()).map_err(refused("id"))?;
    let label = fields.label()?.ok_or_else(|| Error::missing_param("label"))?;
    let color = fields.color()?.unwrap_or(Color::DEFAULT);
    let added = call
        .aulario
        .change_menu_types(|types| types.add(&id, label, color).map_err(refused("id")))?;
    Ok(Map::from([("menu_type", added), ("message", Value::from("Menu type added."))]))
}

fn rename_menu_type(call: &Call) -> Result<Map, Error> {
    let fields = call.fields;
    fields.require(&["id"])?;
    if !fields.has("label") && !fields.has("color") {
        return Err(Error::missing_param("label or color"));
    }
    let id = fields.text("id")?.unwrap_or_default();
    let (label, color) = (fields.label()?, fields.color()?);
    let renamed = call
        .aulario
        .change_menu_types(|types| types.rename(id, label, color).map_err(type_not_found))?;
    Ok(Map::from([("menu_type", renamed), ("message", Value::from("Menu type changed."))]))
}

fn delete_menu_type(call: &Call) -> Result<Map, Error> {
    call.fields.require(&["id"])?;
    let id = call.fields.text("id")?.unwrap_or_default();
    call.aulario.change_menu_types(|types| types.delete(id).map_err(type_not_found))?;
    Ok(Map::from([("message", Value::from("Menu type deleted."))]))
}

impl Call<'_> {
    /// The date that was sent, else today.
    fn date(&self, sent: Option<&str>) -> Result<Date, Error> {
        match sent {
            None => today::today(self.zone).map_err(|error| Error::from(&error)),
            Some(text) => Date::parse(text).map_err(refused("date")),
        }
    }
}

/// The error for a refusal of the parameter or field `name`.
fn refused(name: &str) -> impl Fn(Invalid) -> Error {
    move |refusal| match refusal {
        Invalid::Format(expected) => Error::invalid_format(format!("{name} must be {expected}.")),
        Invalid::EmptyId => Error::missing_param(name),
        Invalid::UnknownType => Error::invalid_menu_type(),
        Invalid::DuplicateType => Error::duplicate(),
        Invalid::TooManyPlates => {
            Error::invalid_format(format!("A menu must have at most {MAX_PLATES} plates."))
        }
    }
}

/// An unknown menu type, for the actions that work on the type itself.
fn type_not_found(_: Invalid) -> Error {
    Error::not_found("Menu type")
}
