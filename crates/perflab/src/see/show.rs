//! One run, `perflab show`, or two held together, `perflab diff`.

use std::collections::BTreeSet;

use clap::Args;
use indexmap::IndexMap;
use perflab_analyze::monitor_metric::summarise_monitor;
use perflab_analyze::{RunWarmUp, find_warm_ups, run_differences};
use perflab_archive::{RunDir, StoredOutput};
use perflab_conduct::find_remaining_slots;
use perflab_model::series::SeriesGap;
use perflab_model::{
    IterationRecord, Manifest, Nanos, Outcome, RunEventKind, RunRecord, RunStatus,
    describe_overwritten_settings,
};
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
use perflab_present::facts::{machine_facts_grid, run_difference_grid};
use perflab_present::fairness;
use perflab_present::monitor_table::{MonitorTable, monitor_table};
use perflab_present::run_overview::{guest_stops_text, iteration_grid};

use crate::app::App;
use crate::failure::{Exit, Failure};
use crate::keep::runs::format_local_time;
use crate::measure::repeatable_run::check_study_resumable;
use crate::selection;
use crate::verb::Verb;
use perflab_model::quantity::format_share;

/// Shows one run from the side that was asked for.
pub fn show_run(context: &App, args: &ShowArgs) -> Result<Exit, Failure> {
    let archive = context.archive()?;
    let shows_one_part = args.output.is_some() || args.kernel_log || args.monitor.is_some() || args.facts;
    if !shows_one_part && archive.find_runs(&args.run)?.len() > 1 {
        return show_whole_run(context, args);
    }
    let run = selection::select_run(&archive, &args.run)?;
    if let Some(slot) = args.output {
        print_iteration_output(context, &run, slot)?;
    } else if args.iterations {
        context.print_grid(&iteration_grid(&run.read_record()?))?;
    } else if args.facts {
        context.print_grid(&machine_facts_grid(&run.manifest()?.facts))?;
    } else if args.kernel_log {
        print_kernel_log(context, &run)?;
    } else if let Some(monitor) = &args.monitor {
        print_monitor(context, &run, monitor)?;
    } else if args.targets {
        context.print_grid(&fairness::fairness_grid(&run.read_record()?))?;
    } else {
        let record = run.read_record()?;
        print_run_overview(context, &run, &record)?;
        note_other_parts(context, &run, &record)?;
    }
    Ok(Exit::Fine)
}

/// Shows a run that was gone on with, by the label that its parts share.
fn show_whole_run(context: &App, args: &ShowArgs) -> Result<Exit, Failure> {
    let (run, record) = selection::select_whole_run(&context.archive()?, &args.run)?;
    match () {
        () if args.iterations => context.print_grid(&iteration_grid(&record))?,
        () if args.targets => context.print_grid(&fairness::fairness_grid(&record))?,
        () => {
            print_run_overview(context, &run, &record)?;
            let parts: Vec<&str> = record.recorded_ids().collect();
            context.note(format!("one run of {} parts: {}", parts.len(), parts.join(", ")));
        }
    }
    Ok(Exit::Fine)
}

/// Which run this one goes on with, which goes on with it, or how one would.
fn note_other_parts(context: &App, run: &RunDir, record: &RunRecord) -> Result<(), Failure> {
    let manifest = &record.manifest;
    if let Some(before) = &manifest.continues {
        let is_here = context.archive()?.find_runs(before).is_ok_and(|runs| !runs.is_empty());
        context.note(match is_here {
            true => format!("goes on with run {before}: `compare` takes both for one"),
            false => {
                format!("goes on with run {before}, which is not here: what that one measured is missing")
            }
        });
    }
    if manifest.status.is_cut() {
        let archive = context.archive()?;
        match selection::find_continuations(&archive, &manifest.id)?.pop() {
            Some(rest) => {
                context
                    .note(format!("run {} goes on with it: `compare` takes both for one", rest.short_id()));
            }
            None if archive.path().join("runs") == run.path().parent().unwrap_or(run.path()) => {
                let is_whole = find_remaining_slots(&manifest.plan, &record.iterations).is_empty();
                let rest =
                    if is_whole { "makes the tables of what was measured" } else { "measures the rest" };
                match check_study_resumable(run, manifest) {
                    Ok(()) => context.note(format!("`perflab resume {}` {rest}", run.short_id())),
                    Err(refused) => context.note(format!("not to be resumed: {}", refused.hint)),
                }
            }
            None => {}
        }
    }
    Ok(())
}

