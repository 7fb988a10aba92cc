//! The values of PHP's session settings, parsed. An error says what is expected.

use super::text::parse_digits;

/// PHP's `session.serialize_handler`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Format {
    /// `php`, the default: `key|value` …
    Php,
    /// `php_serialize`: one serialized array
    PhpSerialize,
    /// `php_binary`: a length byte, key, value …
    PhpBinary,
}

impl Format {
    pub fn parse(text: &str) -> Result<Format, &'static str> {
        match text {
            "php" => Ok(Format::Php),
            "php_serialize" => Ok(Format::PhpSerialize),
            "php_binary" => Ok(Format::PhpBinary),
            _ => Err("php, php_serialize or php_binary"),
        }
    }
}

/// `session.name`. PHP rejects a number, and characters that are invalid in the name of a cookie
/// (ext/session/session.c, `OnUpdateName`).
pub fn parse_name(text: &str) -> Result<String, &'static str> {
    let is_invalid = |c| matches!(c, '=' | ',' | ';' | '.' | '[' | ' ' | '\t'..='\r');
    let is_name = text.contains(|c: char| !c.is_ascii_digit()) && !text.contains(is_invalid);
    is_name
        .then(|| text.to_owned())
        .ok_or("a name that PHP accepts as session.name")
}

/// `session.gc_maxlifetime`. phpredis replaces any other value (`session_gc_maxlifetime`).
pub fn parse_lifetime(text: &str) -> Result<u32, &'static str> {
    let seconds = parse_digits(text).filter(|seconds| (1..=i32::MAX as u32).contains(seconds));
    seconds.ok_or("a number of seconds from 1 to 2147483647")
}
