//! A request as the variables tell it, before its body is read.

use crate::cgi::Variables;
use crate::cgi::form::Form;
use crate::error::Error;

/// The longest body that is read. The largest menu the API takes, 64 plates with names of
/// 2000 characters, has about half of it.
pub const MAX_BODY: usize = 1024 * 1024;

/// A request without its body. What the client did not send is `None`, and so is what it
/// sent empty.
#[derive(Debug)]
pub struct Request<'v> {
    /// `REQUEST_METHOD`, case and all (RFC 9110 §9.1)
    pub method: &'v [u8],
    /// `QUERY_STRING`, decoded
    pub query: Form,
    /// `CONTENT_LENGTH`; none where the server can't tell (a chunked body)
    pub content_length: Option<usize>,
    /// `CONTENT_TYPE`
    pub content_type: Option<&'v [u8]>,
    /// The `Cookie` header
    pub cookie: Option<&'v [u8]>,
    /// The `Sec-Fetch-Site` header
    pub sec_fetch_site: Option<&'v [u8]>,
    /// The `Origin` header
    pub origin: Option<&'v [u8]>,
    /// The `Host` header, else `SERVER_NAME`
    pub host: Option<&'v [u8]>,
}

impl<'v> Request<'v> {
    /// Reads a request out of `variables`. Refuses a `CONTENT_LENGTH` that is no number
    /// (INVALID_FORMAT) or more than [`MAX_BODY`] (TOO_LARGE).
    pub fn from_variables(variables: &'v Variables) -> Result<Request<'v>, Error> {
        Ok(Request {
            content_length: content_length(variables.meta("CONTENT_LENGTH"))?,
            method: variables.get("REQUEST_METHOD").unwrap_or_default(),
            query: Form::lossy(variables.get("QUERY_STRING").unwrap_or_default()),
            content_type: variables.meta("CONTENT_TYPE"),
            cookie: variables.meta("HTTP_COOKIE"),
            sec_fetch_site: variables.meta("HTTP_SEC_FETCH_SITE"),
            origin: variables.meta("HTTP_ORIGIN"),
            host: variables.meta("HTTP_HOST").or_else(|| variables.meta("SERVER_NAME")),
        })
    }

    /// The query parameter `name`, where it is given and not empty.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.last(name).filter(|value| !value.is_empty())
    }
}

/// RFC 3875 §4.1.2: digits, or not there.
fn content_length(value: Option<&[u8]>) -> Result<Option<usize>, Error> {
    let Some(digits) = value else {
        return Ok(None);
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(Error::invalid_format("The Content-Length of the request is no number."));
    }
    match str::from_utf8(digits).map(str::parse) {
        Ok(Ok(length)) if length <= MAX_BODY => Ok(Some(length)),
        _ => Err(Error::too_large()),
    }
}
