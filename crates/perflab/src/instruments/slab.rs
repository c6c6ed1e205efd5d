//! The verbs of `perflab slab`: where the kernel's object memory goes, live, over a run, and between runs.

use std::ffi::OsString;

use clap::{Args, Subcommand};
use perflab_analyze::slab::what_if::LayoutChange;
use perflab_analyze::slab::{
    self, CacheOrder, CacheTableOptions, SlabCompareOptions, SlabComparison, SlabGrowthOptions,
    SlabRecording, SlabRepetition, SlabRow, SlabSide,
};
use perflab_archive::{Archive, RunDir};
use perflab_model::{Bytes, Nanos, RunRecord};
use perflab_present::comparison::{OutputFormat, SlabComparisonDocument};
use perflab_present::diagnostics::diagnostic_summaries;
use perflab_present::method_text::describe_method;
use perflab_present::slab as present;
use serde::Serialize;

use crate::app::{self, App};
use crate::failure::{Exit, Failure, UsageError};
use crate::gate_args::GateArgs;
use crate::instruments::slab_args::{
    CACHE_BARS, NotebookMethod, ROWS, SlabHistogramArgs, SlabSceneKind, SlabShowArgs, SlabTimelineArgs,
    SlabTopArgs, WITHOUT_ROOT, grid_width,
};
use crate::instruments::slab_notebook;
use crate::instruments::stored_slab_run::{StoredSlabRun, read_stored_slab_run};
use crate::measure::command_study::RecordedCommand;
use crate::output_path::OutputPath;
use crate::selection::parse_label;
use crate::verb::Verb;

/// See where the kernel's object memory goes: live, over a run
#[derive(Debug, Args)]
pub struct SlabArgs {
    #[command(subcommand)]
    pub verb: SlabVerb,
}

impl Verb for SlabArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        run_slab_verb(app, &self.verb)
    }
}

/// The verbs of the slab instrument.
#[derive(Debug, Subcommand)]
pub enum SlabVerb {
    /// Record the slab caches while a command runs, for a time, or until ^C
    Record(SlabRecordArgs),
    /// Show where slab memory goes: totals, and the worst caches
    Show(SlabShowArgs),
    /// Show bytes and efficiency over time, phases and growth
    Timeline(SlabTimelineArgs),
    /// Show how many caches, and how many bytes, have which efficiency
    Histogram(SlabHistogramArgs),
    /// Compare the slab memory of runs, cache by cache
    Compare(SlabCompareArgs),
    /// Watch the slab caches live, full-screen (one snapshot if standard output is not a terminal)
    Top(SlabTopArgs),
    /// Say how many bytes a cache would take at another order or object size
    WhatIf(WhatIfArgs),
}

/// `perflab slab record`
#[derive(Debug, Args)]
pub struct SlabRecordArgs {
    /// Time between readings of /proc/slabinfo
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub every: Nanos,
    /// Record for this long; a command is stopped after it
    #[arg(long = "for", value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// Record the idle system for this long before and after the command
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "command")]
    pub quiet_time: Nanos,
    /// A name for the run; runs that share a label are repetitions of one another
    #[arg(long, value_parser = parse_label)]
    pub label: Option<String>,
    /// Draw the bytes of the largest caches over time into FILE.svg or FILE.png, or as SVG on standard output (-)
    #[arg(short, long, alias = "plot", value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
    /// Show every column, however narrow the terminal
    #[arg(long)]
    pub wide: bool,
    /// The command to record; without one, record until ^C or for the time given by --for
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `perflab slab compare`
#[derive(Debug, Args)]
pub struct SlabCompareArgs {
    /// The baseline, then the candidate (each a run, or a label shared by repetitions); with --by, one run (default: @latest)
    #[arg(required_unless_present = "by", num_args = 1..=2, value_name = "RUN")]
    pub runs: Vec<String>,
    /// Compare the levels of this factor within the run, the first being the baseline
    #[arg(long, value_name = "FACTOR")]
    pub by: Option<String>,
    #[command(flatten)]
    pub gate: GateArgs,
    /// Show every cache, also those without a change
    #[arg(long)]
    pub all: bool,
    /// Draw it into FILE.svg or FILE.png, or as SVG on standard output (-)
    #[arg(short, long, alias = "plot", value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
}

