//! Compares the clock of this machine with that of a file system.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::report::{Level, Report};

/// The difference of two clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Skew {
    Ahead(Duration),
    Behind(Duration),
}

impl Skew {
    /// The difference between a file's `time` and the interval in which it was written, from `before`
    /// to `after` by this machine's clock. `None` if it has no effect, as with times that are stored
    /// in units of two seconds.
    pub fn of(time: SystemTime, before: SystemTime, after: SystemTime) -> Option<Skew> {
        const TOLERANCE: Duration = Duration::from_secs(2);
        let ahead = time.duration_since(after).map(Skew::Ahead);
        let skew = ahead.or_else(|_| before.duration_since(time).map(Skew::Behind)).ok()?;
        let (Skew::Ahead(difference) | Skew::Behind(difference)) = skew;
        (difference > TOLERANCE).then_some(skew)
    }

    /// Reports the difference for files in `folder`.
    pub fn report(self, folder: &Path, report: &mut Report) {
        let (difference, direction) = match self {
            Skew::Ahead(difference) => (difference, "ahead of"),
            Skew::Behind(difference) => (difference, "behind"),
        };
        let text = format!(
            "the time of a new file is {} s {direction} this machine's clock: an empty file may count \
             as being written, and sessions expire too early or too late with \
             COMEDOR_SESSION_MAX_AGE; synchronise the clocks of all servers (NTP)",
            difference.as_secs()
        );
        report.add(Level::Warning, folder.display(), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_of_more_than_two_seconds_is_a_skew() {
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        let (ahead, behind) = (
            |millis| Some(Skew::Ahead(Duration::from_millis(millis))),
            |millis| Some(Skew::Behind(Duration::from_millis(millis))),
        );
        // The file was written in these five seconds.
        let (before, after) = (at(100_000), at(105_000));
        for (time, skew) in [
            (0, behind(100_000)),
            (97_999, behind(2_001)),
            (98_000, None),
            (100_000, None),
            (103_000, None),
            (107_000, None),
            (107_001, ahead(2_001)),
            (3_705_000, ahead(3_600_000)),
        ] {
            assert_eq!(Skew::of(at(time), before, after), skew, "{time}");
        }
    }
}
