//! The meta-variables of a request (RFC 3875 §4.1).

use crate::error::Error;
use crate::php::form::Form;
use crate::sys::environment::environment;

/// Defines `known`, which finds a name. A loop over a list would compare each of them by a call.
macro_rules! names {
    ($($name:literal)*) => {
        /// The same name, if it is a meta-variable that is used. A server sets thirty or more; the others are never read.
        fn known(name: &[u8]) -> Option<&'static str> {
            $(if name == $name.as_bytes() {
                return Some($name);
            })*
            None
        }
    };
}

names! {
    "CONTENT_LENGTH" "CONTENT_TYPE" "GATEWAY_INTERFACE" "HTTP_ACCESS_CONTROL_REQUEST_METHOD" "HTTP_COOKIE" "HTTP_HOST"
    "HTTP_ORIGIN" "HTTP_REFERER" "HTTP_SEC_FETCH_SITE" "PATH_INFO" "PATH_TRANSLATED" "QUERY_STRING" "REDIRECT_HANDLER"
    "REQUEST_METHOD" "SCRIPT_FILENAME" "SCRIPT_NAME" "SERVER_NAME" "SERVER_SOFTWARE"
}

/// Meta-variables by name. Values are bytes, not necessarily UTF-8.
#[derive(Debug)]
pub struct Variables<'v>(Vec<(&'static str, &'v [u8])>);

/// `REQUEST_METHOD`, which is case-sensitive (RFC 9110 §9.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    Get,
    Head,
    Options,
    Post,
    Other,
}

impl<'v> Variables<'v> {
    /// Those in the environment of this process. The first of duplicates counts, as in getenv(3).
    pub fn of_process() -> Variables<'static> {
        Variables::known(environment())
    }

    /// Those among the parameters of a FastCGI request. The last of duplicates counts, as in PHP-FPM.
    pub fn of_parameters(parameters: impl Iterator<Item = (&'v [u8], &'v [u8])>) -> Variables<'v> {
        // Caddy sends this length for a chunked body; in FastCGI a record marks the end of the body.
        let chunked: (&[u8], &[u8]) = (b"CONTENT_LENGTH", b"-1");
        let mut variables = Variables::known(parameters.filter(|pair| *pair != chunked));
        variables.0.reverse();
        variables
    }

    /// The variables among `pairs` that are used, in order.
    fn known(pairs: impl Iterator<Item = (&'v [u8], &'v [u8])>) -> Variables<'v> {
        Variables(
            pairs
                .filter_map(|(name, value)| Some((known(name)?, value)))
                .collect(),
        )
    }

    /// The value of `name`, unless it is not set or empty, which is the same in CGI (RFC 3875 §4.1).
    pub(crate) fn meta(&self, name: &str) -> Option<&'v [u8]> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, value)| *value)
            .filter(|value| !value.is_empty())
    }

    /// Whether `name` is set more than once. As CGI variables, servers join equal headers (RFC 3875 §4.1.18); nginx before
    /// 1.23 sends each as a parameter of FastCGI.
    pub(crate) fn is_repeated(&self, name: &str) -> bool {
        self.0.iter().filter(|(known, _)| *known == name).count() > 1
    }

    /// Whether a web server started this process. `REQUEST_METHOD` alone is enough: some
    /// servers do not set `GATEWAY_INTERFACE`.
    pub fn is_cgi(&self) -> bool {
        self.0
            .iter()
            .any(|(name, _)| matches!(*name, "GATEWAY_INTERFACE" | "REQUEST_METHOD"))
    }

    /// Whether Apache sent the request.
    pub fn is_from_apache(&self) -> bool {
        self.meta("SERVER_SOFTWARE")
            .is_some_and(|name| name.starts_with(b"Apache"))
    }

    pub fn method(&self) -> Method {
        match self.meta("REQUEST_METHOD") {
            Some(b"GET") => Method::Get,
            Some(b"HEAD") => Method::Head,
            Some(b"OPTIONS") => Method::Options,
            Some(b"POST") => Method::Post,
            _ => Method::Other,
        }
    }

    /// The last segment of the path in the address, as far as the web server passes it: in `PATH_INFO`, what follows the
    /// script's name (RFC 3875 §4.1.5), with Apache's `Action` the whole path; Caddy has the whole path in `SCRIPT_NAME`.
    pub(crate) fn last_segment(&self) -> Option<&'v [u8]> {
        let path = self
            .meta("PATH_INFO")
            .or_else(|| self.meta("SCRIPT_NAME"))?;
        path.rsplit(|&byte| byte == b'/')
            .find(|segment| !segment.is_empty())
    }

    /// `QUERY_STRING`, decoded
    pub(crate) fn query(&self) -> Form {
        Form::from_query(self.meta("QUERY_STRING").unwrap_or_default())
    }

    /// `CONTENT_LENGTH` (RFC 3875 §4.1.2); `None` without a body, or with one of unknown length (a
    /// chunked body). INVALID_FORMAT if it is not a number.
    pub(super) fn content_length(&self) -> Result<Option<u64>, Error> {
        let Some(digits) = self.meta("CONTENT_LENGTH") else {
            return Ok(None);
        };
        if !digits.iter().all(u8::is_ascii_digit) {
            return Err(Error::invalid_format("Content-Length must be a number."));
        }
        let length = str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok());
        // Only a number beyond 64 bits does not parse.
        Ok(Some(length.unwrap_or(u64::MAX)))
    }
}