/// `perflab slab what-if`
#[derive(Debug, Args)]
pub struct WhatIfArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// Only this cache (any of its names)
    #[arg(long, value_name = "NAME")]
    pub cache: Option<String>,
    /// With slabs of this order (log2 of their pages)
    #[arg(long, value_name = "N")]
    pub order: Option<u32>,
    /// With objects of this size, as requested, without padding: 192B
    #[arg(long, value_name = "SIZE", requires = "cache")]
    pub object_size: Option<Bytes>,
    /// How many layouts, those that save most first
    #[arg(long, default_value_t = 20, value_name = "N", conflicts_with = "cache")]
    pub top: usize,
}

/// Carries out a verb of the slab instrument.
pub fn run_slab_verb(context: &App, verb: &SlabVerb) -> Result<Exit, Failure> {
    match verb {
        SlabVerb::Record(args) => record_slab(context, args),
        SlabVerb::Show(args) => show_slab_caches(context, args),
        SlabVerb::Timeline(args) => show_timeline(context, args),
        SlabVerb::Histogram(args) => show_efficiency_histogram(context, args),
        SlabVerb::Compare(args) => compare_slab_bytes(context, args),
        SlabVerb::Top(args) => crate::instruments::slab_top::show_slab_top(context, args),
        SlabVerb::WhatIf(args) => show_what_if(context, args),
    }
}

/// Attributes change seldom, and exact counts walk lists under a lock: once a second is often enough.
const SLOW: &str = "1s";

/// Those lists are walked with interrupts off, and readings on a fast clock wait for it: in 500 s at 100 Hz on a loaded
/// machine with long lists, each of 31 lost ticks fell into the 0.3 s after an exact reading began.
const SLOWEST: &str = "10s";

/// Totals are read at most this often: they stand beside the sums of caches, not in their place.
const OFTEN: Nanos = Nanos(100_000_000);

/// More ticks than this take seconds to analyse: whoever wants that says `perflab slab show`.
const MOST_TICKS: u64 = 10_000;

/// Records, and says what to look at.
pub fn record_slab(context: &App, args: &SlabRecordArgs) -> Result<Exit, Failure> {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        stderr_line!("warning: {WITHOUT_ROOT}");
    }
    let recorded = RecordedCommand {
        verb: "slab record",
        title: "Slab caches",
        command: &args.command,
        pid: None,
        duration: args.duration,
        quiet_time: args.quiet_time,
        label: args.label.as_deref(),
        tables: &slab_monitors(args.every, is_root),
    };
    let (status, found) = recorded.record(context, |_| ())?;
    let is_wanted = found.manifest()?.overhead.ticks < MOST_TICKS || args.output.is_some();
    if is_root && is_wanted && found.list_monitors()?.iter().any(|monitor| monitor == "slabinfo") {
        summarise_recording(context, &found, args)?;
    } else if args.output.is_some() {
        context.note("--output: no series of caches was recorded");
    }
    Ok(recorded.exit_of(context, status, &found))
}

fn slab_monitors(every: Nanos, is_root: bool) -> String {
    let is_fast = every < OFTEN;
    let every = every.to_study_text();
    let mut text = String::from("[monitors]\n");
    if is_root {
        let exact = if is_fast { SLOWEST } else { SLOW };
        text += &format!("slabinfo = \"{every}\"\nslab-caches = \"{SLOW}\"\nslab-exact = \"{exact}\"\n");
    }
    let totals = if is_fast { "100ms" } else { &every };
    text + &format!("meminfo = \"{totals}\"\nvmstat = \"{SLOW}\"\n")
}

/// Rows of the table, and bars of the picture, where no other number is requested.
const TOP: usize = 20;

