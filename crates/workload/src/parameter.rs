//! `[parameter.NAME]`: what a user may set, with its kind, default and range, and how a given value is resolved.
//!
//! A text is an expression or a quantity for numbers, a template for texts. What does not fit is a [`Problem`] that
//! says what would.

use std::fmt;

use perflab_model::expression::ExpressionScope;
use perflab_model::{Bytes, Nanos, Problem, Scalar};
use serde::Deserialize;

/// One parameter.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadParameter {
    /// What its values are.
    #[serde(rename = "type")]
    pub kind: ParameterKind,
    /// Its value where a study gives none; may be an expression over the host.
    pub default: Scalar,
    /// What a number counts, for people: `threads`, `messages`.
    #[serde(default)]
    pub unit: Option<String>,
    /// The smallest allowed value.
    #[serde(default)]
    pub min: Option<Scalar>,
    /// The largest allowed value.
    #[serde(default)]
    pub max: Option<Scalar>,
    /// The allowed values, for a choice.
    #[serde(default)]
    pub choices: Vec<String>,
    /// One line of help.
    pub about: String,
}

/// What the values of a parameter are, and as what they reach a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterKind {
    /// a whole number
    Integer,
    /// a number
    Float,
    /// a size: a whole number of bytes; written `"64MiB"`
    Size,
    /// a length of time: a float of seconds; written `"10s"`
    Duration,
    /// any text
    Text,
    /// one of `choices`
    Choice,
    /// true or false
    Boolean,
}

impl ParameterKind {
    /// Whether its values are numbers, so that a text for it is a quantity or an expression.
    pub fn is_number(self) -> bool {
        matches!(
            self,
            ParameterKind::Integer | ParameterKind::Float | ParameterKind::Size | ParameterKind::Duration
        )
    }

    /// What to write, for messages.
    pub fn expected_text(self) -> &'static str {
        match self {
            ParameterKind::Integer => "a whole number or an expression such as \"2 * cpus\"",
            ParameterKind::Float => "a number or an expression such as \"0.5 * cpus\"",
            ParameterKind::Size => {
                "a size such as \"64MiB\", or an expression in bytes such as \"memory / 4\""
            }
            ParameterKind::Duration => "a time such as \"10s\", or an expression in seconds",
            ParameterKind::Text => "a text",
            ParameterKind::Choice => "one of its choices",
            ParameterKind::Boolean => "true or false",
        }
    }

    /// A number of this kind as its unit shows it.
    pub fn format_number(self, number: f64) -> String {
        match self {
            ParameterKind::Size => Bytes(number as u64).to_string(),
            ParameterKind::Duration => Nanos((number * 1e9) as u64).to_string(),
            _ => number.to_string(),
        }
    }
}

impl fmt::Display for ParameterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ParameterKind::Integer => "integer",
            ParameterKind::Float => "float",
            ParameterKind::Size => "size",
            ParameterKind::Duration => "duration",
            ParameterKind::Text => "text",
            ParameterKind::Choice => "choice",
            ParameterKind::Boolean => "boolean",
        })
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
    let near = perflab_model::nearest_name(&given, parameter.choices.iter().map(String::as_str));
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
mod tests {
    use indexmap::IndexMap;
    use perflab_model::study::TomlSource;

    use super::*;
    use crate::definition::WorkloadDefinition;

    const TOOL: &str = r#"
title = "a"
measures = "b"
homepage = "c"
licence = "MIT"
argv = ["tool"]
parameter.threads = { type = "integer", default = "2 * cpus", min = 1, max = 64, about = "" }
parameter.ratio = { type = "float", default = 0.5, min = 0, max = 1, about = "" }
parameter.size = { type = "size", default = "4KiB", max = "1GiB", about = "" }
parameter.time = { type = "duration", default = "1.5s", about = "" }
parameter.name = { type = "text", default = "{{ threads }}-way", about = "" }
parameter.mode = { type = "choice", default = "read", choices = ["read", "write", "4"], about = "" }
parameter.sync = { type = "boolean", default = false, about = "" }
metric = [{ name = "time", unit = "s", direction = "lower", time = "wall" }]
"#;

    fn read_tool_definition() -> WorkloadDefinition {
        WorkloadDefinition::read(&TomlSource::new("tool.toml", TOOL))
            .unwrap_or_else(|error| panic!("{error}"))
    }

