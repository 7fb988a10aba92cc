//! The response (RFC 3875 §6), complete in memory before it is written.

use super::Method;
use crate::error::{Code, Error};
use crate::json::{Map, Value};
use crate::log;

/// The output for a request.
#[derive(Debug)]
pub struct Output {
    /// The response
    pub stdout: Vec<u8>,
    /// A line for the server's log, or nothing
    pub stderr: Vec<u8>,
}

impl Output {
    /// The response to a request with `method`, and the cause of an error.
    pub fn new(answer: Result<Response, Error>, method: Method) -> Output {
        let (response, stderr) = match answer {
            Ok(response) => (response, None),
            Err(error) => {
                let line = error.cause.as_deref().map(log::line);
                (error.into(), line)
            }
        };
        let stdout = response.to_bytes(method == Method::Head);
        Output { stdout, stderr: stderr.unwrap_or_default().into_bytes() }
    }
}

/// Status, headers and a JSON body.
#[derive(Debug)]
pub struct Response {
    /// The status code and its reason phrase (RFC 9110 §15)
    status: &'static str,
    /// The `Allow` header: the accepted methods
    allow: Option<&'static str>,
    /// The `Retry-After` header, in seconds
    retry_after: Option<&'static str>,
    body: Vec<u8>,
}

impl Response {
    /// 200 with `success: true` and `fields`.
    pub(crate) fn ok(mut fields: Map) -> Response {
        *fields.move_to(0, "success") = Value::Bool(true);
        let body = Value::Map(fields).to_compact();
        Response { status: "200 OK", allow: None, retry_after: None, body }
    }

    /// The bytes for standard output; for HEAD the same headers without the body
    /// (RFC 9110 §9.3.2). Headers never contain input of the client.
    fn to_bytes(&self, is_head: bool) -> Vec<u8> {
        let length = self.body.len().to_string();
        let headers = [
            ("Status", Some(self.status)),
            ("Content-Type", Some("application/json; charset=utf-8")),
            ("Content-Length", Some(length.as_str())),
            ("Cache-Control", Some("no-store")),
            ("X-Content-Type-Options", Some("nosniff")),
            ("Allow", self.allow),
            ("Retry-After", self.retry_after),
        ];
        let mut bytes = Vec::with_capacity(256 + self.body.len());
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
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

impl From<Error> for Response {
    fn from(error: Error) -> Response {
        let body = Value::Map(Map::from([
            ("success", Value::Bool(false)),
            ("error", Value::from(&*error.sentence)),
            ("code", Value::from(error.code.name())),
        ]));
        Response {
            status: error.code.status(),
            allow: error.allow,
            retry_after: (error.code == Code::Busy).then_some("1"),
            body: body.to_compact(),
        }
    }
}
