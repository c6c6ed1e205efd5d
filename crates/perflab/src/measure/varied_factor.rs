//! `--vary KIND:KEY=LEVEL,LEVEL`: a factor in one argument.

use std::str::FromStr;

use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::study::{Factor, FactorKind, FactorLevel, Study, TargetKey};
use perflab_model::{Scalar, suggest_name};

use crate::failure::UsageError;

/// A factor as it was typed.
#[derive(Debug, Clone, PartialEq)]
pub struct VariedFactor {
    /// its name in the study
    name: String,
    factor: Factor,
}

/// A text that is no factor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; write KIND:KEY=LEVEL,LEVEL, such as sysctl:vm.swappiness=60,0")]
pub struct VariedFactorError {
    reason: String,
}

impl Classify for VariedFactorError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }
}

/// What can be varied in one argument, with how a key of it is asked for.
const KINDS: &[(FactorKind, bool)] = &[
    (FactorKind::Sysctl, true),
    (FactorKind::File, true),
    (FactorKind::Setting, true),
    (FactorKind::Environment, true),
    (FactorKind::Parameter, true),
    (FactorKind::Disk, true),
    (FactorKind::DropCaches, false),
    (FactorKind::Targets, false),
    (FactorKind::Target, true),
    (FactorKind::Placement, false),
    (FactorKind::Beside, false),
    (FactorKind::Monitors, false),
    (FactorKind::Syscall, true),
];

/// How an argument of each kind begins: `sysctl:`.
pub fn kind_prefixes() -> impl Iterator<Item = String> {
    KINDS.iter().map(|(kind, _)| format!("{kind}:"))
}

impl FromStr for VariedFactor {
    type Err = VariedFactorError;

    fn from_str(text: &str) -> Result<Self, VariedFactorError> {
        let refuse = |reason: String| VariedFactorError { reason };
        let (head, key_and_levels) = match text.split_once(':') {
            // A colon may also stand in a level.
            Some((head, rest)) if !head.contains(',') => (head, Some(rest)),
            _ => (text, None),
        };
        let (given_name, kind_text, rest) = split_head(head, key_and_levels);
        let names = || KINDS.iter().map(|(kind, _)| kind.to_string()).collect::<Vec<_>>();
        let Some((kind, has_key)) = KINDS.iter().find(|(kind, _)| kind.to_string() == kind_text).copied()
        else {
            let names = names();
            let hint = suggest_name(kind_text, names.iter().map(String::as_str));
            return Err(refuse(format!("`{kind_text}` is no kind of factor; {hint}")));
        };
        let (key, levels) = if has_key {
            let parts = rest.and_then(|rest| rest.split_once('='));
            let (key, levels) =
                parts.ok_or_else(|| refuse(format!("`{text}` names no key of kind `{kind}`")))?;
            (Some(key.to_owned()), levels)
        } else {
            (None, rest.ok_or_else(|| refuse(format!("`{text}` has no levels")))?)
        };
        if key.as_ref().is_some_and(String::is_empty) {
            return Err(refuse(format!("`{text}` names no key of kind `{kind}`")));
        }
        let levels: Vec<FactorLevel> = levels.split(',').map(str::trim).map(level_of_text).collect();
        // One host may be a group of several.
        let is_host = kind == FactorKind::Target
            && key.as_deref().map(TargetKey::new).is_some_and(TargetKey::names_host);
        let least = if is_host { 1 } else { 2 };
        if levels.len() < least || levels.iter().any(|level| level.name.is_empty()) {
            return Err(refuse(format!("`{text}` needs two levels or more, and none that is empty")));
        }
        let name = given_name.map_or_else(|| factor_name(kind, key.as_deref()), str::to_owned);
        Ok(VariedFactor {
            name,
            factor: Factor { kind, key, workload: None, on: None, levels: levels.into() },
        })
    }
}

