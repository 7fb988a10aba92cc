//! Reports the settings and where each was set.

use std::ffi::OsStr;

use super::kinds::Kind;
use super::report::Report;
use crate::api::today;
use crate::config::{self, Config, Files, SERVICE, SETTINGS, Setting, Settings, TZ, Usable};
use crate::model::Id;

const ABOUT: &str = "settings";

/// Loads the settings, or reports why they cannot be used.
pub fn load(report: &Report) -> Option<Usable> {
    let settings = Settings::load(&Files::find())
        .map_err(|error| report_invalid(report, &error.to_string()))
        .ok()?;
    let config = Config::from_settings(&settings)
        .map_err(|error| match &error {
            config::Error::Setting { setting, .. } => {
                let setting = shown(&settings, setting);
                report_invalid(report, &format!("{setting}: {error}"));
            }
            _ => report_invalid(report, &error.to_string()),
        })
        .ok()?;
    Some(Usable { settings, config })
}

fn report_invalid(report: &Report, problem: &str) {
    let effect = "until this is fixed, every request fails with INTERNAL_ERROR";
    report.add(Kind::SettingsInvalid, ABOUT, format!("{problem}; {effect}"));
}

/// Reports the settings that are set, and the date of today.
pub fn check(config: &Config, settings: &Settings, report: &Report) {
    for setting in SETTINGS {
        if settings.get(setting).is_some() {
            report.add(Kind::Setting, ABOUT, shown(settings, setting));
        }
    }
    let rest = "the other settings have their defaults";
    report.add(Kind::Setting, ABOUT, rest);
    report_defaults(config, settings, report);
    match today::today(&config.zone) {
        Ok(today) => report.add(Kind::Today, ABOUT, format!("today is {}", today.as_str())),
        Err(error) => {
            let zone = shown(settings, &TZ);
            let text = format!("{zone}: {error}; requests without a date fail");
            report.add(Kind::TodayUnknown, ABOUT, text);
        }
    }
}

/// Reports defaults that are right for few schools: without the name of its service, no login of an application has a
/// centre.
fn report_defaults(config: &Config, settings: &Settings, report: &Report) {
    if settings.are_defaults() {
        let text = "there is neither a settings file nor a variable COMEDOR_…; run `sudo comedor configure`";
        report.add(Kind::NoSettings, ABOUT, text);
    }
    let service = config.service.as_str();
    let folder = config.data_dir.file_name().and_then(OsStr::to_str);
    if let Some(folder) = folder
        && service == SERVICE.default
        && service != folder
        && Id::parse(folder).is_ok()
    {
        let text = format!(
            "the service is `{service}`, the default, but the data folder ends in `{folder}`: if that is the name of \
             the application's service, set COMEDOR_SERVICE={folder}, or no login has a centre"
        );
        report.add(Kind::ServiceDefault, ABOUT, text);
    }
}

/// `NAME=value` without a password, and where it was set.
pub fn shown(settings: &Settings, setting: &'static Setting) -> String {
    let value = setting.without_password(settings.value(setting));
    format!("{}={value} ({})", setting.name, settings.source(setting))
}
