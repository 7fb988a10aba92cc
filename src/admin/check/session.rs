//! Checks sessions. Of one: whether it is found, its centre, aularios and permissions. Prints no other
//! content of it.

use std::fs;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::fs::{Access, OFlags, access};

use super::report::{Level, Report};
use super::settings::shown;
use super::user::User;
use crate::admin::accounts::user_name;
use crate::api::caller::{Caller, is_logged_in, name_of_centre};
use crate::config::{Config, SESSION_DIR, SESSION_FORMAT, SESSION_MAX_AGE, Settings};
use crate::model::{Id, MAX_ID};
use crate::session::{
    self, Effect, PhpArray, PhpValue, Session, SessionFolder, SessionId, session_id,
};
use crate::store::layout;
use crate::sys::shared_file;

/// Checks the session whose cookie is `line`.
pub fn check(line: &str, config: &Config, settings: &Settings, report: &mut Report) {
    let name = &config.session.name;
    let mut add = |level, text: &str| report.add(level, "session", text);
    let line = line.trim();
    // The value alone, or as the browser's tools and curl show it.
    let Some(id) = session_id(line.as_bytes(), name).or_else(|| SessionId::new(line.to_owned()))
    else {
        let text =
            format!("standard input is not a session id; expected the value of the cookie {name}");
        return add(Level::Error, &text);
    };
    let session = match session::read(&config.session, &id, Effect::Nothing) {
        Ok(session) => session,
        Err(error) => {
            let used = [&SESSION_DIR, &SESSION_FORMAT, &SESSION_MAX_AGE]
                .map(|setting| shown(settings, setting))
                .join(", ");
            let cause = error.cause.as_deref().unwrap_or(&error.sentence).trim_end_matches('.');
            let text =
                format!("{cause}; if the user is logged in, PHP has other settings than {used}");
            return add(Level::Error, &text);
        }
    };
    if !is_logged_in(&session) {
        let text = "the user is not logged in: $_SESSION['auth_ok'] is not true";
        return add(Level::Error, text);
    }
    let Ok(caller) = Caller::identify(&session, config) else {
        let text = invalid_centre(&session, config)
            .unwrap_or_else(|| no_centre("the session has no", config, &services(&session)));
        return add(Level::Error, &text);
    };
    add(Level::Ok, &format!("the session exists; the browser must send it in the cookie {name}"));
    add(Level::Ok, &format!("the centre is {}", caller.centro.as_str()));
    let folder = layout::centres(&config.data_dir).join(caller.centro.as_str());
    if !folder.is_dir() {
        let folder = folder.display();
        let text =
            format!("the centre's folder {folder} does not exist, so every aulario is unknown");
        add(Level::Error, &text);
    }
    match caller.aulas().as_deref() {
        None => add(Level::Ok, "the user may use every aulario of the centre"),
        Some([]) => add(Level::Warning, "the user has no access to any aulario"),
        Some(ids) => add(Level::Ok, &format!("the user may use the aularios {}", ids.join(", "))),
    }
    let docente = format!("{}:docente", config.service.as_str());
    for (is_allowed, verb, permission, level) in [
        (caller.may_read().is_ok(), "read", docente.as_str(), Level::Warning),
        (caller.may_write().is_ok(), "change", "sysadmin:access", Level::Hint),
    ] {
        if is_allowed {
            add(Level::Ok, &format!("the user may {verb} menus"));
        } else {
            let effect = format!("the user cannot {verb} menus");
            add(level, &format!("the permission {permission} is missing: {effect}"));
        }
    }
}

/// Reads a line, with a prompt at a terminal.
pub fn read_line() -> io::Result<String> {
    let input = io::stdin().lock();
    if input.is_terminal() {
        _ = write!(io::stderr(), "Value of the session cookie: ");
    }
    let mut line = String::new();
    input.take(4096).read_line(&mut line)?;
    Ok(line)
}

/// The sentence for a centre in the session's data of the service whose name is invalid.
fn invalid_centre(session: &Session, config: &Config) -> Option<String> {
    let data = session.get("auth_data").and_then(PhpValue::as_array)?;
    let name = name_of_centre(data.get(config.service.as_str())?)?;
    let expected = Id::EXPECTED;
    let text = format!("the session's centre {name:?} is not a valid id: it must be {expected}");
    (!name.is_empty() && Id::parse(&name).is_err()).then_some(text)
}

/// The services under which the session has a centre.
fn services(session: &Session) -> Vec<String> {
    let data = session.get("auth_data").and_then(PhpValue::as_array);
    let is_id = |name: &String| Id::parse(name).is_ok();
    let services = data.into_iter().flat_map(PhpArray::entries).filter_map(|(name, unit)| {
        name_of_centre(unit).filter(is_id)?;
        name.to_text(MAX_ID).filter(is_id)
    });
    services.collect()
}

/// The sentence for a missing centre under COMEDOR_SERVICE, with the `services` that have one. `subject` is
/// who lacks it.
fn no_centre(subject: &str, config: &Config, services: &[String]) -> String {
    let service = config.service.as_str();
    let instead = match services {
        [] => ", nor under another service".to_owned(),
        others => {
            format!("; found under `{}`: set COMEDOR_SERVICE accordingly", others.join("`, `"))
        }
    };
    format!("{subject} centre under `{service}` (COMEDOR_SERVICE){instead}")
}

/// Reports if the user cannot use any of the session files. Warns if they have centres, and none under
/// COMEDOR_SERVICE.
pub fn check_files(config: &Config, folder: &SessionFolder, user: &User, report: &mut Report) {
    let about = folder.folder.display();
    let Ok(files) = files(folder) else {
        let text = "cannot be listed, so only a login shows whether COMEDOR_SERVICE is right: sudo comedor check --session";
        return report.add(Level::Hint, about, text);
    };
    let is_closed = |path: &PathBuf| access(path, Access::READ_OK | Access::WRITE_OK).is_err();
    if files.iter().all(is_closed)
        && let Some(Ok(first)) = files.first().map(fs::symlink_metadata)
    {
        let (name, owner) = (&user.name, user_name(first.uid()));
        let text = format!(
            "{name} cannot use any of the session files, which belong to {owner}: comedor must run as PHP's user"
        );
        return report.add(Level::Error, about, text);
    }
    let services = files.iter().filter_map(|path| {
        let read = shared_file::open_and(OFlags::RDONLY, path, |file| shared_file::read(&file));
        let session = Session::decode(read.ok()?.0, config.session.format).ok()?;
        Some(services(&session))
    });
    let mut services: Vec<String> = services.flatten().collect();
    services.sort();
    services.dedup();
    if !services.is_empty() && !services.iter().any(|name| name == config.service.as_str()) {
        report.add(Level::Warning, about, no_centre("no session has a", config, &services));
    }
}

/// Every session file. Fails if a folder cannot be listed; usually only root can.
fn files(save_path: &SessionFolder) -> io::Result<Vec<PathBuf>> {
    let is_session = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"sess_"))
    };
    let mut paths = vec![save_path.folder.clone()];
    for level in 0..=save_path.depth {
        let folders = paths.iter().map(fs::read_dir).collect::<io::Result<Vec<_>>>()?;
        let entries = folders.into_iter().flatten().map(|entry| Ok(entry?.path()));
        paths = entries.collect::<io::Result<_>>()?;
        let is_last = level == save_path.depth;
        paths.retain(|path| if is_last { is_session(path) } else { path.is_dir() });
    }
    Ok(paths)
}
