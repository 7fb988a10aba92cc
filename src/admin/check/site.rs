//! Compares path, user and settings of comedor with those of the PHP script, and asks through the web
//! server.

use super::report::{Level, Report};
use super::settings::{Wanted, equals, shown, wanted, without_password};
use crate::admin::inferred::{Answer, Machine, Script, Way, ask, unit_user};
use crate::config::{Config, SESSION_LIFETIME, Settings, TZ};
use crate::session::SavePath;

/// Compares what root has found in the machine.
pub fn check(machine: &Machine, config: &Config, settings: &Settings, report: &mut Report) {
    for note in &machine.notes {
        report.add(Level::Hint, "web server", format!("not checked: {note}"));
    }
    if machine.scripts.is_empty() {
        let text = if machine.runs {
            "no …/api/comedor.php found in the folders of any site"
        } else {
            "none is running"
        };
        report.add(Level::Hint, "web server", text);
        super::settings::compare(config, report);
    }
    let is_enabled = machine.scripts.iter().any(|script| script.comedor.is_some());
    // Before comedor is enabled, the settings are for the application with that service.
    let is_meant = |script: &Script| {
        script.service.as_ref().is_some_and(|value| value.text == config.service.as_str())
    };
    let has_meant = machine.scripts.iter().any(is_meant);
    for script in &machine.scripts {
        match &script.comedor {
            Some(way) => {
                users(script, way, config, report);
                asked(script, report);
            }
            None => not_enabled(script, machine, is_enabled, report),
        }
        if script.comedor.is_some() || !is_enabled && (is_meant(script) || !has_meant) {
            compare(script, config, settings, report);
        }
    }
}

/// Reports why PHP still answers.
fn not_enabled(script: &Script, machine: &Machine, is_enabled: bool, report: &mut Report) {
    let about = script.url();
    let in_site =
        || machine.enabled.iter().filter(|enabled| enabled.site.place == script.site.place);
    let is_used = |path: &str| {
        machine.scripts.iter().any(|other| other.comedor.is_some() && other.path == path)
    };
    if let Some(enabled) = in_site().find(|enabled| enabled.path == script.path) {
        let text = format!(
            "PHP answers: comedor is enabled for this path ({}), but another line of the site, such as an Alias, \
             takes precedence; use a <Location>, as in apache.conf.example",
            enabled.place
        );
        report.add(Level::Error, about, text);
    } else if let Some(enabled) = in_site().find(|enabled| !is_used(&enabled.path)) {
        let text = format!(
            "PHP answers: the script is {}, but comedor is enabled for {} ({})",
            script.file.display(),
            enabled.path,
            enabled.place
        );
        report.add(Level::Error, about, text);
    } else if !is_enabled {
        let text = format!(
            "PHP answers ({}): comedor is not enabled; to enable it: sudo comedor setup",
            script.file.display()
        );
        report.add(Level::Hint, about, text);
    }
}

/// Compares the user of the requests with that of PHP's pages.
fn users(script: &Script, way: &Way, config: &Config, report: &mut Report) {
    let Some(php) = &script.php else { return };
    let (user, how) = match way {
        Way::Cgi => (Some(script.site.user.clone()), "CGI"),
        Way::FastCgi(_) => (unit_user(), "FastCGI"),
    };
    let Some(user) = user.filter(|user| *user != php.user) else { return };
    let (level, effect) = match config.session.save_path {
        SavePath::Files(_) => (
            Level::Error,
            "so comedor cannot read PHP's sessions, and every request of a logged-in user fails",
        ),
        SavePath::Redis(_) => (Level::Warning, "so each needs access to the other's files"),
    };
    let text = format!(
        "with {how}, requests run as {user} and PHP's pages as {} ({}), {effect}; use FastCGI with User={} (docs/install-special.md)",
        php.user, php.name, php.user
    );
    report.add(level, script.url(), text);
}

/// Compares the settings with those of the pages.
fn compare(script: &Script, config: &Config, settings: &Settings, report: &mut Report) {
    let about = &script.file.display();
    for text in script.not_understood() {
        report.add(Level::Hint, about, format!("{text}; compare it with the settings"));
    }
    if let Some(place) = &script.database {
        let text =
            format!("uses a database ({place}): if the menus are in it, comedor does not see them");
        report.add(Level::Warning, about, text);
    }
    if let Some(handler) = script
        .setting("session.save_handler")
        .filter(|handler| !["files", "redis"].contains(&&*handler.text))
    {
        let text = format!(
            "the session.save_handler of PHP's pages is {} ({}); comedor supports only files and redis",
            handler.text, handler.place
        );
        report.add(Level::Error, about, text);
    }
    for Wanted { setting, what, value, source } in wanted(script) {
        if !equals(config, setting, value) {
            let level = match *setting {
                TZ | SESSION_LIFETIME => Level::Warning,
                _ => Level::Error,
            };
            let (value, shown) = (without_password(value), shown(settings, setting));
            let text = format!("{what} is {value} ({source}), but {shown}");
            report.add(level, setting.name, text);
        }
    }
}

/// Reports what answers through the web server.
fn asked(script: &Script, report: &mut Report) {
    let (level, text) = match ask(script) {
        Answer::Comedor => (Level::Ok, "comedor answers".to_owned()),
        Answer::Other(status) if status.contains(" https://") => {
            (Level::Ok, format!("redirects: {status}"))
        }
        Answer::Other(status) => {
            (Level::Error, format!("comedor does not answer, although it is enabled: {status}"))
        }
        Answer::Nothing(cause) => {
            (Level::Hint, format!("not requested through the web server: {cause}"))
        }
    };
    report.add(level, script.url(), text);
}
