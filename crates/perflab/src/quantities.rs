//! Times as options give them: one place where a wrong one becomes an error that names its option.

use perflab_model::Nanos;

use crate::failure::UsageError;

/// `100ms`, given to this option.
pub fn parse_time_option(option: &str, text: &str) -> Result<Nanos, UsageError> {
    let wrong = |error| UsageError::new(format!("{option}: {error}"), "for example 100ms or 60s");
    Nanos::parse(text).map_err(wrong)
}
