//! `perflab slab compare`

use perflab_analyze::Gate;
use perflab_analyze::slab::{
    self, SlabCompareOptions, SlabComparison, SlabRecording, SlabRepetition, SlabSide,
};
use perflab_archive::{Archive, RunDir};
use perflab_model::RunRecord;
use perflab_present::slab as present;

use super::output;
use super::stored::StoredSlabRun;
use crate::arguments::slab::SlabCompareArgs;
use crate::context::App;
use crate::exit::{Exit, UsageError};

/// Bars of the picture.
const BARS: usize = 15;

/// The runs of a selector, read.
struct SlabRuns {
    name: String,
    runs: Vec<(StoredSlabRun, SlabRecording)>,
}

impl SlabRuns {
    fn read(context: &App, archive: &Archive, selector: &str) -> anyhow::Result<Self> {
        let read = |run: &RunDir| {
            let stored = StoredSlabRun::read(run)?;
            stored.note_failures(context);
            let recording = stored.read_recording()?;
            Ok((stored, recording))
        };
        let runs = archive.find_runs(selector)?.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(SlabRuns { name: crate::sides::select_side(archive, selector)?.name, runs })
    }

    fn as_side(&self) -> SlabSide<'_> {
        let runs = self.runs.iter();
        let runs = runs.map(|(stored, recording)| SlabRepetition { record: &stored.record, recording });
        SlabSide { name: self.name.clone(), runs: runs.collect() }
    }
}

/// Slab bytes of two runs, of two groups of repetitions, or of the levels of a factor, cache by cache.
pub fn compare_slab_bytes(context: &App, wanted: &SlabCompareArgs) -> anyhow::Result<Exit> {
    let gate = wanted.fail_if.as_deref().map(str::parse::<Gate>).transpose()?;
    let archive = context.archive()?;
    let read = wanted
        .runs
        .iter()
        .map(|name| SlabRuns::read(context, &archive, name))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let result = match (&wanted.by, read.as_slice()) {
        (None, [baseline, candidate]) => compare_slab_sides(&[baseline.as_side(), candidate.as_side()])?,
        (Some(factor), [one]) => compare_slab_by_factor(one, factor)?,
        (None, _) => {
            return Err(UsageError::new(
                "there is nothing to compare one run with",
                "name a second run, or a factor with --by",
            )
            .into());
        }
        (Some(_), _) => {
            return Err(
                UsageError::new("--by compares within one run", "name one run, or leave --by out").into()
            );
        }
    };
    output::print_result(context, &result, || present::comparison_grid(&result, wanted.all))?;
    output::write_scene(context, wanted.plot.as_ref(), || present::comparison_figure(&result, BARS))?;
    note_slab_comparison(context, &result);
    let found = gate.map(|gate| result.violations(&gate).len()).unwrap_or_default();
    if found > 0 {
        stderr_line!("perflab: --fail-if {}: {found} found", wanted.fail_if.as_deref().unwrap_or_default());
    }
    Ok(if found > 0 { Exit::Regression } else { Exit::Fine })
}

fn compare_slab_sides(sides: &[SlabSide<'_>]) -> anyhow::Result<SlabComparison> {
    let Some((baseline, candidates)) = sides.split_first() else {
        return Err(UsageError::new("there is nothing to compare", "name two runs").into());
    };
    Ok(slab::compare_caches(baseline, candidates, &SlabCompareOptions::default())?)
}

/// Each level as a side: the same rows, seen through the iterations of that level.
fn compare_slab_by_factor(read: &SlabRuns, factor: &str) -> anyhow::Result<SlabComparison> {
    let mut sides: Vec<(String, Vec<(RunRecord, &SlabRecording)>)> = Vec::new();
    for (stored, recording) in &read.runs {
        let factors = &stored.record.manifest.plan.factors;
        let levels = factors.get(factor).ok_or_else(|| {
            let hint = perflab_model::problem::suggest_name(factor, factors.keys().map(String::as_str));
            UsageError::new(format!("the run has no factor `{factor}`"), hint)
        })?;
        for level in levels {
            let record = restrict_to_level(&stored.record, factor, level);
            match sides.iter_mut().find(|(name, _)| name == level) {
                Some((_, runs)) => runs.push((record, recording)),
                None => sides.push((level.clone(), vec![(record, recording)])),
            }
        }
    }
    let sides: Vec<SlabSide<'_>> = sides
        .iter()
        .map(|(name, runs)| SlabSide {
            name: name.clone(),
            runs: runs.iter().map(|(record, recording)| SlabRepetition { record, recording }).collect(),
        })
        .collect();
    compare_slab_sides(&sides)
}

/// The run as if it had this level only; the factor itself is gone, so that cases of two levels are the same case.
fn restrict_to_level(record: &RunRecord, factor: &str, level: &str) -> RunRecord {
    let mut one = record.clone();
    let plan = &mut one.manifest.plan;
    plan.factors.shift_remove(factor);
    let kept: Vec<usize> = (0..plan.cases.len())
        .filter(|index| {
            plan.cases.get(*index).is_some_and(|case| case.levels.get(factor).is_some_and(|one| one == level))
        })
        .collect();
    let place = |case: u32| {
        kept.iter().position(|index| *index == case as usize).and_then(|at| u32::try_from(at).ok())
    };
    let slots = std::mem::take(&mut plan.slots);
    let mut moved: Vec<Option<u32>> = Vec::with_capacity(slots.len());
    for slot in &slots {
        let case = place(slot.case);
        moved.push(case.map(|_| plan.slots.len() as u32));
        plan.slots.extend(case.map(|case| perflab_model::Slot { case, ..*slot }));
    }
    plan.cases = kept.iter().filter_map(|index| plan.cases.get(*index).cloned()).collect();
    for case in &mut plan.cases {
        case.levels.shift_remove(factor);
    }
    one.iterations.retain_mut(|iteration| match moved.get(iteration.slot as usize) {
        Some(Some(slot)) => {
            iteration.slot = *slot;
            true
        }
        _ => false,
    });
    one.samples.clear(); // bytes take their place
    one
}

fn note_slab_comparison(context: &App, result: &SlabComparison) {
    let what = if result.whole_runs { "whole runs" } else { "iterations" };
    context.note(format!("compared: {what}, slab bytes averaged over time; fewer are better"));
    // A warning for every cache would bury the table: one line a kind.
    let mut kinds: indexmap::IndexMap<&str, (&perflab_analyze::ComparisonDiagnostic, usize)> =
        indexmap::IndexMap::new();
    for warning in &result.mean.warnings {
        kinds.entry(warning.kind()).or_insert((warning, 0)).1 += 1;
    }
    for (warning, count) in kinds.into_values() {
        let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
        context.note(format!("warning: {}{times}; {}", warning.headline(), warning.advice()));
    }
    result.mean.notes.iter().for_each(|note| context.note(format!("note: {note}")));
}
