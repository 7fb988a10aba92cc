//! The values of PHP's session settings, parsed.

use std::str::FromStr;
use std::time::Duration;

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
    /// Its name in PHP's settings.
    pub fn name(self) -> &'static str {
        match self {
            Format::Php => "php",
            Format::PhpSerialize => "php_serialize",
            Format::PhpBinary => "php_binary",
        }
    }

    pub fn parse(text: &str) -> Option<Format> {
        let formats = [Format::Php, Format::PhpSerialize, Format::PhpBinary];
        formats.into_iter().find(|format| format.name() == text)
    }
}

/// `session.name`. PHP rejects a number, and characters that are invalid in the name of a cookie
/// (ext/session/session.c, `OnUpdateName`).
pub fn parse_name(text: &str) -> Option<String> {
    let refused = |c| matches!(c, '=' | ',' | ';' | '.' | '[' | ' ' | '\t'..='\r');
    (text.contains(|c: char| !c.is_ascii_digit()) && !text.contains(refused))
        .then(|| text.to_owned())
}

/// A number of seconds; empty for no limit.
pub fn parse_max_age(text: &str) -> Option<Option<Duration>> {
    if text.is_empty() {
        return Some(None);
    }
    parse_number(text).map(|seconds| Some(Duration::from_secs(seconds)))
}

/// `session.gc_maxlifetime`. phpredis replaces a value outside of these limits
/// (`session_gc_maxlifetime`).
pub fn parse_lifetime(text: &str) -> Option<u32> {
    parse_number(text).filter(|seconds| (1..=i32::MAX as u32).contains(seconds))
}

/// A number in digits only: [`str::parse`] accepts a sign.
pub fn parse_number<N: FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
