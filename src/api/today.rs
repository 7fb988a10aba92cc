//! Today, in the time zone of the settings.

use std::io::{self, ErrorKind};
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::DateTime;
use tz::TimeZone;

use crate::config::{self, TZ, invalid};
use crate::model::Date;

/// Today in `zone` (a value of `TZ`), else in the system's time zone.
pub fn today(zone: Option<&str>) -> Result<Date, config::Error> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    day_at(zone, now.as_secs() as i64)
}

/// The day at these seconds since the epoch: that of date(1), or an error if the zone cannot be used. date(1)
/// itself then takes UTC, or the last offset of a zone whose rules have ended.
pub fn day_at(zone: Option<&str>, seconds: i64) -> Result<Date, config::Error> {
    let loaded = match zone {
        // This name needs no zone file.
        Some("UTC") => Ok(TimeZone::utc()),
        Some(name) => TimeZone::from_posix_tz(name),
        None => system_zone(),
    };
    let offset = loaded
        .map_err(|error| error.to_string())
        .and_then(|zone| offset(&zone, seconds));
    let offset = offset.map_err(|why| {
        let problem = match zone {
            Some(_) => "must name a time zone below /usr/share/zoneinfo (Debian's tzdata), such as Europe/Madrid",
            None => "is not set, and the system's time zone, /etc/localtime, cannot be used",
        };
        invalid(&TZ, format!("{problem}: {why}"))
    })?;
    let local = DateTime::from_timestamp(seconds + i64::from(offset), 0);
    Ok(local.unwrap_or_default().date_naive().into())
}

/// The system's zone; UTC if none is configured.
fn system_zone() -> Result<TimeZone, tz::Error> {
    match TimeZone::local() {
        Err(tz::Error::Io(error))
            if error.downcast_ref().map(io::Error::kind) == Some(ErrorKind::NotFound) =>
        {
            Ok(TimeZone::utc())
        }
        zone => zone,
    }
}

/// The offset from UTC; the error says why `zone` does not tell it.
fn offset(zone: &TimeZone, seconds: i64) -> Result<i32, String> {
    let rules = zone.as_ref();
    if !rules.leap_seconds().is_empty() {
        return Err("it counts leap seconds, as the zones in right/ do".to_owned());
    }
    if rules.extra_rule().is_none() && !rules.transitions().is_empty() {
        return Err("it has no rules for the future".to_owned());
    }
    let local = rules
        .find_local_time_type(seconds)
        .map_err(|error| error.to_string())?;
    Ok(local.ut_offset())
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
