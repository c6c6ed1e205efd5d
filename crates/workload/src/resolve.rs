//! Parameters as a study gives them, made values of their types and checked against their ranges.
//!
//! Owns what a text means for each type: an expression or a quantity for numbers, a template for
//! texts. Refuses to guess: what does not fit is a [`Problem`] that says what would.

use indexmap::IndexMap;
use perflab_model::expression::Scope;
use perflab_model::{Bytes, Nanos, Problem, Value, nearest};

use crate::{Definition, Kind, Parameter};

impl Definition {
    /// Values of all parameters, in the order of the file: those given, and defaults for the others.
    ///
    /// Sizes become integers of bytes, durations floats of seconds; a bare number is taken in that
    /// unit, so that resolving what was resolved changes nothing. A default may use `scope` and the
    /// parameters above it. [`Problem::key`] is the parameter's name.
    pub fn resolve(
        &self,
        given: &IndexMap<String, Value>,
        scope: &Scope,
    ) -> Result<IndexMap<String, Value>, Vec<Problem>> {
        let mut problems: Vec<Problem> = given.keys().filter_map(|name| self.unknown(name)).collect();
        let mut known = scope.clone();
        let mut values = IndexMap::new();
        for (name, parameter) in &self.parameters {
            let resolved = match given.get(name) {
                Some(text) => value(name, parameter, text, scope),
                None => value(name, parameter, &parameter.default, &known),
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

    fn unknown(&self, name: &str) -> Option<Problem> {
        if self.parameters.contains_key(name) {
            return None;
        }
        let hint = if self.parameters.is_empty() {
            format!("`{}` has no parameter", self.name)
        } else {
            nearest::hint(name, self.parameters.keys().map(String::as_str))
        };
        Some(Problem::new(name, format!("workload `{}` has no parameter `{name}`", self.name)).hint(hint))
    }
}

/// One parameter's value, checked.
pub(crate) fn value(
    name: &str,
    parameter: &Parameter,
    given: &Value,
    scope: &Scope,
) -> Result<Value, Problem> {
    match parameter.kind {
        Kind::Text => text(name, given, scope),
        Kind::Choice => choice(name, parameter, text(name, given, scope)?),
        Kind::Boolean => boolean(name, given, scope),
        kind => {
            let number = number(name, kind, given, scope)?;
            in_range(name, parameter, number)?;
            Ok(typed(kind, number, given))
        }
    }
}

/// A bound of a range as a number in the parameter's unit.
pub(crate) fn bound(kind: Kind, value: &Value) -> Option<f64> {
    match value {
        Value::Text(text) => quantity(kind, text),
        other => other.number(),
    }
}

/// Whether a value can be checked without knowing the host.
pub(crate) fn is_literal(kind: Kind, value: &Value) -> bool {
    match value {
        Value::Text(text) if kind.is_number() => quantity(kind, text).is_some(),
        Value::Text(text) => !text.contains("{{"),
        _ => true,
    }
}

fn text(name: &str, given: &Value, scope: &Scope) -> Result<Value, Problem> {
    let rendered = scope.render(&given.to_string());
    rendered.map(Value::Text).map_err(|error| Problem::new(name, error.to_string()))
}

fn choice(name: &str, parameter: &Parameter, value: Value) -> Result<Value, Problem> {
    let given = value.to_string();
    if parameter.choices.contains(&given) {
        return Ok(value);
    }
    let all = parameter.choices.join(", ");
    let near = nearest::nearest(&given, parameter.choices.iter().map(String::as_str));
    let hint = near.map(|near| format!("did you mean `{near}`? allowed: {all}"));
    Err(Problem::new(name, format!("`{given}` is not a choice"))
        .hint(hint.unwrap_or(format!("allowed: {all}"))))
}

fn boolean(name: &str, given: &Value, scope: &Scope) -> Result<Value, Problem> {
    let wrong = |what: String| Problem::new(name, what).hint("write true or false");
    match given {
        Value::Bool(_) => Ok(given.clone()),
        Value::Text(text) => match scope.evaluate(text).map_err(|error| wrong(error.to_string()))? {
            truth @ Value::Bool(_) => Ok(truth),
            other => Err(wrong(format!("`{text}` gives {}, and a boolean is needed", other.kind()))),
        },
        other => Err(wrong(format!("`{other}` is {}, and a boolean is needed", other.kind()))),
    }
}

fn number(name: &str, kind: Kind, given: &Value, scope: &Scope) -> Result<f64, Problem> {
    let wrong = |what: String| Problem::new(name, what).hint(format!("write {}", kind.wanted()));
    let value = match given {
        Value::Text(text) => match quantity(kind, text) {
            Some(number) => return Ok(number),
            None => scope.evaluate(text).map_err(|error| wrong(error.to_string()))?,
        },
        other => other.clone(),
    };
    let number = value.number();
    let number = number.ok_or_else(|| wrong(format!("`{given}` is {}, which is no {kind}", value.kind())))?;
    match kind {
        Kind::Integer if number.fract() != 0.0 => {
            Err(wrong(format!("`{given}` gives {number}, and a whole number is needed")))
        }
        // A third of the memory is meant, not a third of a byte.
        Kind::Size => Ok(number.floor()),
        _ => Ok(number),
    }
}

/// A text with a unit, in bytes or seconds.
fn quantity(kind: Kind, text: &str) -> Option<f64> {
    match kind {
        Kind::Size => Bytes::parse(text).ok().map(|bytes| bytes.0 as f64),
        Kind::Duration => Nanos::parse(text).ok().map(Nanos::seconds),
        _ => None,
    }
}

fn in_range(name: &str, parameter: &Parameter, number: f64) -> Result<(), Problem> {
    let kind = parameter.kind;
    let (min, max) = (limit(kind, parameter.min.as_ref()), limit(kind, parameter.max.as_ref()));
    let floor = if matches!(kind, Kind::Size | Kind::Duration) { Some(min.unwrap_or(0.0)) } else { min };
    let allowed = match (floor, max) {
        (Some(min), _) if number < min => format!("at least {}", kind.show(min)),
        (_, Some(max)) if number > max => format!("at most {}", kind.show(max)),
        _ => return Ok(()),
    };
    let shown = if number < 0.0 { number.to_string() } else { kind.show(number) };
    Err(Problem::new(name, format!("{shown} is out of range")).hint(format!("allowed: {allowed}")))
}

fn limit(kind: Kind, value: Option<&Value>) -> Option<f64> {
    value.and_then(|value| bound(kind, value))
}

fn typed(kind: Kind, number: f64, given: &Value) -> Value {
    match (kind, given) {
        // Integers stay integers: a float cannot hold every one.
        (Kind::Integer | Kind::Size, Value::Int(_)) => given.clone(),
        (Kind::Integer | Kind::Size, _) => Value::Int(number as i64),
        _ => Value::Float(number),
    }
}

#[cfg(test)]
mod tests;
