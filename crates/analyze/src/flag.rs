//! Owns the letters that stand beside a row, and their footnotes. It refuses details: those are in the warnings.

use serde::Serialize;

/// Something to be careful about in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    /// clearly different, but the metric has no direction
    Changed,
    /// one side has no value
    OneSided,
    /// the sides did different things under one name
    OtherCase,
    /// one boot on a side, and another one on the other
    OneBoot,
    /// of some runs nobody knows whether they are of one boot
    UnknownBoot,
    /// too few values for an interval
    Few,
    /// the values drift over the run
    Drift,
    /// the values have two modes
    Modes,
    /// some values lie far from the rest
    Outliers,
    /// iterations failed
    Failed,
    /// the sides were not interleaved
    Sequential,
    /// facts differ that often change results
    Environment,
    /// a monitor has gaps
    Gaps,
    /// no larger than what this machine shows where nothing changed
    Noise,
    /// the change is that of pairs, and the medians alone would show another
    Paired,
}

impl Flag {
    /// The letter in the table.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Flag::Changed => 'n',
            Flag::OneSided => '1',
            Flag::OtherCase => 'w',
            Flag::OneBoot => 'h',
            Flag::UnknownBoot => 'u',
            Flag::Few => 'f',
            Flag::Drift => 'd',
            Flag::Modes => 'm',
            Flag::Outliers => 'o',
            Flag::Failed => 'x',
            Flag::Sequential => 's',
            Flag::Environment => 'e',
            Flag::Gaps => 'c',
            Flag::Noise => 'a',
            Flag::Paired => 'p',
        }
    }

    /// The footnote.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Flag::Changed => "differs clearly, but the metric has no better or worse",
            Flag::OneSided => "measured on one side only",
            Flag::OtherCase => {
                "command, parameters or definition differ: another benchmark under the same name"
            }
            Flag::OneBoot => "different boots, too few of them to tell a change from the luck of a boot",
            Flag::UnknownBoot => {
                "iterations only: nobody knows whether these imports are of one boot (--boots-differ says no)"
            }
            Flag::Few => "too few values for an interval",
            Flag::Drift => "the values drift over the run",
            Flag::Modes => "the values fall into two groups",
            Flag::Outliers => "some values lie far from the rest (they are kept)",
            Flag::Failed => "some iterations failed",
            Flag::Sequential => "one side was measured after the other",
            Flag::Environment => "the environment differs",
            Flag::Gaps => "a monitor has gaps",
            Flag::Paired => {
                "the change is that of pairs (iterations of one block, or boots), not of the two medians, which scatter more"
            }
            Flag::Noise => "no larger than what this machine shows where nothing changed (`perflab noise`)",
        }
    }
}
