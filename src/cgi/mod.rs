//! CGI/1.1 (RFC 3875): requests and responses. Independent of sessions and menus.

pub mod input;
pub(crate) mod multipart;
pub(crate) mod origin;
mod response;
mod script;
mod variables;

pub(crate) use origin::{Cors, Origin};
pub(crate) use response::{Response, output};
pub(crate) use script::{ACTION, Script};
pub use variables::{Method, Variables};
