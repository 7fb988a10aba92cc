//! Checks one session: whether it is found, its centre, aularios and permissions, and prints nothing else of it.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use super::folders::Survey;
use super::kinds::Kind;
use super::settings::shown;
use crate::api::caller::{Caller, is_logged_in, name_of_centre};
use crate::config::{self, Config, SESSION_DIR, SESSION_FORMAT};
use crate::model::Id;
use crate::session::{self, Effect, PhpArray, PhpValue, SavePath, Session, SessionId, session_id};
use crate::store::layout;

/// Checks the session whose cookie is `line`. The error says why every request with it fails.
pub fn check(survey: &Survey, line: &str) -> Result<(), String> {
    let Survey {
        config, settings, ..
    } = survey;
    let name = &config.session.name;
    if let SavePath::Files(sessions) = &config.session.save_path {
        survey.report.looks_at(&sessions.folder);
    }
    let line = line.trim();
    // The value alone, or as the browser's tools and curl show it.
    let id = session_id(line.as_bytes(), name).or_else(|| SessionId::new(line.to_owned()));
    let id = id.ok_or_else(|| {
        format!("standard input is not a session id; expected the value of the cookie {name}")
    })?;
    let session = session::read(&config.session, &id, Effect::Nothing).map_err(|error| {
        let used = [&SESSION_DIR, &SESSION_FORMAT];
        let used = used.map(|setting| shown(settings, setting)).join(" and ");
        let cause = error
            .cause
            .as_deref()
            .unwrap_or(&error.sentence)
            .trim_end_matches('.');
        format!("{cause}; if the user is logged in, PHP has other settings than {used}")
    })?;
    if !is_logged_in(&session) {
        return Err("the user is not logged in: $_SESSION['auth_ok'] is not true".to_owned());
    }
    let caller = Caller::identify(&session, config)
        .map_err(|error| error.cause.unwrap_or_else(|| no_centre(&session, config)))?;
    let add = |kind, text: String| survey.report.add(kind, "session", text);
    add(
        Kind::Session,
        format!("the session exists; the browser must send it in the cookie {name}"),
    );
    add(
        Kind::Session,
        format!("the centre is {}", caller.centro.as_str()),
    );
    let folder = layout::centres(&config.data_dir).join(caller.centro.as_str());
    if !folder.is_dir() {
        let unknown = "does not exist, so every aulario is unknown";
        add(
            Kind::CentreUnknown,
            format!("the centre's folder {} {unknown}", folder.display()),
        );
    }
    survey.aularios_of(&caller);
    survey.permissions_of(&caller);
    Ok(())
}

impl Survey<'_> {
    fn aularios_of(&self, caller: &Caller) {
        let add = |kind, text: &str| self.report.add(kind, "session", text);
        match caller.aulas().as_deref() {
            None if self.config.access == config::Access::Listed => add(
                Kind::NoAularios,
                "the session has no list of aularios (aulas), which COMEDOR_ACCESS=listed requires: the \
                 user has no access to any aulario",
            ),
            None => add(
                Kind::Session,
                "the user may use every aulario of the centre",
            ),
            Some([]) => add(Kind::NoAularios, "the user has no access to any aulario"),
            Some(ids) => {
                add(
                    Kind::Session,
                    &format!("the user may use the aularios {}", ids.join(", ")),
                );
            }
        }
    }

    fn permissions_of(&self, caller: &Caller) {
        let of_service = |name: &str| format!("{}:{name}", self.config.service.as_str());
        for (is_allowed, action, permission, kind) in [
            (
                caller.may_read().is_ok(),
                "read menus",
                of_service("docente"),
                Kind::PermissionMissing,
            ),
            (
                caller.may_enter().is_ok(),
                "enter the service",
                of_service("access"),
                Kind::PermissionMissing,
            ),
            (
                caller.may_write().is_ok(),
                "change menus",
                "sysadmin:access".to_owned(),
                Kind::ReadsOnly,
            ),
        ] {
            if is_allowed {
                self.report
                    .add(Kind::Session, "session", format!("the user may {action}"));
            } else {
                let text =
                    format!("the permission {permission} is missing: the user cannot {action}");
                self.report.add(kind, "session", text);
            }
        }
    }
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
    let others = data
        .into_iter()
        .flat_map(PhpArray::entries)
        .filter_map(|(name, unit)| {
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
