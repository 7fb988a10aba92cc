//! Today, in the time zone of the settings.

use std::time::{SystemTime, UNIX_EPOCH};

use chrono::DateTime;
use tz::TimeZone;

use crate::config::{self, TZ, invalid};
use crate::model::Date;

/// Today in `zone` (a value of `TZ`), else in the system's time zone. Rejects an unknown zone.
pub fn today(zone: Option<&str>) -> Result<Date, config::Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    day_at(zone, now.as_secs() as i64)
}

fn day_at(zone: Option<&str>, seconds: i64) -> Result<Date, config::Error> {
    let zone = match zone {
        // A system without a configured time zone uses UTC.
        None => TimeZone::local().unwrap_or_else(|_| TimeZone::utc()),
        // This name needs no zone file.
        Some("UTC") => TimeZone::utc(),
        Some(name) => TimeZone::from_posix_tz(name).map_err(|_| {
            invalid(
                &TZ,
                "must name a time zone below /usr/share/zoneinfo (Debian's tzdata), such as Europe/Madrid",
            )
        })?,
    };
    let offset = zone.find_local_time_type(seconds).map_or(0, |kind| kind.ut_offset());
    let local = DateTime::from_timestamp(seconds + i64::from(offset), 0);
    Ok(local.unwrap_or_default().date_naive().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules of Europe/Madrid, which need no zone file.
    const MADRID: &str = "CET-1CEST,M3.5.0,M10.5.0/3";

    #[test]
    fn day_changes_at_local_midnight_in_winter_and_summer() {
        for (zone, utc, day) in [
            (MADRID, "2026-01-31T22:59:59Z", "2026-01-31"),
            (MADRID, "2026-01-31T23:00:00Z", "2026-02-01"),
            (MADRID, "2026-03-29T21:59:59Z", "2026-03-29"),
            (MADRID, "2026-03-29T22:00:00Z", "2026-03-30"),
            ("UTC", "1970-01-01T00:00:00Z", "1970-01-01"),
        ] {
            let seconds = DateTime::parse_from_rfc3339(utc).unwrap().timestamp();
            assert_eq!(day_at(Some(zone), seconds).unwrap().as_str(), day, "{utc}");
        }
    }
}
