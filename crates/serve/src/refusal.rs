//! What a request is refused with: a status and a sentence.

use axum::http::StatusCode;
use perflab_archive::ArchiveError;
use perflab_model::error_class::{Classify as _, ErrorClass};
use perflab_model::suggest_name;
use serde::Serialize;

use crate::result_source::{RefusalReason, ResultRefusal};

/// A status of HTTP and a sentence that says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestRefusal {
    pub(crate) status: StatusCode,
    pub(crate) sentence: String,
}

/// The same for programs.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct RefusalDocument<'a> {
    /// What is wrong, and what to do.
    pub(crate) error: &'a str,
}

impl RequestRefusal {
    pub(crate) fn new(status: StatusCode, sentence: impl Into<String>) -> Self {
        RequestRefusal { status, sentence: sentence.into() }
    }

    /// A parameter that cannot be understood.
    pub(crate) fn bad_request(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, sentence)
    }

    pub(crate) fn not_found(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, sentence)
    }

    /// What should not happen.
    pub(crate) fn unexpected(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, sentence)
    }
}

/// A filter by a name that nothing has.
pub(crate) fn unknown_name<'a>(
    parameter: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> RequestRefusal {
    let hint = suggest_name(name, known);
    RequestRefusal::bad_request(format!("`{parameter}={name}` is unknown: {hint}"))
}

impl From<ArchiveError> for RequestRefusal {
    fn from(error: ArchiveError) -> Self {
        let is_gone = |source: &std::io::Error| source.kind() == std::io::ErrorKind::NotFound;
        let status = match &error {
            ArchiveError::NotFound { .. }
            | ArchiveError::NoSeries { .. }
            | ArchiveError::NoStacks { .. }
            | ArchiveError::NoTrace { .. }
            | ArchiveError::NoIo { .. } => StatusCode::NOT_FOUND,
            ArchiveError::Io { source, .. } if is_gone(source) => StatusCode::NOT_FOUND,
            ArchiveError::Ambiguous { .. } | ArchiveError::Live { .. } => StatusCode::CONFLICT,
            ArchiveError::Linked { .. } => StatusCode::FORBIDDEN,
            error => status_of_class(error.class()),
        };
        RequestRefusal::new(status, error.to_string())
    }
}

impl From<ResultRefusal> for RequestRefusal {
    fn from(refused: ResultRefusal) -> Self {
        let status = match refused.reason {
            RefusalReason::Parameter => StatusCode::BAD_REQUEST,
            RefusalReason::Class(class) => status_of_class(class),
        };
        RequestRefusal::new(status, refused.sentence)
    }
}

fn status_of_class(class: ErrorClass) -> StatusCode {
    match class {
        ErrorClass::Usage => StatusCode::BAD_REQUEST,
        ErrorClass::Environment => StatusCode::SERVICE_UNAVAILABLE,
        ErrorClass::Unexpected | ErrorClass::WorkloadFailed | ErrorClass::SettingsLeft => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}
