//! `name=value&…` as PHP takes it apart (main/php_variables.c): query strings and form
//! bodies. serde_urlencoded decodes; PHP's names, brackets and all, are made sense of here.

use std::borrow::Cow;

use percent_encoding::percent_decode;

use crate::json::{Map, Value};

/// The most fields that are taken; PHP's `max_input_vars`.
const MAX_FIELDS: usize = 1000;

/// The deepest brackets that are taken; PHP's `max_input_nesting_level`.
const MAX_NESTING: usize = 64;

/// Decoded fields in the order they came.
#[derive(Debug, Default)]
pub struct Form(Vec<(String, String)>);

impl Form {
    /// Decodes `bytes`; what is no UTF-8 turns into U+FFFD.
    pub fn lossy(bytes: &[u8]) -> Form {
        Form(serde_urlencoded::from_bytes(bytes).expect("every byte string is a list of pairs"))
    }

    /// Decodes `bytes`, all of which must be UTF-8.
    pub fn utf8(bytes: &[u8]) -> Option<Form> {
        // Fields end at ASCII characters, so they are UTF-8 together or not at all.
        percent_decode(bytes).decode_utf8().ok()?;
        Some(Form::lossy(bytes))
    }

    /// A form of fields that are decoded already.
    pub fn from_fields(fields: Vec<(String, String)>) -> Form {
        Form(fields)
    }

    /// The value of the last field `name`. A name with brackets is another name.
    pub fn last(&self, name: &str) -> Option<&str> {
        let last = self.0.iter().rfind(|(key, _)| {
            let (base, path) = php_name(key);
            path.is_empty() && base == name
        });
        last.map(|(_, value)| value.as_str())
    }

    /// The fields as `$_POST` shows them: `plates[primero][name]=x` nests, of several fields
    /// of one name the last counts, one that nests too deeply is passed over. Refuses more than
    /// [`MAX_FIELDS`]: PHP would drop the rest.
    pub fn nested(self) -> Option<Map> {
        if self.0.len() > MAX_FIELDS {
            return None;
        }
        let mut map = Map::new();
        for (name, value) in self.0 {
            let (base, path) = php_name(&name);
            if base.is_empty() || path.len() > MAX_NESTING {
                continue;
            }
            let mut place = map.entry(base.into_owned());
            for key in path {
                let inner = place.coerce_to_map();
                let key = if key.is_empty() { next_index(inner) } else { key.to_owned() };
                place = inner.entry(key);
            }
            *place = Value::String(value);
        }
        Some(map)
    }
}

/// The key that PHP gives to the next element of `a[]`.
fn next_index(map: &Map) -> String {
    let indices =
        map.iter().filter_map(|(key, _)| key.parse::<u64>().ok().filter(|n| n.to_string() == *key));
    indices.max().map_or(0, |last| last.saturating_add(1)).to_string()
}

/// A field's name, empty where it has none, and the keys in its brackets
/// (`php_register_variable_ex`): cut at a NUL,
/// without leading spaces, with `_` for a space, a dot and an unclosed first bracket. What
/// follows a closed bracket and is no bracket is dropped. Cookies have the same names.
pub fn php_name(name: &str) -> (Cow<'_, str>, Vec<&str>) {
    if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return (name.into(), Vec::new());
    }
    let name = name.split('\0').next().unwrap_or_default();
    let name = name.trim_start_matches(' ');
    if name.starts_with('[') {
        return ("".into(), Vec::new());
    }
    let Some((base, mut rest)) = name.split_once('[') else {
        return (plain(name.into()), Vec::new());
    };
    let mut path = Vec::new();
    while let Some((key, behind)) = rest.split_once(']') {
        // A blank index is none.
        path.push(if matches!(key, " " | "\t" | "\n" | "\r" | "\x0b" | "\x0c") { "" } else { key });
        match behind.strip_prefix('[') {
            Some(next) => rest = next,
            None => return (plain(base.into()), path),
        }
    }
    if path.is_empty() {
        return (plain(name.replace('[', "_").into()), path);
    }
    (plain(base.into()), path)
}

fn plain(name: Cow<str>) -> Cow<str> {
    if name.contains([' ', '.']) {
        return name.replace([' ', '.'], "_").into();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What php-cgi 8.2 showed as `$_GET`.
    #[test]
    fn names_are_php_s() {
        for (query, expected) in [
            ("a%00b=1", r#"{"a":"1"}"#),
            ("[a]=x", "{}"),
            ("=x", "{}"),
            ("a[b=1", r#"{"a_b":"1"}"#),
            ("a[b][c=1", r#"{"a":{"b":"1"}}"#),
            ("%20a.b=1", r#"{"a_b":"1"}"#),
            ("a b[c d]=1", r#"{"a_b":{"c d":"1"}}"#),
            ("a[b.c]=1", r#"{"a":{"b.c":"1"}}"#),
            ("a[b]c[d]=1", r#"{"a":{"b":"1"}}"#),
            ("a[]=1&a[]=2&a[x]=3", r#"{"a":{"0":"1","1":"2","x":"3"}}"#),
            ("a[01]=1&a[]=2", r#"{"a":{"01":"1","0":"2"}}"#),
            ("a[ ]=1&[b=2", r#"{"a":{"0":"1"}}"#),
            ("a[b[c=1", r#"{"a_b_c":"1"}"#),
            ("a[5]=1&a[]=2", r#"{"a":{"5":"1","6":"2"}}"#),
            ("a=1&a[b]=2", r#"{"a":{"b":"2"}}"#),
            ("a[b]=1&a=2", r#"{"a":"2"}"#),
            ("a]=1", r#"{"a]":"1"}"#),
            ("a[[b]=1", r#"{"a":{"[b":"1"}}"#),
            ("&&a", r#"{"a":""}"#),
            ("+a=1+2%2B%zz&a%5Bb%5D=3", r#"{"a":{"b":"3"}}"#),
            ("b=1+2%2B%zz", r#"{"b":"1 2+%zz"}"#),
        ] {
            let map = Form::utf8(query.as_bytes()).unwrap().nested().unwrap();
            let expected = Value::parse(expected.as_bytes()).unwrap();
            assert_eq!(Value::Map(map), expected, "{query}");
        }
    }

    #[test]
    fn the_last_field_of_a_name_counts_and_brackets_make_another_name() {
        let form = Form::lossy(b"aulario=a&aulario=b&aulario[]=c&Aulario=d");
        assert_eq!(form.last("aulario"), Some("b"));
        assert_eq!(form.last("menu"), None);
    }

    #[test]
    fn what_is_no_utf8_or_too_much_is_refused() {
        assert!(Form::utf8(b"a=%ff").is_none());
        assert!(Form::utf8(b"a=\xff").is_none());
        assert!(Form::utf8("a=%C3%B1ñ".as_bytes()).is_some());
        let many = "a=1&".repeat(MAX_FIELDS + 1);
        assert!(Form::utf8(many.as_bytes()).unwrap().nested().is_none());
    }
}
