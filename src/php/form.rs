//! `name=value&…` as PHP decodes it (main/php_variables.c): query strings and form bodies.
//! serde_urlencoded decodes the pairs; this module interprets PHP's names with brackets.

use std::borrow::Cow;

use percent_encoding::percent_decode;

use crate::php::json::{Map, Value};

/// PHP's `max_input_vars`: the maximum number of pairs in a query or form, and of cookies.
pub const MAX_PAIRS: usize = 1000;

/// PHP's `max_input_nesting_level`: the maximum number of brackets in a name.
const MAX_NESTING: usize = 64;

/// The decoded name-value pairs of a query or form, in the order sent.
#[derive(Debug, Default, PartialEq)]
pub struct Form(Vec<(String, String)>);

impl Form {
    /// Decodes a query string. PHP ignores pairs after `MAX_PAIRS`. Bytes that are not UTF-8 become U+FFFD.
    pub fn from_query(bytes: &[u8]) -> Form {
        let pairs = &bytes[..end_of_pairs(bytes).unwrap_or(bytes.len())];
        Form(serde_urlencoded::from_bytes(pairs).expect("any bytes are a list of pairs"))
    }

    /// Decodes a body. `None` if it has more than `MAX_PAIRS`, or is not valid UTF-8.
    pub fn from_body(bytes: &[u8]) -> Option<Form> {
        if end_of_pairs(bytes).is_some() {
            return None;
        }
        // Pairs are separated by ASCII characters, so one check of all bytes is equivalent.
        percent_decode(bytes).decode_utf8().ok()?;
        Some(Form::from_query(bytes))
    }

    /// Appends a pair. `None` if there are `MAX_PAIRS` already.
    pub fn push(&mut self, name: String, value: String) -> Option<()> {
        (self.0.len() < MAX_PAIRS).then(|| self.0.push((name, value)))
    }

    /// The last value of `name`, if it is not empty. A name with brackets is another name.
    pub fn last(&self, name: &str) -> Option<&str> {
        let last = self.0.iter().rfind(|(sent, _)| {
            let sent = Name::parse(sent);
            sent.keys.is_empty() && sent.base == name
        });
        last.map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// The pairs as in `$_POST`: `plates[primero][name]=x` makes nested maps, and the last pair of a
    /// name counts. `None` if they have more than `max_values`, each field and each bracket, and for a name
    /// that PHP refuses: with more than `MAX_NESTING` brackets, or for an element after the largest index.
    pub fn nested(self, mut max_values: usize) -> Option<Map> {
        let mut map = Map::default();
        for (name, value) in self.0 {
            let Name { base, keys } = Name::parse(&name);
            if base.is_empty() {
                continue;
            }
            if keys.len() > MAX_NESTING {
                return None;
            }
            max_values = max_values.checked_sub(1 + keys.len())?;
            let mut place = map.entry(base.into_owned());
            for key in keys {
                let inner = place.coerce_to_map();
                place = if key.is_empty() {
                    inner.entry(next_index(inner)?)
                } else {
                    inner.entry(key.to_owned())
                };
            }
            *place = Value::String(value);
        }
        Some(map)
    }
}

/// The offset of the first pair after `MAX_PAIRS`.
fn end_of_pairs(bytes: &[u8]) -> Option<usize> {
    let is_start = |at: &usize| bytes[*at] != b'&' && (*at == 0 || bytes[*at - 1] == b'&');
    (0..bytes.len()).filter(is_start).nth(MAX_PAIRS)
}

/// The key of the next element of `a[]`; `None` after the largest integer.
fn next_index(map: &Map) -> Option<String> {
    let index = |key: &str| key.parse::<i64>().ok().filter(|n| n.to_string() == key);
    let last = map.iter().filter_map(|(key, _)| index(key)).max();
    let next = last.map_or(Some(0), |last| last.checked_add(1))?;
    Some(next.to_string())
}

/// The name of a variable in a form, a query or a cookie.
#[derive(Debug)]
pub struct Name<'n> {
    /// Empty if PHP ignores the variable
    pub base: Cow<'n, str>,
    /// The text in each pair of brackets
    pub keys: Vec<&'n str>,
}

impl<'n> Name<'n> {
    /// Parses a name as PHP does (`php_register_variable_ex`). It ends at a NUL; leading spaces are dropped; a
    /// space, a dot and an unclosed first bracket become `_`; text after a closed bracket is dropped, unless it is
    /// another bracket.
    pub fn parse(text: &'n str) -> Name<'n> {
        let without_keys = |base| Name {
            base,
            keys: Vec::new(),
        };
        if text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return without_keys(text.into());
        }
        let text = text.split('\0').next().unwrap_or_default();
        let text = text.trim_start_matches(' ');
        if text.starts_with('[') {
            return without_keys("".into());
        }
        let Some((base, mut brackets)) = text.split_once('[') else {
            return without_keys(plain(text));
        };
        let mut keys = Vec::new();
        while let Some((key, after)) = brackets.split_once(']') {
            // A blank index is the same as an empty one.
            let is_blank = matches!(key, " " | "\t" | "\n" | "\r" | "\x0b" | "\x0c");
            keys.push(if is_blank { "" } else { key });
            match after.strip_prefix('[') {
                Some(next) => brackets = next,
                None => break,
            }
        }
        let base = plain(if keys.is_empty() { text } else { base });
        Name { base, keys }
    }
}

/// A name without brackets. Empty if the name starts with a security prefix of cookies (`__Host-`,
/// `__Secure-`, RFC 6265bis §4.1.3) only because of the replacement.
fn plain(name: &str) -> Cow<'_, str> {
    if !name.contains([' ', '.', '[']) {
        return name.into();
    }
    let plain = name.replace([' ', '.', '['], "_");
    let is_forged = |prefix| plain.starts_with(prefix) && !name.starts_with(prefix);
    if ["__Host-", "__Secure-"].into_iter().any(is_forged) {
        "".into()
    } else {
        plain.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_limited_in_a_name_and_with_fields_in_a_form() {
        let is_accepted = |form: &str, max_values| {
            let form = Form::from_body(form.as_bytes()).expect("a form");
            form.nested(max_values).is_some()
        };
        let name_with = |brackets| format!("a{}=1", "[k]".repeat(brackets));
        assert!(is_accepted(&name_with(64), 1000));
        assert!(!is_accepted(&name_with(65), 1000));
        for (form, values) in [("a=1&b=2", 2), ("a[x][y]=1", 3), ("a[x]=1&b=2&c[]=3", 5)] {
            assert!(is_accepted(form, values), "{form}");
            assert!(!is_accepted(form, values - 1), "{form}");
        }
    }
}
