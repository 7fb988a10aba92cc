//! The errors of a request: for the client a code, a status and a sentence; for the server's log the
//! cause.
//!
//! Which to use: [`Error::internal`] for a fault on the server, [`Error::busy`] if a retry can
//! succeed, the others if the client can correct the request.

use std::borrow::Cow;

/// The error codes of the API.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Code {
    /// A missing permission, no access to the aulario, or a write from another site
    Forbidden,
    /// Not logged in, or a session without a centre
    InvalidSession,
    MissingParam,
    InvalidFormat,
    InvalidMenuType,
    Duplicate,
    /// Unknown aulario or menu type
    NotFound,
    /// Unknown action, or a method it does not accept
    InvalidAction,
    TooLarge,
    /// Another process holds a lock; retry.
    Busy,
    /// Server-side fault; the log says more.
    InternalError,
}

impl Code {
    /// The value of the field `code` in an error's body, and the HTTP status.
    pub fn name_and_status(self) -> (&'static str, &'static str) {
        match self {
            Code::Forbidden => ("FORBIDDEN", "403 Forbidden"),
            Code::InvalidSession => ("INVALID_SESSION", "400 Bad Request"),
            Code::MissingParam => ("MISSING_PARAM", "400 Bad Request"),
            Code::InvalidFormat => ("INVALID_FORMAT", "400 Bad Request"),
            Code::InvalidMenuType => ("INVALID_MENU_TYPE", "400 Bad Request"),
            Code::Duplicate => ("DUPLICATE", "400 Bad Request"),
            Code::NotFound => ("NOT_FOUND", "404 Not Found"),
            Code::InvalidAction => ("INVALID_ACTION", "400 Bad Request"),
            Code::TooLarge => ("TOO_LARGE", "413 Content Too Large"),
            Code::Busy => ("BUSY", "503 Service Unavailable"),
            Code::InternalError => ("INTERNAL_ERROR", "500 Internal Server Error"),
        }
    }
}

/// The error of a request.
#[derive(Debug, thiserror::Error)]
#[error("{}: {sentence}", code.name_and_status().0)]
pub struct Error {
    pub(crate) code: Code,
    /// What was wrong and what is expected, for the client. Never contains input of the client.
    pub(crate) sentence: Cow<'static, str>,
    /// The accepted methods, if the method was wrong
    pub(crate) allow: Option<&'static str>,
    /// A line for the log: what happened and where
    pub cause: Option<String>,
}

impl Error {
    #[cold]
    fn new(code: Code, sentence: impl Into<Cow<'static, str>>) -> Error {
        Error { code, sentence: sentence.into(), allow: None, cause: None }
    }

    /// The same error with `context` in front of its cause.
    pub(crate) fn in_context(mut self, context: &str) -> Error {
        self.cause = self.cause.map(|cause| format!("{context}: {cause}"));
        self
    }

    /// 403
    pub(crate) fn forbidden(sentence: &'static str) -> Error {
        Error::new(Code::Forbidden, sentence)
    }

    /// 400: the request has no session of a logged-in user.
    pub(crate) fn not_logged_in() -> Error {
        Error::invalid_session("Not logged in: the request has no valid session.", None)
    }

    /// 400: the session cannot be used. `cause` is for an existing session file.
    pub(crate) fn invalid_session(sentence: &'static str, cause: Option<String>) -> Error {
        Error { cause, ..Error::new(Code::InvalidSession, sentence) }
    }

    /// 400: `name` is required.
    pub(crate) fn missing_param(name: &str) -> Error {
        Error::new(Code::MissingParam, format!("Missing parameter: {name} is required."))
    }

    /// 400: a value does not have the form that the sentence names.
    pub(crate) fn invalid_format(sentence: impl Into<Cow<'static, str>>) -> Error {
        Error::new(Code::InvalidFormat, sentence)
    }

    /// 400: the aulario has no menu type with that id.
    pub(crate) fn invalid_menu_type() -> Error {
        Error::new(
            Code::InvalidMenuType,
            "Unknown menu type; get_menu_types lists the menu types of the aulario.",
        )
    }

    /// 400: a menu type with that id exists.
    pub(crate) fn duplicate() -> Error {
        Error::new(Code::Duplicate, "The aulario already has a menu type with this id.")
    }

    /// 404: `what` does not exist.
    pub(crate) fn not_found(what: &str) -> Error {
        Error::new(Code::NotFound, format!("{what} not found."))
    }

    /// 400: unknown action.
    pub(crate) fn invalid_action(sentence: impl Into<Cow<'static, str>>) -> Error {
        Error::new(Code::InvalidAction, sentence)
    }

    /// 400 with an `Allow` header: the action does not accept this method.
    pub(crate) fn invalid_method(allow: &'static str) -> Error {
        Error {
            allow: Some(allow),
            ..Error::invalid_action(format!("This action accepts only {allow}."))
        }
    }

    /// 413: the request is over a limit.
    pub(crate) fn too_large(sentence: impl Into<Cow<'static, str>>) -> Error {
        Error::new(Code::TooLarge, sentence)
    }

    /// 503 with a `Retry-After` header: a lock is held, or a file is being written.
    pub(crate) fn busy() -> Error {
        Error::new(
            Code::Busy,
            "The session or the data is in use by another request; try again in a moment.",
        )
    }

    /// 503 with a `Retry-After` header: the process has as many requests as it takes at once.
    pub(crate) fn overloaded() -> Error {
        Error::new(Code::Busy, "Too many requests at once; try again in a moment.")
    }

    /// 500. `cause` is written to the log only.
    pub(crate) fn internal(cause: impl Into<String>) -> Error {
        Error {
            cause: Some(cause.into()),
            ..Error::new(
                Code::InternalError,
                "Internal error; the server's error log has the cause. Nothing was changed.",
            )
        }
    }

    /// 500 when a change may have been stored: its last step failed, so it may not survive a
    /// power cut, or it is unknown which steps were taken.
    pub fn perhaps_stored(cause: impl Into<String>) -> Error {
        Error {
            sentence: "Internal error; the server's error log has the cause. \
                       The change may have been stored."
                .into(),
            ..Error::internal(cause)
        }
    }
}
