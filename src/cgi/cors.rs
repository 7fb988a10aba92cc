//! The CORS protocol (Fetch standard): pages of trusted origins may send requests and read the answers.

use super::{Method, Variables, origin};

/// What the `Origin` of a request means for its response.
#[derive(Debug)]
pub struct Cors<'t> {
    /// The trusted origin that the request comes from
    pub origin: Option<&'t str>,
    /// Whether any origin is trusted, so that responses differ by origin
    pub varies: bool,
}

impl<'t> Cors<'t> {
    pub fn new(variables: &Variables, trusted: &'t [String]) -> Cors<'t> {
        let origin = origin::trusted(variables, trusted);
        Cors { origin, varies: !trusted.is_empty() }
    }

    /// Whether a browser asks if a page may send a request. It sends no cookie with this question.
    pub fn is_preflight(&self, variables: &Variables) -> bool {
        self.origin.is_some()
            && variables.method() == Method::Options
            && variables.meta("HTTP_ACCESS_CONTROL_REQUEST_METHOD").is_some()
    }
}
