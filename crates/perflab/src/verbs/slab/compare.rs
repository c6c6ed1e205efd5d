//! `perflab slab compare`

use perflab_analyze::Gate;
use perflab_analyze::slab::{self, Recording, Repetition, SlabCompareOptions, SlabSide};
use perflab_archive::{Archive, RunDir};
use perflab_present::slab as present;

use super::output;
use super::stored::Stored;
use crate::arguments::slab::Compare;
use crate::context::Context;
use crate::exit::Exit;

/// Bars of the picture.
const BARS: usize = 15;

/// The runs of a selector, read.
struct Read {
    name: String,
    runs: Vec<(Stored, Recording)>,
}

impl Read {
    fn of(archive: &Archive, selector: &str) -> anyhow::Result<Self> {
        let read = |run: &RunDir| {
            let stored = Stored::read(run)?;
            let recording = stored.recording()?;
            Ok((stored, recording))
        };
        let runs = archive.find(selector)?.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Read { name: crate::sides::side(archive, selector)?.name, runs })
    }

    fn side(&self) -> SlabSide<'_> {
        let runs = self.runs.iter();
        let runs = runs.map(|(stored, recording)| Repetition { record: &stored.record, recording });
        SlabSide { name: self.name.clone(), runs: runs.collect() }
    }
}

/// Slab bytes of two runs, or of two groups of repetitions, cache by cache.
pub fn compare(context: &Context, wanted: &Compare) -> anyhow::Result<Exit> {
    let gate = wanted.fail_if.as_deref().map(str::parse::<Gate>).transpose()?;
    let archive = context.archive()?;
    let read = wanted.runs.iter().map(|name| Read::of(&archive, name)).collect::<anyhow::Result<Vec<_>>>()?;
    let sides: Vec<SlabSide<'_>> = read.iter().map(Read::side).collect();
    let Some((baseline, candidates)) = sides.split_first() else { return Ok(Exit::Usage) };
    let result = slab::compare(baseline, candidates, &SlabCompareOptions::default())?;
    output::print(context, &result, || present::comparison_grid(&result, wanted.all))?;
    output::plot(context, wanted.plot.as_deref(), || present::comparison_figure(&result, BARS))?;
    say_notes(context, &result);
    let found = gate.map(|gate| result.violations(&gate).len()).unwrap_or_default();
    if found > 0 {
        eprintln!("perflab: --fail-if {}: {found} found", wanted.fail_if.as_deref().unwrap_or_default());
    }
    Ok(if found > 0 { Exit::Regression } else { Exit::Fine })
}

fn say_notes(context: &Context, result: &slab::SlabComparison) {
    let what = if result.whole_runs { "whole runs" } else { "iterations" };
    context.say(format!("compared: {what}, slab bytes averaged over time; fewer are better"));
    // A warning for every cache would bury the table: one line a kind.
    let mut kinds: indexmap::IndexMap<&str, (&perflab_analyze::Warning, usize)> = indexmap::IndexMap::new();
    for warning in &result.mean.warnings {
        kinds.entry(warning.kind()).or_insert((warning, 0)).1 += 1;
    }
    for (warning, count) in kinds.into_values() {
        let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
        context.say(format!("warning: {}{times}; {}", warning.headline(), warning.advice()));
    }
    result.mean.notes.iter().for_each(|note| context.say(format!("note: {note}")));
}
