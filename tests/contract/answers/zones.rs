//! Today in the time zone of the settings: that of date(1), or an error that says why. `tests/system/zones.rs`
//! compares all zones.

use std::fs;
use std::path::Path;

use super::*;

/// A zone file (RFC 9636, version 2) of an hour east of UTC, with or without a transition in 1970 and a leap
/// second. The footer is its rule for the future.
fn zone_file(has_transition: bool, has_leap_second: bool, footer: &str) -> Vec<u8> {
    let header = |transitions: u32, leap_seconds: u32| {
        let counts = [0, 0, leap_seconds, transitions, 1, 4].map(u32::to_be_bytes);
        [b"TZif2".to_vec(), vec![0; 15], counts.concat()].concat()
    };
    let kind = [&3600_i32.to_be_bytes()[..], &[0, 0], b"ABC\0"].concat();
    let mut file = [header(0, 0), kind.clone()].concat();
    file.extend(header(has_transition.into(), has_leap_second.into()));
    if has_transition {
        file.extend([0; 9]);
    }
    file.extend(kind);
    if has_leap_second {
        file.extend(
            [
                78_796_800_i64.to_be_bytes().as_slice(),
                &1_i32.to_be_bytes(),
            ]
            .concat(),
        );
    }
    file.extend(format!("\n{footer}\n").into_bytes());
    file
}

#[test]
fn a_zone_that_cannot_be_used_is_an_error_of_the_setting_that_says_why() {
    let school = School::new();
    let file = school.folder().join("zone");
    let path = file.to_str().unwrap();
    let fifo = school.folder().join("fifo");
    output(Command::new("mkfifo").arg(&fifo), "coreutils");
    let valid = zone_file(true, false, "ABC-1");
    let damaged = valid[..valid.len() - 12].to_vec();
    for (zone, content, why) in [
        (
            "Mars",
            Vec::new(),
            "there is no zone of this name, which must be written in the same case",
        ),
        ("/dev/zero", Vec::new(), "it is not a regular file"),
        (
            fifo.to_str().unwrap(),
            Vec::new(),
            "it is not a regular file",
        ),
        (path, vec![0; 64 * 1024 + 1], "it is larger than 64 KiB"),
        (
            path,
            zone_file(true, false, ""),
            "it has no rules for the future",
        ),
        (
            path,
            zone_file(false, true, "ABC-1"),
            "it counts leap seconds, as the zones in right/ do",
        ),
        (
            path,
            zone_file(true, false, "ABC-2"),
            "extra transition rule is inconsistent",
        ),
        (path, damaged, "invalid TZ file"),
    ] {
        fs::write(&file, content).unwrap();
        let answer = school.get("get_menu").set("TZ", zone).run();
        let log = &answer.fails("INTERNAL_ERROR").log;
        let start = "comedor: get_menu aula1: TZ must name a time zone below /usr/share/zoneinfo";
        assert!(log.starts_with(start) && log.contains(why), "{why}: {log}");
        // A request with a date does not need the zone.
        school
            .get("get_menu")
            .set("TZ", zone)
            .query("date", DATE)
            .run()
            .ok();
    }
    for content in [valid, zone_file(false, false, "")] {
        fs::write(&file, content).unwrap();
        assert_is_today(&school, path);
    }
}

#[test]
fn today_is_the_day_of_date_in_zones_with_rules_names_and_paths() {
    let school = School::new();
    for zone in ["<+14>-14", "<-12>12", "CET-1CEST,M3.5.0,M10.5.0/3", "UTC"] {
        assert_is_today(&school, zone);
    }
    let zones = Path::new("/usr/share/zoneinfo");
    for name in ["Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Madrid"] {
        if zones.join(name).exists() {
            assert_is_today(&school, name);
            assert_is_today(&school, &format!(":{name}"));
            assert_is_today(&school, zones.join(name).to_str().unwrap());
        }
    }
}

#[track_caller]
fn assert_is_today(school: &School, zone: &str) {
    let before = today(Some(zone));
    let found = school.get("get_menu").set("TZ", zone).run().ok()["date"].clone();
    assert!(
        [before, today(Some(zone))]
            .map(Value::from)
            .contains(&found),
        "{zone}: {found}"
    );
}