/// What was done and how it went, then the medians.
pub fn print_run_overview(context: &App, run: &RunDir, record: &RunRecord) -> Result<(), Failure> {
    for line in run_summary_lines(run, record) {
        context.note_line(&line);
    }
    context.print_grid(&fairness::median_grid(record))
}

fn run_summary_lines(run: &RunDir, record: &RunRecord) -> Vec<String> {
    let manifest = &record.manifest;
    let label = manifest.label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
    let failed: Vec<&IterationRecord> =
        record.iterations.iter().filter(|one| one.outcome != Outcome::Ok).collect();
    // One of several targets ends for each of them.
    let slots = |all: &mut dyn Iterator<Item = &IterationRecord>| {
        all.map(|one| one.slot).collect::<BTreeSet<_>>().len()
    };
    let ended = slots(&mut record.iterations.iter());
    let failed_slots = slots(&mut failed.iter().copied());
    let mut lines = vec![
        format!("{}{label}: {}", run.short_id(), manifest.study.title),
        format!(
            "begun {}, {}: {ended} of {}{} iterations ended, {failed_slots} failed; {} order, seed {}",
            format_local_time(begin_timestamp(manifest)),
            manifest.status,
            if manifest.status == RunStatus::Finished && ended < manifest.plan.slots.len() {
                "at most "
            } else {
                ""
            },
            manifest.plan.slots.len(),
            manifest.plan.order,
            manifest.plan.seed,
        ),
        overhead_line(manifest) + &unknown_costs_text(record),
    ];
    if !failed.is_empty() && record.iterations.iter().any(|one| one.target.is_some()) {
        lines.push(format!("counted in each target: {} of {} failed", failed.len(), record.iterations.len()));
    }
    lines.extend(record.describe_triggers().iter().map(|text| format!("triggered {text}")));
    lines.extend(layout_line(manifest));
    lines.extend(fairness::synchronisation_text(record));
    lines.extend(fairness::fairness_lines(record));
    lines.extend(find_warm_ups(record).iter().map(warm_up_line));
    lines.extend(gap_lines(&record.gaps));
    let overwritten = describe_overwritten_settings(&record.overwritten);
    lines.extend(overwritten.iter().map(|text| format!("changed by somebody else: {text}")));
    lines.extend(record.warnings.iter().map(|one| format!("warning: {}; {}", one.message, one.advice)));
    lines
}

/// Under how many layouts its cases ran.
fn layout_line(manifest: &Manifest) -> Option<String> {
    let layouts = &manifest.plan.layouts;
    let largest = layouts.iter().map(|layout| layout.padding).max()?;
    Some(format!(
        "{} layouts, in turn: the first as built, environments up to {largest} bytes longer (every one: plan.layouts of run.json)",
        layouts.len()
    ))
}

/// A warm-up that was found; comparisons keep it unless they are asked not to.
fn warm_up_line(found: &RunWarmUp) -> String {
    let period = found.period;
    let difference = format_share((period.before / period.steady - 1.0).abs());
    format!(
        "warm-up: {} {}: the first {} of {} values are worse than the rest by {difference} (compare --warmup auto leaves them out)",
        found.case, found.metric, period.values, found.values
    )
}

/// Reasons of gaps that are shown.
const GAPS_SHOWN: usize = 20;

/// What monitors did not record: a line for each reason, however often it came.
fn gap_lines(all: &[SeriesGap]) -> Vec<String> {
    let mut reasons: IndexMap<(&str, &str), Vec<&SeriesGap>> = IndexMap::new();
    for gap in all {
        reasons.entry((&gap.monitor, &gap.reason)).or_default().push(gap);
    }
    let often = |gaps: &[&SeriesGap]| {
        let lasted = |gap: &&SeriesGap| gap.to.map(|to| to.since(gap.from).0);
        match (
            gaps.len(),
            gaps.iter().map(lasted).try_fold(0, |sum: u64, one| Some(sum.saturating_add(one?))),
        ) {
            (1, None) => String::new(),
            (1, Some(all)) => format!(" ({})", Nanos(all)),
            (times, Some(all)) => format!(" ({times} times, {} in all)", Nanos(all)),
            (times, None) => format!(" ({times} times)"),
        }
    };
    let line = |((monitor, reason), gaps): ((&str, &str), Vec<&SeriesGap>)| {
        format!("gap: monitor {monitor}: {reason}{}", often(&gaps))
    };
    let more = reasons.len().saturating_sub(GAPS_SHOWN);
    let mut lines: Vec<String> = reasons.into_iter().take(GAPS_SHOWN).map(line).collect();
    if more > 0 {
        lines.push(format!("gap: for {more} further reasons (all of them: journal.jsonl)"));
    }
    lines
}

