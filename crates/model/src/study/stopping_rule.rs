//! `until`: when a run has measured enough.
//!
//! Stopping looks at precision only; stopping at significance would make p-values lie (a look every five iterations
//! up to fifty turns 5 % false alarms into 18 %).

use std::fmt;
use std::ops::Bound;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::quantity::Ratio;

/// `precision 1%, at most 60`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoppingRule {
    /// Half the width of the interval of each median, relative to it.
    pub precision: f64,
    /// Blocks after which the run ends in any case.
    pub at_most: u32,
    /// Blocks before which it does not end: a narrow interval of few values is luck.
    pub at_least: u32,
}

/// Fewest blocks where a study gives none.
const AT_LEAST: u32 = 10;

/// A text that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a rule: {reason}; write for example \"precision 1%, at most 60\"")]
pub struct StoppingRuleError {
    text: String,
    reason: String,
}

impl StoppingRule {
    /// The precision in per cent, as it was written.
    #[must_use]
    pub fn precision_percent(self) -> f64 {
        Ratio(self.precision).percent()
    }
}

impl FromStr for StoppingRule {
    type Err = StoppingRuleError;

    /// Reads `precision 1%, at most 60` or `precision 0.5%, at least 12, at most 100`.
    fn from_str(text: &str) -> Result<Self, StoppingRuleError> {
        let refuse = |reason: &str| StoppingRuleError { text: text.into(), reason: reason.into() };
        let (mut precision, mut at_most, mut at_least) = (None, None, AT_LEAST);
        for part in text.split(',').map(str::trim) {
            let count =
                |rest: &str| rest.trim().parse::<u32>().map_err(|_| refuse("a number of blocks is missing"));
            if let Some(rest) = part.strip_prefix("precision ") {
                let allowed = (Bound::Excluded(0.0), Bound::Excluded(1.0));
                let ratio = Ratio::parse_within(rest, allowed).map_err(|error| refuse(&error.to_string()))?;
                precision = Some(ratio.0);
            } else if let Some(rest) = part.strip_prefix("at most ") {
                at_most = Some(count(rest)?);
            } else if let Some(rest) = part.strip_prefix("at least ") {
                at_least = count(rest)?;
            } else {
                return Err(refuse(&format!("`{part}` is neither `precision`, `at least` nor `at most`")));
            }
        }
        let precision = precision.ok_or_else(|| refuse("it names no precision"))?;
        let at_most = at_most.ok_or_else(|| refuse("it has no `at most`, so it may never end"))?;
        let at_least = at_least.max(1).min(at_most);
        if at_most == 0 {
            Err(refuse("at most 0 measures nothing"))
        } else {
            Ok(StoppingRule { precision, at_most, at_least })
        }
    }
}

impl fmt::Display for StoppingRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "precision {}%, at least {}, at most {}",
            self.precision_percent(),
            self.at_least,
            self.at_most
        )
    }
}

impl<'de> Deserialize<'de> for StoppingRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for StoppingRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl schemars::JsonSchema for StoppingRule {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StoppingRule".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "When there are enough iterations: \"precision 1%, at most 60\".",
            "pattern": "precision *[0-9.]+ *%.*at most *[0-9]+|at most *[0-9]+.*precision *[0-9.]+ *%",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_its_precision_and_its_end() {
        let rule: StoppingRule = "precision 1%, at most 60".parse().unwrap();
        assert_eq!(rule, StoppingRule { precision: 0.01, at_most: 60, at_least: 10 });
        assert_eq!(rule.to_string().parse(), Ok(rule));
        let few: StoppingRule = "at most 4, precision 0.5 %".parse().unwrap();
        assert_eq!(few.at_least, 4);
    }

    #[test]
    fn what_is_no_rule_is_told_why() {
        let reasons = [
            ("precision 1%", "may never end"),
            ("at most 60", "names no precision"),
            ("significant, at most 60", "`significant` is neither"),
            ("precision 0%, at most 60", "above 0"),
            ("precision 1, at most 60", "write `1%`"),
            ("precision 1%, at most many", "number of blocks"),
            ("precision 1%, at most 0", "measures nothing"),
        ];
        for (text, reason) in reasons {
            let error = text.parse::<StoppingRule>().unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
