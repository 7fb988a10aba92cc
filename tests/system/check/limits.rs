//! The check ends in limited time and memory, whatever it finds, and says what it did not look at.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{check, count, found};
use crate::support::*;

/// Runs a command with 128 MiB of memory.
const LIMITED: &[&str] = &["prlimit", "--as=134217728"];

/// A damaged file is found among so many entries that most are not looked at, or not shown.
#[test]
fn errors_are_first_and_what_was_dropped_or_not_looked_at_is_a_warning() {
    let school = School::with_menu("");
    school.write("aula2/Comedor-MenuTypes.json", "{");
    let month = school.path("aula1/Comedor/2026-11");
    fs::write(month.join("1"), "").unwrap();
    // Longer names need more memory.
    let name = "a".repeat(200);
    for number in 0..30_000 {
        fs::hard_link(month.join("1"), month.join(format!("{name}{number}"))).unwrap();
    }
    let other = school.path("aula1/Comedor/2026-12");
    for number in 0..2000 {
        fs::create_dir_all(other.join(format!("{name}{number}"))).unwrap();
    }
    let findings = check(&school, LIMITED, &[], "");
    assert_eq!(findings[0]["level"], "error", "{findings:#?}");
    found(
        &findings[..1],
        "error",
        "aula2/Comedor-MenuTypes.json",
        "is damaged",
    );
    found(
        &findings,
        "warning",
        "/2026-11",
        "has more than 10000 entries; the others were not",
    );
    let hints = count(&findings, "hint");
    assert!((300..600).contains(&hints), "{hints}");
    found(&findings, "warning", "findings", " more of the level hint");
}

#[test]
fn centres_aularios_and_days_are_checked_among_any_number_of_other_folders() {
    let school = School::in_memory();
    let centros = school.data().join("Centros");
    let junk = |folder: &Path, count: usize| {
        fs::create_dir_all(folder).unwrap();
        (0..count).for_each(|number| {
            fs::create_dir(folder.join(format!("_{number}"))).unwrap();
        });
    };
    // On tmpfs a folder lists its newest entries first.
    junk(&centros, 100_000);
    junk(&school.aularios(), 10_001);
    school.save(save(""));
    let months = school.path("aula1/Comedor");
    junk(&months, 10_001);
    junk(&months.join("2026-11"), 10_001);
    let findings = check(&school, LIMITED, &[], "");
    let text = "3 aularios and 1 saved day checked";
    found(&findings, "ok", "/Centros", text);
    for folder in ["/Centros", "/Aularios", "/Comedor", "/2026-11"] {
        let text = "has more than 10000 entries; the others were not";
        found(&findings, "warning", folder, text);
    }
}

#[test]
fn no_error_is_dropped_and_the_rest_of_the_data_is_not_looked_at() {
    let school = School::with_menu("");
    for (year, month) in (2001..=2025).flat_map(|year| (1..=12).map(move |month| (year, month))) {
        for day in 1..=28 {
            let day = school.path(&format!("aula1/Comedor/{year}-{month:02}/{day:02}"));
            fs::create_dir_all(&day).unwrap();
            symlink("/etc/passwd", day.join("_datos.json")).unwrap();
        }
    }
    let findings = check(&school, LIMITED, &[], "");
    let errors = count(&findings, "error");
    assert!((300..2000).contains(&errors), "{errors}");
    found(
        &findings,
        "warning",
        "/Centros",
        "or of too many errors: correct the errors",
    );
    found(
        &findings,
        "ok",
        "/Centros",
        &format!("1 aulario and {errors} saved days checked"),
    );
    assert!(
        !format!("{findings:?}").contains("not shown"),
        "{findings:#?}"
    );
}

#[test]
fn a_full_or_read_only_disk_is_an_error() {
    let school = School::new();
    let data = school.data().display().to_string();
    let full = "no menu can be saved; see \"Disk full or read-only\" in docs/troubleshooting.md";
    for (options, then, text) in [
        ("size=64k", "head -c 1M /dev/zero > fill || true", full),
        ("nr_inodes=3", "touch fill; touch more || true", full),
        (
            "size=1M",
            "mount -o remount,ro none .",
            "is read-only for this process, so requests fail",
        ),
    ] {
        let script = format!(
            "mount -t tmpfs -o {options} none {data}; cd {data}; mkdir Centros; {then}; exec \"$@\""
        );
        let alone = ["unshare", "--mount", "sh", "-ec", &script, "sh"];
        found(&check(&school, &alone, &[], ""), "error", "/Centros", text);
    }
    // A driver of FUSE that does not know its size answers with zeros: type, size of a block, blocks, free ones (twice).
    let zeros = format!("inject=statfs:poke_exit=@arg2={}", "00".repeat(5 * 8));
    let unknown = ["strace", "-f", "-o", "/dev/null", "-e", &zeros];
    for wrapper in [&[][..], &unknown] {
        let findings = check(&school, wrapper, &[], "");
        assert!(
            !format!("{findings:?}").contains("Disk full"),
            "{findings:#?}"
        );
    }
}
