//! A request from the meta-variables, without its body.

use super::Variables;
use crate::php::form::Form;

/// A request without its body.
#[derive(Debug)]
pub struct Request<'v> {
    pub variables: &'v Variables<'v>,
    /// `QUERY_STRING`, decoded
    query: Form,
}

impl<'v> Request<'v> {
    pub fn from_variables(variables: &'v Variables) -> Request<'v> {
        let query = Form::from_query(variables.meta("QUERY_STRING").unwrap_or_default());
        Request { variables, query }
    }

    /// The query parameter `name`, if it is given and not empty.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.last(name).filter(|value| !value.is_empty())
    }
}
