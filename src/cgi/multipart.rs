//! `multipart/form-data` (RFC 7578) of a body in memory. File parts are ignored.

use crate::php::form::Form;

/// Decodes `body`, whose Content-Type is `content_type`. `None` if either is malformed, or the
/// form has too many parts or is not valid UTF-8.
pub fn parse(content_type: &[u8], body: &[u8]) -> Option<Form> {
    let content_type = str::from_utf8(content_type).ok()?;
    let boundary = parameter(content_type, "boundary").filter(|text| !text.is_empty())?;
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    // The line break of the first delimiter is missing, or ends a preamble (RFC 2046 §5.1.1).
    let body = [b"\r\n", body].concat();
    let (_, mut rest) = split_at(&body, &delimiter)?;
    let mut form = Form::default();
    while !rest.starts_with(b"--") {
        let (head, part) = split_at(rest, b"\r\n\r\n")?;
        let (value, after) = split_at(part, &delimiter)?;
        let (padding, headers) = str::from_utf8(head).ok()?.split_once("\r\n")?;
        if !padding.trim_matches([' ', '\t']).is_empty() {
            return None;
        }
        let mut headers = headers.split("\r\n").map_while(|line| line.split_once(':'));
        let (_, disposition) =
            headers.find(|(name, _)| name.eq_ignore_ascii_case("content-disposition"))?;
        if parameter(disposition, "filename").is_none() {
            let name = parameter(disposition, "name")?;
            form.push(name, String::from_utf8(value.to_vec()).ok()?)?;
        }
        rest = after;
    }
    Some(form)
}

/// The parameter `name` of a header's value: `…; name=token` or `…; name="quoted"`, where a
/// backslash escapes a quote or itself (RFC 9110 §5.6.6).
fn parameter(header: &str, name: &str) -> Option<String> {
    let mut rest = header;
    loop {
        rest = rest.split_once(';')?.1;
        let (key, after) = rest.split_at(rest.find(['=', ';'])?);
        // A parameter without a value is skipped.
        let Some(after) = after.strip_prefix('=') else {
            continue;
        };
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let (token, after) = after.split_at(after.find([';', ',']).unwrap_or(after.len()));
                (token.trim_ascii().to_owned(), after)
            }
        };
        if key.trim_ascii().eq_ignore_ascii_case(name) {
            return Some(value);
        }
        rest = after;
    }
}

/// The text up to the closing quote, and the rest. Browsers do not escape a backslash, so a backslash
/// before the last quote is part of the text.
fn unquoted(quoted: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut rest = quoted.chars();
    loop {
        match (rest.next()?, rest.as_str()) {
            ('"', after) => return Some((text, after)),
            ('\\', after) if after.starts_with(['"', '\\']) && after != "\"" => {
                text.extend(rest.next())
            }
            (c, _) => text.push(c),
        }
    }
}

/// The bytes before and after the first `separator`.
fn split_at<'b>(bytes: &'b [u8], separator: &[u8]) -> Option<(&'b [u8], &'b [u8])> {
    let at = bytes
        .windows(separator.len())
        .position(|window| window == separator)?;
    Some((&bytes[..at], &bytes[at + separator.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &[u8] = b"multipart/form-data; charset=utf-8; boundary=\"x y\"";

    fn read(body: &str) -> Option<Form> {
        parse(TYPE, body.as_bytes())
    }

    #[test]
    fn pairs_are_decoded_and_files_ignored() {
        for (body, expected) in [
            (
                "--x y\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\nb\r\n--x y--\r\n",
                "id=b",
            ),
            (
                "preamble\r\n--x y \r\ncontent-type: text/plain\r\nCONTENT-DISPOSITION:form-data;x;name=a\r\n\r\n\r\n1\r\n\r\n--x y\r\n\
                 Content-Disposition: form-data; name=\"f\"; filename=\"\n\"\r\n\r\nxx\r\n--x y\r\n\
                 Content-Disposition: form-data; name=\"p[\\\"a\\\\]\"\r\n\r\n--x\r\n--x y--epilogue",
                r#"a=%0D%0A1%0D%0A&p["a\]=--x"#,
            ),
            (
                "--x y\r\nContent-Disposition: form-data; name=\"a\\\"\r\n\r\n1\r\n--x y--",
                r"a\=1",
            ),
            ("--x y--", ""),
        ] {
            assert_eq!(read(body), Form::from_body(expected.as_bytes()), "{body}");
        }
    }

    #[test]
    fn malformed_bodies_are_refused() {
        for body in [
            "",
            "--x y",
            "--x y\r\n",
            "--x y\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\nb",
            "--x y\r\nContent-Disposition: form-data; name=\"id\r\n\r\nb\r\n--x y--",
            "--x y\r\nContent-Disposition: form-data\r\n\r\nb\r\n--x y--",
            "--x y\r\nContent\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\nb\r\n--x y--",
            "--x y\r\n\r\nb\r\n--x y--",
            "--x yz\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\nb\r\n--x y--",
        ] {
            assert_eq!(read(body), None, "{body}");
        }
        let part = |_| "--x y\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n";
        let parts = |count| format!("{}--x y--", (0..count).map(part).collect::<String>());
        assert!(read(&parts(1000)).is_some());
        assert_eq!(read(&parts(1001)), None);
        assert_eq!(parse(b"multipart/form-data", b"--x--"), None);
        assert_eq!(parse(b"multipart/form-data; boundary=", b"----"), None);
    }
}
