//! The names that a study's expressions may use: host facts and the study's own `[values]`.

use perflab_model::expression::ExpressionScope;
use perflab_model::{Facts, Problem, Study};

/// Host facts plus the study's values, which may need each other but not in a cycle.
pub fn expression_scope(study: &Study, facts: &Facts) -> Result<ExpressionScope, Problem> {
    let mut scope = ExpressionScope::new(facts.expression_names());
    let values = study.values.iter().map(|(name, value)| (name.as_str(), value));
    match scope.define(values) {
        Ok(()) => Ok(scope),
        Err((name, error)) => Err(Problem::new(format!("values.{name}"), error.to_string())),
    }
}