/// The name in front, the kind, and what follows it.
fn split_head<'a>(head: &'a str, behind: Option<&'a str>) -> (Option<&'a str>, &'a str, Option<&'a str>) {
    match (head.split_once('='), behind) {
        // `NAME=KIND:KEY=…`
        (Some((name, kind)), Some(_)) => (Some(name), kind, behind),
        // `placement=any,cpus=0`
        (Some((first, rest)), None) if is_kind_without_key(first) => (None, first, Some(rest)),
        // `NAME=drop-caches=0,3`
        (Some((first, rest)), None) => match rest.split_once('=') {
            Some((kind, levels)) => (Some(first), kind, Some(levels)),
            None => (None, first, Some(rest)),
        },
        (None, _) => (None, head, behind),
    }
}

fn is_kind_without_key(text: &str) -> bool {
    KINDS.iter().any(|(kind, has_key)| !has_key && kind.to_string() == text)
}

/// A number stays one, so that kinds that want numbers have them.
fn level_of_text(text: &str) -> FactorLevel {
    FactorLevel::named(text, text.parse().map_or_else(|_| Scalar::Text(text.into()), Scalar::Int))
}

/// What people call it: the sysctl, the last two parts of a path, the key.
fn factor_name(kind: FactorKind, key: Option<&str>) -> String {
    match (kind, key) {
        (FactorKind::File, Some(path)) => {
            let parts: Vec<&str> = path.rsplit('/').filter(|part| !part.is_empty()).take(2).collect();
            parts.into_iter().rev().collect::<Vec<_>>().join("/")
        }
        (_, Some(key)) => key.to_owned(),
        (kind, None) => kind.to_string(),
    }
}

impl VariedFactor {
    /// What it is called in the study.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The parameter that it varies, if it is one.
    pub fn parameter(&self) -> Option<&str> {
        let is_parameter = self.factor.kind == FactorKind::Parameter;
        self.factor.key.as_deref().filter(|_| is_parameter)
    }

    /// Adds it to a study.
    ///
    /// # Errors
    /// The study varies something of this name.
    pub fn add_to(&self, study: &mut Study) -> Result<(), UsageError> {
        if study.factor.contains_key(&self.name) {
            let message = format!("--vary: the study has a factor `{}` already", self.name);
            return Err(UsageError::new(message, "name this one: --vary NAME=KIND:KEY=LEVELS"));
        }
        study.factor.insert(self.name.clone(), self.factor.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_argument_is_a_factor() {
        let parse = |text: &str| -> (String, String, Option<String>, Vec<String>) {
            let VariedFactor { name, factor } = text.parse().unwrap();
            let levels = factor.levels.iter().map(|level| level.name.clone()).collect();
            (name, factor.kind.to_string(), factor.key, levels)
        };
        let expected = |name: &str, kind: &str, key: Option<&str>, levels: [&str; 2]| {
            (name.to_owned(), kind.to_owned(), key.map(str::to_owned), levels.map(str::to_owned).to_vec())
        };
        assert_eq!(
            parse("sysctl:vm.swappiness=60,0"),
            expected("vm.swappiness", "sysctl", Some("vm.swappiness"), ["60", "0"])
        );
        let thp = "/sys/kernel/mm/transparent_hugepage/enabled";
        assert_eq!(
            parse(&format!("file:{thp}=never,always")),
            expected("transparent_hugepage/enabled", "file", Some(thp), ["never", "always"])
        );
        assert_eq!(
            parse(&format!("thp=file:{thp}=never,always")),
            expected("thp", "file", Some(thp), ["never", "always"])
        );
        assert_eq!(parse("drop-caches=0,3"), expected("drop-caches", "drop-caches", None, ["0", "3"]));
        assert_eq!(
            parse("placement=any,cpus=0"),
            expected("placement", "placement", None, ["any", "cpus=0"])
        );
        assert_eq!(
            parse("environment:PATH=/a:/b,/c"),
            expected("PATH", "environment", Some("PATH"), ["/a:/b", "/c"])
        );
    }

    #[test]
    fn what_is_no_factor_is_refused() {
        for text in
            ["sysctl", "sysctl:vm.swappiness", "sysctl:vm.swappiness=1", "sysctl:=1,2", "what:a=1,2", ""]
        {
            assert!(text.parse::<VariedFactor>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_number_is_one_where_a_kind_wants_it() {
        let VariedFactor { factor, .. } = "drop-caches=0,3".parse().unwrap();
        assert_eq!(factor.levels[1].value, Scalar::Int(3));
    }
}
