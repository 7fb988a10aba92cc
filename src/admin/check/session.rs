//! Checks one session: whether it is found, its centre, aularios and permissions, and prints nothing else of it.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use super::folders::Survey;
use super::report::Level;
use super::settings::shown;
use crate::api::caller::{Caller, is_logged_in, name_of_centre};
use crate::config::{self, Config, SESSION_DIR, SESSION_FORMAT};
use crate::model::Id;
use crate::session::{self, Effect, PhpArray, PhpValue, Session, SessionId, session_id};
use crate::store::layout;

/// Checks the session whose cookie is `line`. The error says why every request with it fails.
pub fn check(survey: &mut Survey, line: &str) -> Result<(), String> {
    let Survey { config, settings, report, .. } = survey;
    let name = &config.session.name;
    let mut add = |level, text: &str| report.add(level, "session", text);
    let line = line.trim();
    // The value alone, or as the browser's tools and curl show it.
    let id = session_id(line.as_bytes(), name).or_else(|| SessionId::new(line.to_owned()));
    let id = id.ok_or_else(|| {
        format!("standard input is not a session id; expected the value of the cookie {name}")
    })?;
    let session = session::read(&config.session, &id, Effect::Nothing).map_err(|error| {
        let used = [&SESSION_DIR, &SESSION_FORMAT];
        let used = used.map(|setting| shown(settings, setting)).join(" and ");
        let cause = error.cause.as_deref().unwrap_or(&error.sentence).trim_end_matches('.');
        format!("{cause}; if the user is logged in, PHP has other settings than {used}")
    })?;
    if !is_logged_in(&session) {
        return Err("the user is not logged in: $_SESSION['auth_ok'] is not true".to_owned());
    }
    let caller = Caller::identify(&session, config)
        .map_err(|error| error.cause.unwrap_or_else(|| no_centre(&session, config)))?;
    add(Level::Ok, &format!("the session exists; the browser must send it in the cookie {name}"));
    add(Level::Ok, &format!("the centre is {}", caller.centro.as_str()));
    let folder = layout::centres(&config.data_dir).join(caller.centro.as_str());
    if !folder.is_dir() {
        let unknown = "does not exist, so every aulario is unknown";
        add(Level::Error, &format!("the centre's folder {} {unknown}", folder.display()));
    }
    match caller.aulas().as_deref() {
        None if config.access == config::Access::Listed => add(
            Level::Warning,
            "the session has no list of aularios (aulas), which COMEDOR_ACCESS=listed requires: the \
             user has no access to any aulario",
        ),
        None => add(Level::Ok, "the user may use every aulario of the centre"),
        Some([]) => add(Level::Warning, "the user has no access to any aulario"),
        Some(ids) => add(Level::Ok, &format!("the user may use the aularios {}", ids.join(", "))),
    }
    let of_service = |name: &str| format!("{}:{name}", config.service.as_str());
    for (is_allowed, action, permission, level) in [
        (caller.may_read().is_ok(), "read menus", of_service("docente"), Level::Warning),
        (caller.may_enter().is_ok(), "enter the service", of_service("access"), Level::Warning),
        (caller.may_write().is_ok(), "change menus", "sysadmin:access".into(), Level::Hint),
    ] {
        let missing = format!("the permission {permission} is missing: the user cannot {action}");
        match is_allowed {
            true => add(Level::Ok, &format!("the user may {action}")),
            false => add(level, &missing),
        }
    }
    Ok(())
}

/// Reads a line, with a prompt at a terminal. Returns what was read before an error.
pub fn read_line() -> String {
    let input = io::stdin().lock();
    if input.is_terminal() {
        _ = write!(io::stderr(), "Value of the session cookie: ");
    }
    let mut line = String::new();
    _ = input.take(4096).read_line(&mut line);
    line
}

/// Why the session has no centre: another service may have it.
fn no_centre(session: &Session, config: &Config) -> String {
    let service = config.service.as_str();
    let data = session.get("auth_data").and_then(PhpValue::as_array);
    let is_id = |name: &String| Id::parse(name).is_ok();
    let others = data.into_iter().flat_map(PhpArray::entries).filter_map(|(name, unit)| {
        name_of_centre(unit).filter(is_id)?;
        name.to_text().filter(is_id)
    });
    let others = others.collect::<Vec<_>>().join("`, `");
    let instead = match others.as_str() {
        "" => ", nor under another service".to_owned(),
        others => format!("; found under `{others}`: set COMEDOR_SERVICE accordingly"),
    };
    format!("the session has no centre under `{service}` (COMEDOR_SERVICE){instead}")
}
