//! `comedor check`: checks everything that a request needs. The administrator runs it as the web
//! server's user. A finding says what is wrong and what the effect is, with a command that fixes it
//! if there is a safe one.
//!
//! It changes nothing: a file that it writes as a test is removed again.

mod data;
mod fastcgi;
mod file_system;
mod folders;
mod gluster;
mod redis;
mod report;
mod session;
mod settings;
mod skew;
mod user;

use std::path::PathBuf;

use crate::config::{Config, Settings};
pub use report::Report;
use user::User;

/// What to check.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// Settings, folders and data, and the FastCGI socket at a path, else the one of
    /// `comedor.socket` if it exists
    Everything { socket: Option<PathBuf> },
    /// The session whose cookie is on standard input: an argument would be visible to other users.
    Session,
}

/// Checks `subject` and adds the findings to `report`.
pub fn run(subject: Subject, report: &mut Report) {
    let user = User::of_process();
    settings::check_user(&user, &subject, report);
    let settings = match Settings::load() {
        Ok(settings) => settings,
        Err(error) => return settings::refused(&error, &user, report),
    };
    let config = match Config::from_settings(&settings) {
        Ok(config) => config,
        Err(error) => return settings::refused(&error, &user, report),
    };
    match subject {
        Subject::Session => session::check(&config, &user, report),
        Subject::Everything { socket } => {
            settings::check(&config, &settings, report);
            folders::check_sessions(&config, &settings, &user, report);
            if folders::check_data(&config, &settings, &user, report) {
                data::check(&config.data_dir, &user, report);
            }
            let socket = socket.unwrap_or_else(|| PathBuf::from(fastcgi::SOCKET));
            fastcgi::check(&socket, &user, report);
        }
    }
}
