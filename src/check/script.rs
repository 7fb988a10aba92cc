//! Checks the script in whose place comedor answers: whether it is there, whether the set-up page is still beside it,
//! and whether it was changed after the settings.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::guide::Heading;
use super::kinds::Kind;
use super::report::Report;
use crate::config::{Config, SCRIPT, Settings, Source};
use crate::sys::shared_file::names_nothing;

/// What systemd can replace by empty folders (systemd.exec(5), `ProtectHome=` and `PrivateTmp=`).
const REPLACED: [&str; 5] = ["/home", "/root", "/run/user", "/tmp", "/var/tmp"];

const SETUP_PAGE: &str = "comedor-setup.php";

/// Checks the script, if the settings name one.
pub fn check(config: &Config, settings: &Settings, report: &Report) {
    let Some(script) = &config.script else { return };
    let script = script.path();
    report.looks_at(script);
    match fs::metadata(script) {
        Ok(file) if file.is_file() => {
            if let Source::Line { path, .. } = settings.source(&SCRIPT) {
                compare_times(script, &file, path, report);
            }
        }
        Ok(_) => report_missing(script, "is not a regular file", report),
        Err(error) if names_nothing(&error) && !may_be_replaced(script) => {
            report_missing(script, "does not exist", report);
        }
        Err(error) => {
            let text = format!(
                "this process cannot look at the script of COMEDOR_SCRIPT ({error}); requests compare its path only"
            );
            report.add(Kind::ScriptNotChecked, script.display(), text);
        }
    }
    let page = script.with_file_name(SETUP_PAGE);
    if fs::symlink_metadata(&page).is_ok() {
        let text = "the set-up page is still beside the script; remove it after set-up";
        report.add(Kind::SetupPageLeft, page.display(), text);
    }
}

fn report_missing(script: &Path, problem: &str, report: &Report) {
    let heading = Heading::ApplicationUpdated;
    let text = format!("the script of COMEDOR_SCRIPT {problem}{heading}");
    report.add(Kind::ScriptMissing, script.display(), text);
}

/// Whether the service may see another folder than the web server, as its folder does not exist either.
fn may_be_replaced(script: &Path) -> bool {
    let folder_exists = script.parent().is_some_and(Path::exists);
    !folder_exists && REPLACED.iter().any(|folder| script.starts_with(folder))
}

/// Reports a script that was changed after the settings file. The times of change (ctime) count, which an archive or
/// `cp -p` does not set.
fn compare_times(script: &Path, file: &Metadata, settings: &Path, report: &Report) {
    let changed = |file: &Metadata| (file.ctime(), file.ctime_nsec());
    let Ok(written) = fs::metadata(settings) else {
        return;
    };
    if changed(file) > changed(&written) {
        let text = format!(
            "was changed after {}: if the application was updated, open the set-up page again{}",
            settings.display(),
            Heading::ApplicationUpdated
        );
        report.add(Kind::ScriptChanged, script.display(), text);
    }
}
