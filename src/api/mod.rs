//! The six actions: how they are called, what they require and what they do.

pub mod caller;
mod fields;
pub mod today;

pub use fields::Fields;
use fields::too_many_plates;

use crate::cgi::Method;
use crate::config::Zone;
use crate::error::Error;
use crate::model::{Color, Date, Id, Label, TypeId};
use crate::php::form::Form;
use crate::php::json::{Map, Value};
use crate::store::Aulario;

/// An action of the API.
#[derive(Debug)]
pub struct Action {
    name: &'static str,
    pub run: Run,
}

/// Performs an action and returns the fields of the response.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// Takes its parameters from the query, and accepts GET, HEAD and POST with any body.
    Read(fn(&Call, &Form) -> Result<Map, Error>),
    /// Changes data as the fields of the body say, and accepts POST only.
    Write(fn(&Call, &Fields) -> Result<Map, Error>),
}

/// What an action can use besides its parameters or fields.
#[derive(Debug)]
pub struct Call<'c> {
    /// An aulario that exists and that the caller may use
    pub aulario: &'c Aulario,
    /// The time zone of "today"
    pub zone: &'c Zone,
}

static ACTIONS: [Action; 6] = [
    Action {
        name: "get_menu_types",
        run: Run::Read(get_menu_types),
    },
    Action {
        name: "get_menu",
        run: Run::Read(get_menu),
    },
    Action {
        name: "save_menu",
        run: Run::Write(save_menu),
    },
    Action {
        name: "add_menu_type",
        run: Run::Write(add_menu_type),
    },
    Action {
        name: "rename_menu_type",
        run: Run::Write(rename_menu_type),
    },
    Action {
        name: "delete_menu_type",
        run: Run::Write(delete_menu_type),
    },
];

impl Action {
    /// INVALID_ACTION if the last segment of the path is another action. A generated client sends both, and one that takes
    /// `action` as a plain string can send two: the path of the operation that was called, and a wrong argument.
    pub fn agrees_with(&self, segment: Option<&[u8]>) -> Result<(), Error> {
        let in_path = ACTIONS
            .iter()
            .find(|action| Some(action.name.as_bytes()) == segment);
        match in_path {
            Some(other) if other.name != self.name => Err(Error::invalid_action(format!(
                "action is {}, but the path ends with {}.",
                self.name, other.name
            ))),
            _ => Ok(()),
        }
    }

    /// INVALID_ACTION if the action does not accept `method`.
    pub fn accepts(&self, method: Method) -> Result<(), Error> {
        match (&self.run, method) {
            (_, Method::Post) | (Run::Read(_), Method::Get | Method::Head) => Ok(()),
            (Run::Read(_), _) => Err(Error::invalid_method("GET, HEAD, POST")),
            (Run::Write(_), _) => Err(Error::invalid_method("POST")),
        }
    }
}

/// The action and the aulario that a query names, or why they cannot be used.
#[derive(Debug)]
pub struct Target {
    pub action: Result<&'static Action, Error>,
    pub aulario: Result<Id, Error>,
}

impl Target {
    pub fn of(query: &Form) -> Target {
        Target {
            action: action(query),
            aulario: aulario_id(query),
        }
    }

    /// Action and aulario for the log; empty unless both are valid. No other input of the client is logged.
    pub fn log_context(&self) -> String {
        match (&self.action, &self.aulario) {
            (Ok(action), Ok(id)) => format!("{} {}: ", action.name, id.as_str()),
            _ => String::new(),
        }
    }
}

/// The action that a query names. INVALID_ACTION if it is unknown.
fn action(query: &Form) -> Result<&'static Action, Error> {
    let name = query.last("action");
    ACTIONS
        .iter()
        .find(|action| Some(action.name) == name)
        .ok_or_else(|| {
            let [others @ .., last] = ACTIONS.each_ref().map(|action| action.name);
            Error::invalid_action(format!("action must be {} or {last}.", others.join(", ")))
        })
}

