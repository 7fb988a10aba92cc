//! `comedor check`: the administrator's self-check, run as the web server's user with the
//! settings that the program will have. It looks at everything that a request needs, and says
//! of each thing that is wrong what it is and which command mends it.
//!
//! It changes nothing: what it writes, to see whether that works, it removes.

mod data;
mod report;
mod settings;
mod user;

use std::io::{self, ErrorKind, Read};

use crate::caller::Caller;
use crate::config::{self, Config, SessionConfig, Settings};
use crate::error::Error;
use crate::session::{self, SessionId};
use report::Level;
pub use report::Report;
use user::User;

/// What to look at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Subject {
    /// Settings, folders and data
    Everything,
    /// The session whose id comes on standard input, where no process list shows it
    Session,
}

/// Checks `subject` and fills `report`.
pub fn run(subject: Subject, report: &mut Report) {
    let settings = match Settings::load() {
        Ok(settings) => settings,
        Err(error) => {
            let mend = match &error {
                config::Error::Unreadable { path, source }
                    if source.kind() == Some(ErrorKind::PermissionDenied) =>
                {
                    Some(format!("sudo chmod a+r {}", user::quoted(path)))
                }
                _ => None,
            };
            return report.add(Level::Error, "settings", error.to_string(), mend);
        }
    };
    let config = match Config::from_settings(&settings) {
        Ok(config) => config,
        Err(error) => return report.add(Level::Error, "settings", error.to_string(), None),
    };
    match subject {
        Subject::Session => check_session(&config, report),
        Subject::Everything => {
            let user = User::of_process();
            settings::check(&config, &settings, &user, report);
            data::check(&config.data_dir, &user, report);
        }
    }
}

/// Centre, aularios and permissions of a session; nothing else of its content.
fn check_session(config: &Config, report: &mut Report) {
    let mut id = String::new();
    if let Err(error) = io::stdin().take(1024).read_to_string(&mut id) {
        return report.add(Level::Error, "session", format!("standard input: {error}"), None);
    }
    let Some(id) = SessionId::new(id.trim().to_owned()) else {
        return report.add(
            Level::Error,
            "session",
            "standard input holds no session's id; give only the value of the cookie",
            None,
        );
    };
    let SessionConfig { save_path, name, format, .. } = &config.session;
    let found = match session::find(&config.session, &id) {
        Ok(found) => found,
        Err(error) => {
            let text = format!(
                "{} It was looked for in {} (COMEDOR_SESSION_DIR) and read as {} \
                 (COMEDOR_SESSION_FORMAT); phpinfo() of a page shows what PHP has",
                reason(&error),
                save_path.folder.display(),
                format.name()
            );
            return report.add(Level::Error, "session", text, None);
        }
    };
    let caller = match Caller::identify(&found.session, config) {
        Ok(caller) => caller,
        Err(error) => {
            let service = config.service.as_str();
            let text = format!(
                "{} The centre was looked for in $_SESSION['auth_data']['{service}']['centro']; \
                 {service} is COMEDOR_SERVICE",
                reason(&error)
            );
            return report.add(Level::Error, "session", text, None);
        }
    };
    let text = format!("it is there; in the browser the cookie must have the name {name}");
    report.add(Level::Ok, "session", text, None);
    let folder = config.data_dir.join("Centros").join(caller.centro.as_str());
    if !folder.is_dir() {
        let text = format!("there is no folder {} of its centre", folder.display());
        report.add(Level::Error, "session", text, None);
    }
    report.add(Level::Ok, "session", format!("its centre is {}", caller.centro.as_str()), None);
    let aulas = match caller.aulas() {
        None => "it may use every aulario of its centre".to_owned(),
        Some(ids) => format!("it may use the aularios {}", ids.join(", ")),
    };
    report.add(Level::Ok, "session", aulas, None);
    match caller.may_read() {
        Ok(()) => report.add(Level::Ok, "session", "it may read menus", None),
        Err(_) => {
            let text = format!(
                "it lacks {}:docente, so that it may not read menus",
                config.service.as_str()
            );
            report.add(Level::Warning, "session", text, None);
        }
    }
    match caller.may_write() {
        Ok(()) => report.add(Level::Ok, "session", "it may change menus, too", None),
        Err(_) => {
            let text = "it lacks sysadmin:access, so that it may not change menus";
            report.add(Level::Hint, "session", text, None);
        }
    }
}

fn reason(error: &Error) -> String {
    error.cause.clone().unwrap_or_else(|| error.sentence.clone().into_owned())
}
