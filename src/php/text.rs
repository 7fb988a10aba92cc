//! `trim`, `basename` and digits as PHP has them.

use std::str::FromStr;

/// `trim()`
pub fn trim(text: &str) -> &str {
    text.trim_matches(['\0', '\t', '\n', '\x0b', '\r', ' '])
}

/// `basename()`
pub fn basename(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit('/').next().unwrap_or_default()
}

/// A number for which `ctype_digit()` is true: [`str::parse`] accepts a sign.
pub fn parse_digits<N: FromStr>(text: &str) -> Option<N> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}