fn begin_timestamp(manifest: &Manifest) -> jiff::Timestamp {
    jiff::Timestamp::from_nanosecond(i128::from(manifest.anchor.realtime.0)).unwrap_or_default()
}

/// What perflab itself cost, in a line, and over which time it was counted.
pub fn overhead_line(manifest: &Manifest) -> String {
    let own = &manifest.overhead;
    if !own.is_known() {
        return "perflab's own cost: unknown (it is recorded when a run ends)".into();
    }
    let share = format_share(own.cpu.seconds() / own.wall.seconds().max(1e-9));
    let stops = own.guest_stops.map(|stops| format!("; {}", guest_stops_text(stops))).unwrap_or_default();
    format!(
        "perflab's own cost over {} (settings applied to settings undone; writing the tables comes after): {} of CPU ({share} \
         of one), {} for monitors; {} ticks, {} late, {} lost{stops}",
        own.wall, own.cpu, own.monitors_cpu, own.ticks, own.late_ticks, own.lost_ticks
    )
}

/// Of which parts of a run the cost is not known; empty where all of them tell it, or none.
fn unknown_costs_text(record: &RunRecord) -> String {
    let unknown: Vec<&str> =
        record.parts.iter().filter(|part| !part.has_known_cost).map(|part| part.id.as_str()).collect();
    match unknown.is_empty() || unknown.len() == record.parts.len() {
        true => String::new(),
        false => format!("; without that of {}, which did not come to its end", unknown.join(" and ")),
    }
}

fn print_iteration_output(context: &App, run: &RunDir, slot: u32) -> Result<(), Failure> {
    let mut found: IndexMap<&str, (String, String)> = IndexMap::new();
    for name in ["stdout", "stderr", "server stdout", "server stderr"] {
        if let Some(text) = run.read_output(Some(slot), name)? {
            found.insert(name, (format!("--- {name} of slot {slot}"), text));
        }
    }
    // What made it fail may stand on a console: a panic, or a program that was killed.
    let mine = |one: &IterationRecord| one.slot == slot && one.outcome != Outcome::Ok;
    if run.read_record()?.iterations.iter().any(mine)
        && let Some(text) = run.read_output(None, "agent")?
    {
        found.insert(
            "targets",
            ("--- what targets printed beside their streams: errors, consoles".into(), text),
        );
    }
    if found.is_empty() {
        context.note(format!("iteration {slot} printed nothing, or is not part of this run"));
    }
    if context.format == OutputFormat::Json {
        let texts: IndexMap<&str, &String> = found.iter().map(|(name, (_, text))| (*name, text)).collect();
        return context.print_json(&texts);
    }
    for (headline, text) in found.values() {
        context.note(headline);
        context.print_text(text)?;
    }
    Ok(())
}

/// What a monitor recorded over the iterations.
fn print_monitor(context: &App, run: &RunDir, monitor: &str) -> Result<(), Failure> {
    let (series, edges) = (run.read_series(monitor)?, run.read_edges(monitor)?);
    let found = summarise_monitor(&run.read_record()?, &series, edges.as_ref());
    let is_whole = context.format != OutputFormat::Table;
    let MonitorTable { grid, left_out } = monitor_table(&found, is_whole);
    context.print_grid(&grid)?;
    if left_out > 0 {
        context.note(format!("{left_out} rows are 0 in every iteration: --format csv has all"));
    }
    if found.left_out > 0 {
        let often = found.left_out;
        context.note(format!(
            "{often} iterations have nothing of it: it was not read in them, or for less than half of them"
        ));
    }
    for (column, often) in &found.went_back {
        context.note(format!("{column} went backwards in {often} iterations, which have no rate of it"));
    }
    Ok(())
}

