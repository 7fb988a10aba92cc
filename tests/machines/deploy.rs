//! Whole servers of a school, of different kinds, under a real systemd: comedor installed from the package, enabled,
//! checked and used beside PHP pages.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{REPOSITORY, chmod, package};

/// Runs a script of this folder in a throw-away copy of this machine.
#[track_caller]
fn run(script: &str) {
    // On a disk, as `comedor check` expects.
    let disk = tempfile::tempdir_in(Path::new(REPOSITORY).join("target")).unwrap();
    let mut boot = Command::new("tests/boot");
    boot.current_dir(REPOSITORY).env("PACKAGE", package());
    boot.args(["/", "sysinit.target", &format!("tests/machines/{script}")]);
    boot.arg(format!("{REPOSITORY}:{REPOSITORY}"));
    for (name, folder) in [("data", "/DATA"), ("disk", "/srv/disk"), ("home", "/home/maestra")] {
        let path = disk.path().join(name);
        fs::create_dir(&path).unwrap();
        chmod(&path, 0o755);
        boot.arg(format!("{}:{folder}", path.display()));
    }
    let result = boot.output().expect("bash");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (text(&result.stdout), text(&result.stderr));
    assert!(result.status.success(), "{out}\n{errors}\nIt needs root and what .ci/run installs.");
}

macro_rules! scripts {
    ($($name:ident: $script:expr;)*) => {$(
        #[test]
        fn $name() {
            run($script);
        }
    )*};
}

scripts! {
    every_command_of_the_guides_works: "walk.sh";
    set_up_serves_servers_of_many_kinds_until_it_is_undone: "setup.sh";
    set_up_serves_one_of_two_schools_with_the_same_path: "schools.sh";
    a_set_up_that_is_refused_or_fails_leaves_the_script_in_charge: "refused.sh";
    a_set_up_that_is_killed_leaves_no_page_no_session_and_the_server_as_it_was: "kill.sh";
    other_users_do_not_harm_root: "attack.sh";
    an_upgrade_keeps_settings_and_answers: "upgrade.sh";
    the_check_finds_what_is_wrong: "check.sh";
}
