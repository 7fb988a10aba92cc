//! The lexer of PHP's `serialize` format (ext/standard/var_unserializer.re), without copies or recursion.

use super::session_settings::Format;

#[derive(Debug, thiserror::Error)]
#[error("byte {offset}: expected {expected}")]
pub struct Error {
    pub offset: usize,
    pub expected: &'static str,
}

/// A scalar, the start of an array or object, or a reference.
#[derive(Debug)]
pub enum Token<'b> {
    /// `b:`
    Bool(bool),
    /// `i:`
    Int(i64),
    /// `s:`
    Text(&'b [u8]),
    /// `N;`, `d:`, or `E:`, a case of an enum
    Other,
    /// `a:`, or `O:` with the name of a class, and its brace, before this number of pairs
    Open {
        class: Option<&'b [u8]>,
        pairs: usize,
    },
    /// `C:`, content of this length that only its class can decode
    Custom { length: usize },
    /// `R:`, a reference to a slot
    Reference(usize),
    /// `r:`, the object in a slot
    SameObject(usize),
}

/// A key of an array or object. PHP converts a string that is an integer to one: "-3", not "05" or "-0".
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key<'b> {
    Int(i64),
    Text(&'b [u8]),
}

impl<'b> Key<'b> {
    pub fn of(text: &'b [u8]) -> Key<'b> {
        let is_number = text
            .first()
            .is_some_and(|b| b.is_ascii_digit() || *b == b'-');
        let number = str::from_utf8(text).ok().filter(|_| is_number);
        match number.and_then(|text| text.parse::<i64>().ok()) {
            Some(int) if int.to_string().as_bytes() == text => Key::Int(int),
            _ => Key::Text(text),
        }
    }
}

/// A position in the file: after success, directly after the bytes that were read; after an error, undefined.
#[derive(Clone, Copy)]
pub struct Cursor<'b> {
    pub bytes: &'b [u8],
    pub at: usize,
}

