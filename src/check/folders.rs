//! Checks that the user can enter the folders of the settings and write to them.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::fs::{Access, access};

use super::file_system::{self, Content};
use super::redis;
use super::report::{Level, Report};
use super::skew::Skew;
use super::user::User;
use crate::config::{Config, Settings};
use crate::model::Id;
use crate::session::{SavePath, SessionFolder};

/// The timeout for a folder to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Checks the folder or the server of the sessions.
pub fn check_sessions(config: &Config, settings: &Settings, user: &User, report: &mut Report) {
    let folder = match &config.session.save_path {
        SavePath::Files(SessionFolder { folder, .. }) => folder,
        SavePath::Redis(server) => {
            return redis::check(server, config.session.lifetime, settings, user, report);
        }
    };
    if let Err(obstacle) = enter(folder) {
        return obstacle.report("the session folder", "COMEDOR_SESSION_DIR", user, report);
    }
    report.add(Level::Ok, folder.display(), "the session folder can be entered");
    file_system::check(folder, Content::Sessions, report);
    if folder.starts_with("/tmp") || folder.starts_with("/var/tmp") {
        report.add(
            Level::Warning,
            folder.display(),
            "systemd can give each service its own /tmp, so the web server may not see PHP's \
             sessions here; set PHP's session.save_path to another folder",
        );
    }
}

/// Checks the data folder; returns whether its `Centros` can be entered.
pub fn check_data(config: &Config, settings: &Settings, user: &User, report: &mut Report) -> bool {
    let centros = config.data_dir.join("Centros");
    let Err(obstacle) = enter(&centros) else {
        report.add(Level::Ok, centros.display(), "the data folder can be entered");
        file_system::check(&centros, Content::Data, report);
        return true;
    };
    if obstacle.error.kind() == ErrorKind::NotFound {
        let mut text =
            "does not exist; COMEDOR_DATA_DIR must name the folder that contains Centros"
                .to_owned();
        let near = near(&config.data_dir);
        if !near.is_empty() {
            let folders: Vec<_> = near.iter().map(|folder| folder.display().to_string()).collect();
            text += &format!("; {} does", folders.join(" or "));
        }
        if let [folder] = near.as_slice() {
            // The default depends on the service.
            let is_default = settings.get("COMEDOR_DATA_DIR").is_none();
            let service = folder.strip_prefix("/DATA").ok().and_then(Path::to_str);
            text += &match service.filter(|name| is_default && Id::parse(name).is_ok()) {
                Some(service) => format!(": set COMEDOR_SERVICE={service}"),
                None => format!(": set COMEDOR_DATA_DIR={}", folder.display()),
            };
        }
        report.add(Level::Error, obstacle.path.display(), text);
    } else if obstacle.error.kind() == ErrorKind::PermissionDenied
        && obstacle.path.starts_with(&config.data_dir)
    {
        let text = format!(
            "{} needs execute permission for this folder; until then every request fails",
            user.name
        );
        let fix = user.grant(obstacle.path, "x", &config.data_dir);
        report.add_with_fix(Level::Error, obstacle.path.display(), text, fix);
    } else {
        obstacle.report("the data folder", "COMEDOR_DATA_DIR", user, report);
    }
    false
}

/// The folders with a `Centros` folder among the parent, the siblings and the children of `data_dir`.
fn near(data_dir: &Path) -> Vec<PathBuf> {
    let parent = data_dir.parent();
    let around = [parent, Some(data_dir)].into_iter().flatten();
    let inside = around.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let folders = parent.map(Path::to_owned).into_iter().chain(inside.map(|entry| entry.path()));
    let mut folders: Vec<_> = folders.filter(|folder| folder.join("Centros").is_dir()).collect();
    folders.sort();
    folders
}

/// The first part of a path that is missing, not a folder or not accessible to the user
pub struct Obstacle<'p> {
    path: &'p Path,
    error: io::Error,
}

impl Obstacle<'_> {
    /// Reports that `what`, the folder of `setting`, cannot be reached. A folder outside of the
    /// data may be closed on purpose, so no command is suggested.
    pub fn report(&self, what: &str, setting: &str, user: &User, report: &mut Report) {
        let text = match self.error.kind() {
            ErrorKind::NotFound => format!("does not exist; {setting} must name {what}"),
            ErrorKind::NotADirectory => format!("is not a folder; {setting} must name {what}"),
            ErrorKind::PermissionDenied => format!(
                "{} needs execute permission for this folder to reach {what} ({setting}); if the \
                 folder must stay closed, move {what}",
                user.name
            ),
            _ => format!("{}; {what} ({setting}) cannot be reached", self.error),
        };
        report.add(Level::Error, self.path.display(), text);
    }
}

/// Checks that this user can enter `folder` and every folder above it.
pub fn enter(folder: &Path) -> Result<(), Obstacle<'_>> {
    let mut parts: Vec<&Path> = folder.ancestors().collect();
    parts.reverse();
    for path in parts {
        let folder = path.to_owned();
        let check = move || -> io::Result<()> {
            if !fs::metadata(&folder)?.is_dir() {
                return Err(ErrorKind::NotADirectory.into());
            }
            Ok(access(&folder, Access::EXEC_OK)?)
        };
        limited(check).map_err(|error| Obstacle { path, error })?;
    }
    Ok(())
}

/// The result of `step`, or an error if it takes too long: if the server of a network file system does
/// not answer, a system call on a file may never return.
fn limited(step: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(step()));
    let no_answer = |_| Err(io::Error::other("the file system does not answer"));
    receiver.recv_timeout(TIMEOUT).unwrap_or_else(no_answer)
}

/// Checks that this user can create files in `folder`, which is in `data_dir`. `consequence` is the
/// effect if not. Returns the difference between the clocks of this machine and of the file system.
pub fn check_write(
    folder: &Path,
    data_dir: &Path,
    consequence: &str,
    user: &User,
    report: &mut Report,
) -> Option<Skew> {
    let name = &user.name;
    match try_to_write(folder) {
        Ok(skew) => {
            report.add(Level::Ok, folder.display(), format!("{name} can write here"));
            skew
        }
        Err(error) => {
            let text = format!("{name} cannot write here ({error}), so {consequence}");
            let fix = user.grant(folder, "rwx", data_dir);
            report.add_with_fix(Level::Error, folder.display(), text, fix);
            None
        }
    }
}

/// Creates a file and removes it; returns how its time differs from this machine's. It is named like a
/// temporary file, so that a later check reports it if this check is killed.
fn try_to_write(folder: &Path) -> io::Result<Option<Skew>> {
    let path = folder.join(format!(".comedor.check.{}.tmp", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    let before = SystemTime::now();
    let written = file.write_all(b"comedor check\n").and_then(|()| file.sync_all());
    let modified = written.and_then(|()| file.metadata()?.modified());
    let after = SystemTime::now();
    fs::remove_file(&path)?;
    Ok(Skew::of(modified?, before, after))
}
