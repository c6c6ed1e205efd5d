//! The sides of a comparison and the choices of whoever compares.
//!
//! Choices that belong into the study are not among them, such as the margin of a metric, which is fixed before the
//! first sample.

use perflab_model::resource_use::ResourceMetric;
use perflab_model::{Case, RunRecord, Sample};

use crate::compare::case_condition::{CaseCondition, matches_pattern};
use crate::compare::noise_card::NoiseCard;
use crate::error::AnalyzeError;

/// A p-value so close to its limit counts as on it.
const ROUNDING: f64 = 1e-9;

/// How to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct AnalysisOptions {
    /// Confidence of the intervals inside (0.5, 1); "same" is judged at the level with twice the error. 0.95.
    pub confidence: f64,
    /// The relative change that matters, for metrics to which the study gives none. 0.03, which is 3 %.
    pub default_margin: f64,
    /// Only metrics of these names, in which `*` stands for any text, or of these kinds: `primary` for those that decide,
    /// `explanatory` for those that explain; all where empty.
    pub metrics: Vec<String>,
    /// Only workloads of these names in the study, in which `*` stands for any text; all where empty.
    pub workloads: Vec<String>,
    /// Only cases that meet all of these.
    pub conditions: Vec<CaseCondition>,
    /// The level that others are compared with by a factor; its first where absent.
    pub baseline: Option<String>,
    /// Only these levels of the factor are compared with it; all others where empty.
    pub versus: Vec<String>,
    /// Whether cases of one name are judged though their commands, parameters or definitions differ.
    pub across: bool,
    /// Whether runs of which nobody knows the boot are of boots of their own: the user says so.
    pub boots_differ: bool,
    /// Whether explanatory metrics with the very same values are one row: counters that the kernel keeps twice.
    pub merge_twins: bool,
    /// Whether metrics are looked at unasked that have the name of what iterations used of the machine: a monitor's columns may.
    pub includes_resources: bool,
    /// Whether warm-up iterations that are found are left out; they are reported in any case.
    pub leave_out_warm_up: bool,
    /// Whether changes are differences in the metric's unit throughout, as is usual for shares, not ratios where they can be.
    pub differences: bool,
    /// What this machine showed where nothing changed, if it was measured.
    pub noise: Option<NoiseCard>,
    /// Other runs of the study on this machine: how much one differs from the next widens the interval where a side has one run.
    pub earlier: Vec<RunRecord>,
}

impl Default for AnalysisOptions {
    fn default() -> Self {
        AnalysisOptions {
            confidence: 0.95,
            default_margin: 0.03,
            metrics: Vec::new(),
            workloads: Vec::new(),
            conditions: Vec::new(),
            baseline: None,
            versus: Vec::new(),
            across: false,
            boots_differ: false,
            merge_twins: false,
            includes_resources: false,
            leave_out_warm_up: false,
            differences: false,
            noise: None,
            earlier: Vec::new(),
        }
    }
}

impl AnalysisOptions {
    /// The level at which "same" is judged: 0.90 for 0.95.
    #[must_use]
    pub fn narrow_confidence(&self) -> f64 {
        2.0 * self.confidence - 1.0
    }

    /// Whether a p-value, adjusted or not, excludes "no change" at the confidence. At the limit itself the interval does, too;
    /// levels such as 1 - 0.9 are not exact in binary.
    pub(crate) fn is_significant(&self, p: f64) -> bool {
        p <= (1.0 - self.confidence) * (1.0 + ROUNDING)
    }

    pub(crate) fn validate(&self) -> Result<(), AnalyzeError> {
        if !(self.confidence > 0.5 && self.confidence < 1.0) {
            return Err(AnalyzeError::Confidence { value: self.confidence });
        }
        if !(self.default_margin >= 0.0 && self.default_margin.is_finite()) {
            return Err(AnalyzeError::Margin { value: self.default_margin });
        }
        Ok(())
    }

    /// Whether a metric is looked at. What iterations used of the machine is only where it was asked for: every workload has
    /// it, and would have nine rows more.
    pub(crate) fn includes_metric(&self, sample: &Sample) -> bool {
        self.includes_metric_named(&sample.metric, sample.primary)
    }

    pub(crate) fn includes_metric_named(&self, name: &str, primary: bool) -> bool {
        if self.metrics.is_empty() {
            return primary || self.includes_resources || !ResourceMetric::is_name(name);
        }
        let kind = if primary { "primary" } else { "explanatory" };
        is_chosen(&self.metrics, name) || is_chosen(&self.metrics, kind)
    }

    /// Whether a case is looked at.
    pub(crate) fn includes_case(&self, case: &Case) -> bool {
        is_chosen(&self.workloads, &case.workload)
            && self.conditions.iter().all(|condition| condition.is_met_by(case))
    }
}

fn is_chosen(chosen: &[String], name: &str) -> bool {
    chosen.is_empty() || chosen.iter().any(|one| matches_pattern(one, name))
}

/// One side of a comparison: runs that are repetitions of one another.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonSide {
    /// What people call it: a label, a short run id, a level.
    pub name: String,
    /// Its runs, at least one.
    pub runs: Vec<RunRecord>,
}
