//! Owns the letters that stand beside a row, and their footnotes. It refuses details: those are in the warnings.

use serde::Serialize;

/// Something to be careful about in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowFlag {
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

impl RowFlag {
    /// The letter in the table.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            RowFlag::Changed => 'n',
            RowFlag::OneSided => '1',
            RowFlag::OtherCase => 'w',
            RowFlag::OneBoot => 'h',
            RowFlag::UnknownBoot => 'u',
            RowFlag::Few => 'f',
            RowFlag::Drift => 'd',
            RowFlag::Modes => 'm',
            RowFlag::Outliers => 'o',
            RowFlag::Failed => 'x',
            RowFlag::Sequential => 's',
            RowFlag::Environment => 'e',
            RowFlag::Gaps => 'c',
            RowFlag::Noise => 'a',
            RowFlag::Paired => 'p',
        }
    }

    /// The footnote.
    #[must_use]
    pub fn footnote(self) -> &'static str {
        match self {
            RowFlag::Changed => "differs clearly, but the metric has no better or worse",
            RowFlag::OneSided => "measured on one side only",
            RowFlag::OtherCase => {
                "command, parameters or definition differ: another benchmark under the same name"
            }
            RowFlag::OneBoot => "different boots, too few of them to tell a change from the luck of a boot",
            RowFlag::UnknownBoot => {
                "iterations only: nobody knows whether these imports are of one boot (--boots-differ says no)"
            }
            RowFlag::Few => "too few values for an interval",
            RowFlag::Drift => "the values drift over the run",
            RowFlag::Modes => "the values fall into two groups",
            RowFlag::Outliers => "some values lie far from the rest (they are kept)",
            RowFlag::Failed => "some iterations failed",
            RowFlag::Sequential => "one side was measured after the other",
            RowFlag::Environment => "the environment differs",
            RowFlag::Gaps => "a monitor has gaps",
            RowFlag::Paired => {
                "the change is that of pairs (iterations of one block, or boots), not of the two medians, which scatter more"
            }
            RowFlag::Noise => {
                "no larger than what this machine shows where nothing changed (`perflab noise`)"
            }
        }
    }
}
