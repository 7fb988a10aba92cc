//! CGI/1.1 (RFC 3875): what the web server passes in, and what goes back to it.
//!
//! Nothing here knows of sessions, or of what a menu is.

pub mod body;
pub mod form;
pub(crate) mod multipart;
pub mod origin;
mod request;
mod response;
mod variables;

pub use request::Request;
pub use response::Response;
pub use variables::Variables;
