//! The findings of a check: one line for each, printed immediately, or one JSON document at the end.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::json::{Map, Value};
use crate::log::printable;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Correct
    Ok,
    /// For information
    Hint,
    /// Possibly wrong
    Warning,
    /// Requests will fail
    Error,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Hint => "hint",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }

    /// The colour on a terminal (ECMA-48, SGR).
    fn color(self) -> &'static str {
        match self {
            Level::Ok => "32",
            Level::Hint => "36",
            Level::Warning => "33",
            Level::Error => "31",
        }
    }
}

/// Collects findings and prints them.
#[derive(Debug)]
pub struct Report {
    as_json: bool,
    in_color: bool,
    findings: Vec<Value>,
    errors: usize,
    warnings: usize,
    /// The time of the last sign of progress, if standard error is a terminal
    last_progress: Option<Instant>,
    has_progress: bool,
}

impl Report {
    /// A report on standard output: lines, or one JSON document.
    pub fn new(as_json: bool) -> Report {
        Report {
            as_json,
            in_color: io::stdout().is_terminal(),
            findings: Vec::new(),
            errors: 0,
            warnings: 0,
            last_progress: io::stderr().is_terminal().then(Instant::now),
            has_progress: false,
        }
    }

    /// Adds a finding about a setting, a path or another subject.
    pub fn add(&mut self, level: Level, about: impl ToString, text: impl ToString) {
        self.add_finding(level, &about.to_string(), &text.to_string(), None);
    }

    /// Adds a finding with a shell command that fixes it, if there is a safe one.
    pub fn add_with_fix(
        &mut self,
        level: Level,
        about: impl ToString,
        text: impl ToString,
        fix: impl Into<Option<String>>,
    ) {
        self.add_finding(level, &about.to_string(), &text.to_string(), fix.into());
    }

    fn add_finding(&mut self, level: Level, about: &str, text: &str, fix: Option<String>) {
        let (about, text) = (printable(about), printable(text));
        self.errors += usize::from(level == Level::Error);
        self.warnings += usize::from(level == Level::Warning);
        if self.as_json {
            let mut finding = Map::from([
                ("level", Value::from(level.name())),
                ("about", Value::String(about)),
                ("text", Value::String(text)),
            ]);
            if let Some(command) = fix {
                finding.set("fix", Value::String(command));
            }
            return self.findings.push(Value::Map(finding));
        }
        self.clear_progress();
        let level = if self.in_color {
            format!("\x1b[{}m{:7}\x1b[0m", level.color(), level.name())
        } else {
            format!("{:7}", level.name())
        };
        let fix = fix.map(|command| format!("        {command}\n")).unwrap_or_default();
        print(&format!("{level} {about}: {text}\n{fix}"));
    }

    /// Shows progress on a terminal once a check has taken a second.
    pub fn progress(&mut self, done: usize, what: &str) {
        let Some(last) = self.last_progress else { return };
        let pause = if self.has_progress { 100 } else { 1000 };
        if last.elapsed() > Duration::from_millis(pause) {
            _ = write!(io::stderr(), "\r{done} {what} …");
            self.has_progress = true;
            self.last_progress = Some(Instant::now());
        }
    }

    fn clear_progress(&mut self) {
        if self.has_progress {
            _ = write!(io::stderr(), "\r\x1b[K");
            self.has_progress = false;
        }
    }

    /// Prints the summary, or the JSON document, and returns the exit status: 0 no problem,
    /// 1 warnings, 2 errors.
    pub fn finish(mut self) -> u8 {
        self.clear_progress();
        let status = match (self.errors, self.warnings) {
            (0, 0) => 0,
            (0, _) => 1,
            _ => 2,
        };
        if self.as_json {
            let document = Value::Map(Map::from([
                ("status", Value::Int(status.into())),
                ("errors", Value::Int(self.errors as i64)),
                ("warnings", Value::Int(self.warnings as i64)),
                ("findings", Value::List(self.findings)),
            ]));
            print(&format!("{}\n", String::from_utf8_lossy(&document.to_compact())));
        } else {
            let counts = [(self.errors, "error"), (self.warnings, "warning")];
            let counts = counts.into_iter().filter(|(count, _)| *count > 0);
            let counts: Vec<_> = counts.map(|(count, noun)| counted(count, noun)).collect();
            let summary = if counts.is_empty() { "no problems found" } else { &counts.join(", ") };
            print(&format!("{summary}\n"));
        }
        status
    }
}

/// A number and its noun in the right form: "1 day", "2 days".
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Ignores that standard output is closed.
fn print(text: &str) {
    _ = io::stdout().write_all(text.as_bytes());
}
