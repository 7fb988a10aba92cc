//! The errors of reads and writes: what was tried, on which path, and why it failed.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::access::Refusal;
use crate::error;
use crate::model::DocumentError;
use crate::sys::accounts::{self, owner_of};
use crate::sys::shared_file::{Fault, MAX_SIZE};

/// The error of a read or write. The path is for the log.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: {operation}: {source}", path.display())]
    Fault {
        operation: &'static str,
        path: PathBuf,
        source: Fault,
    },
    /// The file cannot be used. It is not changed.
    #[error("{}: {why}", path.display())]
    Unusable { path: PathBuf, why: Defect },
    /// The file was replaced, but a later step failed.
    #[error("{}: {operation}, after the replacement: {source}", path.display())]
    Unflushed {
        operation: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Another request holds the lock, or too many requests wait. This is not logged.
    #[error("busy")]
    Busy,
    /// Another program writes the file, or replaces it again and again.
    #[error("{}: {why}", path.display())]
    InUse { path: PathBuf, why: &'static str },
    /// Another program modified the file before it was replaced.
    #[error("{}: another program modified it during the change", path.display())]
    Modified { path: PathBuf },
    /// Another program created or deleted the file, or deleted its folder, before the file was replaced.
    #[error("{}: {operation}: {source}", path.display())]
    Displaced {
        operation: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

/// Why a file cannot be used, or cannot be replaced.
#[derive(Debug, thiserror::Error)]
pub enum Defect {
    #[error("invalid JSON: {0}")]
    InvalidJson(#[from] serde_json::Error),
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error("would become larger than {} MiB", MAX_SIZE >> 20)]
    WouldBeTooLarge,
    #[error("{0}; see \"{heading}\" in docs/troubleshooting.md", heading = .0.heading())]
    Refused(#[from] Refusal),
    #[error("shared_comedor_from names {}, which is not a regular file", shared.display())]
    SharedNotRegular { shared: PathBuf },
    #[error("shared_comedor_from names {}, whose name must be {expected}", shared.display())]
    SharedNotId {
        shared: PathBuf,
        expected: &'static str,
    },
}

impl Error {
    pub(super) fn fault<E: Into<Fault>>(
        operation: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Error {
        move |source| Error::Fault {
            operation,
            path: path.to_owned(),
            source: source.into(),
        }
    }

    /// The error of a step that fails if another program creates or deletes the file, or its folder.
    pub(super) fn displaced_or(
        operation: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> Error {
        move |source| match source.kind() {
            ErrorKind::NotFound | ErrorKind::AlreadyExists => Error::Displaced {
                operation,
                path: path.to_owned(),
                source,
            },
            _ => Error::fault(operation, path)(source),
        }
    }

    pub(super) fn modified(path: &Path) -> Error {
        Error::Modified {
            path: path.to_owned(),
        }
    }

    pub(super) fn in_use(path: &Path, why: &'static str) -> Error {
        Error::InUse {
            path: path.to_owned(),
            why,
        }
    }

    pub(super) fn unflushed(
        operation: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Unflushed {
            operation,
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn unusable(path: &Path, why: impl Into<Defect>) -> Error {
        Error::Unusable {
            path: path.to_owned(),
            why: why.into(),
        }
    }

    /// The line for the log. If a permission is missing, it says who lacks it, and to whom the file belongs.
    fn logged(&self) -> String {
        match self {
            Error::Fault {
                path,
                source: Fault::Io(error),
                ..
            } if error.kind() == ErrorKind::PermissionDenied => {
                let user = accounts::user(geteuid().as_raw());
                format!("{self}; comedor runs as user {user}{}", owner_of(path))
            }
            _ => self.to_string(),
        }
    }

    /// Whether the file may be read and changed again.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Error::Modified { .. } | Error::Displaced { .. } => true,
            Error::Fault { source, .. } => source.is_stale(),
            _ => false,
        }
    }
}

impl From<Error> for error::Error {
    fn from(error: Error) -> error::Error {
        let cause = error.logged();
        match error {
            Error::Busy => error::Error::busy(),
            Error::InUse { .. }
            | Error::Modified { .. }
            | Error::Displaced { .. }
            | Error::Fault {
                source: Fault::Leased,
                ..
            } => error::Error::busy_because(cause),
            Error::Unflushed { .. } => error::Error::perhaps_stored(cause),
            Error::Fault { .. } | Error::Unusable { .. } => error::Error::internal(cause),
        }
    }
}
