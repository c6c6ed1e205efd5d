//! The targets of a run as levels of a factor: `compare --by target`.
//!
//! Otherwise the value of an iteration is the mean over its targets. Here each target has cases of its own, so that two kernels in
//! two guests, or two guests on different CPUs, are held against each other. They worked at the same time: iterations are pairs.

use std::borrow::Cow;

use indexmap::IndexMap;
use perflab_model::{Case, IterationRecord, RunRecord, Sample, Slot};

use crate::compare::options::ComparisonSide;

/// The name under which targets are a factor, where a study has none of that name.
pub const TARGET_FACTOR: &str = "target";

/// Whether the targets of a run can be told apart: it has several, and `target` is no factor of its study.
pub fn has_target_levels(run: &RunRecord) -> bool {
    let plan = &run.manifest.plan;
    let is_taken = plan.cases.iter().any(|case| case.has_key(TARGET_FACTOR));
    run.manifest.targets.len() > 1 && !is_taken && plan.factors.get(TARGET_FACTOR).is_none()
}

/// The side with targets as levels, where that is what is asked for and its runs have several.
pub(crate) fn with_target_levels<'a>(side: &'a ComparisonSide, factor: &str) -> Cow<'a, ComparisonSide> {
    if factor != TARGET_FACTOR || !side.runs.iter().all(has_target_levels) {
        return Cow::Borrowed(side);
    }
    let runs = side.runs.iter().map(split_run).collect();
    Cow::Owned(ComparisonSide { name: side.name.clone(), runs })
}

/// A run in which every case and every slot is there once for each target.
fn split_run(run: &RunRecord) -> RunRecord {
    let names: Vec<String> = run.manifest.targets.iter().map(|target| target.name.clone()).collect();
    let count = u32::try_from(names.len()).unwrap_or(u32::MAX);
    let of_target = |index: u32, target: u32| index.saturating_mul(count).saturating_add(target);
    let mut split = run.clone();
    let plan = &mut split.manifest.plan;
    let with_level = |case: &Case| {
        let case = case.clone();
        names.iter().map(move |name| {
            let level = (TARGET_FACTOR.to_owned(), name.clone());
            let levels: IndexMap<String, String> = case.levels.clone().into_iter().chain([level]).collect();
            Case { levels, ..case.clone() }
        })
    };
    plan.cases = run.manifest.plan.cases.iter().flat_map(with_level).collect();
    let with_case = |slot: &Slot| {
        let slot = *slot;
        (0..count).map(move |target| Slot { case: of_target(slot.case, target), ..slot })
    };
    plan.slots = run.manifest.plan.slots.iter().flat_map(with_case).collect();
    plan.factors.insert(TARGET_FACTOR.to_owned(), names.clone());
    let own_sample = |sample: &Sample| {
        let case = of_target(sample.case, sample.target?);
        Some(Sample { case, target: None, ..sample.clone() })
    };
    split.samples = run.samples.iter().filter_map(own_sample).collect();
    let own_iteration = |one: &IterationRecord| {
        let slot = of_target(one.slot, one.target?);
        Some(IterationRecord { slot, target: None, ..one.clone() })
    };
    split.iterations = run.iterations.iter().filter_map(own_iteration).collect();
    split
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::{RunBuilder, SplitMixNoise};
    use perflab_model::{ClockOffset, Facts, TargetRecord};

    use super::*;
    use crate::{AnalysisOptions, Verdict, compare_levels};

    /// A run of two targets, of which the second takes a tenth more.
    fn run_of_two_targets() -> RunRecord {
        let builder = RunBuilder::new("two").with(|run| run.workloads = vec!["sweep", "scan"]);
        let mut noise = SplitMixNoise(7);
        let run = builder.build_run(|_| Some(noise.lognormal_around(1.0, 0.001)));
        let mut both = run.clone();
        both.samples = Vec::new();
        both.iterations = Vec::new();
        for (target, factor) in [(0, 1.0), (1, 1.1)] {
            let own = |sample: &Sample| Sample {
                target: Some(target),
                value: sample.value * factor,
                ..sample.clone()
            };
            both.samples.extend(run.samples.iter().map(own));
            let own = |one: &IterationRecord| IterationRecord { target: Some(target), ..one.clone() };
            both.iterations.extend(run.iterations.iter().map(own));
        }
        let record = |name: &str| TargetRecord {
            name: name.into(),
            kind: "vm".into(),
            kernel: String::new(),
            boot_id: String::new(),
            clock: ClockOffset::default(),
            facts: Facts::default(),
        };
        both.manifest.targets = vec![record("old"), record("new")];
        both
    }

    #[test]
    fn targets_are_held_against_each_other_and_each_case_has_a_row() {
        let run = run_of_two_targets();
        let cases = run.manifest.plan.cases.len();
        let side = ComparisonSide { name: "run".into(), runs: vec![run.clone()] };
        let found = compare_levels(&side, TARGET_FACTOR, &AnalysisOptions::default()).unwrap();
        assert_eq!((found.baseline.as_str(), found.candidates.as_slice()), ("old", &["new".to_owned()][..]));
        assert_eq!(found.rows.len(), cases);
        for row in &found.rows {
            assert_eq!(row.verdict, Verdict::Worse);
            assert!((row.change.as_ref().unwrap().value - 0.1).abs() < 0.01);
        }
        // Of one target there is nothing to tell apart, and the error names what there is.
        let mut alone = run;
        alone.manifest.targets.truncate(1);
        let side = ComparisonSide { name: "run".into(), runs: vec![alone] };
        assert!(compare_levels(&side, TARGET_FACTOR, &AnalysisOptions::default()).is_err());
    }
}
