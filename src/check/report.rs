//! The findings of a check: lines for people, or one JSON document, with the errors first.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::json;

use super::kinds::{Kind, Level};
use crate::sys::log::printable;

/// The bytes of text that are kept of each level. Only errors are never dropped: the look at the data ends when
/// they have no room.
const ROOM: usize = 128 * 1024;

/// A setting, a path or another subject, and what was found about it
#[derive(Debug)]
struct Finding {
    kind: Kind,
    about: String,
    text: String,
}

/// The findings of one level
#[derive(Debug, Default)]
struct Findings {
    kept: Vec<Finding>,
    /// The bytes of their text
    used: usize,
    dropped: usize,
}

#[derive(Debug, Default)]
struct State {
    levels: [Findings; Level::ALL.len()],
    /// What is looked at
    place: PathBuf,
}

/// Collects findings, and prints them from another thread, also if the one that looks never ends.
#[derive(Debug, Default)]
pub struct Report(Mutex<State>);

impl Report {
    /// Adds a finding about a setting, a path or another subject.
    pub fn add(&self, kind: Kind, about: impl ToString, text: impl ToString) {
        let findings = &mut self.state().levels[kind.level() as usize];
        if kind.level() != Level::Error && findings.used >= ROOM {
            findings.dropped += 1;
            return;
        }
        let about = printable(&about.to_string());
        let text = printable(&text.to_string());
        findings.used += about.len() + text.len();
        findings.kept.push(Finding { kind, about, text });
    }

    /// Whether there is room for another error.
    pub fn has_room(&self) -> bool {
        self.state().levels[Level::Error as usize].used < ROOM
    }

    /// Notes what is going to be looked at: it may never answer.
    pub fn looks_at(&self, path: &Path) {
        self.state().place = path.to_owned();
    }

    /// What is looked at.
    pub fn place(&self) -> String {
        self.state().place.display().to_string()
    }

    /// The findings and a summary, or the JSON document; and the exit status.
    pub fn finish(&self, as_json: bool) -> (String, u8) {
        self.name_dropped();
        let state = self.state();
        let count = |level: Level| state.levels[level as usize].kept.len();
        let errors = count(Level::Error);
        let warnings = count(Level::Warning);
        let status = status(errors, warnings);
        let findings = state.levels.iter().flat_map(|findings| &findings.kept);
        if as_json {
            let findings: Vec<_> = findings.map(Finding::as_json).collect();
            let document = json!({
                "version": env!("CARGO_PKG_VERSION"),
                "status": status,
                "errors": errors,
                "warnings": warnings,
                "findings": findings,
            });
            return (format!("{document}\n"), status);
        }
        let in_color = io::stdout().is_terminal();
        let lines: String = findings.map(|finding| finding.as_line(in_color)).collect();
        (format!("{lines}{}\n", summary(errors, warnings)), status)
    }

    fn name_dropped(&self) {
        let mut state = self.state();
        let dropped = Level::ALL.map(|level| (level, state.levels[level as usize].dropped));
        for (level, count) in dropped.into_iter().filter(|&(_, count)| count > 0) {
            let kind = Kind::NotShown;
            let about = "findings".to_owned();
            let text = format!("not shown: {count} more of the level {}", level.name());
            state.levels[kind.level() as usize]
                .kept
                .push(Finding { kind, about, text });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Finding {
    fn as_json(&self) -> serde_json::Value {
        let Finding { kind, about, text } = self;
        json!({"code": kind.code(), "level": kind.level().name(), "about": about, "text": text})
    }

    fn as_line(&self, in_color: bool) -> String {
        let Finding { kind, about, text } = self;
        let level = kind.level().name();
        match in_color {
            true => format!(
                "\x1b[{}m{level:7}\x1b[0m {about}: {text}\n",
                kind.level().color()
            ),
            false => format!("{level:7} {about}: {text}\n"),
        }
    }
}

/// The exit status: 0 no problem, 1 warnings, 2 errors.
fn status(errors: usize, warnings: usize) -> u8 {
    match (errors, warnings) {
        (0, 0) => 0,
        (0, _) => 1,
        _ => 2,
    }
}

fn summary(errors: usize, warnings: usize) -> String {
    let shown_errors = counted(errors, "error");
    let shown_warnings = counted(warnings, "warning");
    match (errors, warnings) {
        (0, 0) => "no problems found".to_owned(),
        (0, _) => shown_warnings,
        (_, 0) => shown_errors,
        _ => format!("{shown_errors}, {shown_warnings}"),
    }
}

/// A number and its noun in the right form: "1 day", "2 days".
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
