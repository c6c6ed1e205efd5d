//! The section Single operations, and its conclusions at the end of a run.

use std::collections::BTreeMap;

use perflab_analyze::operations::{
    OperationClock, OperationReport, OutlierOptions, analyze_operations, choose_clock, compare_operations,
};
use perflab_model::RunData;
use perflab_model::operation::{OperationColumns, TracedIteration, iterations_with_operations};

use crate::chart::scene::Scene;
use crate::operations::conclusions::{comparison_conclusions, operation_conclusions};
use crate::operations::scenes::{OperationSceneOptions, ScaleKind, common_time_range, operation_scene};
use crate::operations::viewer::{MOST_BYTES, operation_viewer_data};
use crate::run_viewer::{run_display_name, target_display_name};
use crate::section::{
    ReportData, Section, SectionBlock, SectionError, SectionViewer, ViewerData, fold_parts,
};

/// Every operation of a traced program, and what makes the slow ones slow.
pub(crate) const SECTION: Section = Section {
    id: "operations",
    title: "Single operations",
    conclusions: operations_conclusions,
    blocks: operation_blocks,
};

/// One level of a factor on one target: their names, the answer about all its operations, and its first iteration with the
/// answer about it.
struct TracedLevel {
    /// The target's name, where the run had several.
    target: Option<String>,
    name: String,
    first_operations: OperationColumns,
    report: OperationReport,
    first_report: OperationReport,
}

fn operations_conclusions(data: &ReportData) -> Result<Vec<String>, SectionError> {
    let mut sentences = Vec::new();
    for run in &data.runs {
        for levels in traced_levels_by_target(run.as_ref())? {
            let target = levels.first().and_then(|level| level.target.as_deref());
            let target = target.map_or_else(String::new, |target| format!("{target}: "));
            if let [before, after] = levels.as_slice() {
                let names = (before.name.as_str(), after.name.as_str());
                let all = comparison_conclusions(&compare_operations(names, &before.report, &after.report));
                sentences.extend(all.iter().map(|sentence| format!("{target}{sentence}")));
            }
            for level in &levels {
                let name = if levels.len() > 1 { format!("{}: ", level.name) } else { String::new() };
                let all = operation_conclusions(&level.first_report);
                sentences.extend(all.iter().map(|sentence| format!("{target}{name}{sentence}")));
            }
        }
    }
    Ok(sentences)
}

fn operation_blocks(data: &ReportData) -> Result<Vec<SectionBlock>, SectionError> {
    let mut parts = Vec::new();
    for run in &data.runs {
        let by_target = traced_levels_by_target(run.as_ref())?;
        let reports: Vec<&OperationReport> =
            by_target.iter().flatten().map(|level| &level.first_report).collect();
        let range = common_time_range(&reports);
        for levels in &by_target {
            for level in levels {
                let run = (data.runs.len() > 1).then(|| run_display_name(run.record()));
                let name = (levels.len() > 1).then(|| level.name.clone());
                let names: Vec<String> = [run, level.target.clone(), name].into_iter().flatten().collect();
                let heading = Some(names.join(", ")).filter(|heading| !heading.is_empty());
                parts.push((heading, level_blocks(level, parts.len(), range)));
            }
        }
    }
    Ok(fold_parts("traces", parts))
}

/// The viewer of a level's first iteration, which has the picture on the log axis for one without scripts; that on a linear axis is
/// opened on demand.
fn level_blocks(level: &TracedLevel, number: usize, range: (i64, i64)) -> Vec<SectionBlock> {
    let viewer = SectionViewer {
        name: "operations",
        data_id: format!("operations-{number}"),
        data: ViewerData::Json(operation_viewer_data(
            &level.first_operations,
            &level.first_report,
            &level.title(),
            MOST_BYTES,
        )),
        without_script: "Going down to a single operation needs JavaScript; the picture below does not.",
        still: Some(draw_level(level, ScaleKind::Log, true, range)),
    };
    let linear = SectionBlock::Figure(draw_level(level, ScaleKind::Linear, false, range));
    let linear =
        SectionBlock::Fold { summary: "The same on a linear axis".into(), count: None, blocks: vec![linear] };
    vec![SectionBlock::Viewer(viewer), linear]
}

