//! `comedor check`: checks everything that a request needs, from where requests run. A finding says what is
//! wrong and what the effect is, with a command that fixes it if there is a safe one.
//!
//! It changes nothing: a file that it writes as a test is removed again.

mod data;
mod fastcgi;
mod file_system;
mod folders;
mod reach;
mod redis;
mod report;
mod requests;
mod role;
mod session;
mod settings;
mod site;
mod user;

use std::env::current_exe;
use std::path::{Path, PathBuf};

use crate::admin::accounts::user_name;
use crate::config::{Config, Settings};
use crate::store::access::Credentials;
pub(crate) use report::counted;
use report::{Level, Report};
use user::{User, is_in_container};

/// What to check.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// Settings, folders and data, and the FastCGI socket at a path, else the one of
    /// `comedor.socket` if it exists
    Everything { socket: Option<PathBuf> },
    /// The session whose cookie is on standard input: an argument would be visible to other users.
    Session,
}

/// Checks `subject`; returns the findings, as JSON or as lines, and the exit status.
pub fn run(subject: Subject, as_json: bool) -> (String, u8) {
    let mut report = Report::new();
    check(subject, &mut report);
    report.finish(as_json)
}

/// The errors of a check of everything.
pub fn errors() -> Vec<String> {
    let mut report = Report::new();
    check(Subject::Everything { socket: None }, &mut report);
    report.errors()
}

/// The errors in what `user` sees, as if comedor were enabled for that user.
pub fn errors_of(user: &Credentials) -> Vec<String> {
    let mut report = Report::new();
    requests::look_as(&[user_name(user.uid)].into(), None, &mut report);
    report.errors()
}

fn check(subject: Subject, report: &mut Report) {
    let session = (subject == Subject::Session).then(session::read_line).transpose();
    let session = match &session {
        Ok(line) => line.as_deref(),
        Err(error) => return report.add(Level::Error, "standard input", error),
    };
    let Some((config, settings)) = load(report) else { return };
    let user = User::of_process();
    if user.credentials.is_root() && !is_in_container() {
        return requests::check(&subject, session, &config, &settings, report);
    }
    if let Subject::Everything { socket } = &subject {
        let path = socket.as_deref().unwrap_or(Path::new(fastcgi::SOCKET));
        fastcgi::check(path, socket.is_some(), Vec::new(), report);
        settings::compare(&config, report);
    }
    look(session, report);
    if !is_in_container() {
        let text = format!("checked as {}; root can check more: sudo comedor check", user.name);
        report.add(Level::Hint, "user", text);
    }
}

fn load(report: &mut Report) -> Option<(Config, Settings)> {
    let settings = Settings::load();
    let settings = settings.map_err(|error| settings::refused(&error, None, report)).ok()?;
    let config = Config::from_settings(&settings);
    let refused = |error| settings::refused(&error, Some(&settings), report);
    Some((config.map_err(refused).ok()?, settings))
}

/// What this process sees: everything, or the session whose cookie is `session`.
fn look(session: Option<&str>, report: &mut Report) {
    let Some((config, settings)) = load(report) else { return };
    let user = User::of_process();
    report.add(Level::Ok, "user", &user.name);
    // proc_pid_exe(5)
    if current_exe().is_ok_and(|path| path.to_string_lossy().ends_with(" (deleted)")) {
        let text = "the program of this process was replaced or removed: restart the process";
        report.add(Level::Warning, "program", text);
    }
    if let Some(line) = session {
        return session::check(line, &config, &settings, report);
    }
    settings::check(&config, &settings, report);
    folders::check_sessions(&config, &settings, &user, report);
    if folders::check_data(&config, &user, report) {
        data::check(&config.data_dir, &user, report);
    }
}

/// What this process sees, as the JSON document of `comedor check`.
pub fn findings(session: Option<&str>) -> Vec<u8> {
    let mut report = Report::new();
    look(session, &mut report);
    report.finish(true).0.into_bytes()
}