impl<'b> Cursor<'b> {
    /// A cursor at the offset `at` of the same file.
    pub fn moved_to(&self, at: u32) -> Cursor<'b> {
        Cursor {
            at: at as usize,
            ..*self
        }
    }

    fn rest(&self) -> &'b [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub fn error(&self, expected: &'static str) -> Error {
        Error {
            offset: self.at,
            expected,
        }
    }

    /// Fails with the error that `expected` is missing at this position, unless it is there.
    pub fn require(&self, is_there: bool, expected: &'static str) -> Result<(), Error> {
        if is_there {
            Ok(())
        } else {
            Err(self.error(expected))
        }
    }

    /// Skips `text`, which must be next.
    // Inlined, so that one or two bytes are compared without a call of memcmp.
    #[inline]
    pub fn expect(&mut self, text: &[u8], expected: &'static str) -> Result<(), Error> {
        self.require(self.rest().starts_with(text), expected)?;
        self.at += text.len();
        Ok(())
    }

    /// The next `length` bytes.
    fn take(&mut self, length: usize, expected: &'static str) -> Result<&'b [u8], Error> {
        let taken = self.rest().get(..length).ok_or(self.error(expected))?;
        self.at += length;
        Ok(taken)
    }

    /// The longest prefix of bytes for which `belong` is true.
    fn take_while(&mut self, belong: impl Fn(u8) -> bool) -> &'b [u8] {
        let rest = self.rest();
        let end = rest.iter().position(|&byte| !belong(byte));
        let (taken, _) = rest.split_at(end.unwrap_or(rest.len()));
        self.at += taken.len();
        taken
    }

    /// The key of an entry: in `php` up to the next `|`, in `php_binary` after a length of seven bits.
    pub fn entry_key(&mut self, format: Format) -> Result<&'b [u8], Error> {
        if format == Format::PhpBinary {
            let length = self.take(1, "the length of a key")?;
            return self.take(usize::from(length[0] & 0x7f), "the bytes of the key");
        }
        let key = self.take_while(|byte| byte != b'|');
        self.expect(b"|", "| after the key")?;
        Ok(key)
    }

    /// An unsigned number.
    fn number(&mut self) -> Result<usize, Error> {
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        self.require(!digits.is_empty(), "a number before this")?;
        let number = digits.iter().try_fold(0usize, |number, digit| {
            number
                .checked_mul(10)?
                .checked_add(usize::from(digit - b'0'))
        });
        number.ok_or(self.error("a smaller number before this"))
    }

    /// `length:"` … bytes … `"`
    fn quoted(&mut self) -> Result<&'b [u8], Error> {
        let length = self.number()?;
        self.expect(b":\"", ":\"")?;
        let bytes = self.take(length, "the bytes of the string")?;
        self.expect(b"\"", "\" after the string")?;
        Ok(bytes)
    }

    /// The name of a class, as `quoted`, and `:`
    fn class(&mut self) -> Result<&'b [u8], Error> {
        let class = self.quoted()?;
        self.require(is_class(class), "the name of a class before this")?;
        self.expect(b":", ":")?;
        Ok(class)
    }

    /// `count:{`
    fn opening(&mut self) -> Result<usize, Error> {
        let pairs = self.number()?;
        self.expect(b":{", ":{")?;
        Ok(pairs)
    }

    /// A scalar, or the start of another value.
    pub fn token(&mut self) -> Result<Token<'b>, Error> {
        let kind = self.take(1, "a value")?;
        if kind != b"N" {
            self.expect(b":", ":")?;
        }
        let token = match kind[0] {
            b'N' => Token::Other,
            b'b' => Token::Bool(self.bool()?),
            b'i' => Token::Int(self.int()?),
            b'd' => self.float()?,
            b's' => Token::Text(self.quoted()?),
            b'R' => Token::Reference(self.number()?),
            b'r' => Token::SameObject(self.number()?),
            b'E' => self.enum_case()?,
            b'a' => return self.array(),
            b'O' => return self.object(),
            b'C' => return self.custom(),
            _ => return Err(self.error("a known type tag before this")),
        };
        self.expect(b";", "; after the value")?;
        Ok(token)
    }

    fn bool(&mut self) -> Result<bool, Error> {
        match self.take(1, "0 or 1")? {
            b"0" => Ok(false),
            b"1" => Ok(true),
            _ => Err(self.error("0 or 1 before this")),
        }
    }

    fn float(&mut self) -> Result<Token<'b>, Error> {
        let number = self.take_while(|byte| byte != b';');
        self.require(is_float(number), "a float before this")?;
        Ok(Token::Other)
    }

    fn enum_case(&mut self) -> Result<Token<'b>, Error> {
        let case = self.quoted()?;
        self.require(is_enum_case(case), "Enum:Case before this")?;
        Ok(Token::Other)
    }

    fn array(&mut self) -> Result<Token<'b>, Error> {
        Ok(Token::Open {
            class: None,
            pairs: self.opening()?,
        })
    }

    fn object(&mut self) -> Result<Token<'b>, Error> {
        Ok(Token::Open {
            class: Some(self.class()?),
            pairs: self.opening()?,
        })
    }

    fn custom(&mut self) -> Result<Token<'b>, Error> {
        self.class()?;
        let length = self.number()?;
        self.expect(b":{", ":{")?;
        self.take(length, "the bytes of the object")?;
        self.expect(b"}", "the end of the object")?;
        Ok(Token::Custom { length })
    }

    /// A signed number, clamped to 64 bits as in PHP.
    fn int(&mut self) -> Result<i64, Error> {
        let sign = self
            .rest()
            .first()
            .filter(|byte| matches!(byte, b'+' | b'-'));
        self.at += usize::from(sign.is_some());
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        self.require(!digits.is_empty(), "an integer")?;
        Ok(digits.iter().fold(0i64, |int, digit| {
            let digit = i64::from(digit - b'0');
            let int = int.saturating_mul(10);
            if sign == Some(&b'-') {
                int.saturating_sub(digit)
            } else {
                int.saturating_add(digit)
            }
        }))
    }

    /// Skips a value that was decoded before.
    pub fn skip(&mut self) -> Result<(), Error> {
        let mut open = 0;
        loop {
            if let Token::Open { .. } = self.token()? {
                open += 1;
            }
            while open > 0 && self.rest().starts_with(b"}") {
                self.at += 1;
                open -= 1;
            }
            if open == 0 {
                return Ok(());
            }
        }
    }
}

/// Whether `text` is `Enum:Case`, by the characters of both names, which are not looked up.
fn is_enum_case(text: &[u8]) -> bool {
    let colon = text.iter().position(|&byte| byte == b':');
    colon.is_some_and(|colon| is_class(&text[..colon]) && is_class(&text[colon + 1..]))
}

/// Whether `unserialize` accepts `name` as the name of a class.
fn is_class(name: &[u8]) -> bool {
    let belongs = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'\\' | 0x80..);
    !matches!(name, [] | [b'\\', ..]) && name.iter().all(belongs)
}

/// `NAN`, `INF`, `-INF`, or a number in decimal digits. These have the same form for PHP and for
/// [`f64`], but `f64` has other names too, such as `infinity`, each with an n.
fn is_float(number: &[u8]) -> bool {
    let is_number = |text: &str| !text.contains(['n', 'N']) && text.parse::<f64>().is_ok();
    matches!(number, b"NAN" | b"INF" | b"-INF") || str::from_utf8(number).is_ok_and(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_enum_case_has_two_names() {
        for (text, is_case) in [
            ("Suit:Hearts", true),
            ("App\\Suit:Hearts", true),
            ("Suit:", false),
            (":Hearts", false),
            ("Suit:He arts", false),
            ("Su it:Hearts", false),
            ("Suit", false),
        ] {
            assert_eq!(is_enum_case(text.as_bytes()), is_case, "{text}");
        }
    }

    #[test]
    fn key_is_an_integer_if_php_writes_the_integer_as_this_text() {
        for (text, int) in [
            ("0", 0),
            ("-3", -3),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(Key::of(text.as_bytes()), Key::Int(int));
        }
        for text in [
            "", "-", "-0", "05", "+1", " 1", "1.0", "9223372036854775808",
        ] {
            assert_eq!(Key::of(text.as_bytes()), Key::Text(text.as_bytes()));
        }
    }
}
