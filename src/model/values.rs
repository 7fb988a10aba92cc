//! Values that are validated once, by their parser, whose error says what is expected. Every value that
//! becomes part of a path or a key in a file has a type here.

use chrono::{Datelike, NaiveDate};

use crate::php::text::{basename, trim};

/// Defines a maximum, and the sentence that says it in the place of `_`.
macro_rules! limits {
    ($($(#[$doc:meta])* $max:ident = $value:literal, $expected:ident = $before:literal _ $after:literal;)*) => {
        $($(#[$doc])* const $max: usize = $value;
        const $expected: &str = concat!($before, $value, $after);)*
    };
}

// The limits of texts, which the API documents: far more than a page shows on a line, and few enough that a menu with the
// most plates fits twice into a body.
limits! {
    /// The maximum length of the id of a centre or an aulario, whose file with `.json` has a name of at most 255
    /// (NAME_MAX). EntreAulas' pages make ids of 68 and 78 characters from long names.
    MAX_ID = 250, EXPECTED_ID = "1 to " _ " characters A-Z a-z 0-9 . _ - and must not start with a dot";
    MAX_TYPE_ID = 64, EXPECTED_TYPE_ID = "at most " _ " characters long";
    MAX_LABEL = 200, EXPECTED_LABEL = "at most " _ " characters long";
    MAX_PLATE_KEY = 64, EXPECTED_PLATE_KEY = "1 to " _ " characters A-Z a-z 0-9 _ -";
    MAX_PLATE_NAME = 2000, EXPECTED_PLATE_NAME = "at most " _ " characters long";
}

/// The id of a centre or an aulario, safe as a path segment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(String);

impl Id {
    pub const EXPECTED: &str = EXPECTED_ID;

    pub fn parse(text: &str) -> Result<Id, &'static str> {
        let is_id = (1..=MAX_ID).contains(&text.len())
            && !text.starts_with('.')
            && text.chars().all(is_id_char);
        is_id.then(|| Id(text.to_owned())).ok_or(Id::EXPECTED)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_id_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// The id of a new menu type: trimmed, in lower case, reduced by PHP's `basename` and to valid characters.
#[derive(Debug)]
pub struct TypeId(String);

impl TypeId {
    /// `None` if no valid character is left.
    pub fn parse(text: &str) -> Result<Option<TypeId>, &'static str> {
        let id = TypeId::clean(&text.to_ascii_lowercase());
        match id.len() {
            0 => Ok(None),
            1..=MAX_TYPE_ID => Ok(Some(TypeId(id))),
            _ => Err(EXPECTED_TYPE_ID),
        }
    }

    /// The id of an existing menu type, for its lookup: cleaned like a new one, but not in lower case.
    pub fn clean(text: &str) -> String {
        let name = basename(trim(text));
        name.chars().filter(|&c| is_id_char(c)).collect()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A calendar day as `YYYY-MM-DD`. As in PHP's `checkdate`, the year 0 is invalid.
#[derive(Clone, Debug, PartialEq)]
pub struct Date(String);

impl Date {
    pub fn parse(text: &str) -> Result<Date, &'static str> {
        let is_year = |date: &NaiveDate| (1..=9999).contains(&date.year());
        let date = text.parse().ok().filter(is_year).map(Date::from);
        // chrono accepts other forms too.
        let date = date.filter(|date| date.as_str() == text);
        date.ok_or("a calendar day in the form YYYY-MM-DD")
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `YYYY-MM`
    pub fn month(&self) -> &str {
        &self.0[..7]
    }

    /// `DD`
    pub fn day(&self) -> &str {
        &self.0[8..]
    }
}

impl From<NaiveDate> for Date {
    fn from(date: NaiveDate) -> Date {
        Date(date.to_string())
    }
}

/// `#` and six hexadecimal digits, in upper or lower case as sent.
#[derive(Clone, Copy, Debug)]
pub struct Color<'t>(pub(super) &'t str);

impl<'t> Color<'t> {
    /// The colour of a type without a colour.
    pub const DEFAULT: Color<'static> = Color("#0d6efd");

    pub fn parse(text: &'t str) -> Result<Color<'t>, &'static str> {
        let digits = text.strip_prefix('#').unwrap_or_default();
        let is_color = digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_color
            .then_some(Color(text))
            .ok_or("# and six hexadecimal digits")
    }
}

/// The label of a menu type.
#[derive(Clone, Copy, Debug)]
pub struct Label<'t>(pub(super) &'t str);

impl<'t> Label<'t> {
    pub fn parse(text: &'t str) -> Result<Label<'t>, &'static str> {
        let is_short = text.chars().count() <= MAX_LABEL;
        is_short.then_some(Label(text)).ok_or(EXPECTED_LABEL)
    }
}

/// The key of a plate in a menu.
#[derive(Clone, Copy, Debug)]
pub struct PlateKey<'t>(pub(super) &'t str);

impl<'t> PlateKey<'t> {
    pub fn parse(text: &'t str) -> Result<PlateKey<'t>, &'static str> {
        let is_key = (1..=MAX_PLATE_KEY).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        is_key.then_some(PlateKey(text)).ok_or(EXPECTED_PLATE_KEY)
    }
}

/// The name of a plate, trimmed; it may be empty.
#[derive(Clone, Copy, Debug)]
pub struct PlateName<'t>(pub(super) &'t str);

impl<'t> PlateName<'t> {
    pub fn parse(text: &'t str) -> Result<PlateName<'t>, &'static str> {
        let name = trim(text);
        let is_short = name.chars().count() <= MAX_PLATE_NAME;
        is_short
            .then_some(PlateName(name))
            .ok_or(EXPECTED_PLATE_NAME)
    }
}
