//! `multipart/form-data` (RFC 7578) of a body that is in memory. Files are passed over: the
//! API takes none.

/// The fields of `body`, whose Content-Type is `content_type`. `None` where either is
/// malformed or a field is no UTF-8.
pub fn fields(content_type: &[u8], body: &[u8]) -> Option<Vec<(String, String)>> {
    let boundary = parameter(content_type, b"boundary").filter(|b| !b.is_empty())?;
    let delimiter = [b"\r\n--".as_slice(), &boundary].concat();
    // The first delimiter has its line break in front of the body, or behind a preamble
    // (RFC 2046 §5.1.1).
    let mut rest = match body.strip_prefix(&delimiter[2..]) {
        Some(rest) => rest,
        None => split_at(body, &delimiter)?.1,
    };
    let mut fields = Vec::new();
    loop {
        if rest.starts_with(b"--") {
            return Some(fields);
        }
        let (padding, part) = split_at(rest, b"\r\n")?;
        if !padding.iter().all(|byte| matches!(byte, b' ' | b'\t')) {
            return None;
        }
        // A part may have no header at all; then its blank line follows at once.
        let (headers, part) = match part.strip_prefix(b"\r\n") {
            Some(part) => (b"".as_slice(), part),
            None => split_at(part, b"\r\n\r\n")?,
        };
        let (value, behind) = split_at(part, &delimiter)?;
        rest = behind;
        let disposition = disposition(headers)?;
        if parameter(disposition, b"filename").is_none() {
            let name = parameter(disposition, b"name")?;
            fields.push((String::from_utf8(name).ok()?, String::from_utf8(value.to_vec()).ok()?));
        }
    }
}

/// The value of the part's `Content-Disposition` header.
fn disposition(headers: &[u8]) -> Option<&[u8]> {
    let mut rest = headers;
    loop {
        let (line, behind) = split_at(rest, b"\r\n").unwrap_or((rest, b""));
        let (name, value) = split_at(line, b":")?;
        if name.eq_ignore_ascii_case(b"content-disposition") {
            return Some(value);
        }
        rest = behind;
    }
}

/// The parameter `name` of a header's value: `…; name=token` or `…; name="quoted"`, where a
/// backslash escapes a quote or itself (RFC 9110 §5.6.6).
fn parameter(header: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let mut rest = split_at(header, b";")?.1;
    loop {
        // A parameter without a value is passed over.
        let key_end = rest.iter().position(|byte| matches!(byte, b'=' | b';'))?;
        if rest[key_end] == b';' {
            rest = &rest[key_end + 1..];
            continue;
        }
        let (key, behind) = (&rest[..key_end], &rest[key_end + 1..]);
        let (value, behind) = match behind.strip_prefix(b"\"") {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let end = behind.iter().position(|byte| matches!(byte, b';' | b','));
                let (token, behind) = behind.split_at(end.unwrap_or(behind.len()));
                (token.trim_ascii().to_vec(), behind)
            }
        };
        if key.trim_ascii().eq_ignore_ascii_case(name) {
            return Some(value);
        }
        rest = split_at(behind, b";")?.1;
    }
}

/// The text up to the closing quote, and what is behind that. Browsers escape no backslash, so one
/// in front of the last quote is the text's own.
fn unquoted(quoted: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut text = Vec::new();
    let mut rest = quoted;
    loop {
        (text, rest) = match rest {
            [b'"', behind @ ..] => return Some((text, behind)),
            [b'\\', b'"'] => {
                text.push(b'\\');
                return Some((text, b""));
            }
            [b'\\', byte @ (b'"' | b'\\'), behind @ ..] | [byte, behind @ ..] => {
                text.push(*byte);
                (text, behind)
            }
            [] => return None,
        };
    }
}

/// What stands before and behind the first `separator`.
fn split_at<'b>(bytes: &'b [u8], separator: &[u8]) -> Option<(&'b [u8], &'b [u8])> {
    let at = bytes.windows(separator.len()).position(|window| window == separator)?;
    Some((&bytes[..at], &bytes[at + separator.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &[u8] = b"multipart/form-data; charset=utf-8; boundary=\"x y\"";

    fn read(body: &str) -> Option<Vec<(String, String)>> {
        fields(TYPE, body.as_bytes())
    }

    fn pairs(pairs: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        let pairs = pairs.iter();
        Some(pairs.map(|&(k, v)| (k.into(), v.into())).collect())
    }

    #[test]
    fn fields_are_read_and_files_passed_over() {
        for (body, expected) in [
            (
                "--x y\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\nb\r\n--x y--\r\n",
                pairs(&[("id", "b")]),
            ),
            (
                "preamble\r\n--x y \r\ncontent-type: text/plain\r\nCONTENT-DISPOSITION:form-data;x;name=a\r\n\r\n\r\n1\r\n\r\n--x y\r\n\
                 Content-Disposition: form-data; name=\"f\"; filename=\"\"\r\n\r\nxx\r\n--x y\r\n\
                 Content-Disposition: form-data; name=\"p[\\\"a\\\\]\"\r\n\r\n--x\r\n--x y--epilogue",
                pairs(&[("a", "\r\n1\r\n"), ("p[\"a\\]", "--x")]),
            ),
            (
                "--x y\r\nContent-Disposition: form-data; name=\"a\\\"\r\n\r\n1\r\n--x y--",
                pairs(&[("a\\", "1")]),
            ),
            ("--x y--", pairs(&[])),
        ] {
            assert_eq!(read(body), expected, "{body}");
        }
    }

    #[test]
    fn what_is_malformed_is_refused() {
        for body in [
            "",
            "--x y",
            "--x y\r\n",
            "--x y\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\nb",
            "--x y\r\nContent-Disposition: form-data; name=\"id\r\n\r\nb\r\n--x y--",
            "--x y\r\nContent-Disposition: form-data\r\n\r\nb\r\n--x y--",
            "--x y\r\n\r\nb\r\n--x y--",
            "--x yz\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\nb\r\n--x y--",
        ] {
            assert_eq!(read(body), None, "{body}");
        }
        assert_eq!(fields(b"multipart/form-data", b"--x--"), None);
        assert_eq!(fields(b"multipart/form-data; boundary=", b"----"), None);
    }
}
