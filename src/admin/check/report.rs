//! The findings of a check: lines for people, or one JSON document, with the errors first.

use std::io::{self, IsTerminal};

use serde_json::json;

use crate::php::json::Value;
use crate::sys::log::printable;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Requests will fail
    Error,
    Warning,
    Hint,
    Ok,
}

/// Each level with its name and its colour on a terminal (ECMA-48, SGR), the worst first
const LEVELS: [(Level, &str, u8); 4] = [
    (Level::Error, "error", 31),
    (Level::Warning, "warning", 33),
    (Level::Hint, "hint", 36),
    (Level::Ok, "ok", 32),
];

/// The bytes of text that are kept of each level. Only errors are never dropped: the survey of the data ends
/// where they have no room. So a document is smaller than [`MAX_DOCUMENT`], though JSON may escape each byte.
const ROOM: usize = 128 * 1024;

/// The maximum size of the findings of another process, in bytes. Parsed, they may need 64 times as much.
pub const MAX_DOCUMENT: usize = 1024 * 1024;

/// The findings of one level
#[derive(Debug, Default)]
struct Findings {
    /// A setting, a path or another subject, and what was found about it
    kept: Vec<(String, String)>,
    /// The bytes of their text
    used: usize,
    dropped: usize,
}

/// Collects findings and prints them.
#[derive(Debug, Default)]
pub struct Report([Findings; LEVELS.len()]);

impl Report {
    /// Adds a finding about a setting, a path or another subject.
    pub fn add(&mut self, level: Level, about: impl ToString, text: impl ToString) {
        let findings = &mut self.0[level as usize];
        if level != Level::Error && findings.used >= ROOM {
            return findings.dropped += 1;
        }
        let (about, text) = (printable(&about.to_string()), printable(&text.to_string()));
        // With the JSON around them
        findings.used += about.len() + text.len() + 50;
        findings.kept.push((about, text));
    }

    /// Whether there is room for another error.
    pub fn has_room(&self) -> bool {
        self.0[Level::Error as usize].used < ROOM
    }

    /// Adds the findings of another process, which may be any program. Fails if it has another version.
    pub fn merge(&mut self, document: &[u8]) -> Result<(), String> {
        // A value of serde_json can take more than twice as much memory.
        let mut document = Value::parse(document).unwrap_or_default();
        let document = document.coerce_to_map();
        let Some(Value::List(findings)) = document.get("findings") else {
            return Err("findings are missing".to_owned());
        };
        for finding in findings {
            let field = |name| finding.as_map()?.get(name)?.as_str();
            let level = LEVELS.into_iter().find(|(_, name, _)| field("level") == Some(name));
            let Some(((level, ..), (about, text))) = level.zip(field("about").zip(field("text")))
            else {
                return Err("a finding is incomplete".to_owned());
            };
            self.add(level, about, text);
        }
        match document.get("version").and_then(Value::as_str).unwrap_or("another") {
            VERSION => Ok(()),
            version => Err(format!("this is version {VERSION}, and that process {version}")),
        }
    }

    /// The lines of the errors, without their level.
    pub fn errors(&self) -> Vec<String> {
        let errors = self.0[Level::Error as usize].kept.iter();
        errors.map(|(about, text)| format!("{about}: {text}\n")).collect()
    }

    /// The findings and a summary, or the JSON document; and the exit status: 0 no problem, 1 warnings, 2 errors.
    pub fn finish(mut self, as_json: bool) -> (String, u8) {
        for (level, name, _) in LEVELS {
            let count = self.0[level as usize].dropped;
            if count > 0 {
                let text = format!("not shown: {count} more of the level {name}");
                self.0[Level::Warning as usize].kept.push(("findings".to_owned(), text));
            }
        }
        let [errors, warnings, ..] = self.0.each_ref().map(|findings| findings.kept.len());
        let (shown_errors, shown_warnings) =
            (counted(errors, "error"), counted(warnings, "warning"));
        let (status, summary) = match (errors, warnings) {
            (0, 0) => (0, "no problems found".to_owned()),
            (0, _) => (1, shown_warnings),
            (_, 0) => (2, shown_errors),
            _ => (2, format!("{shown_errors}, {shown_warnings}")),
        };
        let findings = LEVELS.into_iter().zip(self.0).flat_map(|((_, level, color), findings)| {
            findings.kept.into_iter().map(move |(about, text)| (level, color, about, text))
        });
        if as_json {
            let findings = findings.map(
                |(level, _, about, text)| json!({"level": level, "about": about, "text": text}),
            );
            let document = json!({
                "version": VERSION,
                "status": status,
                "errors": errors,
                "warnings": warnings,
                "findings": findings.collect::<Vec<_>>(),
            });
            return (format!("{document}\n"), status);
        }
        let in_color = io::stdout().is_terminal();
        let lines = findings.map(|(level, color, about, text)| match in_color {
            true => format!("\x1b[{color}m{level:7}\x1b[0m {about}: {text}\n"),
            false => format!("{level:7} {about}: {text}\n"),
        });
        (format!("{}{summary}\n", lines.collect::<String>()), status)
    }
}

/// A number and its noun in the right form: "1 day", "2 days".
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
