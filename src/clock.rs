//! What day it is, in the zone of the settings.

use std::time::{SystemTime, UNIX_EPOCH};

use chrono::DateTime;
use tz::TimeZone;

use crate::config::Error;

/// Today as `YYYY-MM-DD`, in `zone` as `TZ` names it, else in the system's. Refuses a zone that
/// there is none of.
pub fn today(zone: Option<&str>) -> Result<String, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(day_at(&time_zone(zone)?, now.as_secs() as i64))
}

fn time_zone(zone: Option<&str>) -> Result<TimeZone, Error> {
    match zone {
        // A system without a zone of its own is on UTC.
        None => Ok(TimeZone::local().unwrap_or_else(|_| TimeZone::utc())),
        // The one name that needs no file.
        Some("UTC") => Ok(TimeZone::utc()),
        Some(name) => TimeZone::from_posix_tz(name).map_err(|_| {
            Error::setting(
                "TZ",
                "names no zone like Europe/Madrid below /usr/share/zoneinfo (Debian's tzdata)",
            )
        }),
    }
}

fn day_at(zone: &TimeZone, seconds: i64) -> String {
    let offset = zone.find_local_time_type(seconds).map_or(0, |kind| kind.ut_offset());
    let local = DateTime::from_timestamp(seconds + i64::from(offset), 0);
    local.unwrap_or_default().date_naive().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules of Europe/Madrid, so that no file is needed.
    const MADRID: &str = "CET-1CEST,M3.5.0,M10.5.0/3";

    #[test]
    fn the_day_changes_at_the_zone_s_midnight_in_winter_and_in_summer() {
        let madrid = time_zone(Some(MADRID)).unwrap();
        for (utc, day) in [
            ("2026-01-31T22:59:59Z", "2026-01-31"),
            ("2026-01-31T23:00:00Z", "2026-02-01"),
            ("2026-03-28T22:59:59Z", "2026-03-28"),
            ("2026-03-28T23:00:00Z", "2026-03-29"),
            ("2026-03-29T21:59:59Z", "2026-03-29"),
            ("2026-03-29T22:00:00Z", "2026-03-30"),
            ("2026-10-25T22:59:59Z", "2026-10-25"),
            ("2026-10-25T23:00:00Z", "2026-10-26"),
        ] {
            let seconds = DateTime::parse_from_rfc3339(utc).unwrap().timestamp();
            assert_eq!(day_at(&madrid, seconds), day, "{utc}");
        }
        let utc = time_zone(Some("UTC")).unwrap();
        assert_eq!(day_at(&utc, 0), "1970-01-01");
    }

    #[test]
    fn a_zone_that_there_is_none_of_is_refused() {
        assert!(time_zone(Some("Europe/Nowhere")).is_err());
        assert!(time_zone(None).is_ok());
    }
}