/// Totals and the worst caches of a run.
pub fn show_slab_caches(context: &App, args: &SlabShowArgs) -> Result<Exit, Failure> {
    let stored = read_stored_slab_run(context, &args.run)?;
    if args.method == NotebookMethod::Notebook {
        return crate::instruments::slab_notebook::show_notebook_table(context, &stored, args);
    }
    let recording = stored.read_recording()?;
    let mut result = slab::cache_table(&recording, &CacheTableOptions::default());
    let order = args.by.unwrap_or_default();
    if context.format == OutputFormat::Json {
        // Everything, but what was asked for in so many words.
        result.caches =
            result.sorted_rows(order).into_iter().take(args.top.unwrap_or(usize::MAX)).cloned().collect();
    }
    let width = grid_width(context, args.wide);
    app::print_result(context, &result, || {
        present::show_grid(&result, order, args.top.unwrap_or(TOP), width)
    })?;
    app::write_scene(context, args.output.as_ref(), || {
        present::show_figure(&result, order, args.top.unwrap_or(CACHE_BARS))
    })?;
    app::note_row_counts(context, &result.rows);
    if args.wide && context.format == OutputFormat::Table && !context.quiet {
        note_column_meanings(context);
    }
    Ok(Exit::Fine)
}

/// What a recording ends with, as one document.
#[derive(Debug, Serialize)]
struct SlabRecordSummary<'a> {
    growth: &'a slab::SlabGrowth,
    show: &'a slab::CacheTable,
}

/// What a recording ends with: where the memory went, the ten that waste most, and the picture that was asked for.
pub fn summarise_recording(context: &App, run: &RunDir, args: &SlabRecordArgs) -> Result<(), Failure> {
    let recording = StoredSlabRun::read(run)?.read_recording()?;
    let result = slab::cache_table(&recording, &CacheTableOptions::default());
    let growth = slab::slab_growth(&recording, &SlabGrowthOptions::default())?;
    let width = grid_width(context, args.wide);
    app::print_result(context, &SlabRecordSummary { growth: &growth, show: &result }, || {
        present::growth_grid(&growth, width)
    })?;
    // Of two tables of CSV none can be read.
    if matches!(context.format, OutputFormat::Table | OutputFormat::Markdown) {
        context.print_text("")?;
        context.print_grid(&present::show_grid(&result, CacheOrder::Waste, 10, width))?;
    }
    app::write_scene(context, args.output.as_ref(), || {
        present::stack_figure(&slab::cache_stack(&recording, LAYERS))
    })?;
    app::note_row_counts(context, &result.rows);
    Ok(())
}

fn note_column_meanings(context: &App) {
    let names: Vec<String> =
        present::notebook_column_names().map(|(ours, theirs)| format!("{ours} = {theirs}")).collect();
    context.note(format!("the notebook's names (in brackets the slabinfo tool's): {}", names.join("; ")));
}

/// Caches with a colour of their own.
pub(crate) const LAYERS: usize = 7;

/// Bytes and efficiency over time.
pub fn show_timeline(context: &App, args: &SlabTimelineArgs) -> Result<Exit, Failure> {
    let stored = read_stored_slab_run(context, &args.run)?;
    if args.method == NotebookMethod::Notebook {
        return slab_notebook::show_notebook_timeline(context, &stored, args);
    }
    let recording = stored.read_recording()?;
    if args.growth {
        return show_growth(context, &stored, &recording, args);
    }
    let result = slab::usage_timeline(&recording, args.cache.as_deref())?;
    let most = matches!(context.format, OutputFormat::Table | OutputFormat::Markdown).then_some(ROWS);
    app::print_result(context, &result, || present::timeline_grid(&result, most))?;
    app::note_omitted_rows(context, most, result.points.len());
    app::write_scene(context, args.output.as_ref(), || {
        match (args.picture.unwrap_or_default(), &args.cache) {
            (SlabSceneKind::Bytes, None) => present::stack_figure(&slab::cache_stack(&recording, LAYERS)),
            (SlabSceneKind::Waste, _) | (SlabSceneKind::Bytes, Some(_)) => {
                present::waste_timeline_chart(&result)
            }
            (SlabSceneKind::Efficiency, _) => present::efficiency_timeline_chart(&result),
        }
    })?;
    app::note_row_counts(context, &recording.counts());
    Ok(Exit::Fine)
}

