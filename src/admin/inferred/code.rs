//! What PHP's code says about service, data and settings. The parser knows strings, comments and names; it
//! evaluates joined strings and nothing else.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use super::directive::quoted;
use super::php::SETTINGS;
use super::{Fact, Place, Value};
use crate::model::Id;

/// What a [`Fact`] is about, beside [`SETTINGS`].
pub const SERVICE: &str = "service";
pub const DATA: &str = "data folder";
pub const DATABASE: &str = "database";
/// Its text says what the code sets to a value that is not known.
pub const UNCLEAR: &str = "unclear";

const INCLUDES: [&str; 4] = ["require", "require_once", "include", "include_once"];
const DATABASES: [&str; 5] = ["pdo", "sqlite3", "mysqli", "mysqli_connect", "pg_connect"];

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A name, a variable with its `$`, a number
    Word(String),
    Text(String),
    Mark(char),
}

use Token::{Mark, Text, Word};

/// The tokens of a file between `<?php` and `?>`, each with its line.
fn tokens(text: &str) -> Vec<(usize, Token)> {
    let (mut tokens, mut line, mut rest, mut is_code) = (Vec::new(), 1, text, false);
    while let Some(first) = rest.chars().next() {
        let is_comment = rest.starts_with("//") || first == '#' && !rest.starts_with("#[");
        let (token, length) = if !is_code || rest.starts_with("?>") {
            let end = is_code.then_some(Mark(';'));
            is_code = !is_code && rest.starts_with("<?");
            let start = ["<?php", "<?", "?>"].into_iter().find(|tag| rest.starts_with(tag));
            (end, start.map_or(first.len_utf8(), str::len))
        } else if is_comment {
            let end = rest.find('\n').unwrap_or(rest.len());
            (None, rest[..end].find("?>").unwrap_or(end))
        } else if let Some(comment) = rest.strip_prefix("/*") {
            (None, comment.find("*/").map_or(rest.len(), |end| end + 4))
        } else if let Some(heredoc) = rest.strip_prefix("<<<") {
            (Some(Mark('<')), 3 + heredoc_length(heredoc))
        } else if first == '"' || first == '\'' {
            let (string, length) = quoted(rest);
            (Some(Text(string)), length)
        } else if is_name(first) {
            let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            (Some(Word(rest[..end].to_owned())), end)
        } else {
            ((!first.is_ascii_whitespace()).then_some(Mark(first)), first.len_utf8())
        };
        tokens.extend(token.map(|token| (line, token)));
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

/// The number of bytes of `<<<LABEL`, its lines and the label at their end, without the first three.
fn heredoc_length(text: &str) -> usize {
    let label = text.lines().next().map_or("", |line| line.trim().trim_matches(['"', '\'']));
    let after_label = |start: usize| {
        let line = text[start..].trim_start_matches([' ', '\t']);
        line.strip_prefix(label).filter(|rest| !rest.starts_with(is_name))
    };
    let rest = text.match_indices('\n').find_map(|(end, _)| after_label(end + 1));
    text.len() - rest.map_or(0, str::len)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii()
}

/// The code of a file.
pub struct Code<'f> {
    file: &'f Path,
    tokens: Vec<(usize, Token)>,
    /// Variables and constants; the value of those that are joined strings, and set once
    names: HashMap<String, Option<String>>,
}

/// Longer values are not evaluated: code can double one with each line, and name it with each word.
const MAX_VALUE: usize = 512;
/// The number of tokens of an expression that is looked at
const MAX_TOKENS: usize = 100;

impl Code<'_> {
    pub fn parse<'f>(file: &'f Path, text: &str) -> Code<'f> {
        let mut code = Code { file, tokens: tokens(text), names: HashMap::new() };
        for index in 0..code.tokens.len() {
            let (name, value) = match (code.at(index), code.at(index + 1), code.at(index + 2)) {
                (_, Some(Mark('=')), Some(Mark('='))) => continue,
                // What `.=` makes is not known.
                (Some(Word(name)), Some(Mark('.')), Some(Mark('=')))
                | (Some(Word(name)), Some(Mark('=')), _) => (name, index + 2),
                (Some(Word(define)), Some(Mark('(')), Some(Text(name))) if define == "define" => {
                    (name, index + 4)
                }
                _ => continue,
            };
            let (name, value) = (name.clone(), code.joined(value, usize::MAX));
            let is_first = !code.names.contains_key(&name);
            code.names.insert(name, value.filter(|_| is_first));
        }
        code
    }

    fn at(&self, index: usize) -> Option<&Token> {
        self.tokens.get(index).map(|(_, token)| token)
    }

    /// Where the list of arguments or the statement from `index` on ends, if it is near.
    fn end(&self, index: usize) -> usize {
        let (near, mut depth) = (index..index + MAX_TOKENS, 0);
        let is_end = |&at: &usize| {
            match self.at(at) {
                Some(Mark('(' | '[')) => depth += 1,
                Some(Mark(')' | ']')) => depth -= 1,
                _ => {}
            }
            depth < 0 || self.is_mark(at, ';')
        };
        near.clone().find(is_end).unwrap_or(near.end)
    }

    fn is_mark(&self, index: usize, mark: char) -> bool {
        self.at(index) == Some(&Mark(mark))
    }

    /// The strings, names and products joined by dots from `index` on, up to the one at `end`, else of the whole
    /// expression.
    fn joined(&self, mut index: usize, end: usize) -> Option<String> {
        let mut value = String::new();
        loop {
            match self.at(index)? {
                Text(text) if !text.contains('$') || index == end => value += text,
                Word(name) if name == "__DIR__" => value += self.file.parent()?.to_str()?,
                Word(name) if name.bytes().all(|byte| byte.is_ascii_digit()) => {
                    let mut product: u32 = name.parse().ok()?;
                    while let (true, Some(Word(factor))) =
                        (self.is_mark(index + 1, '*'), self.at(index + 2))
                    {
                        product = product.checked_mul(factor.parse().ok()?)?;
                        index += 2;
                    }
                    value += &product.to_string();
                }
                Word(name) => value += self.names.get(name)?.as_ref()?,
                _ => return None,
            }
            if value.len() > MAX_VALUE {
                return None;
            }
            match self.at(index + 1) {
                Some(Mark('.')) if index < end => index += 2,
                None | Some(Mark(';' | ',' | ')' | ']')) => return Some(value),
                _ => return Some(value).filter(|_| index == end),
            }
        }
    }

    fn fact(&self, index: usize, about: &str, text: Option<String>) -> Fact {
        let place = Place { file: self.file.to_owned(), line: self.tokens[index].0 };
        let (about, text) = text.map_or((UNCLEAR, about.to_owned()), |text| (about, text));
        Fact { about: about.to_owned(), value: Value { text, place }, is_admin: false }
    }

    /// The settings that it sets.
    pub fn settings(&self) -> Vec<Fact> {
        let mut facts = Vec::new();
        for (index, (_, token)) in self.tokens.iter().enumerate() {
            let Word(function) = token else { continue };
            let is_call = self.is_mark(index + 1, '(') && !self.is_mark(index + 2, ')');
            let before = [2, 1].map(|count| self.at(index.wrapping_sub(count)));
            let is_other = match before {
                [Some(Mark('-')), Some(Mark('>'))] | [Some(Mark(':')), Some(Mark(':'))] => true,
                [_, Some(Word(word))] => word == "function",
                _ => false,
            };
            if !is_call || is_other {
                continue;
            }
            let argument = |index| self.joined(index, usize::MAX);
            let mut add = |name: &str, value| facts.push(self.fact(index, name, value));
            match function.to_ascii_lowercase().as_str() {
                "ini_set" | "ini_alter" => {
                    let name = argument(index + 2).filter(|name| SETTINGS.contains(&&**name));
                    let value = argument(index + 4).filter(|_| self.is_mark(index + 3, ','));
                    _ = name.map(|name| add(&name, value));
                }
                "session_name" => add("session.name", argument(index + 2)),
                "session_save_path" => add("session.save_path", argument(index + 2)),
                "date_default_timezone_set" => add("date.timezone", argument(index + 2)),
                "session_module_name" | "session_set_save_handler" => {
                    add("session.save_handler", None)
                }
                // Its options, `['name' => …]`
                "session_start" => (index + 3..self.end(index + 2)).for_each(|key| {
                    let option = self.at(key).filter(|_| self.is_mark(key + 1, '='));
                    let Some(Text(option)) = option else { return };
                    let name = format!("session.{option}");
                    if SETTINGS.contains(&&*name) {
                        add(&name, argument(key + 3));
                    }
                }),
                _ => {}
            }
        }
        facts
    }

    /// What comedor's script says: service, data folder, a database.
    pub fn of_script(&self) -> Vec<Fact> {
        let mut facts = Vec::new();
        for (index, (_, token)) in self.tokens.iter().enumerate() {
            match token {
                Text(text) if text.ends_with(":docente") => {
                    let service =
                        text.strip_suffix(":docente").filter(|service| Id::parse(service).is_ok());
                    facts.push(self.fact(index, SERVICE, service.map(str::to_owned)));
                }
                Text(text) if text.contains("/Centros") => {
                    let mut start = index;
                    while start >= 2 && self.is_mark(start - 1, '.') && index - start < MAX_TOKENS {
                        start -= 2;
                    }
                    let path = self.joined(start, index);
                    let folder =
                        path.as_deref().and_then(|path| Some(path.rsplit_once("/Centros")?.0));
                    let folder =
                        folder.filter(|folder| folder.starts_with('/') && !folder.contains('$'));
                    facts.push(self.fact(index, DATA, folder.map(normalized)));
                }
                Word(name) if DATABASES.contains(&name.to_ascii_lowercase().as_str()) => {
                    facts.push(self.fact(index, DATABASE, Some(name.clone())));
                }
                _ => {}
            }
        }
        facts
    }

    /// The last strings in the names of the files that it includes.
    pub fn included(&self) -> Vec<String> {
        let is_include = |&index: &usize| match self.at(index) {
            Some(Word(word)) => INCLUDES.contains(&&**word),
            _ => false,
        };
        let last_text = |index| {
            (index..self.end(index)).rev().find_map(|index| match self.at(index) {
                Some(Text(text)) => Some(text.clone()),
                _ => None,
            })
        };
        (0..self.tokens.len()).filter(is_include).filter_map(last_text).collect()
    }
}

/// `path` without `.` and `..`
fn normalized(path: &str) -> String {
    let mut folders = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => _ = folders.pop(),
            Component::CurDir => {}
            part => folders.push(part),
        }
    }
    folders.display().to_string()
}