impl TracedLevel {
    /// The level, and the target where there are several.
    fn title(&self) -> String {
        match &self.target {
            Some(target) => format!("{}, {target}", self.name),
            None => self.name.clone(),
        }
    }
}

/// On the log axis each outlier in the colour of its cause; on the linear one the times of spans.
fn draw_level(level: &TracedLevel, scale_kind: ScaleKind, colour_by_cause: bool, range: (i64, i64)) -> Scene {
    let names = |prefix: &str| -> Vec<String> {
        let spans = level.first_operations.spans.iter().filter(|span| span.name.starts_with(prefix));
        spans.map(|span| span.name.clone()).collect()
    };
    let drawn_spans = [names("reap"), names("alloc")]
        .into_iter()
        .filter(|names| !colour_by_cause && !names.is_empty())
        .collect();
    let options = OperationSceneOptions {
        title: format!("Every operation, {}", level.title()),
        scale_kind,
        drawn_spans,
        x_number: Some("elements".into()),
        colour_by_cause,
        time_range: Some(range),
    };
    operation_scene(&level.first_operations, &level.first_report, &options)
}

/// The levels of each target of a run by themselves: what one target traced says nothing of another.
fn traced_levels_by_target(run: &dyn RunData) -> Result<Vec<Vec<TracedLevel>>, SectionError> {
    let mut by_target: BTreeMap<Option<u32>, Vec<TracedIteration>> = BTreeMap::new();
    for iteration in iterations_with_operations(&run.traced_iterations()?) {
        by_target.entry(iteration.target).or_default().push(iteration);
    }
    let several = by_target.len() > 1;
    let mut found = Vec::new();
    for (target, slots) in by_target {
        let mut levels = traced_levels(run, slots)?;
        let name = several.then(|| target_display_name(run.record(), target));
        levels.iter_mut().for_each(|level| level.target.clone_from(&name));
        found.push(levels);
    }
    Ok(found)
}

/// The first two levels of the first factor whose cases were traced; all iterations where none was varied.
fn traced_levels(run: &dyn RunData, slots: Vec<TracedIteration>) -> Result<Vec<TracedLevel>, SectionError> {
    let plan = &run.record().manifest.plan;
    for (factor, names) in plan.factors.iter().filter(|(_, names)| names.len() > 1) {
        let of_level = |name: &String| {
            let has_level =
                |iteration: &TracedIteration| plan.slot_level(iteration.slot, factor) == Some(name.as_str());
            (name.clone(), slots.iter().copied().filter(has_level).collect::<Vec<TracedIteration>>())
        };
        let both: Vec<(String, Vec<TracedIteration>)> = names.iter().take(2).map(of_level).collect();
        if both.iter().all(|(_, slots)| !slots.is_empty()) {
            return analyze_levels(run, both);
        }
    }
    analyze_levels(run, vec![("operations".into(), slots)])
}

/// The answers about levels, by one clock: the wall's where it explains any of them.
fn analyze_levels(
    run: &dyn RunData,
    levels: Vec<(String, Vec<TracedIteration>)>,
) -> Result<Vec<TracedLevel>, SectionError> {
    let (mut options, several) = (OutlierOptions::default(), levels.len() > 1);
    let mut read = Vec::new();
    for (name, slots) in levels {
        let mut all = OperationColumns::default();
        for slot in &slots {
            let next = run.operations(*slot)?;
            if all.is_empty() { all = next } else { all.append(&next) }
        }
        if several && choose_clock(&all, &OutlierOptions::default())? == OperationClock::Wall {
            options.clock = Some(OperationClock::Wall);
        }
        let (first, all) = match slots.as_slice() {
            [first, _, ..] => (run.operations(*first)?, Some(all)),
            _ => (all, None),
        };
        read.push((name, first, all));
    }
    let level = |(name, first, all): (String, OperationColumns, Option<OperationColumns>)| {
        let one = analyze_operations(&first, &options)?;
        let all = all.map_or_else(|| Ok(one.clone()), |all| analyze_operations(&all, &options))?;
        Ok(TracedLevel { target: None, name, first_operations: first, report: all, first_report: one })
    };
    read.into_iter().map(level).collect()
}
