//! The session id in the `Cookie` header, found as PHP finds it (main/php_variables.c,
//! `php_default_treat_data`; ext/session/session.c, `php_session_initialize`).

use percent_encoding::percent_decode;

use crate::php::form::{MAX_PAIRS, Name};

/// The longest id that PHP accepts (`PS_MAX_SID_LENGTH`)
pub const MAX_ID: usize = 256;

/// The id in the cookie `name` of the `header`. `None` if the cookie is absent or its id is invalid.
/// The first cookie of this name counts, even if it is empty. If there is also a cookie `name[…]`,
/// the value is an array for PHP, so there is no id. Cookies after the first thousand are ignored.
pub fn session_id(header: &[u8], name: &str) -> Option<SessionId> {
    let cookies = header.split(|&byte| byte == b';').filter_map(|cookie| {
        let start = cookie
            .iter()
            .position(|&byte| !matches!(byte, b' ' | b'\t'..=b'\r'))?;
        let mut parts = cookie[start..].splitn(2, |&byte| byte == b'=');
        // PHP does not count a cookie without a name.
        let name = parts.next().filter(|name| !name.is_empty())?;
        Some((name, parts.next().unwrap_or_default()))
    });
    let mut found = None;
    for (sent, value) in cookies.take(MAX_PAIRS) {
        let sent = String::from_utf8_lossy(sent);
        // The configured name cannot contain a character that PHP replaces.
        let Name { base, keys } = Name::parse(&sent);
        if base == name {
            found = found.or(Some(value));
            if !keys.is_empty() {
                return None;
            }
        }
    }
    let id: Vec<u8> = percent_decode(found?).collect();
    SessionId::new(String::from_utf8(id).ok()?)
}

/// A valid id, safe as a part of a path.
#[derive(Debug)]
pub struct SessionId(String);

impl SessionId {
    /// Accepts 1 to 256 of `A-Z a-z 0-9 , -`.
    pub fn new(text: String) -> Option<SessionId> {
        let is_id = (1..=MAX_ID).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b',' | b'-'));
        is_id.then_some(SessionId(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The start of the id, for the log: with the whole, a reader of the log could act as the user.
    pub fn shortened(&self) -> String {
        format!("{}…", self.0.get(..4).unwrap_or(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_four_characters_of_an_id_at_most() {
        for (id, shortened) in [("abcdefgh", "abcd…"), ("abc", "abc…")] {
            let id = SessionId::new(id.to_owned()).unwrap();
            assert_eq!(id.shortened(), shortened);
        }
    }

    #[test]
    fn the_id_is_found_as_php_finds_it() {
        for (header, id) in [
            ("PHPSESSID=abc", Some("abc")),
            ("a=b; PHPSESSID=abc;c", Some("abc")),
            ("PHPSESSID=a%2Cb%2d", Some("a,b-")),
            ("PHPSESSID=abc; PHPSESSID=def", Some("abc")),
            ("PHPSESSID=; PHPSESSID=def", None),
            ("PHPSESSID; PHPSESSID=def", None),
            ("phpsessid=abc", None),
            ("PHPSESSID =abc", None),
            ("xPHPSESSID=abc", None),
            ("PHPSESSIDx=abc", None),
            ("PHPSESSID[]=abc", None),
            ("PHPSESSID=abc; PHPSESSID[x]=def", None),
            ("PHPSESSID=abc; PHPSESSID[x=def", Some("abc")),
            ("PHPSESSID=abc ", None),
            ("PHPSESSID=\"abc\"", None),
            ("PHPSESSID=a+b", None),
            ("PHPSESSID=abc%00", None),
            ("PHPSESSID=../abc", None),
            ("PHPSESSID=abc_LOCK", None),
            ("PHPSESSID=a:b", None),
            ("PHPSESSID=%ff", None),
            (";; =x; = y;PHPSESSID=abc", Some("abc")),
            (" \t\n\x0b\x0c\rPHPSESSID=abc", Some("abc")),
            ("", None),
        ] {
            let found = session_id(header.as_bytes(), "PHPSESSID");
            assert_eq!(found.as_ref().map(SessionId::as_str), id, "{header}");
        }
    }

    #[test]
    fn a_name_that_php_changes_is_found_unless_it_gets_a_reserved_prefix() {
        for (name, header, id) in [
            ("my_sid", "my.sid=a; my_sid=b", Some("a")),
            ("my_sid", "\x0bmy sid=a", Some("a")),
            (
                "__Host-SID",
                " __Host-SID=a; _.Host-SID=b; _.Host-SID[]=b",
                Some("a"),
            ),
            ("__Host-SID", ". Host-SID=a", None),
        ] {
            let found = session_id(header.as_bytes(), name);
            assert_eq!(found.as_ref().map(SessionId::as_str), id, "{header}");
        }
    }

    #[test]
    fn the_first_1000_cookies_count_and_an_id_has_at_most_256_characters() {
        for (before, count, is_found) in [
            ("a=1;", 999, true),
            ("a=1;", 1000, false),
            ("a;", 1000, false),
            ("=1; ;", 1000, true),
        ] {
            let header = format!("{}S=a", before.repeat(count));
            assert_eq!(
                session_id(header.as_bytes(), "S").is_some(),
                is_found,
                "{before} {count}"
            );
        }
        for (length, is_id) in [(256, true), (257, false)] {
            let header = format!("S={}", "a".repeat(length));
            assert_eq!(session_id(header.as_bytes(), "S").is_some(), is_id);
        }
    }
}
