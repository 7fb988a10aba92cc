//! `comedor check`: checks everything that a request needs. The administrator runs it as PHP's
//! user. A finding says what is wrong and what the effect is, with a command that fixes it if there
//! is a safe one.
//!
//! It changes nothing: a file that it writes as a test is removed again.

mod data;
mod fastcgi;
mod file_system;
mod folders;
mod process;
mod reach;
mod redis;
mod report;
mod right_user;
mod session;
mod settings;
mod site;
mod user;

use std::path::PathBuf;

use crate::config::{Config, Settings};
use report::Report;
pub(crate) use report::counted;
pub(crate) use settings::{OF_PHP, equals};

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

fn check(subject: Subject, report: &mut Report) {
    let settings = match Settings::load() {
        Ok(settings) => settings,
        Err(error) => return settings::refused(&error, None, report),
    };
    let config = match Config::from_settings(&settings) {
        Ok(config) => config,
        Err(error) => return settings::refused(&error, Some(&settings), report),
    };
    let is_session = subject == Subject::Session;
    let Some(user) = right_user::check(&config, is_session, report) else { return };
    match subject {
        Subject::Session => session::check(&config, &settings, report),
        Subject::Everything { socket } => {
            settings::check(&config, &settings, report);
            site::check(&config, &settings, &user, report);
            folders::check_sessions(&config, &settings, &user, report);
            if folders::check_data(&config, &user, report) {
                data::check(&config.data_dir, &user, report);
            }
            fastcgi::check(socket, report);
        }
    }
}
