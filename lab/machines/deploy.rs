//! Whole servers of a school, of different kinds, under a real systemd: comedor installed from the package, enabled,
//! checked and used beside PHP pages.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{REPOSITORY, chmod, output, package};

/// Runs a script of this folder in a throw-away copy of this machine, for these headings of the guides, a line each.
#[track_caller]
fn run(script: &str, headings: &str) {
    // On a disk, as `comedor check` expects.
    let disk = tempfile::tempdir_in(Path::new(REPOSITORY).join("target")).unwrap();
    let mut boot = Command::new("lab/boot");
    boot.current_dir(REPOSITORY)
        .env("PACKAGE", package())
        .env("HEADINGS", headings);
    boot.args(["/", "sysinit.target", &format!("lab/machines/{script}")]);
    boot.arg(format!("{REPOSITORY}:{REPOSITORY}"));
    for (name, folder) in [("data", "/DATA"), ("disk", "/srv/disk")] {
        let path = disk.path().join(name);
        fs::create_dir(&path).unwrap();
        chmod(&path, 0o755);
        boot.arg(format!("{}:{folder}", path.display()));
    }
    output(&mut boot, "root, and what .ci/run installs");
}

macro_rules! scripts {
    ($($name:ident: $script:literal $($heading:literal)*;)*) => {$(
        #[test]
        fn $name() {
            run($script, concat!($($heading, "\n"),*));
        }
    )*};
}

scripts! {
    comedor_serves_one_of_two_schools_with_the_same_path: "schools.sh";
    the_service_is_checked_before_it_starts_and_serves_in_its_sandbox: "service.sh";
}

/// Upgrades from what the set-up of version 0.4.0 wrote, and the heading of the guide to follow then.
mod upgrades_from_0_4_0 {
    use super::run;

    scripts! {
        settings_and_answers_stay_with_apache: "upgrade.sh" "Apache";
        settings_and_answers_stay_with_apache_and_fastcgi: "upgrade.sh" "Apache with FastCGI";
        settings_and_answers_stay_with_nginx: "upgrade.sh" "nginx";
        settings_and_answers_stay_with_caddy: "upgrade.sh" "Caddy";
        settings_and_answers_stay_with_lighttpd: "upgrade.sh" "lighttpd";
    }
}

/// Two applications with the same session name, session folder and ids, set up by the guide.
mod two_applications {
    use super::run;

    scripts! {
        neither_touches_the_other_and_both_work_with_apache:
            "applications.sh" "Apache" "Two applications on one server";
        neither_touches_the_other_and_both_work_with_apache_and_fastcgi:
            "applications.sh" "Apache with FastCGI";
        neither_touches_the_other_and_both_work_with_nginx: "applications.sh" "nginx";
    }
}

/// Every command of the guides, by its heading.
mod guides {
    use super::run;

    scripts! {
        the_package_enables_nothing: "guides.sh" "1. Install";
        the_guide_leads_to_a_server_with_apache:
            "guides.sh" "Apache" "2. Open the set-up page" "3. Configure" "Undo";
        the_guide_leads_to_a_server_with_apache_and_fastcgi_of_another_user:
            "guides.sh" "Apache with FastCGI" "The service";
        the_guide_leads_to_a_server_with_nginx: "guides.sh" "nginx";
        the_guide_leads_to_a_server_with_caddy: "guides.sh" "Caddy";
        the_guide_leads_to_a_server_with_lighttpd: "guides.sh" "lighttpd";
        comedor_answers_without_a_login: "guides.sh" "5. Try";
        a_session_is_checked: "guides.sh" "Check";
        settings_of_the_guide_serve_the_application: "guides.sh" "Settings";
        an_upgrade_keeps_changed_files: "guides.sh" "Upgrade";
        menus_are_copied_daily_for_root_only_and_a_failure_is_shown: "guides.sh" "Back up";
        one_file_and_all_are_restored: "guides.sh" "Restore";
        the_archive_is_installed_restarted_and_removed: "guides.sh" "Without the package";
        logs_and_check_are_where_the_guide_looks: "guides.sh" "Start here";
        the_program_starts_as_phps_user: "guides.sh" "500 with an HTML page";
        the_parts_of_a_path_are_shown: "guides.sh" "Permission denied";
        files_of_others_become_those_of_phps_user: "guides.sh" "Wrong owner, group or mode";
        temporary_files_are_removed: "guides.sh" "Leftover temporary files";
        a_session_folder_of_its_own_is_phps_alone: "guides.sh" "Session folder";
        what_was_taken_away_ends_with_the_sessions: "guides.sh" "A user still has what was taken away";
        php_fpm_is_restarted: "guides.sh" "BUSY";
    }
}
