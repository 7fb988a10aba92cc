//! The findings of a check: lines for people, or one JSON document, with the errors first.

use std::io::{self, IsTerminal};

use crate::php::json::{Map, Value};
use crate::sys::log::printable;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Requests will fail
    Error,
    Warning,
    Hint,
    Ok,
}

const LEVELS: [Level; 4] = [Level::Error, Level::Warning, Level::Hint, Level::Ok];

/// The bytes of text that are kept of each level. Only errors are never dropped: the survey of the data ends
/// where they have no room. So a document is smaller than [`MAX_DOCUMENT`], though JSON may escape each byte.
const ROOM: usize = 128 * 1024;

/// The maximum size of the findings of another process, in bytes. Parsed, they may need 64 times as much.
pub const MAX_DOCUMENT: usize = 1024 * 1024;

impl Level {
    /// Its name, and its colour on a terminal (ECMA-48, SGR)
    fn shown(self) -> (&'static str, u8) {
        match self {
            Level::Ok => ("ok", 32),
            Level::Hint => ("hint", 36),
            Level::Warning => ("warning", 33),
            Level::Error => ("error", 31),
        }
    }
}

/// What the check found about a setting, a path or another subject.
#[derive(Debug)]
struct Finding {
    level: Level,
    about: String,
    text: String,
}

/// Collects findings and prints them.
#[derive(Debug, Default)]
pub struct Report {
    findings: Vec<Finding>,
    /// The bytes of text of each level
    used: [usize; LEVELS.len()],
    /// The number of findings of each level that were dropped
    dropped: [usize; LEVELS.len()],
}

impl Report {
    /// Adds a finding about a setting, a path or another subject.
    pub fn add(&mut self, level: Level, about: impl ToString, text: impl ToString) {
        if level != Level::Error && !self.has_room(level) {
            return self.dropped[level as usize] += 1;
        }
        let (about, text) = (printable(&about.to_string()), printable(&text.to_string()));
        // With the JSON around them
        self.used[level as usize] += about.len() + text.len() + 50;
        self.findings.push(Finding { level, about, text });
    }

    /// Whether another finding of this level is kept.
    pub fn has_room(&self, level: Level) -> bool {
        self.used[level as usize] < ROOM
    }

    /// Adds the findings of another process, which may be any program: what it says is printed and never
    /// trusted. Fails if it has another version.
    pub fn merge(&mut self, document: &[u8]) -> Result<(), String> {
        let mut document = Value::parse(document).map_err(|error| error.to_string())?;
        let document = document.coerce_to_map();
        let Some(Value::List(findings)) = document.get("findings") else {
            return Err("findings are missing".to_owned());
        };
        for finding in findings {
            let field = |name| finding.as_map()?.get(name)?.as_str();
            let level = LEVELS.into_iter().find(|level| field("level") == Some(level.shown().0));
            let (Some(level), Some(about), Some(text)) = (level, field("about"), field("text"))
            else {
                return Err("a finding is incomplete".to_owned());
            };
            self.add(level, about, text);
        }
        let version = document.get("version").and_then(Value::as_str);
        (version == Some(VERSION)).then_some(()).ok_or_else(|| {
            format!("this is version {VERSION}, and that process {}", version.unwrap_or("another"))
        })
    }

    /// The lines of the errors, without their level.
    pub fn errors(&self) -> Vec<String> {
        let errors = self.findings.iter().filter(|finding| finding.level == Level::Error);
        errors.map(|Finding { about, text, .. }| format!("{about}: {text}\n")).collect()
    }

    /// The findings, the worst first, and a summary, or the JSON document; and the exit status: 0 no problem,
    /// 1 warnings, 2 errors.
    pub fn finish(mut self, as_json: bool) -> (String, u8) {
        for level in LEVELS {
            let count = self.dropped[level as usize];
            if count > 0 {
                let text = format!("not shown: {count} more of the level {}", level.shown().0);
                let (level, about) = (Level::Warning, "findings".to_owned());
                self.findings.push(Finding { level, about, text });
            }
        }
        let mut findings = self.findings;
        findings.sort_by_key(|finding| finding.level);
        let count = |level| findings.iter().filter(|finding| finding.level == level).count();
        let (errors, warnings) = (count(Level::Error), count(Level::Warning));
        let status = match (errors, warnings) {
            (0, 0) => 0,
            (0, _) => 1,
            _ => 2,
        };
        if as_json {
            let findings = findings.into_iter().map(Finding::into_json).collect();
            let document = Value::Map(Map::from([
                ("version", Value::from(VERSION)),
                ("status", Value::Int(status.into())),
                ("errors", Value::Int(errors as i64)),
                ("warnings", Value::Int(warnings as i64)),
                ("findings", Value::List(findings)),
            ]));
            return (format!("{}\n", String::from_utf8_lossy(&document.to_compact())), status);
        }
        let in_color = io::stdout().is_terminal();
        let lines: String = findings.iter().map(|finding| finding.line(in_color)).collect();
        let counts = [(errors, "error"), (warnings, "warning")];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let counts: Vec<_> = counts.map(|(count, noun)| counted(count, noun)).collect();
        let summary = if counts.is_empty() { "no problems found" } else { &counts.join(", ") };
        (format!("{lines}{summary}\n"), status)
    }
}

impl Finding {
    fn into_json(self) -> Value {
        Value::Map(Map::from([
            ("level", Value::from(self.level.shown().0)),
            ("about", Value::String(self.about)),
            ("text", Value::String(self.text)),
        ]))
    }

    fn line(&self, in_color: bool) -> String {
        let Finding { level, about, text } = self;
        let (level, color) = level.shown();
        let (start, end) =
            if in_color { (format!("\x1b[{color}m"), "\x1b[0m") } else { Default::default() };
        format!("{start}{level:7}{end} {about}: {text}\n")
    }
}

/// A number and its noun in the right form: "1 day", "2 days".
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
