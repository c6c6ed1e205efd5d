//! The names that a study's expressions may use: host facts and the study's own `[values]`.

use perflab_model::expression::Scope;
use perflab_model::{Facts, Problem, Study};

/// Host facts plus the study's values, which may need each other but not in a cycle.
pub fn scope(study: &Study, facts: &Facts) -> Result<Scope, Problem> {
    let mut scope = Scope::new(facts.variables());
    let values = study.values.iter().map(|(name, value)| (name.as_str(), value));
    match scope.define(values) {
        Ok(()) => Ok(scope),
        Err((name, error)) => Err(Problem::new(format!("values.{name}"), error.to_string())),
    }
}
