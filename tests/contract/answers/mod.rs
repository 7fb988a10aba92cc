//! The contract of the API, by subject.

mod cors;
mod errors;
mod menus;
mod requests;
mod settings;
mod types;
mod zones;

use std::process::Command;

use crate::support::*;

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

fn plate(name: &str) -> Value {
    json!({"name": name, "pictogram": ""})
}

fn plates(primero: &str, segundo: &str, postre: &str) -> Value {
    json!({"primero": plate(primero), "segundo": plate(segundo), "postre": plate(postre)})
}

/// The current day in `zone`, by default in the system's time zone.
fn today(zone: Option<&str>) -> String {
    let mut date = Command::new("date");
    date.env_remove("TZ").envs(zone.map(|zone| ("TZ", zone)));
    let day = output(date.arg("+%F"), "coreutils");
    String::from_utf8(day).unwrap().trim().to_owned()
}
