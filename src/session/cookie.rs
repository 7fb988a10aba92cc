//! The session's id out of the `Cookie` header, as PHP finds it (main/php_variables.c,
//! `php_default_treat_data`; ext/session/session.c, `php_session_initialize`).

use percent_encoding::percent_decode;

/// The longest id that PHP takes (`PS_MAX_SID_LENGTH`).
const MAX_ID: usize = 256;

/// The id in the cookie `name` of the `header`. `None` where there is none or where it can't
/// be one: the first cookie of the name counts, even when it is empty; a cookie `name[…]`
/// anywhere makes the name an array, which is no id.
pub fn session_id(header: &[u8], name: &str) -> Option<SessionId> {
    let mut value = None;
    for cookie in header.split(|&byte| byte == b';') {
        let cookie = cookie.trim_ascii_start();
        let equals = cookie.iter().position(|&byte| byte == b'=');
        let (key, text) = cookie.split_at(equals.unwrap_or(cookie.len()));
        match key.strip_prefix(name.as_bytes()) {
            Some(b"") => value = value.or(Some(text.strip_prefix(b"=").unwrap_or_default())),
            Some([b'[', bracket @ ..]) if bracket.contains(&b']') => return None,
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
        for (length, is_id) in [(256, true), (257, false)] {
            let header = format!("S={}", "a".repeat(length));
            assert_eq!(session_id(header.as_bytes(), "S").is_some(), is_id);
        }
    }
}
