//! What the text of a definition alone can get wrong, beyond types and unknown keys.

use std::collections::BTreeSet;

use perflab_model::expression::ExpressionScope;
use perflab_model::{Facts, Problem, Scalar, nearest};

use super::document::DefinitionDocument;
use super::{ArgvElement, MetricRule, ParameterKind, WorkloadParameter};
use crate::resolve;

/// Names that a template may use beside the parameters.
fn template_names<'a>() -> impl Iterator<Item = &'a str> {
    Facts::VARIABLES.iter().map(|(name, _)| *name).chain(["scratch", "kept", "perflab"])
}

/// All problems of a definition except those of its metrics.
pub(super) fn definition_problems(document: &DefinitionDocument) -> Vec<Problem> {
    let mut found = Vec::new();
    if document.argv.is_empty() {
        found.push(Problem::new("argv", "is empty").with_hint("name the program and its arguments"));
    }
    if document.metrics.is_empty() {
        found.push(Problem::new("metric", "nothing is measured").with_hint("add a table `[[metric]]`"));
    }
    for (name, parameter) in &document.parameters {
        self::check_parameter(name, parameter, &mut found);
    }
    found.extend(brief_problems(document));
    found.extend(script_problem(document));
    found.extend(archive_problem(document));
    found.extend(template_problems(document));
    found
}

/// Metrics named twice.
pub(super) fn duplicate_metric_problems(metrics: &[MetricRule]) -> Vec<Problem> {
    let mut seen = BTreeSet::new();
    let again = metrics.iter().enumerate().filter(|(_, rule)| !seen.insert(&rule.metric.name));
    again
        .map(|(index, rule)| {
            let message = format!("the metric `{}` stands here twice", rule.metric.name);
            Problem::new(format!("metric[{index}].name"), message)
        })
        .collect()
}

fn check_parameter(name: &str, parameter: &WorkloadParameter, found: &mut Vec<Problem>) {
    let key = |part: &str| format!("parameter.{name}.{part}");
    if (parameter.kind == ParameterKind::Choice) == parameter.choices.is_empty() {
        let hint = "list `choices` for `type = \"choice\"`, and for no other";
        found.push(Problem::new(key("choices"), "do not fit the type").with_hint(hint));
    }
    for (part, bound) in [("min", &parameter.min), ("max", &parameter.max)] {
        if let Some(bound) = bound
            && resolve::range_bound(parameter.kind, bound).is_none()
        {
            let message = format!("`{bound}` is no bound of type {}", parameter.kind);
            found.push(
                Problem::new(key(part), message)
                    .with_hint(format!("write {}", parameter.kind.expected_text())),
            );
        }
    }
    // A default that is an expression needs a host; the others are checked here and now.
    if resolve::is_literal(parameter.kind, &parameter.default)
        && let Err(problem) =
            resolve::resolve_parameter(name, parameter, &parameter.default, &ExpressionScope::default())
    {
        found.push(Problem { key: key("default"), ..problem });
    }
}

/// Values of `[brief]` that are no values of a parameter.
fn brief_problems(document: &DefinitionDocument) -> Vec<Problem> {
    let problem = |(name, given): (&String, &Scalar)| {
        let key = format!("brief.{name}");
        let Some(parameter) = document.parameters.get(name) else {
            let hint = nearest::suggest_name(name, document.parameters.keys().map(String::as_str));
            return Some(Problem::new(key, format!("there is no parameter `{name}`")).with_hint(hint));
        };
        let checked = resolve::is_literal(parameter.kind, given)
            .then(|| resolve::resolve_parameter(name, parameter, given, &ExpressionScope::default()));
        checked?.err().map(|problem| Problem { key, ..problem })
    };
    document.brief.iter().filter_map(problem).collect()
}

/// A script gets its values as `$1`, `$2`, so that no value can become part of the script.
fn script_problem(document: &DefinitionDocument) -> Option<Problem> {
    let [first, ..] = document.argv.as_slice() else { return None };
    let templated = document.shell && first.templates().iter().any(|text| text.contains("{{"));
    templated.then(|| {
        Problem::new("argv[0]", "a script takes no template")
            .with_hint("pass the value as a further element of argv and use \"$1\"")
    })
}

fn archive_problem(document: &DefinitionDocument) -> Option<Problem> {
    let source = document.install.source.as_ref()?;
    let hex = source.sha256.len() == 64 && source.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
    (!hex).then(|| {
        Problem::new("install.source.sha256", "is not a SHA-256").with_hint("64 hex digits: `sha256sum FILE`")
    })
}

/// Templates that do not compile or use a name that cannot exist.
fn template_problems(document: &DefinitionDocument) -> Vec<Problem> {
    let known: Vec<&str> = document.parameters.keys().map(String::as_str).chain(template_names()).collect();
    let mut texts = Vec::new();
    for (index, argument) in document.argv.iter().enumerate() {
        let key = format!("argv[{index}]");
        let rendered = argument.templates().iter().map(|text| (key.clone(), text.clone(), false));
        texts.extend(rendered);
        if let ArgvElement::When { when, .. } = argument {
            texts.push((key, when.clone(), true));
        }
    }
    let environment = document.environment.iter();
    texts.extend(environment.map(|(name, text)| (format!("environment.{name}"), text.clone(), false)));
    texts
        .iter()
        .filter_map(|(key, text, expression)| unknown_name_problem(key, text, *expression, &known))
        .collect()
}

fn unknown_name_problem(key: &str, text: &str, expression: bool, known: &[&str]) -> Option<Problem> {
    use perflab_model::expression::ExpressionError;
    let mut scope = ExpressionScope::default();
    for name in known {
        scope.set(name, Scalar::Int(1));
    }
    let outcome = if expression { scope.evaluate(text).map(drop) } else { scope.render(text).map(drop) };
    match outcome {
        Err(ExpressionError::Unknown { name, .. }) => {
            let hint = nearest::suggest_name(&name, known.iter().copied());
            Some(
                Problem::new(key, format!("`{name}` is no parameter and no name of the host"))
                    .with_hint(hint),
            )
        }
        // A stand-in of 1 may not fit an expression about texts, but a syntax error is one for any value.
        Err(ExpressionError::Failed { reason, .. })
            if reason.contains("syntax") || reason.contains("unexpected") =>
        {
            Some(Problem::new(key, format!("`{text}`: {reason}")))
        }
        _ => None,
    }
}
