//! The session's id out of the `Cookie` header, as PHP finds it (main/php_variables.c,
//! `php_default_treat_data`; ext/session/session.c, `php_session_initialize`).

use percent_encoding::percent_decode;

use crate::cgi::form::php_name;

/// The longest id that PHP takes (`PS_MAX_SID_LENGTH`).
const MAX_ID: usize = 256;

/// The id in the cookie `name` of the `header`. `None` where there is none or where it can't
/// be one: the first cookie of the name counts, even when it is empty; a cookie `name[…]`
/// anywhere makes the name an array, which is no id.
pub fn session_id(header: &[u8], name: &str) -> Option<SessionId> {
    let mut value = None;
    for cookie in header.split(|&byte| byte == b';') {
        let equals = cookie.iter().position(|&byte| byte == b'=');
        let (key, text) = cookie.split_at(equals.unwrap_or(cookie.len()));
        let key = String::from_utf8_lossy(key);
        let blank = |c: char| matches!(c, ' ' | '\t'..='\r');
        match php_name(key.trim_start_matches(blank)) {
            (base, path) if base == name && path.is_empty() => {
                value = value.or(Some(text.strip_prefix(b"=").unwrap_or_default()));
            }
            (base, _) if base == name => return None,
            _ => {}
        }
    }
    let id: Vec<u8> = percent_decode(value?).collect();
    SessionId::new(String::from_utf8(id).ok()?)
}

/// An id that PHP takes, which can be a part of a path.
#[derive(Debug)]
pub struct SessionId(String);

impl SessionId {
    /// Takes 1 to 256 of `A-Z a-z 0-9 , -`.
    pub fn new(text: String) -> Option<SessionId> {
        let is_id = (1..=MAX_ID).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b',' | b'-'));
        is_id.then_some(SessionId(text))
    }

    /// Its characters
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("PHPSESSID=%ff", None),
            ("", None),
        ] {
            let found = session_id(header.as_bytes(), "PHPSESSID");
            assert_eq!(found.as_ref().map(SessionId::as_str), id, "{header}");
        }
        let id = |header: &[u8]| session_id(header, "my_sid").map(|id| id.as_str().to_owned());
        assert_eq!(id(b"my.sid=a; my_sid=b"), Some("a".to_owned()));
        assert_eq!(id(b"\x0bmy sid=a"), Some("a".to_owned()));
        for (length, is_id) in [(256, true), (257, false)] {
            let header = format!("S={}", "a".repeat(length));
            assert_eq!(session_id(header.as_bytes(), "S").is_some(), is_id);
        }
    }
}