/// Before, peak, retained and slope by cache; and how the caches add up to meminfo's Slab.
pub fn show_growth(
    context: &App,
    stored: &StoredSlabRun,
    recording: &SlabRecording,
    args: &SlabTimelineArgs,
) -> Result<Exit, Failure> {
    let only = args.cache.as_deref().map(|name| recording.find_caches(name)).transpose()?;
    let result = slab::slab_growth(recording, &SlabGrowthOptions { only, ..SlabGrowthOptions::default() })?;
    app::print_result(context, &result, || present::growth_grid(&result, grid_width(context, args.wide)))?;
    app::write_scene(context, args.output.as_ref(), || present::growth_figure(&result))?;
    context.note(format!(
        "before: {} ticks until the first iteration began; after: {} ticks since the last one ended",
        result.baseline.ticks, result.end.ticks
    ));
    if let Ok(account) = slab::reconcile_with_meminfo(recording, stored.analysis_input().meminfo) {
        let size = Bytes(account.median.abs().round() as u64);
        let more = if account.median < 0.0 { "less" } else { "more" };
        context.note(format!(
            "meminfo's Slab is {size} {more} than the caches' slabs (median): large kmallocs, and the time between the \
             two readings"
        ));
    }
    app::note_row_counts(context, &recording.counts());
    Ok(Exit::Fine)
}

const BINS: usize = 20;

/// How efficiencies are spread over caches and bytes.
pub fn show_efficiency_histogram(context: &App, args: &SlabHistogramArgs) -> Result<Exit, Failure> {
    let stored = read_stored_slab_run(context, &args.run)?;
    if args.method == NotebookMethod::Notebook {
        return slab_notebook::show_notebook_histograms(context, &stored, args);
    }
    if args.of.is_some() {
        return Err(UsageError::new(
            "--of selects one of the notebook's histograms",
            "add --method notebook",
        )
        .into());
    }
    let recording = stored.read_recording()?;
    let result = slab::efficiency_histogram(&recording, args.bins.unwrap_or(BINS));
    app::print_result(context, &result, || present::histogram_grid(&result))?;
    app::write_scene(context, args.output.as_ref(), || {
        let all = slab::cache_table(&recording, &CacheTableOptions::default()).total.overall().value();
        present::histogram_figure(&result, all)
    })?;
    app::note_row_counts(context, &recording.counts());
    Ok(Exit::Fine)
}

/// Bars of the picture.
const BARS: usize = 15;

/// The runs of a selector, read.
struct SlabRuns {
    name: String,
    runs: Vec<(StoredSlabRun, SlabRecording)>,
}

impl SlabRuns {
    fn read(context: &App, archive: &Archive, selector: &str) -> Result<Self, Failure> {
        let read = |run: &RunDir| {
            let stored = StoredSlabRun::read(run)?;
            stored.note_failures(context);
            let recording = stored.read_recording()?;
            Ok((stored, recording))
        };
        let runs = archive.find_runs(selector)?.iter().map(read).collect::<Result<Vec<_>, Failure>>()?;
        Ok(SlabRuns { name: crate::selection::select_side(archive, selector)?.name, runs })
    }

    fn as_side(&self) -> SlabSide<'_> {
        let runs = self.runs.iter();
        let runs = runs.map(|(stored, recording)| SlabRepetition { record: &stored.record, recording });
        SlabSide { name: self.name.clone(), runs: runs.collect() }
    }
}

