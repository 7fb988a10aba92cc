//! The differences of PHP's encoder from serde_json's: layout, escapes, floats.

use std::io;

use serde_json::ser::{CharEscape, Formatter, PrettyFormatter};

/// The layout of `JSON_PRETTY_PRINT | JSON_UNESCAPED_UNICODE` (ext/json/json_encoder.c): serde_json's
/// pretty layout with four spaces, PHP's escapes and PHP's floats.
pub struct PhpFormatter(PrettyFormatter<'static>);

impl PhpFormatter {
    pub fn new() -> PhpFormatter {
        PhpFormatter(PrettyFormatter::with_indent(b"    "))
    }
}

/// The layout without white space, with PHP's floats.
pub struct CompactFormatter;

impl Formatter for CompactFormatter {
    fn write_f64<W: ?Sized + io::Write>(&mut self, w: &mut W, float: f64) -> io::Result<()> {
        write_float(w, float)
    }
}

/// As `json_encode` prints a float (`serialize_precision` −1): the shortest digits that give the same
/// float when parsed. The digits are from serde_json: of several equally short candidates it takes the
/// nearest, as PHP does and Rust's own formatting does not.
fn write_float(w: &mut (impl io::Write + ?Sized), float: f64) -> io::Result<()> {
    let shortest = serde_json::to_string(&float).expect("a float has a JSON form");
    w.write_all(php_gcvt(&shortest, 17, 'e').as_bytes())
}

/// Forwards the named methods to the pretty formatter.
macro_rules! delegate_to_pretty {
    ($($method:ident($($argument:ident: $kind:ty),*);)*) => {
        $(fn $method<W: ?Sized + io::Write>(&mut self, w: &mut W, $($argument: $kind),*) -> io::Result<()> {
            self.0.$method(w, $($argument),*)
        })*
    };
}

impl Formatter for PhpFormatter {
    delegate_to_pretty! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        begin_object_value();
        end_object_value();
        write_char_escape(escape: CharEscape);
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, w: &mut W, float: f64) -> io::Result<()> {
        write_float(w, float)
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        w: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(['/', '\u{2028}', '\u{2029}']) {
            w.write_all(&rest.as_bytes()[..at])?;
            let mut tail = rest[at..].chars();
            w.write_all(match tail.next() {
                Some('\u{2028}') => b"\\u2028",
                Some('\u{2029}') => b"\\u2029",
                _ => b"\\/",
            })?;
            rest = tail.as_str();
        }
        w.write_all(rest.as_bytes())
    }
}

/// A float as PHP's `(string)` prints it: 14 significant digits (the setting `precision`).
pub fn float_to_string(float: f64) -> String {
    if float.is_infinite() {
        return if float > 0.0 { "INF" } else { "-INF" }.to_owned();
    }
    let rounded = format!("{float:.13e}");
    // Of an integer of 15 digits, an exact half: `zend_dtoa` then leaves the zeros at the end.
    if (1e14..1e15).contains(&float.abs()) && float.abs() % 100.0 == 5.0 {
        return rounded.replace('e', "E+");
    }
    php_gcvt(&rounded, 14, 'E')
}

/// The format of `php_gcvt` (main/snprintf.c) for the decimal `number`: exponent form below 1e-4 and
/// for more than `precision` digits before the point.
fn php_gcvt(number: &str, precision: i32, exponent_sign: char) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (number, exponent) = number.split_once('e').unwrap_or((number, "0"));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let leading_zeros = digits.len() - digits.trim_start_matches('0').len();
    let digits = digits.trim_matches('0');
    if digits.is_empty() {
        return format!("{sign}0");
    }
    // The exponent of the first digit that is not 0.
    let exponent = exponent.parse().unwrap_or(0) + whole.len() as i32 - 1 - leading_zeros as i32;
    if exponent < -4 || exponent >= precision {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        return format!("{sign}{first}.{rest}{exponent_sign}{exponent:+}");
    }
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat((-1 - exponent) as usize));
    }
    let point = exponent as usize + 1;
    let whole = format!("{digits:0<point$}");
    let fraction = digits.get(point..).filter(|fraction| !fraction.is_empty());
    let fraction = fraction.map(|fraction| format!(".{fraction}")).unwrap_or_default();
    format!("{sign}{}{fraction}", &whole[..point])
}
