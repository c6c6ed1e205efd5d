//! `until`: when a run has measured enough.
//!
//! A rule looks at precision only, or at whether the verdicts are decided. Stopping at significance by tests that expect to
//! be asked once would make p-values lie (a look every five iterations up to fifty turns 5 % false alarms into 18 %), so that
//! runs that end once they are decided are judged by intervals that hold at every look.

use std::fmt;
use std::ops::Bound;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::quantity::{Nanos, Ratio};

/// `precision 1%, at most 60` or `decided, at most 60`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoppingRule {
    /// What is to be reached.
    pub goal: StoppingGoal,
    /// Blocks after which the run ends in any case.
    pub at_most: u32,
    /// Blocks before which it does not end: a narrow interval of few values is luck.
    pub at_least: u32,
    /// How long it may measure: it ends with the block in which this has passed, also before `at_least`.
    pub within: Option<Nanos>,
}

/// What a run measures until.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StoppingGoal {
    /// Half the width of the interval of each median, relative to it, is no more than this.
    Precision(f64),
    /// Every row that decides is better, worse or the same.
    Decided,
}

impl StoppingGoal {
    /// Fewest blocks where a study gives none.
    fn at_least(self) -> u32 {
        match self {
            StoppingGoal::Precision(_) => 10,
            StoppingGoal::Decided => StoppingRule::FEWEST_DECIDED_BLOCKS,
        }
    }
}

/// A text that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a rule: {reason}; write for example \"precision 1%, at most 60\" or \"decided, at most 60\""
)]
pub struct StoppingRuleError {
    text: String,
    reason: String,
}

impl StoppingRule {
    /// Fewest blocks of a run that ends once it is decided, where its study gives none.
    pub const FEWEST_DECIDED_BLOCKS: u32 = 6;

    /// Most blocks of such a run, where its study gives none.
    pub const MOST_DECIDED_BLOCKS: u32 = 60;

    /// Ends a run once its verdicts are decided, or after so many blocks.
    #[must_use]
    pub fn decided(at_most: u32) -> Self {
        let at_least = StoppingRule::FEWEST_DECIDED_BLOCKS.min(at_most);
        StoppingRule { goal: StoppingGoal::Decided, at_most, at_least, within: None }
    }

    /// Whether the run is looked at for its verdicts after every block.
    #[must_use]
    pub fn is_decided(self) -> bool {
        self.goal == StoppingGoal::Decided
    }

    /// The precision in per cent, as it was written.
    #[must_use]
    pub fn precision_percent(self) -> Option<f64> {
        match self.goal {
            StoppingGoal::Precision(precision) => Some(Ratio(precision).percent()),
            StoppingGoal::Decided => None,
        }
    }
}

impl FromStr for StoppingRule {
    type Err = StoppingRuleError;

    /// Reads `precision 1%, at most 60`, `precision 0.5%, at least 12, at most 100`, `decided, at most 100, within 60s` or
    /// `decided`.
    fn from_str(text: &str) -> Result<Self, StoppingRuleError> {
        let refuse = |reason: &str| StoppingRuleError { text: text.into(), reason: reason.into() };
        let (mut goal, mut at_most, mut at_least, mut within) = (None, None, None, None);
        for part in text.split(',').map(str::trim) {
            let count =
                |rest: &str| rest.trim().parse::<u32>().map_err(|_| refuse("a number of blocks is missing"));
            let named = if let Some(rest) = part.strip_prefix("precision ") {
                let allowed = (Bound::Excluded(0.0), Bound::Excluded(1.0));
                let ratio = Ratio::parse_within(rest, allowed).map_err(|error| refuse(&error.to_string()))?;
                Some(StoppingGoal::Precision(ratio.0))
            } else if part == "decided" {
                Some(StoppingGoal::Decided)
            } else if let Some(rest) = part.strip_prefix("at most ") {
                at_most = Some(count(rest)?);
                None
            } else if let Some(rest) = part.strip_prefix("at least ") {
                at_least = Some(count(rest)?);
                None
            } else if let Some(rest) = part.strip_prefix("within ") {
                within = Some(rest.parse::<Nanos>().map_err(|error| refuse(&error.to_string()))?);
                None
            } else {
                return Err(refuse(&format!(
                    "`{part}` is none of `decided`, `precision`, `at least`, `at most` and `within`"
                )));
            };
            if named.is_some() && goal.is_some() {
                return Err(refuse("it names two goals"));
            }
            goal = goal.or(named);
        }
        let goal = goal.ok_or_else(|| refuse("it names neither a precision nor `decided`"))?;
        let usual = (goal == StoppingGoal::Decided).then_some(StoppingRule::MOST_DECIDED_BLOCKS);
        let at_most = at_most.or(usual).ok_or_else(|| refuse("it has no `at most`, so it may never end"))?;
        let at_least = at_least.unwrap_or(goal.at_least()).max(1).min(at_most);
        if at_most == 0 {
            Err(refuse("at most 0 measures nothing"))
        } else {
            Ok(StoppingRule { goal, at_most, at_least, within })
        }
    }
}

impl fmt::Display for StoppingRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.precision_percent() {
            Some(percent) => write!(f, "precision {percent}%")?,
            None => f.write_str("decided")?,
        }
        write!(f, ", at least {}, at most {}", self.at_least, self.at_most)?;
        match self.within {
            Some(within) => write!(f, ", within {}", within.to_study_text()),
            None => Ok(()),
        }
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
            "description": "When there are enough iterations: \"precision 1%, at most 60\" or \"decided, at most 60\".",
            "pattern": "precision *[0-9.]+ *%.*at most *[0-9]+|at most *[0-9]+.*precision *[0-9.]+ *%|decided",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_its_goal_and_its_end() {
        let rule: StoppingRule = "precision 1%, at most 60".parse().unwrap();
        assert_eq!(
            rule,
            StoppingRule { goal: StoppingGoal::Precision(0.01), at_most: 60, at_least: 10, within: None }
        );
        let capped: StoppingRule = "decided, within 90s".parse().unwrap();
        assert_eq!((capped.within, capped.to_string().parse()), (Some(Nanos(90_000_000_000)), Ok(capped)));
        assert_eq!(rule.to_string().parse(), Ok(rule));
        let few: StoppingRule = "at most 4, precision 0.5 %".parse().unwrap();
        assert_eq!(few.at_least, 4);
        let decided: StoppingRule = "decided, at most 60".parse().unwrap();
        assert_eq!((decided, "decided".parse()), (StoppingRule::decided(60), Ok(decided)));
        assert_eq!(decided.to_string().parse(), Ok(decided));
        assert_eq!(
            "at least 9, at most 7, decided".parse(),
            Ok(StoppingRule { at_least: 7, ..StoppingRule::decided(7) })
        );
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        let texts = [
            "precision 1%",
            "at most 60",
            "significant, at most 60",
            "decided, precision 1%, at most 60",
            "precision 0%, at most 60",
            "precision 1, at most 60",
            "precision 1%, at most many",
            "precision 1%, at most 0",
            "decided, at most 0",
            "decided, within a while",
        ];
        for text in texts {
            let refused = text.parse::<StoppingRule>().unwrap_err();
            assert_eq!(refused.text, text);
        }
    }
}
