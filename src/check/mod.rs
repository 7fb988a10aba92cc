//! `comedor check`: what one process of this user sees of the settings, the folders, the data and one session.
//! A finding says what is wrong, what the effect is, and who owns the file.
//!
//! It changes nothing, starts nothing, and sends no request but to the Redis server of the settings. It ends in limited
//! time and memory, whatever it finds, and says what it did not look at.

mod data;
mod folders;
mod guide;
mod kinds;
mod report;
mod script;
mod session;
mod settings;
mod umask;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::geteuid;

use crate::config::{Config, Usable};
use crate::session::SavePath;
use crate::store::layout;
use crate::sys::accounts::{self, user_name};
use crate::sys::signals::leave_alarms_to_another_thread;
use folders::Survey;
use kinds::Kind;
pub use report::Outcome;
use report::Report;

/// The time of a whole check, which with its start and its output ends within the 40 s that the manual page promises. A
/// system call on a network file system may never end.
const TIME: Duration = Duration::from_secs(36);

/// The time to look at sessions and data. The data of a school takes a second, or a few if a disk reads it first.
const TIME_TO_LOOK: Duration = Duration::from_secs(10);

/// What to check, and how to print it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Only the session whose cookie is on standard input: an argument would be visible to other users.
    pub is_session: bool,
    pub as_json: bool,
}

/// Checks.
pub fn run(options: Options) -> Outcome {
    let session = options.is_session.then(session::read_line);
    let report = Arc::new(Report::default());
    let looking = {
        let report = report.clone();
        leave_alarms_to_another_thread()
            .and_then(|()| thread::Builder::new().spawn(move || look(session.as_deref(), &report)))
    };
    match looking {
        Ok(thread) => wait(thread, &report),
        Err(error) => {
            let text = format!("cannot start a thread: {error}");
            report.add(Kind::CheckFailed, "check", text);
        }
    }
    report.finish(options.as_json)
}

/// Waits until the thread has ended, or its time.
fn wait(thread: thread::JoinHandle<()>, report: &Report) {
    let end = Instant::now() + TIME;
    // A channel would do the same, but its variables of each thread need a mapping in every CGI process.
    while !thread.is_finished() {
        if Instant::now() >= end {
            let text = "no answer in time; what comes after it was not checked";
            return report.add(Kind::NoAnswer, report.place(), text);
        }
        thread::sleep(Duration::from_millis(1));
    }
    if thread.join().is_err() {
        report.add(
            Kind::CheckFailed,
            report.place(),
            "the check stopped here because of a fault of its own",
        );
    }
}

/// What this process sees: everything, or the session whose cookie is `session`.
fn look(session: Option<&str>, report: &Report) {
    let Some(Usable { settings, config }) = settings::load(report) else {
        return;
    };
    let user = user_name(geteuid().as_raw());
    report.add(Kind::User, "user", &user);
    // In a container of the released image requests run as root too.
    if geteuid().is_root() && accounts::exist() {
        advise_root(&config, report);
    }
    let mut survey = Survey::new(
        &config,
        &settings,
        user,
        report,
        Instant::now() + TIME_TO_LOOK,
    );
    if let Some(line) = session {
        let checked = session::check(&survey, line);
        return checked.unwrap_or_else(|why| report.add(Kind::SessionUnusable, "session", why));
    }
    settings::check(&config, &settings, report);
    script::check(&config, &settings, report);
    survey.sessions();
    survey.data();
    let text = match config.script {
        Some(_) => "not looked at: the web server, and PHP's own settings",
        None => {
            "not looked at: the web server, PHP's own settings, and whether comedor-setup.php, which is to be removed \
             after set-up, is still beside the script (COMEDOR_SCRIPT is not set)"
        }
    };
    report.add(Kind::NotChecked, "check", text);
}

/// Says to root who should check: the owner of the data, who often owns the sessions too.
fn advise_root(config: &Config, report: &Report) {
    let as_root = "checked as root, which can access everything";
    let data = owner(&layout::centres(&config.data_dir), report);
    if data == Some(0) {
        let text = format!("{as_root}; the data belongs to root too");
        return report.add(Kind::RootOwnsData, "user", text);
    }
    let sessions = match &config.session.save_path {
        // In Debian's folder every user can create files, and root owns it.
        SavePath::Files(sessions) => owner(&sessions.folder, report).filter(|&uid| uid != 0),
        SavePath::Redis(_) => None,
    };
    let advice = match (data, sessions) {
        (Some(data), Some(sessions)) if data != sessions => format!(
            "the data belongs to {} and the session folder to {}: run the check as PHP's user",
            user_name(data),
            user_name(sessions)
        ),
        (Some(uid), _) | (None, Some(uid)) => format!(
            "check as the user of the requests: sudo -u {} comedor check",
            user_name(uid)
        ),
        (None, None) => "run the check as PHP's user: sudo -u www-data comedor check".to_owned(),
    };
    report.add(Kind::Root, "user", format!("{as_root}; {advice}"));
}

fn owner(folder: &Path, report: &Report) -> Option<u32> {
    report.looks_at(folder);
    let metadata = fs::metadata(folder).ok()?;
    Some(metadata.uid())
}
