//! The meta-variables of a request (RFC 3875 §4.1).

use std::env;
use std::os::unix::ffi::OsStringExt;

/// The meta-variables that are used. A server sets thirty or more; the others are never read.
const NAMES: [&str; 11] = [
    "CONTENT_LENGTH",
    "CONTENT_TYPE",
    "GATEWAY_INTERFACE",
    "HTTP_COOKIE",
    "HTTP_HOST",
    "HTTP_ORIGIN",
    "HTTP_SEC_FETCH_SITE",
    "QUERY_STRING",
    "REQUEST_METHOD",
    "SERVER_NAME",
    "SERVER_SOFTWARE",
];

/// Meta-variables by name. Values are bytes, not necessarily UTF-8.
#[derive(Debug)]
pub struct Variables(Vec<(&'static str, Vec<u8>)>);

/// `REQUEST_METHOD`, which is case-sensitive (RFC 9110 §9.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    Get,
    Head,
    Post,
    Other,
}

/// `CONTENT_LENGTH` (RFC 3875 §4.1.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ContentLength {
    /// Not set: there is no body, or the server does not know its length (a chunked body).
    Unknown,
    Bytes(u64),
    /// Not a number
    Invalid,
}

impl Variables {
    /// The meta-variables in the environment of this process.
    pub fn of_process() -> Variables {
        let set = NAMES.into_iter().filter_map(|name| Some((name, env::var_os(name)?.into_vec())));
        Variables(set.collect())
    }

    /// The meta-variables among the parameters of a FastCGI request. The last of duplicates counts,
    /// as in PHP-FPM.
    pub fn of_parameters<'p>(parameters: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Variables {
        let mut variables = Variables(Vec::with_capacity(NAMES.len()));
        for (name, value) in parameters {
            let Some(name) = NAMES.into_iter().find(|known| known.as_bytes() == name) else {
                continue;
            };
            // Caddy sends this length for a chunked body; in FastCGI a record marks the end of the
            // body.
            if name == "CONTENT_LENGTH" && value == b"-1" {
                continue;
            }
            variables.0.retain(|(known, _)| *known != name);
            variables.0.push((name, value.to_vec()));
        }
        variables
    }

    /// The value of `name`, if it is set.
    fn get(&self, name: &str) -> Option<&[u8]> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_slice())
    }

    /// The value of `name`, if it is set and not empty: CGI does not distinguish the two
    /// (RFC 3875 §4.1).
    pub(crate) fn meta(&self, name: &str) -> Option<&[u8]> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// Whether a web server started this process. `REQUEST_METHOD` alone is enough: some
    /// servers do not set `GATEWAY_INTERFACE`.
    pub fn is_cgi(&self) -> bool {
        self.get("GATEWAY_INTERFACE").is_some() || self.get("REQUEST_METHOD").is_some()
    }

    pub fn method(&self) -> Method {
        match self.meta("REQUEST_METHOD") {
            Some(b"GET") => Method::Get,
            Some(b"HEAD") => Method::Head,
            Some(b"POST") => Method::Post,
            _ => Method::Other,
        }
    }

    pub(crate) fn content_length(&self) -> ContentLength {
        match self.meta("CONTENT_LENGTH") {
            None => ContentLength::Unknown,
            Some(digits) if digits.iter().all(u8::is_ascii_digit) => {
                let length = str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
                // Only a number beyond 64 bits does not parse.
                ContentLength::Bytes(length.unwrap_or(u64::MAX))
            }
            Some(_) => ContentLength::Invalid,
        }
    }

    /// Whether the server is Apache.
    pub fn is_apache(&self) -> bool {
        self.meta("SERVER_SOFTWARE").is_some_and(|server| server.starts_with(b"Apache"))
    }
}

#[cfg(test)]
impl Variables {
    /// The variables `pairs`.
    pub fn from_pairs<'v>(pairs: impl IntoIterator<Item = (&'static str, &'v str)>) -> Variables {
        Variables(pairs.into_iter().map(|(name, value)| (name, value.into())).collect())
    }
}
