//! What an error means to whoever called perflab, said by the error itself: exit codes are made of it.

use std::io;

use crate::expression::ExpressionError;
use crate::problem::Problems;
use crate::quantity::QuantityError;
use crate::study::stopping_rule::StoppingRuleError;

/// What an error means to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// something that should not happen: a defect of perflab, or damaged data
    Unexpected,
    /// the command line or a file that the user wrote is wrong, or names what is not there
    Usage,
    /// the environment refuses: a right, a package, room, a kernel without a feature
    Environment,
    /// what was measured failed, or was stopped
    WorkloadFailed,
    /// settings of the machine are not what they were
    SettingsLeft,
}

/// An error that knows its class. There is no default: each variant is decided where it is defined.
pub trait Classify: std::error::Error {
    /// What it means to the caller.
    fn class(&self) -> ErrorClass;

    /// The mistakes in a file of the user's, where it is made of them: they are shown in their places.
    fn problems(&self) -> Option<&Problems> {
        None
    }
}

/// The system refuses a right or room; whatever else it says was not expected.
impl Classify for io::Error {
    fn class(&self) -> ErrorClass {
        match self.kind() {
            io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded => ErrorClass::Environment,
            _ => ErrorClass::Unexpected,
        }
    }
}

impl Classify for serde_json::Error {
    fn class(&self) -> ErrorClass {
        ErrorClass::Unexpected
    }
}

impl Classify for Problems {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }

    fn problems(&self) -> Option<&Problems> {
        Some(self)
    }
}

impl Classify for QuantityError {
    fn class(&self) -> ErrorClass {
        match self {
            QuantityError::NoUnit { .. }
            | QuantityError::Unreadable { .. }
            | QuantityError::OutOfRange { .. } => ErrorClass::Usage,
        }
    }
}

impl Classify for ExpressionError {
    fn class(&self) -> ErrorClass {
        match self {
            ExpressionError::Failed { .. }
            | ExpressionError::Unknown { .. }
            | ExpressionError::NotAScalar { .. }
            | ExpressionError::TooLarge { .. }
            | ExpressionError::Cycle { .. } => ErrorClass::Usage,
        }
    }
}

impl Classify for StoppingRuleError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_refuses_is_the_environments() {
        let class = |kind: io::ErrorKind| io::Error::from(kind).class();
        assert_eq!(class(io::ErrorKind::PermissionDenied), ErrorClass::Environment);
        assert_eq!(class(io::ErrorKind::StorageFull), ErrorClass::Environment);
        assert_eq!(class(io::ErrorKind::NotFound), ErrorClass::Unexpected);
    }

    #[test]
    fn a_ratio_without_a_sign_is_the_users() {
        let error = crate::Ratio::parse("3").unwrap_err();
        assert_eq!((error.class(), error.problems()), (ErrorClass::Usage, None));
    }
}
