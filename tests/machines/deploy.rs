//! Whole servers of a school, of different kinds, under a real systemd: comedor installed from the package, enabled,
//! checked and used beside PHP pages.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{REPOSITORY, chmod, output, package};

/// Runs a script of this folder in a throw-away copy of this machine, for a heading of the guides if it is theirs.
#[track_caller]
fn run(script: &str, heading: &str) {
    // On a disk, as `comedor check` expects.
    let disk = tempfile::tempdir_in(Path::new(REPOSITORY).join("target")).unwrap();
    let mut boot = Command::new("tests/boot");
    boot.current_dir(REPOSITORY).env("PACKAGE", package()).env("HEADING", heading);
    boot.args(["/", "sysinit.target", &format!("tests/machines/{script}")]);
    boot.arg(format!("{REPOSITORY}:{REPOSITORY}"));
    for (name, folder) in [("data", "/DATA"), ("disk", "/srv/disk"), ("home", "/home/maestra")] {
        let path = disk.path().join(name);
        fs::create_dir(&path).unwrap();
        chmod(&path, 0o755);
        boot.arg(format!("{}:{folder}", path.display()));
    }
    output(&mut boot, "root, and what .ci/run installs");
}

macro_rules! scripts {
    ($($name:ident: $script:literal $($heading:literal)?;)*) => {$(
        #[test]
        fn $name() {
            run($script, concat!($($heading)?));
        }
    )*};
}

scripts! {
    set_up_serves_one_of_two_schools_with_the_same_path: "schools.sh";
    an_upgrade_keeps_settings_and_answers: "upgrade.sh";
    the_service_is_checked_before_it_starts_and_serves_in_its_sandbox: "service.sh";
}

/// Every command of the guides, by its heading.
mod guides {
    use super::run;

    scripts! {
        the_package_enables_nothing: "guides.sh" "1. Install";
        set_up_asks_at_a_terminal: "guides.sh" "2. Set up";
        comedor_answers_without_a_login: "guides.sh" "3. Try";
        a_server_and_a_session_are_checked: "guides.sh" "Check";
        settings_serve_two_applications: "guides.sh" "Settings";
        an_upgrade_keeps_changed_files: "guides.sh" "Upgrade";
        a_backup_is_for_root_only: "guides.sh" "Back up";
        one_file_and_all_are_restored: "guides.sh" "Restore";
        nothing_remains: "guides.sh" "Undo";
        apache_runs_the_program_also_beside_proxy_pass_match: "guides.sh" "By hand";
        lighttpd_runs_the_program: "guides.sh" "By hand: lighttpd";
        nginx_asks_the_service_and_fcgiwrap: "guides.sh" "By hand: nginx";
        caddy_asks_the_service: "guides.sh" "By hand: Caddy";
        the_archive_is_installed_restarted_and_removed: "guides.sh" "Without the package";
        the_service_gets_other_folders: "guides.sh" "The socket";
        logs_and_check_are_where_the_guide_looks: "guides.sh" "Start here";
        the_program_starts_as_phps_user: "guides.sh" "500 with an HTML page";
        the_parts_of_a_path_are_shown: "guides.sh" "Permission denied";
        files_of_others_become_those_of_phps_user: "guides.sh" "Wrong owner, group or mode";
        temporary_files_are_removed: "guides.sh" "Leftover temporary files";
    }
}
