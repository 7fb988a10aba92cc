//! The systemd units, by `systemd-analyze`. The servers of schools use them.

use std::fs;
use std::process::Command;

use crate::support::{program, text_of};

#[test]
fn systemd_accepts_the_units_and_the_service_has_an_exposure_of_at_most_2() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["comedor.socket", "comedor.service"] {
        let unit = text_of(format!("packaging/systemd/{name}"));
        let unit = unit.replace("/usr/lib/cgi-bin/comedor", program());
        fs::write(folder.path().join(name), unit).unwrap();
    }
    for arguments in [
        [
            "verify", "--man=no", "./comedor.socket", "./comedor.service",
        ],
        [
            "security", "--offline=true", "--threshold=20", "./comedor.service",
        ],
    ] {
        let mut analyze = Command::new("systemd-analyze");
        analyze.args(arguments).current_dir(folder.path());
        let result = analyze
            .output()
            .expect("systemd-analyze, of Debian's systemd");
        let [said, problems] =
            [result.stdout, result.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(
            result.status.success() && problems.is_empty(),
            "{said} {problems}"
        );
    }
}
