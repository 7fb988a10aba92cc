//! A request from the meta-variables, before its body is read.

use super::form::Form;
use super::input::{MAX_BODY, body_too_large};
use super::{Method, Variables};
use crate::error::Error;

/// A request without its body. Absent and empty values are both `None`.
#[derive(Debug)]
pub struct Request<'v> {
    pub method: Method,
    /// `QUERY_STRING`, decoded
    query: Form,
    /// See [`Variables::content_length`]
    pub content_length: Option<u64>,
    pub content_type: Option<&'v [u8]>,
    pub cookie: Option<&'v [u8]>,
    pub sec_fetch_site: Option<&'v [u8]>,
    pub origin: Option<&'v [u8]>,
    /// The `Host` header, else `SERVER_NAME`
    pub host: Option<&'v [u8]>,
}

impl<'v> Request<'v> {
    /// INVALID_FORMAT for a `CONTENT_LENGTH` that is not a number, TOO_LARGE for one larger than
    /// [`MAX_BODY`].
    pub fn from_variables(variables: &Variables<'v>) -> Result<Request<'v>, Error> {
        let content_length = variables.content_length()?;
        if content_length.is_some_and(|length| length > MAX_BODY) {
            return Err(body_too_large());
        }
        Ok(Request {
            method: variables.method(),
            query: Form::from_query(variables.meta("QUERY_STRING").unwrap_or_default()),
            content_length,
            content_type: variables.meta("CONTENT_TYPE"),
            cookie: variables.meta("HTTP_COOKIE"),
            sec_fetch_site: variables.meta("HTTP_SEC_FETCH_SITE"),
            origin: variables.meta("HTTP_ORIGIN"),
            host: variables.meta("HTTP_HOST").or_else(|| variables.meta("SERVER_NAME")),
        })
    }

    /// The query parameter `name`, if it is given and not empty.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.last(name).filter(|value| !value.is_empty())
    }
}
