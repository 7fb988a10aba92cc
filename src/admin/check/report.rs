//! The findings of a check: lines for people, with the problems last, or one JSON document.

use std::collections::HashSet;
use std::io::{self, IsTerminal};

use super::user::{Command, is_in_container};
use crate::php::json::{Map, Value};
use crate::sys::log::printable;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Ok,
    Hint,
    Warning,
    /// Requests will fail
    Error,
}

/// The number of findings that are shown of another process, so that it cannot push all others out of sight
const MAX_FINDINGS: usize = 1000;

const LEVELS: [Level; 4] = [Level::Ok, Level::Hint, Level::Warning, Level::Error];

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
    /// A shell command that fixes it, if there is a safe one
    fix: Option<Command>,
}

/// Collects findings and prints them.
#[derive(Debug)]
pub struct Report {
    findings: Vec<Finding>,
    /// The subjects and texts, each of which is added once
    known: HashSet<(String, String)>,
}

impl Report {
    pub fn new() -> Report {
        Report { findings: Vec::new(), known: HashSet::new() }
    }

    /// Adds a finding about a setting, a path or another subject.
    pub fn add(&mut self, level: Level, about: impl ToString, text: impl ToString) {
        self.add_with_fix(level, about, text, None);
    }

    /// Adds a finding with a shell command that fixes it, if there is a safe one.
    pub fn add_with_fix(
        &mut self,
        level: Level,
        about: impl ToString,
        text: impl ToString,
        fix: Option<Command>,
    ) {
        let (about, mut text) = (printable(&about.to_string()), printable(&text.to_string()));
        if let Some(Command { user, .. }) = fix
            && is_in_container()
        {
            text += &format!("; run as the user {user} in PHP's container:");
        }
        if self.known.insert((about.clone(), text.clone())) {
            self.findings.push(Finding { level, about, text, fix });
        }
    }

    pub fn extend(&mut self, other: Report) {
        for Finding { level, about, text, fix } in other.findings {
            self.add_with_fix(level, about, text, fix);
        }
    }

    /// Adds the findings of another process, which may be any program: what it says is printed and never
    /// trusted. `user` is the one that its commands are for. Fails if it has another version.
    pub fn merge(&mut self, document: &[u8], user: Option<u32>) -> Result<(), String> {
        let document = Value::parse(document).map_err(|error| error.to_string())?.into_map();
        let Some(Value::List(findings)) = document.get("findings") else {
            return Err("findings are missing".to_owned());
        };
        if findings.len() > MAX_FINDINGS {
            let text = format!(
                "another process has more than {MAX_FINDINGS} findings; the rest is not shown"
            );
            self.add(Level::Warning, "findings", text);
        }
        for finding in findings.iter().take(MAX_FINDINGS) {
            let field = |name| finding.as_map()?.get(name)?.as_str();
            let level = LEVELS.into_iter().find(|level| field("level") == Some(level.shown().0));
            let fix = user.zip(field("fix")).and_then(|(user, line)| Command::of_other(user, line));
            let (Some(level), Some(about), Some(text)) = (level, field("about"), field("text"))
            else {
                return Err("a finding is incomplete".to_owned());
            };
            self.add_with_fix(level, about, text, fix);
        }
        let version = document.get("version").and_then(Value::as_str);
        (version == Some(VERSION)).then_some(()).ok_or_else(|| {
            format!("this is version {VERSION}, and that process {}", version.unwrap_or("another"))
        })
    }

    /// The lines of the errors.
    pub fn errors(&self) -> Vec<String> {
        let errors = self.findings.iter().filter(|finding| finding.level == Level::Error);
        errors.map(|finding| finding.line(false)).collect()
    }

    /// The findings and a summary, or the JSON document, and the exit status: 0 no problem, 1 warnings,
    /// 2 errors.
    pub fn finish(self, as_json: bool) -> (String, u8) {
        let count = |level| self.findings.iter().filter(|finding| finding.level == level).count();
        let (errors, warnings) = (count(Level::Error), count(Level::Warning));
        let status = match (errors, warnings) {
            (0, 0) => 0,
            (0, _) => 1,
            _ => 2,
        };
        if as_json {
            let findings = self.findings.into_iter().map(Finding::into_json).collect();
            let document = Value::Map(Map::from([
                ("version", Value::from(VERSION)),
                ("status", Value::Int(status.into())),
                ("errors", Value::Int(errors as i64)),
                ("warnings", Value::Int(warnings as i64)),
                ("findings", Value::List(findings)),
            ]));
            return (format!("{}\n", String::from_utf8_lossy(&document.to_compact())), status);
        }
        let mut findings = self.findings;
        // The worst is last, above the summary: the beginning may have scrolled away.
        findings.sort_by_key(|finding| finding.level);
        findings.dedup_by(Finding::joins);
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
    /// Appends this finding to the one before it, if both say that the same subject is correct.
    fn joins(&mut self, before: &mut Finding) -> bool {
        let is_same =
            (self.level, &self.about) == (Level::Ok, &before.about) && before.level == Level::Ok;
        if is_same {
            before.text += &format!("; {}", self.text);
        }
        is_same
    }

    fn into_json(self) -> Value {
        let mut finding = Map::from([
            ("level", Value::from(self.level.shown().0)),
            ("about", Value::String(self.about)),
            ("text", Value::String(self.text)),
        ]);
        if let Some(command) = self.fix {
            finding.set("fix", Value::String(command.shown()));
        }
        Value::Map(finding)
    }

    fn line(&self, in_color: bool) -> String {
        let Finding { level, about, text, fix } = self;
        let (level, color) = level.shown();
        let (start, end) =
            if in_color { (format!("\x1b[{color}m"), "\x1b[0m") } else { Default::default() };
        let fix = fix.as_ref().map(|command| format!("        {}\n", command.shown()));
        let fix = fix.unwrap_or_default();
        format!("{start}{level:7}{end} {about}: {text}\n{fix}")
    }
}

/// A number and its noun in the right form: "1 day", "2 days".
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
