//! The one vocabulary that every step shares: what can go wrong, as the client sees it: a code, a status, a sentence; and beside it, for
//! the server's log alone, the cause.
//!
//! Which to use: [`Error::internal`] for what an administrator must mend, [`Error::busy`] for
//! what passes by itself, the others for what the client can do something about.

use std::borrow::Cow;

/// The codes of the contract.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Code {
    /// The caller lacks a permission, the aulario is not his, or the write comes from elsewhere.
    Forbidden,
    /// Nobody is logged in, or the session names no centre.
    InvalidSession,
    /// A required parameter was not supplied.
    MissingParam,
    /// A value has another form than the one expected.
    InvalidFormat,
    /// No menu type has that id.
    InvalidMenuType,
    /// A menu type with that id exists already.
    Duplicate,
    /// No such aulario or menu type.
    NotFound,
    /// No such action, or not by this method.
    InvalidAction,
    /// The body is over the limit.
    TooLarge,
    /// Somebody else holds what is needed; to be tried again.
    Busy,
    /// The administrator's to mend.
    InternalError,
}

impl Code {
    /// The name in the `code` field of an error's body.
    pub fn name(self) -> &'static str {
        match self {
            Code::Forbidden => "FORBIDDEN",
            Code::InvalidSession => "INVALID_SESSION",
            Code::MissingParam => "MISSING_PARAM",
            Code::InvalidFormat => "INVALID_FORMAT",
            Code::InvalidMenuType => "INVALID_MENU_TYPE",
            Code::Duplicate => "DUPLICATE",
            Code::NotFound => "NOT_FOUND",
            Code::InvalidAction => "INVALID_ACTION",
            Code::TooLarge => "TOO_LARGE",
            Code::Busy => "BUSY",
            Code::InternalError => "INTERNAL_ERROR",
        }
    }

    /// The HTTP status that goes with the code.
    pub fn status(self) -> &'static str {
        match self {
            Code::InvalidSession
            | Code::MissingParam
            | Code::InvalidFormat
            | Code::InvalidMenuType
            | Code::Duplicate
            | Code::InvalidAction => "400 Bad Request",
            Code::Forbidden => "403 Forbidden",
            Code::NotFound => "404 Not Found",
            Code::TooLarge => "413 Content Too Large",
            Code::InternalError => "500 Internal Server Error",
            Code::Busy => "503 Service Unavailable",
        }
    }
}

/// A request that is not answered with success.
#[derive(Debug, thiserror::Error)]
#[error("{}: {sentence}", code.name())]
pub struct Error {
    /// Its code
    pub code: Code,
    /// What was wrong and what is expected, for the client. It repeats nothing that was sent.
    sentence: Cow<'static, str>,
    /// The methods that are answered, where the method was wrong
    pub allow: Option<&'static str>,
    /// A line for standard error: what happened and where
    pub cause: Option<String>,
}

impl Error {
    /// What was wrong and what is expected, for the client
    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    fn new(code: Code, sentence: impl Into<Cow<'static, str>>) -> Error {
        Error { code, sentence: sentence.into(), allow: None, cause: None }
    }

    /// 403: the caller may not do this.
    pub fn forbidden(sentence: impl Into<Cow<'static, str>>) -> Error {
        Error::new(Code::Forbidden, sentence)
    }

    /// 400: nobody is logged in, or without a centre. `cause` is for a session file that is
    /// there and can't be used.
    pub fn invalid_session(sentence: &'static str, cause: Option<String>) -> Error {
        Error { cause, ..Error::new(Code::InvalidSession, sentence) }
    }

    /// 400: `name` is required.
    pub fn missing_param(name: &str) -> Error {
        Error::new(Code::MissingParam, format!("The parameter {name} is required."))
    }

    /// 400: a value does not have the form that the sentence names.
    pub fn invalid_format(sentence: impl Into<Cow<'static, str>>) -> Error {
        Error::new(Code::InvalidFormat, sentence)
    }

    /// 400: no type of the aulario has that id.
    pub fn invalid_menu_type() -> Error {
        Error::new(
            Code::InvalidMenuType,
            "The aulario has no menu type with that id; get_menu_types lists those it has.",
        )
    }

    /// 400: a type with that id exists.
    pub fn duplicate() -> Error {
        Error::new(Code::Duplicate, "The aulario already has a menu type with that id.")
    }

    /// 404: `what` does not exist.
    pub fn not_found(what: &str) -> Error {
        Error::new(Code::NotFound, format!("There is no such {what}."))
    }

    /// 400: no action of that name.
    pub fn invalid_action(sentence: &'static str) -> Error {
        Error::new(Code::InvalidAction, sentence)
    }

    /// 400 with an `Allow` header: the action is not answered to this method.
    pub fn invalid_method(allow: &'static str) -> Error {
        Error {
            allow: Some(allow),
            ..Error::new(Code::InvalidAction, format!("This action is answered to {allow} only."))
        }
    }

    /// 413: the body is over the limit.
    pub fn too_large() -> Error {
        Error::new(Code::TooLarge, "The body of the request is over the limit of 1 MiB.")
    }

    /// 503 with a `Retry-After` header: somebody else holds what is needed.
    pub fn busy() -> Error {
        Error::new(
            Code::Busy,
            "Another request or page holds what is needed; please try again in a moment.",
        )
    }

    /// 500. The client learns nothing of `cause`.
    pub fn internal(cause: impl Into<String>) -> Error {
        Error {
            cause: Some(cause.into()),
            ..Error::new(
                Code::InternalError,
                "The service could not do this; the server's error log says why. Nothing was changed.",
            )
        }
    }

    /// 500 where a change may have been stored: its last step failed, and it may not survive a
    /// power cut; or it is not known how far it came.
    pub fn perhaps_stored(cause: impl Into<String>) -> Error {
        Error {
            sentence:
                "The service could not make sure that the change is stored; it may have been. \
                       The server's error log says why."
                    .into(),
            ..Error::internal(cause)
        }
    }
}
