//! The six actions: how they are called, what they require and what they do.

pub mod caller;
mod fields;
pub mod today;

pub use fields::Fields;
use fields::too_many_plates;

use crate::cgi::Method;
use crate::config::Zone;
use crate::error::Error;
use crate::model::{Color, Date, Id, TypeId};
use crate::php::form::Form;
use crate::php::json::{Map, Value};
use crate::store::Aulario;

/// An action of the API.
#[derive(Debug)]
pub struct Action {
    name: &'static str,
    /// Whether it changes data. It then accepts POST only, else GET, HEAD and POST with any body.
    pub is_write: bool,
    /// Performs the action and returns the fields of the response.
    pub run: fn(&Call) -> Result<Map, Error>,
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
    pub zone: &'c Zone,
}

static ACTIONS: [Action; 6] = [
    Action {
        name: "get_menu_types",
        is_write: false,
        run: get_menu_types,
    },
    Action {
        name: "get_menu",
        is_write: false,
        run: get_menu,
    },
    Action {
        name: "save_menu",
        is_write: true,
        run: save_menu,
    },
    Action {
        name: "add_menu_type",
        is_write: true,
        run: add_menu_type,
    },
    Action {
        name: "rename_menu_type",
        is_write: true,
        run: rename_menu_type,
    },
    Action {
        name: "delete_menu_type",
        is_write: true,
        run: delete_menu_type,
    },
];

impl Action {
    /// INVALID_ACTION if the action does not accept `method`.
    pub fn accepts(&self, method: Method) -> Result<(), Error> {
        match method {
            Method::Post => Ok(()),
            _ if self.is_write => Err(Error::invalid_method("POST")),
            Method::Get | Method::Head => Ok(()),
            _ => Err(Error::invalid_method("GET, HEAD, POST")),
        }
    }
}

/// The action that a query names. INVALID_ACTION if it is unknown.
pub fn action(query: &Form) -> Result<&'static Action, Error> {
    let name = query.last("action");
    ACTIONS
        .iter()
        .find(|action| Some(action.name) == name)
        .ok_or_else(|| {
            let [others @ .., last] = ACTIONS.each_ref().map(|action| action.name);
            Error::invalid_action(format!("action must be {} or {last}.", others.join(", ")))
        })
}

/// The aulario that a query names. MISSING_PARAM if it is absent or empty, INVALID_FORMAT if it is not an id.
pub fn aulario(query: &Form) -> Result<Id, Error> {
    let text = query
        .last("aulario")
        .ok_or_else(|| Error::missing_param("aulario"))?;
    Id::parse(text).map_err(refused("aulario"))
}

/// Action and aulario for the log; empty unless both are valid. No other input of the client is logged.
pub fn context(query: &Form) -> String {
    match (action(query), aulario(query)) {
        (Ok(action), Ok(id)) => format!("{} {}: ", action.name, id.as_str()),
        _ => String::new(),
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
        None => types.ids().next(),
        Some(text) => types.find(text),
    };
    let id = id.ok_or_else(Error::invalid_menu_type)?.into_owned();
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
    let id = types.find(menu_type).ok_or_else(Error::invalid_menu_type)?;
    let menu = call.aulario.change_day(&date, &id, |day| {
        day.save(&date, &id, &plates).ok_or_else(too_many_plates)
    })?;
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
    let id = id.ok_or_else(|| Error::missing_param("id"))?;
    let label = fields
        .label()?
        .ok_or_else(|| Error::missing_param("label"))?;
    let color = fields.color()?.unwrap_or(Color::DEFAULT);
    let added = call
        .aulario
        .change_menu_types(|types| types.add(&id, label, color).ok_or_else(Error::duplicate))?;
    Ok(Map::from([
        ("menu_type", added),
        ("message", Value::from("Menu type added.")),
    ]))
}

fn rename_menu_type(call: &Call) -> Result<Map, Error> {
    let fields = call.fields;
    fields.require(&["id"])?;
    if !fields.has("label") && !fields.has("color") {
        return Err(Error::missing_param("label or color"));
    }
    let id = fields.text("id")?.unwrap_or_default();
    let (label, color) = (fields.label()?, fields.color()?);
    let renamed = call.aulario.change_menu_types(|types| {
        types
            .rename(id, label, color)
            .ok_or_else(|| Error::not_found("Menu type"))
    })?;
    Ok(Map::from([
        ("menu_type", renamed),
        ("message", Value::from("Menu type changed.")),
    ]))
}

fn delete_menu_type(call: &Call) -> Result<Map, Error> {
    call.fields.require(&["id"])?;
    let id = call.fields.text("id")?.unwrap_or_default();
    call.aulario.change_menu_types(|types| {
        types
            .delete(id)
            .ok_or_else(|| Error::not_found("Menu type"))
    })?;
    Ok(Map::from([("message", Value::from("Menu type deleted."))]))
}

impl Call<'_> {
    /// The date that was sent, else today.
    fn date(&self, sent: Option<&str>) -> Result<Date, Error> {
        match sent {
            None => Ok(today::today(self.zone)?),
            Some(text) => Date::parse(text).map_err(refused("date")),
        }
    }
}

/// The error for a parameter or field `name` that is not as expected.
fn refused(name: &str) -> impl Fn(&'static str) -> Error {
    move |expected| Error::invalid_format(format!("{name} must be {expected}."))
}
