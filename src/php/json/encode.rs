//! PHP's encoder: its layout, escapes and floats. serde_json escapes the strings and finds the digits of floats.

use super::Value;

/// Writes a document as `json_encode` does (ext/json/json_encoder.c).
pub struct Encoder {
    bytes: Vec<u8>,
    /// `JSON_PRETTY_PRINT`; without it also `JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_LINE_TERMINATORS`
    is_pretty: bool,
    /// The number of lists and maps around the next value
    level: usize,
}

impl Encoder {
    pub fn encode(value: &Value, is_pretty: bool) -> Vec<u8> {
        let mut encoder = Encoder {
            // Room for a day or an answer about it, with a few types of menu.
            bytes: Vec::with_capacity(1024),
            is_pretty,
            level: 0,
        };
        encoder.value(value);
        encoder.bytes
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// PHP has one type for lists and maps, so a map with the keys of a list is written as a list.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.text("null"),
            Value::Bool(bool) => self.text(if *bool { "true" } else { "false" }),
            Value::Int(int) => self.text(&int.to_string()),
            Value::Float(float) => self.text(&float_to_json(*float)),
            Value::String(text) => self.string(text),
            Value::List(list) => self.items(b"[]", list.iter().map(|value| (None, value))),
            Value::Map(map) if map.is_list() => {
                self.items(b"[]", map.iter().map(|(_, value)| (None, value)));
            }
            Value::Map(map) => self.items(b"{}", map.iter().map(|(key, value)| (Some(key), value))),
        }
    }

    fn items<'v>(
        &mut self,
        brackets: &[u8; 2],
        items: impl Iterator<Item = (Option<&'v str>, &'v Value)>,
    ) {
        self.bytes.push(brackets[0]);
        self.level += 1;
        let mut is_empty = true;
        for (key, value) in items {
            if !is_empty {
                self.bytes.push(b',');
            }
            self.line_break();
            if let Some(key) = key {
                self.string(key);
                self.text(if self.is_pretty { ": " } else { ":" });
            }
            self.value(value);
            is_empty = false;
        }
        self.level -= 1;
        if !is_empty {
            self.line_break();
        }
        self.bytes.push(brackets[1]);
    }

    fn line_break(&mut self) {
        if self.is_pretty {
            self.text("\n");
            (0..self.level).for_each(|_| self.text("    "));
        }
    }

    fn string(&mut self, text: &str) {
        let start = self.bytes.len();
        serde_json::to_writer(&mut self.bytes, text).expect("memory takes every write");
        if self.is_pretty && text.contains(['/', '\u{2028}', '\u{2029}']) {
            let json = String::from_utf8_lossy(&self.bytes[start..]).replace('/', "\\/");
            let json = json
                .replace('\u{2028}', "\\u2028")
                .replace('\u{2029}', "\\u2029");
            self.bytes.truncate(start);
            self.text(&json);
        }
    }
}

/// As `json_encode` prints a float (`serialize_precision` −1): the shortest digits that give the same
/// float when parsed. The digits are from serde_json: of several equally short candidates it takes the
/// nearest, as PHP does and Rust's own formatting does not.
fn float_to_json(float: f64) -> String {
    let shortest = serde_json::to_string(&float).expect("a float has a JSON form");
    php_gcvt(&shortest, 17, 'e')
}

/// A finite float as PHP's `(string)` prints it: 14 significant digits (the setting `precision`).
pub fn float_to_string(float: f64) -> String {
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
    let (sign, unsigned) = number
        .strip_prefix('-')
        .map_or(("", number), |unsigned| ("-", unsigned));
    let (mantissa, exponent) = unsigned.split_once('e').unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = format!("{whole}{fraction}");
    let leading_zeros = all_digits.len() - all_digits.trim_start_matches('0').len();
    let digits = all_digits.trim_matches('0');
    if digits.is_empty() {
        return format!("{sign}0");
    }
    // The exponent of the first digit that is not 0.
    let exponent = exponent.parse().unwrap_or(0) + whole.len() as i32 - 1 - leading_zeros as i32;
    if exponent < -4 || exponent >= precision {
        let (first, others) = digits.split_at(1);
        let fraction = if others.is_empty() { "0" } else { others };
        return format!("{sign}{first}.{fraction}{exponent_sign}{exponent:+}");
    }
    if exponent < 0 {
        let zeros = "0".repeat((-exponent - 1) as usize);
        return format!("{sign}0.{zeros}{digits}");
    }
    let point = exponent as usize + 1;
    let padded = format!("{digits:0<point$}");
    match padded.split_at(point) {
        (whole, "") => format!("{sign}{whole}"),
        (whole, fraction) => format!("{sign}{whole}.{fraction}"),
    }
}