/// The lines of the kernel's log, each with the iteration in which it came.
fn print_kernel_log(context: &App, run: &RunDir) -> Result<(), Failure> {
    let manifest = run.manifest()?;
    let mut grid = Grid::new([
        GridColumn::right("slot"),
        GridColumn::left("target"),
        GridColumn::left("case"),
        GridColumn::left("line"),
    ]);
    for StoredOutput { slot, target, text } in run.list_outputs(RunEventKind::KERNEL_LOG)? {
        let planned = slot.and_then(|slot| manifest.plan.slots.get(slot as usize));
        let case = planned.and_then(|slot| manifest.plan.case(slot.case)).map(perflab_model::Case::label);
        let target =
            target.and_then(|target| manifest.targets.get(target as usize)).map(|one| one.name.clone());
        for line in text.lines() {
            grid.add_row([
                GridCell::from(slot.map(|slot| slot.to_string()).unwrap_or_default()),
                GridCell::from(target.clone().unwrap_or_else(|| manifest.target.clone())),
                GridCell::from(case.clone().unwrap_or_default()),
                GridCell::from(line.to_owned()),
            ]);
        }
    }
    context.print_grid(&grid)
}

/// `perflab diff A B`
pub fn diff_runs(context: &App, args: &DiffArgs) -> Result<Exit, Failure> {
    let archive = context.archive()?;
    let (first, first_record) = selection::select_whole_run(&archive, &args.first)?;
    let (second, second_record) = selection::select_whole_run(&archive, &args.second)?;
    let found = run_differences(&first_record, &second_record);
    context.print_grid(&run_difference_grid([first.short_id(), second.short_id()], &found))?;
    if found.is_empty() {
        context.note("nothing that could explain a change differs: study, plan, facts");
    }
    Ok(Exit::Fine)
}

/// Show one run: what was done, how it went, medians
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// What the command printed in this iteration, by its slot in --iterations
    #[arg(long, value_name = "SLOT")]
    pub output: Option<u32>,
    /// List every iteration in order of time
    #[arg(long)]
    pub iterations: bool,
    /// List every fact
    #[arg(long)]
    pub facts: bool,
    /// Print what the kernel logged during the run, iteration by iteration
    #[arg(long)]
    pub kernel_log: bool,
    /// Show what a monitor recorded over the iterations, by column
    #[arg(long, value_name = "NAME")]
    pub monitor: Option<String>,
    /// Show how evenly each case served the targets of a synchronised run
    #[arg(long)]
    pub targets: bool,
}

impl Verb for ShowArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        show_run(app, self)
    }
}

/// Show what differs between two runs: facts, study, plan
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The run to compare with; without both, the one before the latest
    #[arg(default_value = "@latest~1", value_name = "RUN", requires = "second")]
    pub first: String,
    /// The other run
    #[arg(default_value = "@latest", value_name = "OTHER")]
    pub second: String,
}

impl Verb for DiffArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        diff_runs(app, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_of_one_reason_are_one_line() {
        let gap = |monitor: &str, from: u64, to: Option<u64>| SeriesGap {
            monitor: monitor.into(),
            from: Nanos(from),
            to: to.map(Nanos),
            reason: "late".into(),
        };
        let second = 1_000_000_000;
        let all =
            [gap("a", 0, Some(second)), gap("b", 0, None), gap("a", 0, Some(2 * second)), gap("b", 5, None)];
        let lines = ["gap: monitor a: late (2 times, 3 s in all)", "gap: monitor b: late (2 times)"];
        assert_eq!(gap_lines(&all), lines);
        assert_eq!(gap_lines(&all[1..2]), ["gap: monitor b: late"]);
        assert_eq!(gap_lines(&all[..1]), ["gap: monitor a: late (1 s)"]);
        let many: Vec<SeriesGap> =
            (0..30).map(|n| SeriesGap { reason: n.to_string(), ..gap("a", n, None) }).collect();
        assert_eq!(gap_lines(&many).len(), 21);
        insta::assert_snapshot!(gap_lines(&many)[20], @"gap: for 10 further reasons (all of them: journal.jsonl)");
    }
}
