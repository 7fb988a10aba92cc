//! The systemd units, by `systemd-analyze`. The servers of schools use them.

use std::fs;
use std::process::{Command, Output};

use crate::support::{program, text_of};

/// `systemd-analyze` on copies of the units with the path of the program under test.
fn analyze(arguments: &[&str], units: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    for name in ["comedor.socket", "comedor.service"] {
        let unit = text_of(format!("systemd/{name}"));
        let unit = unit.replace("/usr/lib/cgi-bin/comedor", program());
        fs::write(folder.path().join(name), unit).unwrap();
    }
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(arguments).args(units.iter().map(|unit| folder.path().join(unit)));
    analyze.output().expect("systemd-analyze, of Debian's systemd")
}

#[test]
fn systemd_accepts_the_units() {
    let result = analyze(&["verify", "--man=no"], &["comedor.socket", "comedor.service"]);
    let messages = String::from_utf8(result.stderr).unwrap();
    assert!(result.status.success() && messages.is_empty(), "{messages}");
}

#[test]
fn the_service_has_an_exposure_of_at_most_2() {
    let security = ["security", "--offline=true", "--threshold=20", "--no-pager"];
    let result = analyze(&security, &["comedor.service"]);
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stdout));
}
