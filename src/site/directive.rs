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

impl Directive {
    pub fn word(&self, index: usize) -> &str {
        self.words.get(index).map_or("", String::as_str)
    }

    pub fn is(&self, name: &str) -> bool {
        self.name == name
    }
}

/// The first word of the last directive `name`: later ones replace earlier ones.
pub fn last<'d>(
    list: impl IntoIterator<Item = &'d Directive>,
    name: &str,
) -> Option<&'d Directive> {
    list.into_iter().filter(|directive| directive.is(name)).last()
}

/// Whether the URL path `path` is `prefix` or below it.
pub fn is_below(path: &str, prefix: &str) -> bool {
    let rest = path.strip_prefix(prefix.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
