//! Why a session cannot be used.

use std::fmt::Display;

use crate::error;

/// Why there is no usable session.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Unknown, ended by a logout, or expired
    #[error("unknown session")]
    Unknown,
    /// A PHP page has held it for too long
    #[error("a PHP page has held the session for 5 seconds")]
    Busy,
    /// It exists, and PHP would not accept it
    #[error("{0}")]
    Unusable(String),
    /// Its folder, file or server cannot be reached, which the administrator can fix
    #[error("{0}")]
    Unreachable(String),
}

impl Error {
    /// `place` must not contain the whole id: a reader of the log could use it to act as the user.
    pub fn unusable(place: &str, why: &dyn Display) -> Error {
        Error::Unusable(format!("session {place}: {why}"))
    }
}

impl From<Error> for error::Error {
    fn from(error: Error) -> error::Error {
        match error {
            Error::Unknown => error::Error::not_logged_in(),
            Error::Busy => error::Error::busy(),
            Error::Unusable(cause) => error::Error::invalid_session(
                "The session is not usable; please log in again.",
                Some(cause),
            ),
            Error::Unreachable(cause) => error::Error::internal(cause),
        }
    }
}
