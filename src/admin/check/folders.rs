//! Checks that the user can enter the folders of the settings and write to them.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::file_system::{self, Content};
use super::reach::{check_mount, enter, entries};
use super::redis;
use super::report::{Level, Report};
use super::session;
use super::user::{Command, User, missing_capabilities};
use crate::admin::accounts::user_name;
use crate::config::{Config, DATA_DIR, SESSION_DIR, Settings};
use crate::session::SavePath;
use crate::store::layout;

/// Checks the folder or the server of the sessions.
pub fn check_sessions(config: &Config, settings: &Settings, user: &User, report: &mut Report) {
    let files = match &config.session.save_path {
        SavePath::Files(files) => files,
        SavePath::Redis(server) => {
            return redis::check(server, config.session.lifetime, settings, user, report);
        }
    };
    let folder = &files.folder;
    if let Err(obstacle) = enter(folder) {
        return obstacle.report("the session folder", SESSION_DIR.name, user, report);
    }
    file_system::check(folder, Content::Sessions, report);
    check_mount(folder, report);
    session::check_files(config, files, user, report);
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
pub fn check_data(config: &Config, user: &User, report: &mut Report) -> bool {
    let centros = layout::centres(&config.data_dir);
    let Err(obstacle) = enter(&centros) else {
        file_system::check(&centros, Content::Data, report);
        check_mount(&centros, report);
        without_capabilities(&centros, user, report);
        find_databases(&config.data_dir, report);
        return true;
    };
    if obstacle.error.kind() == ErrorKind::NotFound {
        let mut text =
            "does not exist; COMEDOR_DATA_DIR must name the folder that contains Centros"
                .to_owned();
        for folder in near(&config.data_dir) {
            text += &format!("; {} contains it", folder.display());
        }
        report.add(Level::Error, obstacle.path.display(), text);
    } else if obstacle.error.kind() == ErrorKind::PermissionDenied
        && obstacle.path.starts_with(&config.data_dir)
    {
        let text = format!(
            "{} needs execute permission for this folder; until then every request fails",
            user.name
        );
        let fix = Command::permit(obstacle.path, "x");
        report.add_with_fix(Level::Error, obstacle.path.display(), text, fix);
    } else {
        obstacle.report("the data folder", DATA_DIR.name, user, report);
    }
    false
}

/// Reports a root that cannot save the files of other users, as in a container.
fn without_capabilities(centros: &Path, user: &User, report: &mut Report) {
    let missing = if user.credentials.is_root() { missing_capabilities() } else { Vec::new() };
    let owner = fs::metadata(centros).map_or(0, |folder| folder.uid());
    if !missing.is_empty() && owner != 0 {
        let (missing, owner) = (missing.join(", "), user_name(owner));
        let text = format!(
            "root lacks the capabilities {missing} (cap_add), so it cannot save files of {owner}"
        );
        report.add(Level::Error, centros.display(), text);
    }
}

/// Warns about databases beside `Centros`, in which newer versions of such applications keep menus.
fn find_databases(data_dir: &Path, report: &mut Report) {
    let is_database = |path: &PathBuf| {
        path.extension().is_some_and(|e| e == "sqlite" || e == "sqlite3" || e == "db")
    };
    for path in entries(data_dir).into_iter().filter(is_database) {
        let text = "is a database beside Centros: if the application keeps its menus there, comedor does not \
                    see them; it reads and writes only the files in Centros";
        report.add(Level::Warning, path.display(), text);
    }
}

/// The folders with a `Centros` folder among the parent, the siblings and the children of `data_dir`.
fn near(data_dir: &Path) -> Vec<PathBuf> {
    let parent = data_dir.parent();
    let inside = parent.into_iter().chain([data_dir]).flat_map(entries);
    let folders = parent.map(Path::to_owned).into_iter().chain(inside);
    let mut folders: Vec<_> = folders.filter(|folder| layout::centres(folder).is_dir()).collect();
    folders.sort();
    folders
}
