//! What the text of a definition alone can get wrong, beyond types and unknown keys.

use std::collections::BTreeSet;

use perflab_model::expression::Scope;
use perflab_model::{Facts, Problem, Value, nearest};

use super::document::Document;
use super::{Argument, Kind, MetricRule, Parameter};
use crate::resolve;

/// Names that a template may use beside the parameters.
fn host_names<'a>() -> impl Iterator<Item = &'a str> {
    Facts::VARIABLES.iter().map(|(name, _)| *name).chain(["scratch", "kept", "perflab"])
}

/// All problems of a definition except those of its metrics.
pub(super) fn problems(document: &Document) -> Vec<Problem> {
    let mut found = Vec::new();
    if document.argv.is_empty() {
        found.push(Problem::new("argv", "is empty").hint("name the program and its arguments"));
    }
    if document.metrics.is_empty() {
        found.push(Problem::new("metric", "nothing is measured").hint("add a table `[[metric]]`"));
    }
    for (name, parameter) in &document.parameters {
        self::parameter(name, parameter, &mut found);
    }
    found.extend(brief(document));
    found.extend(script(document));
    found.extend(archive(document));
    found.extend(templates(document));
    found
}

/// Metrics named twice.
pub(super) fn twice(metrics: &[MetricRule]) -> Vec<Problem> {
    let mut seen = BTreeSet::new();
    let again = metrics.iter().enumerate().filter(|(_, rule)| !seen.insert(&rule.metric.name));
    again
        .map(|(index, rule)| {
            let message = format!("the metric `{}` stands here twice", rule.metric.name);
            Problem::new(format!("metric[{index}].name"), message)
        })
        .collect()
}

fn parameter(name: &str, parameter: &Parameter, found: &mut Vec<Problem>) {
    let key = |part: &str| format!("parameter.{name}.{part}");
    if (parameter.kind == Kind::Choice) == parameter.choices.is_empty() {
        let hint = "list `choices` for `type = \"choice\"`, and for no other";
        found.push(Problem::new(key("choices"), "do not fit the type").hint(hint));
    }
    for (part, bound) in [("min", &parameter.min), ("max", &parameter.max)] {
        if let Some(bound) = bound
            && resolve::bound(parameter.kind, bound).is_none()
        {
            let message = format!("`{bound}` is no bound of type {}", parameter.kind);
            found.push(Problem::new(key(part), message).hint(format!("write {}", parameter.kind.wanted())));
        }
    }
    // A default that is an expression needs a host; the others are checked here and now.
    if resolve::is_literal(parameter.kind, &parameter.default)
        && let Err(problem) = resolve::value(name, parameter, &parameter.default, &Scope::default())
    {
        found.push(Problem { key: key("default"), ..problem });
    }
}

/// Values of `[brief]` that are no values of a parameter.
fn brief(document: &Document) -> Vec<Problem> {
    let problem = |(name, given): (&String, &Value)| {
        let key = format!("brief.{name}");
        let Some(parameter) = document.parameters.get(name) else {
            let hint = nearest::hint(name, document.parameters.keys().map(String::as_str));
            return Some(Problem::new(key, format!("there is no parameter `{name}`")).hint(hint));
        };
        let checked = resolve::is_literal(parameter.kind, given)
            .then(|| resolve::value(name, parameter, given, &Scope::default()));
        checked?.err().map(|problem| Problem { key, ..problem })
    };
    document.brief.iter().filter_map(problem).collect()
}

/// A script gets its values as `$1`, `$2`, so that no value can become part of the script.
fn script(document: &Document) -> Option<Problem> {
    let [first, ..] = document.argv.as_slice() else { return None };
    let templated = document.shell && first.templates().iter().any(|text| text.contains("{{"));
    templated.then(|| {
        Problem::new("argv[0]", "a script takes no template")
            .hint("pass the value as a further element of argv and use \"$1\"")
    })
}

fn archive(document: &Document) -> Option<Problem> {
    let source = document.install.source.as_ref()?;
    let hex = source.sha256.len() == 64 && source.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
    (!hex).then(|| {
        Problem::new("install.source.sha256", "is not a SHA-256").hint("64 hex digits: `sha256sum FILE`")
    })
}

/// Templates that do not compile or use a name that cannot exist.
fn templates(document: &Document) -> Vec<Problem> {
    let known: Vec<&str> = document.parameters.keys().map(String::as_str).chain(host_names()).collect();
    let mut texts = Vec::new();
    for (index, argument) in document.argv.iter().enumerate() {
        let key = format!("argv[{index}]");
        let rendered = argument.templates().iter().map(|text| (key.clone(), text.clone(), false));
        texts.extend(rendered);
        if let Argument::When { when, .. } = argument {
            texts.push((key, when.clone(), true));
        }
    }
    let environment = document.environment.iter();
    texts.extend(environment.map(|(name, text)| (format!("environment.{name}"), text.clone(), false)));
    texts.iter().filter_map(|(key, text, expression)| unknown_name(key, text, *expression, &known)).collect()
}

fn unknown_name(key: &str, text: &str, expression: bool, known: &[&str]) -> Option<Problem> {
    use perflab_model::expression::ExpressionError;
    let mut scope = Scope::default();
    for name in known {
        scope.set(name, Value::Int(1));
    }
    let outcome = if expression { scope.evaluate(text).map(drop) } else { scope.render(text).map(drop) };
    match outcome {
        Err(ExpressionError::Unknown { name, .. }) => {
            let hint = nearest::hint(&name, known.iter().copied());
            Some(Problem::new(key, format!("`{name}` is no parameter and no name of the host")).hint(hint))
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
