//! Whether the web servers of this machine run, and can start again: units of systemd, which are in Debian's
//! layout.

use std::time::{Duration, Instant};

use super::report::{Level, Report};
use crate::admin::command::run_within;

/// The units of web servers, and the command that tests their configuration. That of Caddy has other effects.
const SERVERS: [(&str, &[&str]); 4] = [
    ("apache2", &["apache2ctl", "configtest"]),
    ("nginx", &["nginx", "-t", "-q"]),
    ("lighttpd", &["lighttpd", "-tt", "-f", "/etc/lighttpd/lighttpd.conf"]),
    ("caddy", &[]),
];

/// The time of a program.
const TIME: Duration = Duration::from_secs(5);

/// Reports each running web server whose configuration is broken, with a warning if comedor `answers` by another
/// one. Unless it does, also those that do not run and should.
pub fn check(own: Option<&str>, answers: bool, end: Instant, report: &mut Report) {
    for (unit, test) in SERVERS {
        let state = state(unit, end);
        let runs = state.starts_with("active") || state.starts_with("reloading");
        if runs
            && let [program, arguments @ ..] = test
            && let Err(error) = run_within(TIME.min(left(end)), program, arguments)
        {
            let text = format!("its configuration is broken, so it cannot start again: {error}");
            let is_another = answers && own.is_some_and(|own| own != unit);
            report.add(if is_another { Level::Warning } else { Level::Error }, unit, text);
        }
        if !runs && !answers && state.ends_with(" enabled") {
            let text =
                format!("it does not run: sudo systemctl start {unit}; journalctl -u {unit}");
            report.add(Level::Error, unit, text);
        }
    }
}

/// The state of a unit, and whether it is enabled, as in "active enabled"; empty without systemd.
pub fn state(unit: &str, end: Instant) -> String {
    let arguments = ["show", "--property=ActiveState,UnitFileState", "--value", unit];
    let said = run_within(TIME.min(left(end)), "systemctl", &arguments).unwrap_or_default();
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn left(end: Instant) -> Duration {
    end.saturating_duration_since(Instant::now())
}
