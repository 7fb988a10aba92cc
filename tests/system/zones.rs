//! The day in all time zones of tzdata, compared with date(1), and the system's zone.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use comedor::differential::{Zone, day_at};

use crate::support::*;

/// The zones of tzdata as zic(8) writes them with these options.
fn compiled(options: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut zic = Command::new("zic");
    zic.args(options)
        .arg("-d")
        .arg(folder.path())
        .arg("/usr/share/zoneinfo/tzdata.zi");
    output(&mut zic, "libc-bin and tzdata");
    folder
}

fn zone(file: &Path) -> Zone {
    Zone::parse(file.to_str().unwrap()).unwrap()
}

/// The days that date(1) prints in the zone with this file, or in UTC, for the times in the file `times`.
fn days_of_date(zone: &Path, times: &Path) -> Vec<String> {
    let mut date = Command::new("date");
    date.env("TZ", format!(":{}", zone.display()))
        .arg("-f")
        .arg(times)
        .arg("+%F");
    let days = String::from_utf8(output(&mut date, "coreutils")).unwrap();
    days.lines().map(str::to_owned).collect()
}

#[test]
fn the_day_is_that_of_date_in_every_zone_or_an_error_says_why() {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs() as i64;
    // Over the next three years, each at another time of the day.
    let times: Vec<i64> = (0..150).map(|n| now + n * 630_727).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("times");
    let mut lines = File::create(&file).unwrap();
    times
        .iter()
        .for_each(|time| writeln!(lines, "@{time}").unwrap());
    for form in ["fat", "slim"] {
        let zones = compiled(&["-b", form]);
        let names = files_below(zones.path(), &["-type", "f"]);
        assert!(names.len() > 300, "{}", names.len());
        let mut refused = Vec::new();
        for name in names {
            let path = zones.path().join(&name);
            let day = |time: &i64| {
                let day = day_at(&zone(&path), *time).map_err(|error| error.to_string())?;
                Ok(day.as_str().to_owned())
            };
            match times.iter().map(day).collect::<Result<Vec<_>, String>>() {
                Ok(days) => assert_eq!(days, days_of_date(&path, &file), "{form} {name}"),
                Err(why) => {
                    assert!(
                        why.ends_with(
                            "extra transition rule is inconsistent with the last transition"
                        ),
                        "{why}"
                    );
                    refused.push(name);
                }
            }
        }
        // The last change of America/Ojinaga, in 2022, contradicts its rule for the future.
        assert!(
            refused.len() <= if form == "fat" { 0 } else { 1 },
            "{form}: {refused:?}"
        );
    }
}

#[test]
fn a_zone_that_counts_leap_seconds_is_refused() {
    let zones = compiled(&["-L", "/usr/share/zoneinfo/leapseconds"]);
    for name in files_below(zones.path(), &["-type", "f"]) {
        let error = day_at(&zone(&zones.path().join(&name)), 1_800_000_000).unwrap_err();
        let error = error.to_string();
        assert!(
            error.ends_with("it counts leap seconds, as the zones in right/ do"),
            "{name} {error}"
        );
    }
}

#[test]
fn a_system_zone_that_cannot_be_used_is_an_error_and_an_absent_one_utc() {
    let school = School::new();
    let right = compiled(&["-L", "/usr/share/zoneinfo/leapseconds"]);
    let get = |mount: &str| {
        let line = format!("{mount} && exec \"$0\"");
        let get = school
            .get("get_menu")
            .under(&["unshare", "--mount", "/bin/sh", "-c", &line]);
        get.set("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
    };
    let mount = |path: &Path| format!("mount --bind {} /etc/localtime", path.display());
    get(&mount(Path::new("/usr/share/zoneinfo/Europe/Madrid")))
        .run()
        .ok();
    get("mount -t tmpfs none /etc").run().ok();
    let text = school.folder().join("text");
    fs::write(&text, "Europe/Madrid\n").unwrap();
    for (zone, why) in [
        (right.path().join("Europe/Madrid"), "it counts leap seconds"),
        (text, "invalid TZ file"),
    ] {
        let answer = get(&mount(&zone)).run();
        let log = &answer.fails("INTERNAL_ERROR").log;
        let problem = "TZ is not set, and the system's time zone, /etc/localtime, cannot be used";
        assert!(log.contains(&format!("{problem}: {why}")), "{log}");
        get(&mount(&zone)).query("date", DATE).run().ok();
        get(&mount(&zone)).set("TZ", "Europe/Madrid").run().ok();
    }
}
