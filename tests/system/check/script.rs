//! What the check finds about the script in whose place comedor answers.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

use super::{check, found};
use crate::support::*;

const CODES: [&str; 4] = [
    "script-missing", "script-not-checked", "setup-page-left", "script-changed",
];

/// The codes about the script among the findings.
fn codes(findings: &[Value]) -> Vec<&str> {
    let codes = findings
        .iter()
        .map(|finding| finding["code"].as_str().unwrap());
    codes.filter(|code| CODES.contains(code)).collect()
}

/// A folder with the script, and the setting for it.
fn script_in(school: &School) -> (PathBuf, String) {
    let script = school.folder().join("api/comedor.php");
    fs::create_dir(script.parent().unwrap()).unwrap();
    fs::write(&script, "<?php").unwrap();
    let setting = format!("COMEDOR_SCRIPT={}", script.display());
    (script, setting)
}

#[test]
fn script_and_page_beside_it_are_looked_at() {
    let school = School::new();
    let (script, setting) = script_in(&school);
    let look = || check(&school, &["env", &setting], &[], "");

    let findings = look();
    assert!(codes(&findings).is_empty(), "{findings:#?}");
    let rest = "not looked at: the web server, and PHP's own settings";
    found(&findings, "hint", "check", rest);

    let page = script.with_file_name("comedor-setup.php");
    fs::write(&page, "<?php").unwrap();
    let findings = look();
    assert_eq!(codes(&findings), ["setup-page-left"]);
    let text = "the set-up page is still beside the script; remove it after set-up";
    found(&findings, "warning", "/api/comedor-setup.php", text);
    fs::remove_file(page).unwrap();

    fs::remove_file(&script).unwrap();
    for problem in ["does not exist", "is not a regular file"] {
        let findings = look();
        assert_eq!(codes(&findings), ["script-missing"]);
        let text = format!(
            "the script of COMEDOR_SCRIPT {problem}; see \"The application was updated\" in docs/"
        );
        found(&findings, "error", "/api/comedor.php", &text);
        _ = fs::create_dir(&script);
    }
}

/// Without the setting nothing is known of a script.
#[test]
fn without_the_setting_no_script_is_looked_at() {
    let findings = check(&School::new(), &[], &[], "");
    assert!(codes(&findings).is_empty(), "{findings:#?}");
    let text = "comedor-setup.php, which is to be removed after set-up, is still beside the script";
    found(&findings, "hint", "check", text);
}

#[test]
fn script_that_the_user_or_the_service_cannot_look_at_is_a_warning() {
    let school = School::new();
    let (script, setting) = script_in(&school);
    chmod(script.parent().unwrap(), 0o700);
    let closed = [AS_NOBODY, &["env", &setting]].concat();
    // As systemd's ProtectHome=tmpfs and ProtectHome=yes
    let home = "COMEDOR_SCRIPT=/home/cole/public_html/api/comedor.php";
    let hidden = |options: &str| format!("mount -t tmpfs -o {options} none /home && exec \"$@\"");
    let (empty, without_mode) = (hidden("mode=755"), hidden("mode=0"));
    let empty = ["sh", "-c", &empty, "sh", "env", home];
    let without_mode = [
        &["sh", "-c", &without_mode, "sh"],
        AS_NOBODY,
        &["env", home],
    ]
    .concat();
    for wrapper in [&closed[..], &empty, &without_mode] {
        let findings = check(&school, wrapper, &[], "");
        assert_eq!(codes(&findings), ["script-not-checked"], "{wrapper:?}");
        let text = "this process cannot look at the script of COMEDOR_SCRIPT (";
        found(&findings, "warning", "/api/comedor.php", text);
    }
    let elsewhere = ["env", "COMEDOR_SCRIPT=/srv/nothing/api/comedor.php"];
    let findings = check(&school, &elsewhere, &[], "");
    assert_eq!(codes(&findings), ["script-missing"]);
}

#[test]
fn script_that_was_changed_after_the_settings_is_a_hint() {
    let school = School::new();
    let (script, setting) = script_in(&school);
    let folder = open_folder();
    let settings = format!(
        "COMEDOR_DATA_DIR={}\nCOMEDOR_SESSION_DIR={}\n{setting}\n",
        school.data().display(),
        school.sessions().display()
    );
    let program = program_in(folder.path(), &settings);
    let file = folder.path().join("comedor.conf");
    let hint = format!(
        "hint    {}: was changed after {}: if the application was updated, open the set-up page again; see \"The \
         application was updated\" in docs/troubleshooting.md\n",
        script.display(),
        file.display()
    );
    let has_hint = || {
        let mut check = Command::new(&program);
        let output = check.arg("check").env_clear().output().unwrap();
        String::from_utf8(output.stdout).unwrap().contains(&hint)
    };
    assert!(!has_hint());
    // Times of change have the kernel's ticks.
    let changed = |path| {
        let file = fs::metadata(path).unwrap();
        (file.ctime(), file.ctime_nsec())
    };
    while changed(&script) <= changed(&file) {
        fs::write(&script, "<?php // A new version").unwrap();
    }
    assert!(has_hint());
    fs::write(&file, &settings).unwrap();
    assert!(!has_hint());
}
