//! `comedor check`: checks everything that a request needs, from where requests run. A finding says what is
//! wrong, what the effect is, and whose the file is.
//!
//! It changes nothing: a file that it writes as a test is removed again. It ends in limited time and memory,
//! whatever it finds, and says what it did not look at.

mod data;
mod fastcgi;
mod folders;
mod report;
mod root;
mod session;
mod settings;
mod site;

use std::env::current_exe;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::admin::accounts::user_name;
use crate::sys::process::Credentials;
use folders::Survey;
pub(crate) use report::counted;
use report::{Level, Report};

/// The time of a whole check. A child that does not end in it has another second.
const TIME: Duration = Duration::from_secs(36);

/// The time to look at sessions and data. The data of a school takes a second, or a few if a disk reads it first.
const TIME_TO_LOOK: Duration = Duration::from_secs(10);

/// What to check, and how to print it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The application's address in the browser, else the one that set-up remembers
    pub address: Option<String>,
    /// Do not ask PHP by a page beside the script.
    pub no_page: bool,
    /// Only the session whose cookie is on standard input: an argument would be visible to other users.
    pub is_session: bool,
    /// This FastCGI socket instead of that of `comedor.socket`
    pub socket: Option<PathBuf>,
    pub as_json: bool,
}

/// Checks; returns the findings, as JSON or as lines, and the exit status.
pub fn run(options: &Options) -> (String, u8) {
    let mut report = Report::default();
    check(options, &mut report);
    report.finish(options.as_json)
}

/// The errors of a check of everything.
pub fn errors() -> Vec<String> {
    let mut report = Report::default();
    check(&Options::default(), &mut report);
    report.errors()
}

/// The errors in what `user` sees, as if comedor were enabled for that user.
pub fn errors_of(user: &Credentials) -> Vec<String> {
    let mut report = Report::default();
    root::look_as(user, None, Instant::now() + TIME, &mut report);
    report.errors()
}

fn check(options: &Options, report: &mut Report) {
    let end = Instant::now() + TIME;
    let session = options.is_session.then(session::read_line);
    let session = session.as_deref();
    let user = Credentials::of_process();
    if user.is_root() && !is_in_container() {
        return root::check(options, session, end, report);
    }
    look(session, report);
    let path = options.socket.as_deref().unwrap_or(Path::new(fastcgi::SOCKET));
    if session.is_none() && (options.socket.is_some() || path.exists()) {
        fastcgi::check(path, None, end, report);
    }
    if !is_in_container() {
        let name = user_name(user.uid);
        let text = format!("checked as {name}; root can check more: sudo comedor check");
        report.add(Level::Hint, "user", text);
    }
}

/// Whether this is a container of the released image, which has only the program: the check runs as its user.
fn is_in_container() -> bool {
    !Path::new("/bin/sh").exists()
}

/// What this process sees: everything, or the session whose cookie is `session`.
fn look(session: Option<&str>, report: &mut Report) {
    let end = Instant::now() + TIME_TO_LOOK;
    let Some((config, settings)) = settings::load(report) else { return };
    let user = user_name(Credentials::of_process().uid);
    report.add(Level::Ok, "user", &user);
    // proc_pid_exe(5)
    if current_exe().is_ok_and(|path| path.to_string_lossy().ends_with(" (deleted)")) {
        let text = "the program of this process was replaced or removed: restart the process";
        report.add(Level::Warning, "program", text);
    }
    let (config, settings) = (&config, &settings);
    let (aularios, days, closed) = (0, 0, None);
    let mut survey = Survey { config, settings, user, report, end, aularios, days, closed };
    if let Some(line) = session {
        let checked = session::check(&mut survey, line);
        return checked.unwrap_or_else(|error| report.add(Level::Error, "session", error));
    }
    settings::check(config, settings, survey.report);
    survey.sessions();
    survey.data();
}

/// What this process sees, as the JSON document of `comedor check`.
pub fn findings(session: Option<&str>) -> Vec<u8> {
    let mut report = Report::default();
    look(session, &mut report);
    report.finish(true).0.into_bytes()
}
