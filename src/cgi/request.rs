//! A request from the meta-variables, before its body is read.

use super::Variables;
use super::input::{MAX_BODY, body_too_large};
use crate::error::Error;
use crate::php::form::Form;

/// A request without its body.
#[derive(Debug)]
pub struct Request<'v> {
    pub variables: &'v Variables<'v>,
    /// `QUERY_STRING`, decoded
    query: Form,
    /// See [`Variables::content_length`]
    pub content_length: Option<u64>,
}

impl<'v> Request<'v> {
    /// INVALID_FORMAT for a `CONTENT_LENGTH` that is not a number, TOO_LARGE for one larger than
    /// [`MAX_BODY`].
    pub fn from_variables(variables: &'v Variables) -> Result<Request<'v>, Error> {
        let content_length = variables.content_length()?;
        if content_length.is_some_and(|length| length > MAX_BODY) {
            return Err(body_too_large());
        }
        let query = Form::from_query(variables.meta("QUERY_STRING").unwrap_or_default());
        Ok(Request { variables, query, content_length })
    }

    /// The query parameter `name`, if it is given and not empty.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.last(name).filter(|value| !value.is_empty())
    }
}
