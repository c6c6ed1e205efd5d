//! Which cases are looked at: those with a level of a factor or a value of a parameter.

use std::collections::BTreeSet;
use std::str::FromStr;

use indexmap::IndexSet;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::{Bytes, Case, RunRecord};

use crate::error::AnalyzeError;

/// `KEY=VALUE`: a factor and one of its levels, or a parameter of a workload and its value; `KEY=VALUE,VALUE` for one of several. In
/// values `*` stands for any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseCondition {
    /// The factor or the parameter.
    pub key: String,
    /// What it may be.
    pub values: Vec<String>,
}

/// A text that is no condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a condition: write KEY=VALUE, such as `threads=4` or `pages=huge,ordinary`")]
pub struct CaseConditionError {
    text: String,
}

impl Classify for CaseConditionError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }
}

impl FromStr for CaseCondition {
    type Err = CaseConditionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || CaseConditionError { text: text.to_owned() };
        let (key, values) = text.split_once('=').ok_or_else(refused)?;
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        let is_whole = !key.trim().is_empty() && values.iter().all(|value| !value.is_empty());
        is_whole.then(|| CaseCondition { key: key.trim().to_owned(), values }).ok_or_else(refused)
    }
}

impl CaseCondition {
    /// Whether a case has the level, or the value of the parameter.
    #[must_use]
    pub fn is_met_by(&self, case: &Case) -> bool {
        case_value(case, &self.key).is_some_and(|value| self.allows(&value))
    }

    /// Whether a value is one of those that it may be.
    #[must_use]
    pub fn allows(&self, value: &str) -> bool {
        self.values.iter().any(|allowed| matches_pattern(allowed, value) || is_size_in_bytes(allowed, value))
    }
}

/// Whether a value is the number of bytes of a size that is written with its unit: `8MiB` is 8388608.
fn is_size_in_bytes(size: &str, value: &str) -> bool {
    Bytes::parse(size).is_ok_and(|bytes| value.parse() == Ok(bytes.0))
}

/// The level that a case has of a factor, or its value of a parameter.
fn case_value(case: &Case, key: &str) -> Option<String> {
    let parameter = || case.point.get(key).or_else(|| case.parameters.get(key)).map(ToString::to_string);
    case.levels.get(key).cloned().or_else(parameter)
}

/// Whether a name is what a pattern says, in which `*` stands for any text, also for none.
#[must_use]
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let Some(tail) = parts.pop() else { return true };
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = left.get(at + part.len()..).unwrap_or_default();
    }
    left.ends_with(tail)
}

/// Every condition names something that the cases have, and can be met.
///
/// # Errors
/// A key that no case has, naming those that differ between cases; a value that no case has, naming its values.
pub fn check_conditions<'a>(
    runs: impl Iterator<Item = &'a RunRecord> + Clone,
    conditions: &[CaseCondition],
) -> Result<(), AnalyzeError> {
    let cases = || runs.clone().flat_map(|run| &run.manifest.plan.cases);
    for condition in conditions {
        let known: BTreeSet<String> = cases().filter_map(|case| case_value(case, &condition.key)).collect();
        let (key, known_values) = (condition.key.clone(), known.iter().cloned().collect());
        if known.is_empty() {
            let known = condition_keys(cases());
            return Err(AnalyzeError::UnknownConditionKey { key, known });
        }
        if !known.iter().any(|value| condition.allows(value)) {
            let values = condition.values.join(",");
            return Err(AnalyzeError::UnknownConditionValue { key, values, known: known_values });
        }
    }
    Ok(())
}

/// Factors and parameters of the cases, those that cases differ in first.
fn condition_keys<'a>(cases: impl Iterator<Item = &'a Case> + Clone) -> Vec<String> {
    let differing = cases.clone().flat_map(|case| case.levels.keys().chain(case.point.keys()));
    let keys: IndexSet<&String> = differing.chain(cases.flat_map(|case| case.parameters.keys())).collect();
    keys.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::RunBuilder;

    use super::*;

    #[test]
    fn a_size_is_its_bytes() {
        let condition: CaseCondition = "size=8MiB,1GB".parse().unwrap();
        for (value, allowed) in
            [("8388608", true), ("1000000000", true), ("8MiB", true), ("8", false), ("8.0", false)]
        {
            assert_eq!(condition.allows(value), allowed, "{value}");
        }
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name) in [
            ("latency-*", "latency-p99"),
            ("*", ""),
            ("*p9*", "latency-p99"),
            ("a*b*c", "a--b--c"),
            ("time", "time"),
        ] {
            assert!(matches_pattern(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("latency-*", "latency"), ("time", "times"), ("a*b*c", "a--c"), ("*x", "xy"), ("ab*ba", "aba")]
        {
            assert!(!matches_pattern(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_condition_is_a_key_and_its_values() {
        let condition: CaseCondition = "pages=huge,ordinary".parse().unwrap();
        assert!(condition.allows("huge") && condition.allows("ordinary") && !condition.allows("none"));
        for text in ["pages", "=huge", "pages=", "pages=huge,"] {
            assert!(text.parse::<CaseCondition>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_no_case_has_is_refused_with_what_there_is() {
        let run = RunBuilder::new("r")
            .with(|lab| lab.factors = vec![("pages", vec!["huge", "ordinary"])])
            .build_run(|_| Some(1.0));
        let check = |text: &str| check_conditions([&run].into_iter(), &[text.parse().unwrap()]);
        assert!(check("pages=huge").is_ok() && check("pages=h*").is_ok());
        let unknown = AnalyzeError::UnknownConditionKey { key: "size".into(), known: vec!["pages".into()] };
        assert_eq!(check("size=1"), Err(unknown));
        let known = vec!["huge".into(), "ordinary".into()];
        let unknown = AnalyzeError::UnknownConditionValue { key: "pages".into(), values: "x".into(), known };
        assert_eq!(check("pages=x"), Err(unknown));
    }
}
