//! The response (RFC 3875 §6), complete in memory before it is written.

use super::{Cors, Method};
use crate::error::{BUSY, Error};
use crate::php::json::{Map, Value};
use crate::sys::log;
use crate::sys::streams::Output;

/// The bytes of all headers, rounded up, so that the buffer does not grow.
const HEADERS: usize = 512;

/// The output for a request with `method`: the response, and the cause of an error.
pub(crate) fn output(answer: Result<Response, Error>, method: Method, cors: &Cors) -> Output {
    let cause = answer
        .as_ref()
        .err()
        .and_then(|error| error.cause.as_deref());
    let stderr = cause.map(log::line).unwrap_or_default().into_bytes();
    let response = answer.unwrap_or_else(Response::from);
    Output {
        stdout: response.to_bytes(method == Method::Head, cors),
        stderr,
        has_panicked: false,
    }
}

/// Status, headers and a JSON body, or the answer to a preflight request, which has none.
#[derive(Debug)]
pub struct Response {
    /// The status code and its reason phrase (RFC 9110 §15)
    status: &'static str,
    /// The `Allow` header: the accepted methods
    allow: Option<&'static str>,
    body: Option<Vec<u8>>,
}

impl Response {
    /// 200 with `success: true` and `fields`.
    pub(crate) fn ok(mut fields: Map) -> Response {
        *fields.move_to(0, "success") = Value::Bool(true);
        let body = Some(Value::Map(fields).to_compact());
        Response {
            status: "200 OK",
            allow: None,
            body,
        }
    }

    /// The answer to [`Cors::is_preflight`].
    pub(crate) fn preflight() -> Response {
        Response {
            status: "204 No Content",
            allow: None,
            body: None,
        }
    }

    /// The bytes for standard output; for HEAD the same headers without the body
    /// (RFC 9110 §9.3.2). Headers never contain input of the client.
    fn to_bytes(&self, is_head: bool, cors: &Cors) -> Vec<u8> {
        let body = self.body.as_deref().unwrap_or_default();
        let mut bytes = Vec::with_capacity(HEADERS + body.len());
        self.push_headers(&mut bytes);
        self.push_cors_headers(&mut bytes, cors);
        bytes.extend_from_slice(b"\r\n");
        if !is_head {
            bytes.extend_from_slice(body);
        }
        bytes
    }

    fn push_headers(&self, bytes: &mut Vec<u8>) {
        push(bytes, "Status", self.status);
        if let Some(body) = &self.body {
            push(bytes, "Content-Type", "application/json; charset=utf-8");
            push(bytes, "Content-Length", &body.len().to_string());
        }
        push(bytes, "Cache-Control", "no-store");
        push(bytes, "X-Content-Type-Options", "nosniff");
        // Who answers at this address: the PHP script may still do.
        push(bytes, "X-Powered-By", "comedor");
        if let Some(methods) = self.allow {
            push(bytes, "Allow", methods);
        }
        if self.status == BUSY {
            push(bytes, "Retry-After", "1");
        }
    }

    /// The headers for pages of other sites (CORS protocol, Fetch standard).
    fn push_cors_headers(&self, bytes: &mut Vec<u8>, cors: &Cors) {
        if cors.varies {
            push(bytes, "Vary", "Origin");
        }
        if let Some(origin) = cors.origin {
            push(bytes, "Access-Control-Allow-Origin", origin.as_str());
            push(bytes, "Access-Control-Allow-Credentials", "true");
        }
        if self.body.is_none() {
            push(bytes, "Access-Control-Allow-Methods", "GET, POST");
            push(bytes, "Access-Control-Allow-Headers", "Content-Type");
            push(bytes, "Access-Control-Max-Age", "600");
        } else if cors.origin.is_some() {
            push(bytes, "Access-Control-Expose-Headers", "Retry-After");
        }
    }
}

/// Adds a header.
fn push(bytes: &mut Vec<u8>, name: &str, value: &str) {
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(b": ");
    bytes.extend_from_slice(value.as_bytes());
    bytes.extend_from_slice(b"\r\n");
}

impl From<Error> for Response {
    fn from(error: Error) -> Response {
        let mut fields = Map::from([
            ("success", Value::Bool(false)),
            ("error", Value::from(&*error.sentence)),
            ("code", Value::from(error.code)),
        ]);
        if let Some(reason) = error.reason {
            *fields.entry("reason") = Value::from(reason);
        }
        let body = Some(Value::Map(fields).to_compact());
        Response {
            status: error.status,
            allow: error.allow,
            body,
        }
    }
}
