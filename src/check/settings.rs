//! Reports the user, the settings and where each was set, compared with those of the installed PHP.

use std::io::ErrorKind;
use std::process::Command;

use super::Subject;
use super::report::{Level, Report};
use super::user::User;
use crate::clock;
use crate::config::{self, Config, SETTINGS, Settings};
use crate::model::Date;
use crate::session::SavePath;

/// Reports the user that runs the check.
pub fn check_user(user: &User, subject: &Subject, report: &mut Report) {
    if !user.ids.is_root() {
        return report.add(Level::Ok, "user", format!("the check runs as {}", user.name));
    }
    let option = if *subject == Subject::Session { " --session" } else { "" };
    report.add_with_fix(
        Level::Warning,
        "user",
        "the check runs as root, which can access everything; run it as the web server's user",
        format!("sudo -u www-data comedor check{option}"),
    );
}

/// Reports why the settings cannot be used.
pub fn refused(error: &config::Error, user: &User, report: &mut Report) {
    let text = format!("{error}; until this is fixed, every request fails with INTERNAL_ERROR");
    match error {
        config::Error::Unreadable { path, source }
            if source.kind() == Some(ErrorKind::PermissionDenied) && path.exists() =>
        {
            report.add_with_fix(Level::Error, "settings", text, user.grant(path, "r", path));
        }
        _ => report.add(Level::Error, "settings", text),
    }
}

/// Reports the value of each setting, and what differs from PHP.
pub fn check(config: &Config, settings: &Settings, report: &mut Report) {
    let today = clock::today(config.zone.as_deref());
    let save_path = &config.session.save_path;
    for setting in &SETTINGS {
        let value = match (settings.get(setting.name), setting.name, save_path) {
            // The value may contain a password.
            (_, "COMEDOR_SESSION_DIR", SavePath::Redis(server)) => server.to_string(),
            (Some(value), ..) => String::from_utf8_lossy(value).into_owned(),
            (None, "COMEDOR_DATA_DIR", _) => config.data_dir.display().to_string(),
            (None, ..) => setting.default.to_owned(),
        };
        let value = if value.is_empty() { "none" } else { &value };
        let value = format!("{value} (from {})", settings.source(setting.name));
        match &today {
            Err(error) if setting.name == "TZ" => {
                let text = format!("{value}: {error}; requests without a date fail");
                report.add(Level::Error, setting.name, text);
            }
            _ => report.add(Level::Ok, setting.name, value),
        }
    }
    report.add(
        Level::Hint,
        "settings",
        "variables that only the web server sets are not visible here; comedor.conf applies to both",
    );
    if let Ok(today) = today {
        compare_day(config, &today, report);
    }
    compare_php(config, report);
}

fn compare_day(config: &Config, today: &Date, report: &mut Report) {
    let today = today.as_str();
    report.add(Level::Ok, "today", format!("{today} for comedor"));
    let Some(php) = php("echo date('Y-m-d'), ' in ', date_default_timezone_get();") else {
        let text = "there is no php command here to compare the date with";
        return report.add(Level::Hint, "today", text);
    };
    if !php.starts_with(today) {
        let text = format!(
            "{php} for the php command: set TZ to PHP's date.timezone, or \"today\" differs"
        );
        return report.add(Level::Warning, "today", text);
    }
    report.add(Level::Ok, "today", format!("{php} for the php command"));
    let is_same = |zone: &String| php.ends_with(&format!(" in {zone}"));
    if config.zone.as_ref().is_some_and(|zone| !is_same(zone)) {
        let text = "PHP has another time zone, so its date may differ around midnight";
        report.add(Level::Hint, "TZ", text);
    }
}

/// Compares with the settings of PHP's command line; those of its pages are not visible here.
fn compare_php(config: &Config, report: &mut Report) {
    let ini = "echo implode(PHP_EOL, array_map('ini_get', ['session.save_path', 'session.name', \
               'session.serialize_handler', 'session.gc_maxlifetime']));";
    let Some(values) = php(ini) else { return };
    let mut values = values.split('\n');
    let mut compare = |name, is_ours: &dyn Fn(&str) -> bool| {
        if let Some(php) = values.next().filter(|php| !php.is_empty() && !is_ours(php)) {
            let php = without_password(php);
            let text = format!("the php command uses {php}; PHP's pages may use it too");
            report.add(Level::Hint, name, text);
        }
    };
    let session = &config.session;
    compare("COMEDOR_SESSION_DIR", &|php| {
        SavePath::parse(php.as_bytes()).is_ok_and(|php| php == session.save_path)
    });
    compare("COMEDOR_SESSION_NAME", &|php| php == session.name);
    compare("COMEDOR_SESSION_FORMAT", &|php| php == session.format.name());
    if matches!(session.save_path, SavePath::Redis(_)) {
        compare("COMEDOR_SESSION_LIFETIME", &|php| php == session.lifetime.to_string());
    }
}

/// A value of PHP without a password: an address of a server may have one in any place.
fn without_password(value: &str) -> String {
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

fn php(code: &str) -> Option<String> {
    let output = Command::new("php").args(["-r", code]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
