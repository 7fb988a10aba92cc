//! Reports the settings and where each was set.

use super::report::{Level, Report};
use crate::api::today;
use crate::config::{self, Config, SESSION_DIR, SETTINGS, Setting, Settings, TZ};
use crate::session::SavePath;

const ABOUT: &str = "settings";

/// Reports why the settings cannot be used. `settings` are those that could be read.
pub fn refused(error: &config::Error, settings: Option<&Settings>, report: &mut Report) {
    let place = match (error, settings) {
        (config::Error::Setting { setting, .. }, Some(settings)) => {
            format!("{}: ", shown(settings, setting))
        }
        _ => String::new(),
    };
    let text =
        format!("{place}{error}; until this is fixed, every request fails with INTERNAL_ERROR");
    report.add(Level::Error, ABOUT, text);
}

/// Reports the settings that are set, and what differs from PHP.
pub fn check(config: &Config, settings: &Settings, report: &mut Report) {
    for setting in SETTINGS.iter().filter(|setting| settings.get(setting).is_some()) {
        report.add(Level::Ok, ABOUT, shown(settings, setting));
    }
    report.add(Level::Ok, ABOUT, "the other settings have their defaults");
    match today::today(config.zone.as_deref()) {
        Ok(today) => report.add(Level::Ok, ABOUT, format!("today is {}", today.as_str())),
        Err(error) => {
            let text = format!("{}: {error}; requests without a date fail", shown(settings, &TZ));
            report.add(Level::Error, ABOUT, text);
        }
    }
}

/// `NAME=value` without a password, and where it was set.
pub fn shown(settings: &Settings, setting: &'static Setting) -> String {
    let value = String::from_utf8_lossy(settings.value(setting));
    let name = setting.name;
    let value = if *setting == SESSION_DIR { without_password(&value) } else { value.into() };
    format!("{name}={value} ({})", settings.source(setting))
}

/// A value of PHP without a password: an address of a server may have one in any place.
pub fn without_password(value: &str) -> String {
    match SavePath::parse(value.as_bytes()) {
        Some(SavePath::Redis(server)) => return server.to_string(),
        Some(SavePath::Files(_)) if !value.contains('?') => return value.to_owned(),
        _ => {}
    }
    // `tcp://a?auth=…, tcp://b` and `seed[]=…` of phpredis, `host=…` of other handlers
    match value.find("://").map(|at| at + 3).or_else(|| value.find('=').map(|at| at + 1)) {
        Some(end) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}
