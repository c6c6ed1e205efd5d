//! What a flight recorder was waiting for, once it has happened.

use serde::{Deserialize, Serialize};

use crate::metric::Unit;
use crate::quantity::{Nanos, format_quantity};
use crate::untrusted_text::escape_controls_in_line;

/// A condition that was met: why a recording was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// The condition as it was written: `vmstat.pgscan_direct > 1000/s`.
    pub condition: String,
    /// What met it.
    pub found: TriggerFinding,
}

/// What met a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TriggerFinding {
    /// a column of a monitor was beyond the bound
    Value {
        /// the row's key (a CPU, a device); none of a monitor with one row
        #[serde(default, skip_serializing_if = "Option::is_none")]
        row: Option<String>,
        /// the value: of a gauge what it was, of a counter its growth a second since the reading before
        value: f64,
        /// the unit of the value
        unit: Unit,
    },
    /// the kernel printed a line
    Line(String),
    /// the watched command ended, and how
    Exit(String),
    /// somebody asked for it, by a signal
    Signal,
}

/// A trigger of a run, and when it was.
#[derive(Debug, Clone, PartialEq)]
pub struct TriggerRecord {
    /// When: CLOCK_MONOTONIC of the machine that records.
    pub at: Nanos,
    /// What.
    pub trigger: Trigger,
}

impl TriggerFinding {
    /// In words: `5.321 k pages/s`, `86 % (vda)`.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            TriggerFinding::Value { row, value, unit } => {
                let value = format_quantity(*value, &unit.0).replace('\u{a0}', " ");
                row.as_ref().map_or_else(|| value.clone(), |row| format!("{value} ({row})"))
            }
            TriggerFinding::Line(text) | TriggerFinding::Exit(text) => text.clone(),
            TriggerFinding::Signal => "SIGUSR1".into(),
        }
    }
}

impl Trigger {
    /// The condition and what met it: `meminfo.MemAvailable < 200MiB: 187 MiB`.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("{}: {}", self.condition, self.found.describe())
    }
}

impl TriggerRecord {
    /// The trigger and when it was, in a recording that begins at `begin`: `60 s after the beginning: signal: SIGUSR1`.
    #[must_use]
    pub fn describe_since(&self, begin: Nanos) -> String {
        let text = escape_controls_in_line(&self.trigger.describe()).into_owned();
        format!("{} after the beginning: {text}", self.at.since(begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_says_its_condition_and_what_met_it() {
        let value = |row: Option<&str>, value, unit| TriggerFinding::Value {
            row: row.map(String::from),
            value,
            unit: Unit::new(unit),
        };
        let trigger = |condition: &str, found| Trigger { condition: condition.into(), found }.describe();
        assert_eq!(
            trigger("meminfo.MemAvailable < 200MiB", value(None, 196_083_712.0, "bytes")),
            "meminfo.MemAvailable < 200MiB: 187 MiB"
        );
        assert_eq!(
            trigger("diskstats.reads > 5/s", value(Some("vda"), 7.0, "1/s")),
            "diskstats.reads > 5/s: 7 /s (vda)"
        );
        assert_eq!(trigger("signal", TriggerFinding::Signal), "signal: SIGUSR1");
    }
}
