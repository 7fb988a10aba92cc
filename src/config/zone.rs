//! The time zone of "today", as the setting `TZ` names it.

/// A time zone that may exist. Its file is read by requests without a date only (`api::today`): by CGI that takes
/// 30 µs of 400, and six system calls.
#[derive(Debug, Hash, PartialEq)]
pub enum Zone {
    /// The system's, `/etc/localtime`
    System,
    /// It needs no file.
    Utc,
    /// A file below `/usr/share/zoneinfo` or at a path, else rules (POSIX, "TZ")
    Named(String),
}

impl Zone {
    /// Parses `TZ`. The error says what it must be.
    ///
    /// Text with other characters than a name of tzdata or a rule can never be used, so it is refused at once, as
    /// every other invalid setting. A file that is missing may be installed later: it fails the requests that need it.
    pub fn parse(text: &str) -> Result<Zone, &'static str> {
        let is_path = text.starts_with('/') || text.starts_with(":/");
        // Blanks around rules are ignored.
        let mut characters = text.trim_ascii().chars();
        match text {
            "" => Ok(Zone::System),
            "UTC" => Ok(Zone::Utc),
            _ if is_path || characters.all(is_zone_char) => Ok(Zone::Named(text.to_owned())),
            _ => Err("a time zone, such as Europe/Madrid"),
        }
    }
}

/// Whether the character is one of the names of tzdata (its file `theory.html`) or of POSIX's rules.
fn is_zone_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/._+-<>,:".contains(c)
}

#[cfg(test)]
mod tests {
    use super::Zone;

    #[test]
    fn only_text_that_no_zone_can_have_is_refused() {
        assert_eq!(Zone::parse(""), Ok(Zone::System));
        assert_eq!(Zone::parse("UTC"), Ok(Zone::Utc));
        for text in [
            "Europe/Madrid", ":America/Port-au-Prince", "Etc/GMT+10", "CET-1CEST,M3.5.0,M10.5.0/3",
            "<-03>3<-02>,J1/-1:30,300", " CET-1", "Mars", "/srv/mi zona", ":/srv/mi zona",
        ] {
            assert_eq!(Zone::parse(text), Ok(Zone::Named(text.to_owned())));
        }
        for text in ["Europe Madrid", "\"UTC\"", "Europa/Málaga", "UTC;", "$TZ"] {
            assert!(Zone::parse(text).is_err(), "{text}");
        }
    }
}