/// The id of the aulario that a query names. MISSING_PARAM if it is absent or empty, INVALID_FORMAT if it is not an id.
fn aulario_id(query: &Form) -> Result<Id, Error> {
    let text = query
        .last("aulario")
        .ok_or_else(|| Error::missing_param("aulario"))?;
    Id::parse(text).map_err(refused("aulario"))
}

fn get_menu_types(call: &Call, _query: &Form) -> Result<Map, Error> {
    let types = call.aulario.read_menu_types()?;
    Ok(Map::from([("menu_types", types.shown())]))
}

fn get_menu(call: &Call, query: &Form) -> Result<Map, Error> {
    let date = query.last("date").map(parse_date).transpose()?;
    let date = call.or_today(date)?;
    let types = call.aulario.read_menu_types()?;
    let id = match query.last("menu") {
        None => types.ids().next(),
        Some(text) => types.find(text),
    };
    let id = id.ok_or_else(Error::invalid_menu_type)?.into_owned();
    let menu = call.aulario.read_day(&date, &id)?.menu(&id);
    Ok(Map::from([
        ("date", Value::from(date.as_str())),
        ("menu_type", Value::String(id)),
        ("menu_types", types.shown()),
        ("menu", menu),
    ]))
}

fn save_menu(call: &Call, fields: &Fields) -> Result<Map, Error> {
    let menu_type = fields.required("menu_type")?;
    let plates = fields.required("plates")?;
    let date = call.or_today(fields.date()?)?;
    let menu_type = menu_type.text()?;
    let plates = plates.plates()?;

    // If the type is deleted after this check, its saved menus stay in their files, as this menu does.
    let types = call.aulario.read_menu_types()?;
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

fn add_menu_type(call: &Call, fields: &Fields) -> Result<Map, Error> {
    let id = fields.required("id")?;
    let label = fields.required("label")?;
    let id = id
        .parse(TypeId::parse)?
        .ok_or_else(|| Error::missing_param("id"))?;
    let label = label.parse(Label::parse)?;
    let color = match fields.optional("color") {
        Some(color) => color.parse(Color::parse)?,
        None => Color::DEFAULT,
    };
    let added = call
        .aulario
        .change_menu_types(|types| types.add(&id, label, color).ok_or_else(Error::duplicate))?;
    Ok(Map::from([
        ("menu_type", added),
        ("message", Value::from("Menu type added.")),
    ]))
}

fn rename_menu_type(call: &Call, fields: &Fields) -> Result<Map, Error> {
    let id = fields.required("id")?;
    let label = fields.optional("label");
    let color = fields.optional("color");
    if label.is_none() && color.is_none() {
        return Err(Error::missing_param("label or color"));
    }
    let id = id.text()?;
    let label = label.map(|label| label.parse(Label::parse)).transpose()?;
    let color = color.map(|color| color.parse(Color::parse)).transpose()?;
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

fn delete_menu_type(call: &Call, fields: &Fields) -> Result<Map, Error> {
    let id = fields.required("id")?.text()?;
    call.aulario.change_menu_types(|types| {
        types
            .delete(id)
            .ok_or_else(|| Error::not_found("Menu type"))
    })?;
    Ok(Map::from([("message", Value::from("Menu type deleted."))]))
}

impl Call<'_> {
    /// The date that was sent, else today.
    fn or_today(&self, sent: Option<Date>) -> Result<Date, Error> {
        match sent {
            Some(date) => Ok(date),
            None => Ok(today::today(self.zone)?),
        }
    }
}

fn parse_date(text: &str) -> Result<Date, Error> {
    Date::parse(text).map_err(refused("date"))
}

/// The error for a parameter or field `name` that is not as expected.
fn refused(name: &str) -> impl Fn(&'static str) -> Error {
    move |expected| Error::invalid_format(format!("{name} must be {expected}."))
}
