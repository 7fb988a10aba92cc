//! Reports the settings and where each was set.

use super::report::{Level, Report};
use crate::api::today;
use crate::config::{self, Config, SESSION_DIR, SETTINGS, Setting, Settings, TZ};
use crate::session::SavePath;

const ABOUT: &str = "settings";

/// The settings, or reports why they cannot be used.
pub fn load(report: &mut Report) -> Option<(Config, Settings)> {
    let mut refused = |place: &str, error: config::Error| {
        let effect = "until this is fixed, every request fails with INTERNAL_ERROR";
        report.add(Level::Error, ABOUT, format!("{place}{error}; {effect}"));
    };
    let settings = Settings::load().map_err(|error| refused("", error)).ok()?;
    let config = Config::from_settings(&settings).map_err(|error| match error {
        config::Error::Setting { setting, .. } => {
            refused(&format!("{}: ", shown(&settings, setting)), error);
        }
        error => refused("", error),
    });
    Some((config.ok()?, settings))
}

/// Reports the settings that are set, and the day that they make today.
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
        Ok(SavePath::Redis(server)) => return server.to_string(),
        Ok(SavePath::Files(_)) if !value.contains('?') => return value.to_owned(),
        _ => {}
    }
    // `tcp://a?auth=…, tcp://b` and `seed[]=…` of phpredis, `host=…` of other handlers
    match value.find("://").map(|at| at + 3).or_else(|| value.find('=').map(|at| at + 1)) {
        Some(end) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}
