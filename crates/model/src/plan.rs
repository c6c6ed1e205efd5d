//! The plan: every case and every slot of a run, fixed and stored before the first sample.

mod slots;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::{Metric, Scalar};

/// One workload at one parameter point under one level of every factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The workload's name in the study.
    pub workload: String,
    /// Its name in the catalogue.
    pub uses: String,
    /// The matrix parameters that tell this case from the workload's others; empty without a matrix.
    pub point: IndexMap<String, Scalar>,
    /// All parameters, resolved to values of their types.
    pub parameters: IndexMap<String, Scalar>,
    /// Environment variables of the workload.
    pub environment: IndexMap<String, String>,
    /// Factor -> level name, for each factor that concerns this workload.
    pub levels: IndexMap<String, String>,
}

impl Case {
    /// Workload and point, without factors: what stays the same when levels are compared.
    pub fn label_without_levels(&self) -> String {
        append_pairs(
            &self.workload,
            self.point.iter().map(|(name, value)| (name.as_str(), value.to_string())),
        )
    }

    /// The case in one line: `sweep size=64 pages=huge`.
    pub fn label(&self) -> String {
        append_pairs(
            &self.label_without_levels(),
            self.levels.iter().map(|(name, level)| (name.as_str(), level.clone())),
        )
    }
}

fn append_pairs<'a>(head: &str, pairs: impl Iterator<Item = (&'a str, String)>) -> String {
    pairs.fold(head.to_owned(), |mut text, (name, value)| {
        text.extend([" ", name, "=", value.as_str()]);
        text
    })
}

/// One iteration to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Index into [`RunPlan::cases`].
    pub case: u32,
    /// Which iteration of the case, counting warm-ups and measured ones apart, from 0.
    pub iteration: u32,
    /// The complete block it belongs to; equals `iteration`.
    pub block: u32,
    /// Run, but not measured.
    pub warmup: bool,
    /// Which boot of the targets, from 0; iterations count anew in each.
    #[serde(default, skip_serializing_if = "is_first_boot")]
    pub boot: u32,
}

fn is_first_boot(boot: &u32) -> bool {
    *boot == 0
}

/// Everything that will be done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// Seed of the order; 0 for a sequential order.
    pub seed: u64,
    /// "randomised" or "sequential".
    pub order: String,
    /// All cases, in the study's order.
    pub cases: Vec<Case>,
    /// Factor -> its level names, the baseline first.
    pub factors: IndexMap<String, Vec<String>>,
    /// All iterations, in the order in which they will be done. Stored with `repeat`: see `docs/format.md`.
    #[serde(with = "slots")]
    pub slots: Vec<Slot>,
    /// A digest of what each catalogue workload does, by its name there: two cases of one name are the same only where it is.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub definitions: IndexMap<String, String>,
    /// Metrics that each catalogue workload declares, by its name there.
    pub metrics: IndexMap<String, Vec<Metric>>,
    /// Relative margin by metric name, where the study gives one (0.02 for 2 %).
    pub margins: IndexMap<String, f64>,
}

/// How many slots a stored list of slots holds, without making them.
///
/// # Errors
/// What is no list of slots, or holds more than any plan can.
pub use slots::count_slots;

impl RunPlan {
    /// The case of a slot or a sample.
    pub fn case(&self, index: u32) -> Option<&Case> {
        self.cases.get(index as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_names_point_and_levels() {
        let case = Case {
            workload: "sweep".into(),
            uses: "page-faults".into(),
            point: IndexMap::from([("threads".into(), Scalar::Int(2))]),
            parameters: IndexMap::new(),
            environment: IndexMap::new(),
            levels: IndexMap::from([("pages".into(), "huge".into())]),
        };
        assert_eq!(case.label_without_levels(), "sweep threads=2");
        assert_eq!(case.label(), "sweep threads=2 pages=huge");
    }
}
