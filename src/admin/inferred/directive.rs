//! The lines of a web server's configuration, as a tree: the form that Apache's and nginx's share.

use super::Place;

/// `name word word…;`, and what is inside of it if it is a section
#[derive(Clone, Debug, Default)]
pub struct Directive {
    /// In lower case
    pub name: String,
    pub words: Vec<String>,
    pub place: Place,
    pub inside: Vec<Directive>,
}

/// Directives with an expression, which is not evaluated.
const WITH_EXPRESSION: [&str; 6] =
    ["aliasmatch", "locationmatch", "proxypassmatch", "rewrite", "rewriterule", "scriptaliasmatch"];

impl Directive {
    pub fn word(&self, index: usize) -> &str {
        self.words.get(index).map_or("", String::as_str)
    }

    /// Whether it has an expression that may match the path of the script.
    pub fn may_match(&self) -> bool {
        let is_about = |part: &&str| self.word(0).contains(part);
        WITH_EXPRESSION.contains(&&*self.name) && ["comedor", "\\.php"].iter().any(is_about)
    }
}

/// The directives `name`.
pub fn named<'d>(
    list: impl IntoIterator<Item = &'d Directive>,
    name: &str,
) -> impl Iterator<Item = &'d Directive> {
    list.into_iter().filter(move |directive| directive.name == name)
}

/// The last directive `name`: later ones replace earlier ones.
pub fn last<'d>(
    list: impl IntoIterator<Item = &'d Directive>,
    name: &str,
) -> Option<&'d Directive> {
    named(list, name).last()
}

/// All directives, each before those inside of it.
pub fn all(list: &[Directive]) -> Vec<&Directive> {
    list.iter().flat_map(|line| [vec![line], all(&line.inside)].concat()).collect()
}

/// The string that `text` starts with, in quotes, and the number of its bytes. A backslash stands for itself,
/// but before a quote or another one (`ap_getword_conf`, `ngx_conf_read_token`, strings of PHP).
pub fn quoted(text: &str) -> (String, usize) {
    let (mut string, mut is_escaped, quote) = (String::new(), false, text.chars().next());
    for (index, c) in text.char_indices().skip(1) {
        if Some(c) == quote && !is_escaped {
            return (string, index + 1);
        }
        if is_escaped && !matches!(c, '"' | '\'' | '\\') {
            string.push('\\');
        }
        is_escaped = c == '\\' && !is_escaped;
        if !is_escaped {
            string.push(c);
        }
    }
    (string, text.len())
}

/// Whether the URL path `path` is `prefix` or below it.
pub fn is_below(path: &str, prefix: &str) -> bool {
    let rest = path.strip_prefix(prefix.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