    fn host_scope() -> ExpressionScope {
        let mut scope = ExpressionScope::default();
        scope.set("cpus", Scalar::Int(4));
        scope.set("memory", Scalar::Int(1000));
        scope
    }

    fn resolve_given(given: &[(&str, Scalar)]) -> Result<IndexMap<String, Scalar>, Vec<Problem>> {
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        read_tool_definition().resolve_parameters(&given, &host_scope())
    }

    fn resolve_one(name: &str, value: impl Into<Scalar>) -> Scalar {
        resolve_given(&[(name, value.into())]).unwrap()[name].clone()
    }

    fn resolution_problem_text(name: &str, value: impl Into<Scalar>) -> String {
        let problems = resolve_given(&[(name, value.into())]).unwrap_err();
        let problem = &problems[0];
        format!("{}: {}; {}", problem.key, problem.message, problem.hint.as_deref().unwrap_or_default())
    }

    #[test]
    fn defaults_are_filled_in_and_typed() {
        let values = resolve_given(&[]).unwrap();
        let expected = [
            ("threads", Scalar::Int(8)),
            ("ratio", Scalar::Float(0.5)),
            ("size", Scalar::Int(4096)),
            ("time", Scalar::Float(1.5)),
            ("name", Scalar::from("8-way")),
            ("mode", Scalar::from("read")),
            ("sync", Scalar::Bool(false)),
        ];
        let expected: IndexMap<String, Scalar> =
            expected.map(|(name, value)| (name.to_owned(), value)).into();
        assert_eq!(values, expected);
    }

    #[test]
    fn texts_for_numbers_are_quantities_or_expressions() {
        assert_eq!(resolve_one("threads", "cpus / 2"), Scalar::Int(2));
        assert_eq!(resolve_one("size", "1MiB"), Scalar::Int(1 << 20));
        assert_eq!(resolve_one("size", "memory / 3"), Scalar::Int(333));
        assert_eq!(resolve_one("size", 7), Scalar::Int(7));
        assert_eq!(resolve_one("time", "250ms"), Scalar::Float(0.25));
        assert_eq!(resolve_one("time", 2), Scalar::Float(2.0));
        assert_eq!(resolve_one("mode", 4), Scalar::from("4"));
        assert_eq!(resolve_one("sync", "cpus > 2"), Scalar::Bool(true));
    }

    #[test]
    fn what_does_not_fit_is_told_what_would() {
        assert_eq!(
            resolution_problem_text("thread", 1),
            "thread: workload `tool` has no parameter `thread`; did you mean `threads`?"
        );
        assert_eq!(
            resolution_problem_text("threads", 65),
            "threads: 65 is out of range; allowed: at most 64"
        );
        assert_eq!(
            resolution_problem_text("threads", "cpus / 3"),
            "threads: `cpus / 3` gives 1.3333333333333333, and a whole number is needed; write a whole number or an expression such as \"2 * cpus\""
        );
        assert_eq!(
            resolution_problem_text("threads", Scalar::Bool(true)),
            "threads: `true` is a boolean, which is no integer; write a whole number or an expression such as \"2 * cpus\""
        );
        assert_eq!(
            resolution_problem_text("threads", "2 * cpu"),
            "threads: `2 * cpu`: `cpu` is not known; did you mean `cpus`?; write a whole number or an expression such as \"2 * cpus\""
        );
        assert_eq!(
            resolution_problem_text("size", "2GiB"),
            "size: 2 GiB is out of range; allowed: at most 1 GiB"
        );
        assert_eq!(resolution_problem_text("size", -1), "size: -1 is out of range; allowed: at least 0 B");
        assert_eq!(
            resolution_problem_text("mode", "writ"),
            "mode: `writ` is not a choice; did you mean `write`? allowed: read, write, 4"
        );
        assert_eq!(
            resolution_problem_text("sync", "maybe").split(';').next(),
            Some("sync: `maybe`: `maybe` is not known")
        );
        assert_eq!(
            resolution_problem_text("name", "{{ nobody }}").split(';').next(),
            Some("name: `{{ nobody }}`: `nobody` is not known")
        );
    }

    #[test]
    fn all_problems_come_at_once() {
        let problems =
            resolve_given(&[("nobody", 1.into()), ("ratio", 2.into()), ("time", "soon".into())]).unwrap_err();
        assert_eq!(
            problems.iter().map(|problem| problem.key.as_str()).collect::<Vec<_>>(),
            ["nobody", "ratio", "time"]
        );
    }
}
