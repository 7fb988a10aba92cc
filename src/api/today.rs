//! Today, in the time zone of the settings.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::DateTime;
use tz::error::TzError;
use tz::{TimeZone, TimeZoneSettings};

use crate::config::Zone;
use crate::model::Date;
use crate::sys::shared_file::{self, Fault};

/// The maximum size of a file of a zone. Those of tzdata have up to 4 KiB.
const MAX_FILE: u64 = 64 * 1024;

/// Where named zones are looked up, and how their files are read: a path can lead to a FIFO, a device or a large file.
const ZONES: TimeZoneSettings =
    TimeZoneSettings::new(TimeZoneSettings::DEFAULT_DIRECTORIES, |path| {
        Ok(shared_file::read_small(Path::new(path), MAX_FILE)?.bytes)
    });

/// A zone that does not tell the day.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "TZ must name a time zone below /usr/share/zoneinfo (Debian's tzdata), such as Europe/Madrid: {0}"
    )]
    Named(Problem),
    #[error("TZ is not set, and the system's time zone, /etc/localtime, cannot be used: {0}")]
    System(Problem),
}

/// Why a zone cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("it counts leap seconds, as the zones in right/ do")]
    LeapSeconds,
    #[error("it has no rules for the future")]
    NoRules,
    #[error(
        "there is no zone of this name, which must be written in the same case, and it is not a rule, such as \
         CET-1CEST,M3.5.0,M10.5.0/3 ({0})"
    )]
    Unknown(TzError),
    #[error(transparent)]
    Unusable(#[from] tz::Error),
}

impl From<Error> for crate::error::Error {
    fn from(error: Error) -> crate::error::Error {
        crate::error::Error::internal(error.to_string())
    }
}

/// Today in `zone`.
pub fn today(zone: &Zone) -> Result<Date, Error> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    day_at(zone, now.as_secs() as i64)
}

/// The day at these seconds since the epoch: that of date(1), or an error if the zone cannot be used. date(1)
/// itself then takes UTC, or the last offset of a zone whose rules have ended.
pub fn day_at(zone: &Zone, seconds: i64) -> Result<Date, Error> {
    let offset = match zone {
        Zone::Utc => 0,
        Zone::Named(name) => offset(named_zone(name), seconds).map_err(Error::Named)?,
        Zone::System => offset(system_zone(), seconds).map_err(Error::System)?,
    };
    let local = DateTime::from_timestamp(seconds + i64::from(offset), 0);
    Ok(local.unwrap_or_default().date_naive().into())
}

fn named_zone(name: &str) -> Result<TimeZone, Problem> {
    // A name that starts with `:` can only be that of a file, so the error says why the file cannot be read.
    let file = name.starts_with('/').then(|| format!(":{name}"));
    match ZONES.parse_posix_tz(file.as_deref().unwrap_or(name)) {
        Err(tz::Error::Tz(error @ TzError::TzString(_))) => Err(Problem::Unknown(error)),
        zone => Ok(zone?),
    }
}

/// The system's zone; UTC if none is configured.
fn system_zone() -> Result<TimeZone, Problem> {
    match ZONES.parse_local() {
        Err(tz::Error::Io(error)) if error.downcast_ref().is_some_and(Fault::is_absent) => {
            Ok(TimeZone::utc())
        }
        zone => Ok(zone?),
    }
}

/// The offset of `zone` from UTC in seconds.
fn offset(zone: Result<TimeZone, Problem>, seconds: i64) -> Result<i32, Problem> {
    let zone = zone?;
    let rules = zone.as_ref();
    if !rules.leap_seconds().is_empty() {
        return Err(Problem::LeapSeconds);
    }
    if rules.extra_rule().is_none() && !rules.transitions().is_empty() {
        return Err(Problem::NoRules);
    }
    let local = rules
        .find_local_time_type(seconds)
        .map_err(tz::Error::from)?;
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
            let zone = Zone::parse(zone).unwrap();
            assert_eq!(day_at(&zone, seconds).unwrap().as_str(), day, "{utc}");
        }
    }
}
