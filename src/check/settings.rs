//! Reports the settings and where each was set.

use super::kinds::Kind;
use super::report::Report;
use crate::api::today;
use crate::config::{self, Config, Files, SETTINGS, Setting, Settings, TZ};

const ABOUT: &str = "settings";

/// The settings, or reports why they cannot be used.
pub fn load(report: &Report) -> Option<(Config, Settings)> {
    let refused = |place: &str, error: config::Error| {
        let effect = "until this is fixed, every request fails with INTERNAL_ERROR";
        report.add(
            Kind::SettingsInvalid,
            ABOUT,
            format!("{place}{error}; {effect}"),
        );
    };
    let settings = Settings::load(&Files::find())
        .map_err(|error| refused("", error))
        .ok()?;
    let config = Config::from_settings(&settings).map_err(|error| match error {
        config::Error::Setting { setting, .. } => {
            refused(&format!("{}: ", shown(&settings, setting)), error);
        }
        error => refused("", error),
    });
    Some((config.ok()?, settings))
}

/// Reports the settings that are set, and the date of today.
pub fn check(config: &Config, settings: &Settings, report: &Report) {
    for setting in SETTINGS
        .iter()
        .filter(|setting| settings.get(setting).is_some())
    {
        report.add(Kind::Setting, ABOUT, shown(settings, setting));
    }
    report.add(
        Kind::Setting,
        ABOUT,
        "the other settings have their defaults",
    );
    match today::today(&config.zone) {
        Ok(today) => report.add(Kind::Today, ABOUT, format!("today is {}", today.as_str())),
        Err(error) => {
            let text = format!(
                "{}: {error}; requests without a date fail",
                shown(settings, &TZ)
            );
            report.add(Kind::TodayUnknown, ABOUT, text);
        }
    }
}

/// `NAME=value` without a password, and where it was set.
pub fn shown(settings: &Settings, setting: &'static Setting) -> String {
    let value = setting.without_password(settings.value(setting));
    format!("{}={value} ({})", setting.name, settings.source(setting))
}
