//! What the report of a run, and its end on the terminal, say about the operations that it traced: for each factor the
//! first two levels compared, and each of them by itself.

use perflab_analyze::operations::{
    OperationClock, OperationReport, OutlierOptions, analyze_operations, choose_clock, compare_operations,
    comparison_conclusions, operation_conclusions,
};
use perflab_archive::RunDir;
use perflab_model::operation::OperationColumns;
use perflab_present::chart::Scene;
use perflab_present::comparison::OutputFormat;
use perflab_present::operations::{
    MOST_BYTES, OperationSceneOptions, ScaleKind, TraceSection, common_time_range, operation_scene,
    operation_viewer_data,
};

use super::compare::slots_of_level;
use super::stored::{TRACER, concatenate_operations, traced_slots};
use crate::context::App;

/// One level of a factor: its name, all its operations, the answer about them, and that about its first iteration.
struct TracedLevel {
    name: String,
    first_operations: OperationColumns,
    report: OperationReport,
    first_report: OperationReport,
}

/// The parts of a report about a run's operations; none for a run without any.
pub fn operation_sections(run: &RunDir) -> anyhow::Result<Vec<TraceSection>> {
    let levels = traced_levels(run)?;
    let mut parts = Vec::new();
    if let [before, after] = levels.as_slice() {
        let found = compare_operations((&before.name, &after.name), &before.report, &after.report);
        parts.push(TraceSection::new(
            &format!("{} against {}", after.name, before.name),
            comparison_conclusions(&found),
            &[],
        ));
    }
    let ones: Vec<&OperationReport> = levels.iter().map(|level| &level.first_report).collect();
    let range = common_time_range(&ones);
    for level in &levels {
        let pictures = [(ScaleKind::Log, true), (ScaleKind::Linear, false)]
            .map(|(spread, causes)| draw_level(level, spread, causes, range));
        let zoom =
            operation_viewer_data(&level.first_operations, &level.first_report, &level.name, MOST_BYTES);
        parts.push(
            TraceSection::new(&level.name, operation_conclusions(&level.first_report), &pictures)
                .with_zoom(zoom),
        );
    }
    Ok(parts)
}

/// On the log axis each outlier in the colour of its cause; on the linear one, the study's third picture.
fn draw_level(level: &TracedLevel, spread: ScaleKind, causes: bool, range: (i64, i64)) -> Scene {
    let names = |prefix: &str| -> Vec<String> {
        let spans = level.first_operations.spans.iter().filter(|span| span.name.starts_with(prefix));
        spans.map(|span| span.name.clone()).collect()
    };
    let with =
        [names("reap"), names("alloc")].into_iter().filter(|names| !causes && !names.is_empty()).collect();
    let title = format!("Every operation, {}", level.name);
    let over = Some("elements".into());
    operation_scene(
        &level.first_operations,
        &level.first_report,
        &OperationSceneOptions {
            title,
            scale_kind: spread,
            drawn_spans: with,
            x_number: over,
            colour_by_cause: causes,
            time_range: Some(range),
        },
    )
}

/// What a person is told at the end of a run: the sentences of the report.
pub fn conclude_operations(context: &App, run: &RunDir) -> anyhow::Result<Vec<String>> {
    if context.format != OutputFormat::Table {
        return Ok(Vec::new());
    }
    let levels = traced_levels(run)?;
    let mut lines = Vec::new();
    if let [before, after] = levels.as_slice() {
        lines.push(String::new());
        lines.extend(comparison_conclusions(&compare_operations(
            (&before.name, &after.name),
            &before.report,
            &after.report,
        )));
    }
    for level in &levels {
        lines.push(format!("\n{}:", level.name));
        lines.extend(operation_conclusions(&level.first_report));
    }
    Ok(lines)
}

/// The first two levels of the first factor whose cases were traced; the whole run where none was varied.
fn traced_levels(run: &RunDir) -> anyhow::Result<Vec<TracedLevel>> {
    if run.list_tracers()?.is_empty() {
        return Ok(Vec::new());
    }
    let plan = run.manifest()?.plan;
    for (factor, names) in plan.factors.iter().filter(|(_, names)| names.len() > 1) {
        let mut both = Vec::new();
        for name in names.iter().take(2) {
            both.push((name.clone(), slots_of_level(run, factor, name)?));
        }
        if both.iter().all(|(_, slots)| !slots.is_empty()) && both.len() == 2 {
            return analyze_levels(run, both);
        }
    }
    let slots = traced_slots(&run.read_trace_summaries(TRACER)?);
    if slots.is_empty() {
        return Ok(Vec::new());
    }
    analyze_levels(run, vec![("operations".into(), slots)])
}

/// The answers about levels, by one clock: the wall's where it explains any of them.
fn analyze_levels(run: &RunDir, levels: Vec<(String, Vec<u32>)>) -> anyhow::Result<Vec<TracedLevel>> {
    let (mut options, several) = (OutlierOptions::default(), levels.len() > 1);
    let mut read = Vec::new();
    for (name, slots) in levels {
        let all = concatenate_operations(run, &slots)?;
        if several && choose_clock(&all, &OutlierOptions::default())? == OperationClock::Wall {
            options.clock = Some(OperationClock::Wall);
        }
        let (first, all) = match slots.as_slice() {
            [first, _, ..] => (run.read_operations(TRACER, *first)?, Some(all)),
            _ => (all, None),
        };
        read.push((name, first, all));
    }
    let level = |(name, first, all): (String, OperationColumns, Option<OperationColumns>)| {
        let one = analyze_operations(&first, &options)?;
        let all = all.map_or_else(|| Ok(one.clone()), |all| analyze_operations(&all, &options))?;
        Ok(TracedLevel { name, first_operations: first, report: all, first_report: one })
    };
    read.into_iter().map(level).collect()
}