/// Slab bytes of two runs, of two groups of repetitions, or of the levels of a factor, cache by cache.
pub fn compare_slab_bytes(context: &App, args: &SlabCompareArgs) -> Result<Exit, Failure> {
    args.gate.refuse_kernel_log("slab compare")?;
    let archive = context.archive()?;
    let read = crate::selection::named_runs_or_latest(&args.runs)
        .iter()
        .map(|name| SlabRuns::read(context, &archive, name))
        .collect::<Result<Vec<_>, Failure>>()?;
    let result = match (&args.by, read.as_slice()) {
        (None, [baseline, candidate]) => compare_slab_sides(&[baseline.as_side(), candidate.as_side()])?,
        (Some(factor), [one]) => compare_slab_by_factor(one, factor)?,
        (None, _) => {
            return Err(UsageError::new(
                "one run alone cannot be compared",
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
    app::print_result(context, &SlabComparisonDocument::new(&result), || {
        present::comparison_grid(&result, args.all)
    })?;
    app::write_scene(context, args.output.as_ref(), || present::comparison_figure(&result, BARS))?;
    note_slab_comparison(context, &result);
    args.gate.note_uncounted(context, &result.mean);
    let Some(gate) = &args.gate.gate() else { return Ok(Exit::Fine) };
    let found = result.violations(gate).len();
    if found > 0 {
        stderr_line!("perflab: --fail-if {gate}: {found} found");
        return Ok(Exit::Regression);
    }
    Ok(Exit::Fine)
}

fn compare_slab_sides(sides: &[SlabSide<'_>]) -> Result<SlabComparison, Failure> {
    let Some((baseline, candidates)) = sides.split_first() else {
        return Err(UsageError::new("there is nothing to compare", "name two runs").into());
    };
    Ok(slab::compare_caches(baseline, candidates, &SlabCompareOptions::default())?)
}

/// Each level as a side: the same rows, seen through the iterations of that level.
fn compare_slab_by_factor(read: &SlabRuns, factor: &str) -> Result<SlabComparison, Failure> {
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
    context.note(format!("compared: {what}, slab bytes averaged over time; fewer is better"));
    for warning in diagnostic_summaries(&result.mean) {
        context.note(format!("warning: {warning}"));
    }
    result.mean.notes.iter().for_each(|note| context.note(format!("note: {}", describe_method(note))));
}

/// Orders that are tried where none is named: those that SLUB chooses by itself.
const ORDERS: [u32; 4] = [0, 1, 2, 3];

/// Bytes of caches under other layouts, at the run's last tick.
pub fn show_what_if(context: &App, args: &WhatIfArgs) -> Result<Exit, Failure> {
    let recording = read_stored_slab_run(context, &args.run)?.read_recording()?;
    let caches = args.cache.as_deref().map(|name| recording.find_caches(name)).transpose()?;
    let last = recording.ticks().len().saturating_sub(1);
    let rows = recording.rows().iter().filter(|row| row.last == last && row.slabs > 0);
    let rows = rows.filter(|row| caches.as_ref().is_none_or(|caches| caches.contains(&row.cache)));
    let mut found: Vec<present::WhatIfRow> = Vec::new();
    for row in rows {
        found.extend(layouts_of_cache(&recording, row, args)?);
    }
    if found.is_empty() {
        let hint = "no cache has slabs at the run's last tick and fits this layout";
        return Err(UsageError::new("there is no cache to lay out", hint).into());
    }
    if args.cache.is_none() {
        found.sort_by_key(|row| -row.saved_bytes());
        found.truncate(args.top);
    }
    app::print_result(context, &found, || present::what_if_grid(&found))?;
    context.note(
        "saved: with as many objects as now; the kernel may need a higher order for speed, not for space",
    );
    Ok(Exit::Fine)
}

/// The cache in the requested layout; in each other order where none is named. What is impossible is an error only
/// where it was asked for.
fn layouts_of_cache(
    recording: &SlabRecording,
    row: &SlabRow,
    args: &WhatIfArgs,
) -> Result<Vec<present::WhatIfRow>, Failure> {
    let Some(cache) = recording.caches().get(row.cache) else { return Ok(Vec::new()) };
    let align = cache.attributes.as_ref().and_then(|attributes| attributes.align);
    let orders: Vec<Option<u32>> = match (args.order, args.object_size) {
        (Some(order), _) => vec![Some(order)],
        (None, Some(_)) => vec![None],
        (None, None) => ORDERS.map(Some).to_vec(),
    };
    let asked = args.cache.is_some() && orders.len() == 1;
    let mut found = Vec::new();
    for order in orders {
        let change = LayoutChange { order, object_size: args.object_size.map(|size| size.0), align };
        match slab::what_if_layout(row, recording.page_size(), &change) {
            // In a list of all caches, what is already so says nothing.
            Ok(what_if) if args.cache.is_none() && what_if.then == what_if.now => {}
            Ok(what_if) => found.push(present::WhatIfRow { cache: cache.label(), what_if }),
            Err(error) if asked => return Err(error.into()),
            Err(_) => {}
        }
    }
    Ok(found)
}
