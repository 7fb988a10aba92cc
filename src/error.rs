//! The errors of a request: for the client a code, a status and a sentence; for the server's log the
//! cause.
//!
//! Which to use: [`Error::internal`] for a fault on the server, [`Error::busy`] if a retry can
//! succeed, the others if the client can correct the request.

use std::borrow::Cow;
use std::fmt::Display;

/// The error of a request.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{code}: {sentence}")]
pub struct Error {
    /// The field `code` of the body
    pub(crate) code: &'static str,
    /// The HTTP status
    pub(crate) status: &'static str,
    /// What was wrong and what is expected, for the client. Never contains input of the client.
    pub(crate) sentence: Cow<'static, str>,
    /// The field `reason` of the body: why a request is INVALID_SESSION or FORBIDDEN. Clients depend on it.
    pub(crate) reason: Option<&'static str>,
    /// The accepted methods, if the method was wrong
    pub(crate) allow: Option<&'static str>,
    /// A line for the log: what happened and where
    pub cause: Option<String>,
}

/// Why a request is FORBIDDEN.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reason {
    /// The permission `<service>:docente` is missing.
    Docente,
    /// The permission `<service>:access` is missing.
    Access,
    /// The permission `sysadmin:access` is missing.
    Sysadmin,
    /// The session lacks the list of the user's aularios.
    Aulas,
    /// The aulario is not in the list of the user's aularios.
    Aulario,
    /// A write to an aulario that shows the menus of another one.
    Shared,
    /// A write that a page of another site has sent.
    Origin,
}

impl Reason {
    fn word(self) -> &'static str {
        match self {
            Reason::Docente => "docente",
            Reason::Access => "access",
            Reason::Sysadmin => "sysadmin",
            Reason::Aulas => "aulas",
            Reason::Aulario => "aulario",
            Reason::Shared => "shared",
            Reason::Origin => "origin",
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Reason::Docente => "Your user lacks the permission to read dining-hall menus.",
            Reason::Access => "Your user lacks the permission to enter this service.",
            Reason::Sysadmin => "Your user lacks the permission to change dining-hall menus.",
            Reason::Aulas => "Your session lacks the list of your aularios (aulas).",
            Reason::Aulario => "Your user has no access to this aulario.",
            Reason::Shared => "This aulario shows the menus of another aulario; change them there.",
            Reason::Origin => "Writes from pages of another site are refused.",
        }
    }
}

const BAD_REQUEST: &str = "400 Bad Request";
/// The status that tells the client to send the request again.
pub(crate) const BUSY: &str = "503 Service Unavailable";

impl Error {
    #[cold]
    fn new(
        code: &'static str,
        status: &'static str,
        sentence: impl Into<Cow<'static, str>>,
    ) -> Error {
        Error {
            code,
            status,
            sentence: sentence.into(),
            reason: None,
            allow: None,
            cause: None,
        }
    }

    /// The same error with `context` in front of its cause.
    pub(crate) fn in_context(mut self, context: impl Display) -> Error {
        self.cause = self.cause.map(|cause| format!("{context}{cause}"));
        self
    }

    /// A request that is refused for this reason
    pub(crate) fn forbidden(reason: Reason) -> Error {
        let error = Error::new("FORBIDDEN", "403 Forbidden", reason.sentence());
        Error {
            reason: Some(reason.word()),
            ..error
        }
    }

    fn invalid_session(reason: &'static str, sentence: &'static str) -> Error {
        Error {
            reason: Some(reason),
            ..Error::new("INVALID_SESSION", BAD_REQUEST, sentence)
        }
    }

    /// The request lacks the session of a logged-in user.
    pub(crate) fn not_logged_in() -> Error {
        let sentence = "Not logged in: the request has no valid session.";
        Error::invalid_session("session", sentence)
    }

    /// The session exists, and cannot be read.
    pub(crate) fn unusable_session(cause: String) -> Error {
        let sentence = "The session is not usable; please log in again.";
        Error {
            cause: Some(cause),
            ..Error::invalid_session("format", sentence)
        }
    }

    /// The session of a logged-in user lacks a centre.
    pub(crate) fn no_centre() -> Error {
        Error::invalid_session("centre", "The session has no centre.")
    }

    /// The session's centre is not a valid id.
    pub(crate) fn unusable_centre(cause: String) -> Error {
        let sentence = "The centre in the session cannot be used.";
        Error {
            cause: Some(cause),
            ..Error::invalid_session("centre", sentence)
        }
    }

    pub(crate) fn missing_param(name: &str) -> Error {
        let sentence = format!("Missing parameter: {name} is required.");
        Error::new("MISSING_PARAM", BAD_REQUEST, sentence)
    }

    /// A value does not have the form that the sentence names.
    pub(crate) fn invalid_format(sentence: impl Into<Cow<'static, str>>) -> Error {
        Error::new("INVALID_FORMAT", BAD_REQUEST, sentence)
    }

    pub(crate) fn invalid_menu_type() -> Error {
        let sentence = "Unknown menu type; get_menu_types lists the menu types of the aulario.";
        Error::new("INVALID_MENU_TYPE", BAD_REQUEST, sentence)
    }

    pub(crate) fn duplicate() -> Error {
        let sentence = "The aulario already has a menu type with this id.";
        Error::new("DUPLICATE", BAD_REQUEST, sentence)
    }

    /// `what` does not exist: the aulario, or the menu type.
    pub(crate) fn not_found(what: &str) -> Error {
        Error::new("NOT_FOUND", "404 Not Found", format!("{what} not found."))
    }

    pub(crate) fn invalid_action(sentence: impl Into<Cow<'static, str>>) -> Error {
        Error::new("INVALID_ACTION", BAD_REQUEST, sentence)
    }

    /// The action accepts only the methods `allow`.
    pub(crate) fn invalid_method(allow: &'static str) -> Error {
        let sentence = format!("This action accepts only {allow}.");
        Error {
            allow: Some(allow),
            ..Error::invalid_action(sentence)
        }
    }

    /// The request is over a limit.
    pub(crate) fn too_large(sentence: impl Into<Cow<'static, str>>) -> Error {
        Error::new("TOO_LARGE", "413 Content Too Large", sentence)
    }

    /// A lock is held, or a file is being written.
    pub(crate) fn busy() -> Error {
        let sentence =
            "The session or the data is in use by another request; try again in a moment.";
        Error::new("BUSY", BUSY, sentence)
    }

    /// BUSY with a line for the log.
    pub(crate) fn busy_because(cause: impl Into<String>) -> Error {
        Error {
            cause: Some(cause.into()),
            ..Error::busy()
        }
    }

    /// `cause` is written to the log only.
    pub(crate) fn internal(cause: impl Into<String>) -> Error {
        let sentence = "Internal error; the server's error log has the cause. Nothing was changed.";
        let error = Error::new("INTERNAL_ERROR", "500 Internal Server Error", sentence);
        Error {
            cause: Some(cause.into()),
            ..error
        }
    }

    /// The request is for another application of this server. The paths are in `cause` only.
    pub(crate) fn another_script(cause: String) -> Error {
        let sentence = "comedor answers for another script of this server; the server's error log names both. Nothing was changed.";
        Error {
            sentence: sentence.into(),
            ..Error::internal(cause)
        }
    }

    /// A change may have been stored: its last step failed, so it may not survive a power cut, or it
    /// is unknown which steps were taken.
    pub fn perhaps_stored(cause: impl Into<String>) -> Error {
        let sentence = "Internal error; the server's error log has the cause. The change may have been stored.";
        Error {
            sentence: sentence.into(),
            ..Error::internal(cause)
        }
    }
}
