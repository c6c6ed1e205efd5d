//! Parameters as a study gives them, made values of their types and checked against their ranges.
//!
//! Owns what a text means for each type: an expression or a quantity for numbers, a template for
//! texts. Refuses to guess: what does not fit is a [`Problem`] that says what would.

use indexmap::IndexMap;
use perflab_model::expression::ExpressionScope;
use perflab_model::{Bytes, Nanos, Problem, Scalar, nearest};

use crate::{ParameterKind, WorkloadDefinition, WorkloadParameter};

impl WorkloadDefinition {
    /// Values of all parameters, in the order of the file: those given, and defaults for the others.
    ///
    /// Sizes become integers of bytes, durations floats of seconds; a bare number is taken in that
    /// unit, so that resolving what was resolved changes nothing. A default may use `scope` and the
    /// parameters above it. [`Problem::key`] is the parameter's name.
    pub fn resolve_parameters(
        &self,
        given: &IndexMap<String, Scalar>,
        scope: &ExpressionScope,
    ) -> Result<IndexMap<String, Scalar>, Vec<Problem>> {
        let mut problems: Vec<Problem> =
            given.keys().filter_map(|name| self.unknown_parameter_problem(name)).collect();
        let mut known = scope.clone();
        let mut values = IndexMap::new();
        for (name, parameter) in &self.parameters {
            let resolved = match given.get(name) {
                Some(text) => resolve_parameter(name, parameter, text, scope),
                None => resolve_parameter(name, parameter, &parameter.default, &known),
            };
            match resolved {
                Ok(value) => {
                    known.set(name, value.clone());
                    values.insert(name.clone(), value);
                }
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(values) } else { Err(problems) }
    }

    fn unknown_parameter_problem(&self, name: &str) -> Option<Problem> {
        if self.parameters.contains_key(name) {
            return None;
        }
        let hint = if self.parameters.is_empty() {
            format!("`{}` has no parameter", self.name)
        } else {
            nearest::suggest_name(name, self.parameters.keys().map(String::as_str))
        };
        Some(
            Problem::new(name, format!("workload `{}` has no parameter `{name}`", self.name)).with_hint(hint),
        )
    }
}

/// One parameter's value, checked.
pub(crate) fn resolve_parameter(
    name: &str,
    parameter: &WorkloadParameter,
    given: &Scalar,
    scope: &ExpressionScope,
) -> Result<Scalar, Problem> {
    match parameter.kind {
        ParameterKind::Text => resolve_text(name, given, scope),
        ParameterKind::Choice => resolve_choice(name, parameter, resolve_text(name, given, scope)?),
        ParameterKind::Boolean => resolve_boolean(name, given, scope),
        kind => {
            let number = resolve_number(name, kind, given, scope)?;
            require_in_range(name, parameter, number)?;
            Ok(number_to_value(kind, number, given))
        }
    }
}

/// A bound of a range as a number in the parameter's unit.
pub(crate) fn range_bound(kind: ParameterKind, value: &Scalar) -> Option<f64> {
    match value {
        Scalar::Text(text) => parse_with_unit(kind, text),
        other => other.as_number(),
    }
}

/// Whether a value can be checked without knowing the host.
pub(crate) fn is_literal(kind: ParameterKind, value: &Scalar) -> bool {
    match value {
        Scalar::Text(text) if kind.is_number() => parse_with_unit(kind, text).is_some(),
        Scalar::Text(text) => !text.contains("{{"),
        _ => true,
    }
}

fn resolve_text(name: &str, given: &Scalar, scope: &ExpressionScope) -> Result<Scalar, Problem> {
    let rendered = scope.render(&given.to_string());
    rendered.map(Scalar::Text).map_err(|error| Problem::new(name, error.to_string()))
}

fn resolve_choice(name: &str, parameter: &WorkloadParameter, value: Scalar) -> Result<Scalar, Problem> {
    let given = value.to_string();
    if parameter.choices.contains(&given) {
        return Ok(value);
    }
    let all = parameter.choices.join(", ");
    let near = nearest::nearest_name(&given, parameter.choices.iter().map(String::as_str));
    let hint = near.map(|near| format!("did you mean `{near}`? allowed: {all}"));
    Err(Problem::new(name, format!("`{given}` is not a choice"))
        .with_hint(hint.unwrap_or(format!("allowed: {all}"))))
}

fn resolve_boolean(name: &str, given: &Scalar, scope: &ExpressionScope) -> Result<Scalar, Problem> {
    let wrong = |what: String| Problem::new(name, what).with_hint("write true or false");
    match given {
        Scalar::Bool(_) => Ok(given.clone()),
        Scalar::Text(text) => match scope.evaluate(text).map_err(|error| wrong(error.to_string()))? {
            truth @ Scalar::Bool(_) => Ok(truth),
            other => {
                Err(wrong(format!("`{text}` gives {}, and a boolean is needed", other.type_description())))
            }
        },
        other => Err(wrong(format!("`{other}` is {}, and a boolean is needed", other.type_description()))),
    }
}

fn resolve_number(
    name: &str,
    kind: ParameterKind,
    given: &Scalar,
    scope: &ExpressionScope,
) -> Result<f64, Problem> {
    let wrong = |what: String| Problem::new(name, what).with_hint(format!("write {}", kind.expected_text()));
    let value = match given {
        Scalar::Text(text) => match parse_with_unit(kind, text) {
            Some(number) => return Ok(number),
            None => scope.evaluate(text).map_err(|error| wrong(error.to_string()))?,
        },
        other => other.clone(),
    };
    let number = value.as_number();
    let number = number
        .ok_or_else(|| wrong(format!("`{given}` is {}, which is no {kind}", value.type_description())))?;
    match kind {
        ParameterKind::Integer if number.fract() != 0.0 => {
            Err(wrong(format!("`{given}` gives {number}, and a whole number is needed")))
        }
        // A third of the memory is meant, not a third of a byte.
        ParameterKind::Size => Ok(number.floor()),
        _ => Ok(number),
    }
}

/// A text with a unit, in bytes or seconds.
fn parse_with_unit(kind: ParameterKind, text: &str) -> Option<f64> {
    match kind {
        ParameterKind::Size => Bytes::parse(text).ok().map(|bytes| bytes.0 as f64),
        ParameterKind::Duration => Nanos::parse(text).ok().map(Nanos::seconds),
        _ => None,
    }
}

fn require_in_range(name: &str, parameter: &WorkloadParameter, number: f64) -> Result<(), Problem> {
    let kind = parameter.kind;
    let (min, max) = (
        optional_range_bound(kind, parameter.min.as_ref()),
        optional_range_bound(kind, parameter.max.as_ref()),
    );
    let floor = if matches!(kind, ParameterKind::Size | ParameterKind::Duration) {
        Some(min.unwrap_or(0.0))
    } else {
        min
    };
    let allowed = match (floor, max) {
        (Some(min), _) if number < min => format!("at least {}", kind.format_number(min)),
        (_, Some(max)) if number > max => format!("at most {}", kind.format_number(max)),
        _ => return Ok(()),
    };
    let shown = if number < 0.0 { number.to_string() } else { kind.format_number(number) };
    Err(Problem::new(name, format!("{shown} is out of range")).with_hint(format!("allowed: {allowed}")))
}

fn optional_range_bound(kind: ParameterKind, value: Option<&Scalar>) -> Option<f64> {
    value.and_then(|value| range_bound(kind, value))
}

fn number_to_value(kind: ParameterKind, number: f64, given: &Scalar) -> Scalar {
    match (kind, given) {
        // Integers stay integers: a float cannot hold every one.
        (ParameterKind::Integer | ParameterKind::Size, Scalar::Int(_)) => given.clone(),
        (ParameterKind::Integer | ParameterKind::Size, _) => Scalar::Int(number as i64),
        _ => Scalar::Float(number),
    }
}

#[cfg(test)]
mod tests;
