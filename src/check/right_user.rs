//! Whether the right user runs the check: PHP's, found by looking at what its pages write, and at its
//! processes.

use std::collections::BTreeSet;
use std::fs;
use std::iter::once;
use std::path::{Path, PathBuf};

use super::process::{missing_capabilities, running};
use super::reach::{entries, limited};
use super::report::{Level, Report, is_in_container};
use super::user::User;
use crate::accounts::{group_name, user_name};
use crate::config::Config;
use crate::session::{self, SavePath};
use crate::store::access::{Credentials, Ownership};
use crate::store::layout;

/// Reports the user of this process. Returns it if PHP runs as the same, or shares the files with its
/// group. For any other the permissions are right as they are, and a command would break them.
pub fn check(config: &Config, is_session: bool, report: &mut Report) -> Option<User> {
    const ABOUT: &str = "user";
    let credentials = Credentials::of_process();
    let name = user_name(credentials.uid);
    let shares = |access: &Ownership| access.mode & 0o020 != 0 && credentials.is_member(access.gid);
    let (sessions, data) = written_by_php(config);
    let shared = data.as_ref().map(|(_, access)| access).filter(|access| shares(access));
    let group = group_name(shared.map_or(credentials.gid, |access| access.gid));
    let is_member = shared.is_some() && sessions.is_empty();
    let of_sessions = (!sessions.is_empty()).then(|| ("its session files".to_owned(), sessions));
    let found = of_sessions.or_else(php_processes);
    let found =
        found.or_else(|| data.map(|(path, access)| (path.display().to_string(), vec![access])));
    let (what, owners) = found.unwrap_or_default();
    let names: BTreeSet<String> = owners.iter().map(named).collect();
    let is_one = names.len() == 1 && owners.iter().all(|owner| owner.uid != 0);
    let names = names.into_iter().collect::<Vec<_>>().join(" or ");
    let missing = if credentials.is_root() { missing_capabilities() } else { Vec::new() };
    if !missing.is_empty() && !owners.is_empty() {
        let text = format!(
            "root without the capabilities {} cannot save files of {names} (see {what}): add them (cap_add)",
            missing.join(", ")
        );
        report.add(Level::Error, ABOUT, text);
    } else if credentials.is_root() && is_in_container() {
        report.add(Level::Ok, ABOUT, "root");
    } else if credentials.is_root() {
        let text = "the check runs as root, which can access everything; run it as PHP's user";
        let option = if is_session { " --session" } else { "" };
        let fix = is_one.then(|| format!("sudo -u {names} comedor check{option}"));
        report.add_with_fix(Level::Warning, ABOUT, text, fix);
    } else if owners.is_empty()
        || is_member
        || owners.iter().any(|owner| owner.uid == credentials.uid || shares(owner))
    {
        report.add(Level::Ok, ABOUT, &name);
    } else {
        let what_runs = if is_in_container() { "this container" } else { "the check" };
        let text = format!("{name} is not PHP's user; run {what_runs} as {names} (see {what})");
        report.add(Level::Error, ABOUT, text);
        return None;
    }
    Some(User { credentials, name, group })
}

/// The owner, or the group if that shares the files of root
fn named(access: &Ownership) -> String {
    match access.uid {
        0 if access.mode & 0o020 != 0 => {
            format!("a member of the group {}", group_name(access.gid))
        }
        uid => user_name(uid),
    }
}

/// The users of the processes that run PHP: FPM or CGI, else Apache with its module
fn php_processes() -> Option<(String, Vec<Ownership>)> {
    let is_php = |name: &str| name.starts_with("php-fpm") || name.starts_with("php-cgi");
    let mut processes = running(is_php);
    if processes.is_empty() {
        processes = running(|name| name == "apache2");
    }
    let access = |(_, user): &(_, Credentials)| Ownership { uid: user.uid, gid: user.gid, mode: 0 };
    let users: Vec<_> = processes.iter().map(access).collect();
    (!users.is_empty()).then(|| ("its processes".to_owned(), users))
}

/// The owners of the session files, one of each, and the first folder of the data that a page has to
/// write. What belongs to root alone says nothing about PHP, except in a container, where PHP may be root.
fn written_by_php(config: &Config) -> (Vec<Ownership>, Option<(PathBuf, Ownership)>) {
    let save_path = match &config.session.save_path {
        SavePath::Files(folder) => Some(folder.clone()),
        SavePath::Redis(_) => None,
    };
    let centros = layout::centres(&config.data_dir);
    let may_be_root = is_in_container() && !Credentials::of_process().is_root();
    let look = move || {
        let files = save_path.and_then(|folder| session::files(&folder).ok()).unwrap_or_default();
        let owner = |path: &PathBuf| if may_be_root { ownership(path) } else { of_php(path) };
        let mut sessions: Vec<_> = files.iter().filter_map(owner).collect();
        sessions.sort_by_key(|access| access.uid);
        sessions.dedup_by_key(|access| access.uid);
        let centres = entries(&centros).into_iter();
        let folders = centres.flat_map(|centre| [centre.clone(), layout::aularios(&centre)]);
        let mut folders = once(centros).chain(folders);
        let data = folders.find_map(|folder| of_php(&folder).map(|access| (folder, access)));
        Ok((sessions, data))
    };
    limited(look).unwrap_or_default()
}

/// The access to `path` if another user than root may write it.
fn of_php(path: &Path) -> Option<Ownership> {
    ownership(path).filter(|access| access.uid != 0 || access.gid != 0 && access.mode & 0o020 != 0)
}

fn ownership(path: &Path) -> Option<Ownership> {
    Some(Ownership::from(&fs::symlink_metadata(path).ok()?))
}
