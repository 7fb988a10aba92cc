//! The findings of a check: a line each as they are found, or one JSON document at the end.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::json::{Map, Value};
use crate::log::printable;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be
    Ok,
    /// Worth knowing
    Hint,
    /// May be wrong, or will be
    Warning,
    /// Something will not work
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
    worst: Level,
    /// Since when nothing was printed; `None` where nobody watches.
    quiet_since: Option<Instant>,
    has_progress: bool,
}

impl Report {
    /// A report on standard output: lines, or one JSON document.
    pub fn new(as_json: bool) -> Report {
        Report {
            as_json,
            in_color: io::stdout().is_terminal(),
            findings: Vec::new(),
            worst: Level::Ok,
            quiet_since: io::stderr().is_terminal().then(Instant::now),
            has_progress: false,
        }
    }

    /// A finding about a setting or path, with the command that mends it.
    pub fn add(
        &mut self,
        level: Level,
        about: impl Into<String>,
        text: impl Into<String>,
        mend: Option<String>,
    ) {
        let (about, text) = (printable(&about.into()), printable(&text.into()));
        let mend = mend.map(|command| printable(&command));
        self.worst = self.worst.max(level);
        if self.as_json {
            let mut finding = Map::from([
                ("level", Value::from(level.name())),
                ("about", Value::String(about)),
                ("text", Value::String(text)),
            ]);
            if let Some(command) = mend {
                finding.set("mend", Value::String(command));
            }
            return self.findings.push(Value::Map(finding));
        }
        self.clear_progress();
        let level = if self.in_color {
            format!("\x1b[{}m{:7}\x1b[0m", level.color(), level.name())
        } else {
            format!("{:7}", level.name())
        };
        let mend = mend.map(|command| format!(". To mend it: {command}")).unwrap_or_default();
        print(&format!("{level} {about}: {text}{mend}\n"));
    }

    /// Shows on a terminal that something goes on, where that takes longer than a second.
    pub fn progress(&mut self, done: usize, what: &str) {
        let Some(since) = self.quiet_since else { return };
        let pause = if self.has_progress { 100 } else { 1000 };
        if since.elapsed() > Duration::from_millis(pause) {
            _ = write!(io::stderr(), "\r{done} {what} …");
            self.has_progress = true;
            self.quiet_since = Some(Instant::now());
        }
    }

    fn clear_progress(&mut self) {
        if self.has_progress {
            _ = write!(io::stderr(), "\r\x1b[K");
            self.has_progress = false;
        }
    }

    /// Prints what is left to print and gives the exit status: 0 all well, 1 warnings, 2 something
    /// will not work.
    pub fn finish(mut self) -> u8 {
        self.clear_progress();
        let status = match self.worst {
            Level::Ok | Level::Hint => 0,
            Level::Warning => 1,
            Level::Error => 2,
        };
        if self.as_json {
            let document = Value::Map(Map::from([
                ("status", Value::Int(status.into())),
                ("findings", Value::List(self.findings)),
            ]));
            print(&format!("{}\n", String::from_utf8_lossy(&document.to_compact())));
        }
        status
    }
}

/// A reader that has gone away is no error.
fn print(text: &str) {
    _ = io::stdout().write_all(text.as_bytes());
}
