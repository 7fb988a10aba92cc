//! Checks one session: whether it is found, its centre, aularios and permissions, and prints nothing else of it.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use super::folders::Survey;
use super::kinds::Kind;
use super::settings::shown;
use crate::api::caller::{Caller, is_logged_in, name_of_centre};
use crate::config::{self, SESSION_DIR, SESSION_FORMAT};
use crate::error::Error;
use crate::model::Id;
use crate::session::{self, PhpArray, PhpValue, SavePath, Session, SessionId, session_id};
use crate::store::layout;
use crate::sys::waits::Waits;

/// The bytes of a line that are read. The value of the cookie has at most 256 characters; a browser's tools may show
/// other cookies with it.
const MAX_LINE: u64 = 4096;

/// Why every request with the session fails.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("standard input is not a session id; expected the value of the cookie {cookie}")]
    NotAnId { cookie: String },
    #[error("{cause}; if the user is logged in, PHP has other settings than {used}")]
    Unreadable { cause: String, used: String },
    #[error("the user is not logged in: $_SESSION['auth_ok'] is not true")]
    NotLoggedIn,
    #[error("{cause}")]
    CentreInvalid { cause: String },
    #[error(
        "the session has no centre under `{service}` (COMEDOR_SERVICE){}",
        instead(.others)
    )]
    NoCentre {
        service: String,
        /// The services that have a centre
        others: Vec<String>,
    },
}

fn instead(others: &[String]) -> String {
    if others.is_empty() {
        return ", nor under another service".to_owned();
    }
    let others = others.join("`, `");
    format!("; found under `{others}`: set COMEDOR_SERVICE accordingly")
}

/// Checks the session whose cookie is `line`.
pub fn check(survey: &Survey, line: &str) -> Result<(), Unusable> {
    let config = survey.config;
    let session = survey.read_session(line.trim())?;
    if !is_logged_in(&session) {
        return Err(Unusable::NotLoggedIn);
    }
    let caller = Caller::identify(&session, config).map_err(|error| match error.cause {
        Some(cause) => Unusable::CentreInvalid { cause },
        None => Unusable::NoCentre {
            service: config.service.as_str().to_owned(),
            others: services_with_centre(&session),
        },
    })?;
    let name = &config.session.name;
    let text = format!("the session exists; the browser must send it in the cookie {name}");
    survey.report.add(Kind::Session, "session", text);
    survey.centre_of(&caller);
    survey.aularios_of(&caller);
    survey.permissions_of(&caller);
    Ok(())
}

impl Survey<'_> {
    /// Reads the session of a cookie: its value alone, or as the browser's tools and curl show it.
    fn read_session(&self, cookie: &str) -> Result<Session, Unusable> {
        let config = &self.config.session;
        if let SavePath::Files(sessions) = &config.save_path {
            self.report.looks_at(&sessions.folder);
        }
        let id = session_id(cookie.as_bytes(), &config.name)
            .or_else(|| SessionId::new(cookie.to_owned()))
            .ok_or_else(|| Unusable::NotAnId {
                cookie: config.name.clone(),
            })?;
        session::read(config, &id, Waits::ALWAYS).map_err(|error| {
            let used = [&SESSION_DIR, &SESSION_FORMAT].map(|used| shown(self.settings, used));
            let cause = error.cause.as_deref().unwrap_or(&error.sentence);
            Unusable::Unreadable {
                cause: cause.trim_end_matches('.').to_owned(),
                used: used.join(" and "),
            }
        })
    }

    fn centre_of(&self, caller: &Caller) {
        let add = |kind, text: String| self.report.add(kind, "session", text);
        let centro = caller.centro.as_str();
        add(Kind::Session, format!("the centre is {centro}"));
        let folder = layout::centres(&self.config.data_dir).join(centro);
        if !folder.is_dir() {
            let unknown = "does not exist, so every aulario is unknown";
            let text = format!("the centre's folder {} {unknown}", folder.display());
            add(Kind::CentreUnknown, text);
        }
    }

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
        let service = self.config.service.as_str();
        let docente = format!("{service}:docente");
        let access = format!("{service}:access");
        let missing = Kind::PermissionMissing;
        self.permission(caller.may_read(), &docente, "read menus", missing);
        self.permission(caller.may_enter(), &access, "enter the service", missing);
        let missing = Kind::ReadsOnly;
        self.permission(
            caller.may_write(),
            "sysadmin:access",
            "change menus",
            missing,
        );
    }

    fn permission(&self, allowed: Result<(), Error>, name: &str, action: &str, missing: Kind) {
        if allowed.is_ok() {
            let text = format!("the user may {action}");
            self.report.add(Kind::Session, "session", text);
        } else {
            let text = format!("the permission {name} is missing: the user cannot {action}");
            self.report.add(missing, "session", text);
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
    _ = input.take(MAX_LINE).read_line(&mut line);
    line
}

/// The services under which the session has a centre.
fn services_with_centre(session: &Session) -> Vec<String> {
    let data = session.get("auth_data").and_then(PhpValue::as_array);
    let is_id = |name: &String| Id::parse(name).is_ok();
    data.into_iter()
        .flat_map(PhpArray::entries)
        .filter_map(|(name, unit)| {
            name_of_centre(unit).filter(is_id)?;
            name.to_text().filter(is_id)
        })
        .collect()
}
