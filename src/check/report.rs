//! The findings of a check: lines for people, or one JSON document, with the errors first.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::json;

use super::kinds::{Kind, Level};
use crate::sys::log::printable;

/// The limit for the text of each level, in bytes: some thousand findings, more than a person reads. The check of the
/// data ends when the errors reach it, so no error is dropped.
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

impl State {
    fn level(&self, level: Level) -> &Findings {
        &self.levels[level as usize]
    }

    fn level_mut(&mut self, level: Level) -> &mut Findings {
        &mut self.levels[level as usize]
    }
}

/// What the command prints, and its exit status.
#[derive(Debug)]
pub struct Outcome {
    pub text: String,
    pub status: u8,
}

/// How many findings say that something is wrong.
struct Problems {
    errors: usize,
    warnings: usize,
}

impl Problems {
    /// The exit status: 0 no problem, 1 warnings, 2 errors.
    fn status(&self) -> u8 {
        if self.errors > 0 {
            2
        } else {
            u8::from(self.warnings > 0)
        }
    }

    fn summary(&self) -> String {
        let errors = counted(self.errors, "error");
        let warnings = counted(self.warnings, "warning");
        match (self.errors, self.warnings) {
            (0, 0) => "no problems found".to_owned(),
            (0, _) => warnings,
            (_, 0) => errors,
            _ => format!("{errors}, {warnings}"),
        }
    }
}

/// Collects findings, and prints them from another thread, also if the one that looks never ends.
#[derive(Debug, Default)]
pub struct Report(Mutex<State>);

impl Report {
    /// Adds a finding about a setting, a path or another subject.
    pub fn add(&self, kind: Kind, about: impl ToString, text: impl ToString) {
        let mut state = self.state();
        let findings = state.level_mut(kind.level());
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
        self.state().level(Level::Error).used < ROOM
    }

    /// Notes what is going to be looked at: it may never answer.
    pub fn looks_at(&self, path: &Path) {
        self.state().place = path.to_owned();
    }

    /// What is looked at.
    pub fn place(&self) -> String {
        self.state().place.display().to_string()
    }

    /// The findings and a summary, or the JSON document.
    pub fn finish(&self, as_json: bool) -> Outcome {
        self.report_dropped();
        let state = self.state();
        let problems = Problems {
            errors: state.level(Level::Error).kept.len(),
            warnings: state.level(Level::Warning).kept.len(),
        };
        let findings = state.levels.iter().flat_map(|findings| &findings.kept);
        let text = if as_json {
            document(&problems, findings)
        } else {
            lines(&problems, findings)
        };
        Outcome {
            text,
            status: problems.status(),
        }
    }

    /// Adds a finding for each level of which some were dropped.
    fn report_dropped(&self) {
        let mut state = self.state();
        for level in Level::ALL {
            let count = state.level(level).dropped;
            if count > 0 {
                let kind = Kind::NotShown;
                let about = "findings".to_owned();
                let text = format!("not shown: {count} more of the level {}", level.name());
                let finding = Finding { kind, about, text };
                state.level_mut(kind.level()).kept.push(finding);
            }
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
        let level = format!("{:7}", kind.level().name());
        let level = if in_color {
            format!("\x1b[{}m{level}\x1b[0m", kind.level().color())
        } else {
            level
        };
        format!("{level} {about}: {text}\n")
    }
}

fn document<'f>(problems: &Problems, findings: impl Iterator<Item = &'f Finding>) -> String {
    let findings: Vec<_> = findings.map(Finding::as_json).collect();
    let document = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "status": problems.status(),
        "errors": problems.errors,
        "warnings": problems.warnings,
        "findings": findings,
    });
    format!("{document}\n")
}

fn lines<'f>(problems: &Problems, findings: impl Iterator<Item = &'f Finding>) -> String {
    let in_color = io::stdout().is_terminal();
    let lines: String = findings.map(|finding| finding.as_line(in_color)).collect();
    format!("{lines}{}\n", problems.summary())
}

/// A number and its noun in the right form: "1 day", "2 days".
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
