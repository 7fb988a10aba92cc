//! The settings, where each came from, and the folders that they name.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use rustix::fs::{Access, access};

use super::report::{Level, Report};
use super::user::{User, quoted};
use crate::clock;
use crate::config::{Config, SETTINGS, SavePath, Settings};

/// Shows the settings and checks the folders that they name.
pub fn check(config: &Config, settings: &Settings, user: &User, report: &mut Report) {
    for setting in &SETTINGS {
        let value = match (settings.get(setting.name), setting.name) {
            (Some(value), _) => String::from_utf8_lossy(value).into_owned(),
            (None, "COMEDOR_DATA_DIR") => config.data_dir.display().to_string(),
            (None, _) => setting.default.to_owned(),
        };
        let value = if value.is_empty() { "not set" } else { &value };
        let source = settings.source(setting.name);
        report.add(Level::Ok, setting.name, format!("{value} (from {source})"), None);
    }
    report.add(
        Level::Hint,
        "settings",
        "variables that the web server's own configuration sets can't be seen from here; what is \
         in comedor.conf counts for both",
        None,
    );
    check_user(user, report);
    check_zone(config, report);
    check_php(config, report);
    let sessions = &config.session.save_path.folder;
    if may_enter(("the session folder", "COMEDOR_SESSION_DIR"), sessions, user, report)
        && sessions.starts_with("/tmp") | sessions.starts_with("/var/tmp")
    {
        report.add(
            Level::Warning,
            sessions.display().to_string(),
            "with systemd's PrivateTmp every service has a /tmp of its own, so that PHP's sessions \
             may be elsewhere for the web server; a folder of their own is safer",
            None,
        );
    }
}

fn check_user(user: &User, report: &mut Report) {
    if user.ids.is_root() {
        let mend = "sudo -u www-data comedor check".to_owned();
        let text = "this is root, who may do everything; run the check as the web server's user";
        report.add(Level::Warning, "user", text, Some(mend));
    } else {
        report.add(Level::Ok, "user", format!("this check runs as {}", user.name), None);
    }
}

fn check_zone(config: &Config, report: &mut Report) {
    let today = match clock::today(config.zone.as_deref()) {
        Ok(today) => today,
        Err(error) => return report.add(Level::Error, "TZ", error.to_string(), None),
    };
    report.add(Level::Ok, "today", format!("here it is {}", today.as_str()), None);
    match php("echo date('Y-m-d'), ' in ', date_default_timezone_get();") {
        None => {
            let text = "there is no php command here to ask what day it is for PHP";
            report.add(Level::Hint, "today", text, None);
        }
        Some(day) if day.starts_with(today.as_str()) => {
            report.add(Level::Ok, "today", format!("for the php command it is {day}"), None);
            let same = |zone: &String| day.ends_with(&format!(" in {zone}"));
            if config.zone.as_ref().is_some_and(|zone| !same(zone)) {
                let text = "PHP has another zone, so that around midnight the days may differ";
                report.add(Level::Hint, "TZ", text, None);
            }
        }
        Some(day) => {
            let text = format!("for the php command it is {day}; set TZ to PHP's date.timezone");
            report.add(Level::Warning, "today", text, None);
        }
    }
}

/// Compares with the settings of the installed PHP's command line, which is the best that can be
/// seen from here.
fn check_php(config: &Config, report: &mut Report) {
    let ini = "echo implode(PHP_EOL, array_map('ini_get', ['session.save_path', 'session.name', \
               'session.serialize_handler']));";
    let Some(values) = php(ini) else { return };
    let mut values = values.split('\n');
    let mut compare = |name, is_ours: &dyn Fn(&str) -> bool| {
        if let Some(php) = values.next().filter(|php| !php.is_empty() && !is_ours(php)) {
            let text = format!("the php command has {php}; its pages may have that too");
            report.add(Level::Hint, name, text, None);
        }
    };
    let session = &config.session;
    compare("COMEDOR_SESSION_DIR", &|php| {
        SavePath::parse(php.as_bytes()).is_some_and(|php| php == session.save_path)
    });
    compare("COMEDOR_SESSION_NAME", &|php| php == session.name);
    compare("COMEDOR_SESSION_FORMAT", &|php| php == session.format.name());
}

fn php(code: &str) -> Option<String> {
    let output = Command::new("php").args(["-r", code]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether `folder`, which is `what` and named by the setting `set`, and every folder above it is
/// there and may be entered; the first that is not is reported.
pub fn may_enter(
    (what, set): (&str, &str),
    folder: &Path,
    user: &User,
    report: &mut Report,
) -> bool {
    let mut way: Vec<&Path> = folder.ancestors().collect();
    way.reverse();
    for part in way {
        let about = part.display().to_string();
        let metadata = match fs::metadata(part) {
            Ok(metadata) => metadata,
            Err(error) => {
                let text = format!("{what} can't be reached: {error}; {set} names it");
                report.add(Level::Error, about, text, None);
                return false;
            }
        };
        if !metadata.is_dir() {
            report.add(Level::Error, about, format!("{what} needs a folder here"), None);
            return false;
        }
        if access(part, Access::EXEC_OK).is_err() {
            let text = format!("{what}: {} may not enter this folder", user.name);
            let mend = format!("sudo chmod a+x {}", quoted(part));
            report.add(Level::Error, about, text, Some(mend));
            return false;
        }
    }
    report.add(Level::Ok, folder.display().to_string(), format!("{what} can be entered"), None);
    true
}

/// Whether files can be made and replaced in `folder`, tried with one that is removed again.
pub fn may_write(folder: &Path, user: &User, report: &mut Report) {
    let about = folder.display().to_string();
    match try_to_write(folder) {
        Ok(()) => {
            report.add(Level::Ok, about, format!("{} can write here", user.name), None);
        }
        Err(error) => {
            let name = &user.name;
            let text = format!("{name} can't write here ({error}), so that no menu can be saved");
            report.add(Level::Error, about, text, Some(user.admit(folder, "rwx")));
        }
    }
}

fn try_to_write(folder: &Path) -> io::Result<()> {
    let scratch = folder.join(format!(".comedor.check.{}", std::process::id()));
    let renamed = scratch.with_extension("renamed");
    let outcome = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&scratch)?;
        file.write_all(b"comedor check\n")?;
        file.sync_all()?;
        fs::rename(&scratch, &renamed)
    })();
    _ = fs::remove_file(if outcome.is_ok() { &renamed } else { &scratch });
    outcome
}
