//! The response (RFC 3875 §6), complete in memory before it is written.

use super::{Cors, Method};
use crate::error::{BUSY, Error};
use crate::php::json::{Map, Value};
use crate::sys::log;

/// What a CGI program writes (RFC 3875 §6).
#[derive(Debug)]
pub struct Output {
    /// Headers (`Status:` and others) and body
    pub stdout: Vec<u8>,
    /// Lines for the log
    pub stderr: Vec<u8>,
}

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
        let body = self.body.as_deref();
        let length = body.map(|body| body.len().to_string());
        let with_body = |value| body.and(Some(value));
        let without_body = |value| body.is_none().then_some(value);
        let headers = [
            ("Status", Some(self.status)),
            ("Content-Type", with_body("application/json; charset=utf-8")),
            ("Content-Length", length.as_deref()),
            ("Cache-Control", Some("no-store")),
            ("X-Content-Type-Options", Some("nosniff")),
            // Who answers at this address: the PHP script may still do.
            ("X-Powered-By", Some("comedor")),
            ("Allow", self.allow),
            ("Retry-After", (self.status == BUSY).then_some("1")),
            ("Vary", cors.varies.then_some("Origin")),
            ("Access-Control-Allow-Origin", cors.origin),
            (
                "Access-Control-Allow-Credentials",
                cors.origin.and(Some("true")),
            ),
            (
                "Access-Control-Expose-Headers",
                cors.origin.and(with_body("Retry-After")),
            ),
            ("Access-Control-Allow-Methods", without_body("GET, POST")),
            ("Access-Control-Allow-Headers", without_body("Content-Type")),
            ("Access-Control-Max-Age", without_body("600")),
        ];
        let mut bytes = Vec::with_capacity(512 + body.map_or(0, <[u8]>::len));
        for (name, value) in headers {
            if let Some(value) = value {
                bytes.extend_from_slice(name.as_bytes());
                bytes.extend_from_slice(b": ");
                bytes.extend_from_slice(value.as_bytes());
                bytes.extend_from_slice(b"\r\n");
            }
        }
        bytes.extend_from_slice(b"\r\n");
        if !is_head {
            bytes.extend_from_slice(body.unwrap_or_default());
        }
        bytes
    }
}

impl From<Error> for Response {
    fn from(error: Error) -> Response {
        let mut fields = Map::from([
            ("success", Value::Bool(false)),
            ("error", Value::from(&*error.sentence)),
            ("code", Value::from(error.code)),
        ]);
        if let Some(reason) = error.reason {
            *fields.entry("reason") = Value::from(reason.word());
        }
        let body = Some(Value::Map(fields).to_compact());
        Response {
            status: error.status,
            allow: error.allow,
            body,
        }
    }
}
