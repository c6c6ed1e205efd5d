//! What the report of a run, and its end on the terminal, say about the operations that it traced: for each factor the
//! first two levels compared, and each of them by itself.

use perflab_analyze::trace::{Clock, Options, Report, analyze, choose_clock, compare, compared, sentences};
use perflab_archive::RunDir;
use perflab_model::trace::Operations;
use perflab_present::chart::Scene;
use perflab_present::table::Format;
use perflab_present::trace::{MOST_BYTES, Picture, Spread, TraceSection, picture, range, zoom};

use super::compare::slots_of;
use super::stored::{TRACER, slots, together};
use crate::context::Context;

/// One level of a factor: its name, all its operations, the answer about them, and that about its first iteration.
struct Level {
    name: String,
    first: Operations,
    all: Report,
    one: Report,
}

/// The parts of a report about a run's operations; none for a run without any.
pub fn sections(run: &RunDir) -> anyhow::Result<Vec<TraceSection>> {
    let levels = levels(run)?;
    let mut parts = Vec::new();
    if let [before, after] = levels.as_slice() {
        let found = compare((&before.name, &after.name), &before.all, &after.all);
        parts.push(TraceSection::new(
            &format!("{} against {}", after.name, before.name),
            compared(&found),
            &[],
        ));
    }
    let ones: Vec<&Report> = levels.iter().map(|level| &level.one).collect();
    let range = range(&ones);
    for level in &levels {
        let pictures = [(Spread::Log, true), (Spread::Linear, false)]
            .map(|(spread, causes)| draw(level, spread, causes, range));
        let zoom = zoom(&level.first, &level.one, &level.name, MOST_BYTES);
        parts.push(TraceSection::new(&level.name, sentences(&level.one), &pictures).with_zoom(zoom));
    }
    Ok(parts)
}

/// On the log axis each outlier in the colour of its cause; on the linear one, the study's third picture.
fn draw(level: &Level, spread: Spread, causes: bool, range: (i64, i64)) -> Scene {
    let names = |prefix: &str| -> Vec<String> {
        let spans = level.first.spans.iter().filter(|span| span.name.starts_with(prefix));
        spans.map(|span| span.name.clone()).collect()
    };
    let with =
        [names("reap"), names("alloc")].into_iter().filter(|names| !causes && !names.is_empty()).collect();
    let title = format!("Every operation, {}", level.name);
    let over = Some("elements".into());
    picture(&level.first, &level.one, &Picture { title, spread, with, over, causes, range: Some(range) })
}

/// What a person is told at the end of a run: the sentences of the report.
pub fn conclusions(context: &Context, run: &RunDir) -> anyhow::Result<Vec<String>> {
    if context.format != Format::Table {
        return Ok(Vec::new());
    }
    let levels = levels(run)?;
    let mut lines = Vec::new();
    if let [before, after] = levels.as_slice() {
        lines.push(String::new());
        lines.extend(compared(&compare((&before.name, &after.name), &before.all, &after.all)));
    }
    for level in &levels {
        lines.push(format!("\n{}:", level.name));
        lines.extend(sentences(&level.one));
    }
    Ok(lines)
}

/// The first two levels of the first factor whose cases were traced; the whole run where none was varied.
fn levels(run: &RunDir) -> anyhow::Result<Vec<Level>> {
    if run.tracers()?.is_empty() {
        return Ok(Vec::new());
    }
    let plan = run.manifest()?.plan;
    for (factor, names) in plan.factors.iter().filter(|(_, names)| names.len() > 1) {
        let mut both = Vec::new();
        for name in names.iter().take(2) {
            both.push((name.clone(), slots_of(run, factor, name)?));
        }
        if both.iter().all(|(_, slots)| !slots.is_empty()) && both.len() == 2 {
            return analyzed_levels(run, both);
        }
    }
    let slots = slots(&run.traced(TRACER)?);
    if slots.is_empty() {
        return Ok(Vec::new());
    }
    analyzed_levels(run, vec![("operations".into(), slots)])
}

/// The answers about levels, by one clock: the wall's where it explains any of them.
fn analyzed_levels(run: &RunDir, levels: Vec<(String, Vec<u32>)>) -> anyhow::Result<Vec<Level>> {
    let (mut options, several) = (Options::default(), levels.len() > 1);
    let mut read = Vec::new();
    for (name, slots) in levels {
        let all = together(run, &slots)?;
        if several && choose_clock(&all, &Options::default())? == Clock::Wall {
            options.clock = Some(Clock::Wall);
        }
        let (first, all) = match slots.as_slice() {
            [first, _, ..] => (run.operations(TRACER, *first)?, Some(all)),
            _ => (all, None),
        };
        read.push((name, first, all));
    }
    let level = |(name, first, all): (String, Operations, Option<Operations>)| {
        let one = analyze(&first, &options)?;
        let all = all.map_or_else(|| Ok(one.clone()), |all| analyze(&all, &options))?;
        Ok(Level { name, first, all, one })
    };
    read.into_iter().map(level).collect()
}
