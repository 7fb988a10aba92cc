//! The body of a write, decoded: JSON, or a form in either of its two encodings.

use super::Variables;
use super::multipart;
use crate::error::Error;
use crate::php::form::Form;
use crate::php::json::{Map, Value};

/// The maximum number of scalars, lists and maps in a body. Each takes up to 250 bytes of memory. A menu of 64 plates
/// has 132.
const MAX_VALUES: usize = 10_000;

/// The body as a map of its fields. An empty body has no fields.
///
/// INVALID_FORMAT for any other media type, and for a body that is malformed or not valid UTF-8.
pub fn parse(variables: &Variables, body: &[u8]) -> Result<Map, Error> {
    if body.is_empty() {
        return Ok(Map::default());
    }
    let content_type = variables.meta("CONTENT_TYPE").unwrap_or_default();
    let media_type = content_type.split(|&byte| byte == b';').next().unwrap_or_default();
    let is = |name: &str| media_type.trim_ascii().eq_ignore_ascii_case(name.as_bytes());
    // By default curl sends JSON with the media type of a form, and fetch with that of text.
    if body.starts_with(b"{") || is("application/json") {
        return match Value::parse_with(|_| None, MAX_VALUES, body) {
            Ok(Value::Map(map)) => Ok(map),
            Ok(_) => Err(Error::invalid_format("The JSON body must be an object.")),
            Err(_) => {
                Err(Error::invalid_format("The body must be valid JSON of at most 10,000 values."))
            }
        };
    }
    let form = if is("application/x-www-form-urlencoded") {
        Form::from_body(body)
    } else if is("multipart/form-data") {
        multipart::parse(content_type, body)
    } else {
        return Err(Error::invalid_format(
            "The body must be application/json, application/x-www-form-urlencoded or multipart/form-data.",
        ));
    };
    form.and_then(|form| form.nested(MAX_VALUES)).ok_or_else(|| {
        Error::invalid_format(
            "The form must be well-formed and valid UTF-8, with at most 1000 fields and 10,000 values.",
        )
    })
}
