//! One run for people: its card, its plan, its iterations.

use std::collections::BTreeSet;

use perflab_model::fact_table;
use perflab_model::quantity::{format_quantity, format_share};
use perflab_model::untrusted_text::escape_controls_in_line;
use perflab_model::{
    Case, GuestStops, Manifest, Nanos, Outcome, Overhead, RunData, RunRecord, RunStatus, TargetRecord,
    TargetVariantRecord, describe_overwritten_settings,
};

use crate::grid::{Grid, GridCell, GridColumn};
use crate::run_viewer::run_display_name;
use crate::section::{ReportData, Section, SectionBlock, SectionError, no_conclusions};
use crate::sentence::format_sentence;

/// What ran, where, how it ended, and what perflab itself cost.
pub(crate) const RUNS: Section =
    Section { id: "runs", title: "Runs", conclusions: no_conclusions, blocks: run_cards };

/// What was planned, in which order.
pub(crate) const PLAN: Section =
    Section { id: "plan", title: "Plan", conclusions: no_conclusions, blocks: plan_cards };

fn run_cards(data: &ReportData) -> Result<Vec<SectionBlock>, SectionError> {
    data.runs.iter().map(|run| run_card(run.as_ref())).collect()
}

/// As many targets are named.
const NAMED: usize = 4;

/// Where the cases ran: `box (container)`; the machine that recorded, where it did all itself.
fn describe_targets(manifest: &Manifest) -> String {
    let (named, others) = manifest.targets.split_at(manifest.targets.len().min(NAMED));
    let names = named.iter().map(|target| format!("{} ({})", target.name, target.kind));
    let more = (!others.is_empty()).then(|| format!("{} more", others.len()));
    let text = names.chain(more).collect::<Vec<_>>().join(", ");
    if text.is_empty() { manifest.target.clone() } else { escape_controls_in_line(&text).into_owned() }
}

/// The distributions of the targets, at each level that gives them others: `release=trixie: Debian GNU/Linux 13 (trixie)`.
fn describe_target_systems(manifest: &Manifest) -> String {
    let system = |targets: &[TargetRecord]| {
        let names = targets.iter().map(|target| target.facts.text(&fact_table::DISTRIBUTION_NAME));
        names.filter(|name| !name.is_empty()).collect::<BTreeSet<String>>()
    };
    let systems = |one: &TargetVariantRecord| {
        let levels: Vec<String> =
            one.levels.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
        let names = Vec::from_iter(system(&one.targets)).join(" and ");
        (!names.is_empty()).then(|| format!("{}: {names}", levels.join(", ")))
    };
    let differ = manifest.variants.iter().map(|one| system(&one.targets)).collect::<BTreeSet<_>>().len() > 1;
    let texts: Vec<String> = match differ {
        true => manifest.variants.iter().filter_map(systems).collect(),
        false => system(&manifest.targets).into_iter().collect(),
    };
    escape_controls_in_line(&texts.join("; ")).into_owned()
}

fn run_card(run: &dyn RunData) -> Result<SectionBlock, SectionError> {
    let record = run.record();
    let manifest = &record.manifest;
    let failed = record.iterations.iter().filter(|one| one.outcome != Outcome::Ok).count();
    let pairs = [
        ("Began", format_date(manifest.anchor.realtime)),
        ("Took", format_quantity(manifest.overhead.wall.seconds(), "s")),
        ("Target", describe_targets(manifest)),
        ("Target systems", describe_target_systems(manifest)),
        ("Kernel", manifest.facts.text(&fact_table::KERNEL_RELEASE)),
        ("CPU", manifest.facts.text(&fact_table::CPU_MODEL)),
        ("Failed iterations", failed.to_string()),
    ];
    let triggers = record.describe_triggers().into_iter().map(|text| ("Triggered", text));
    let pairs = pairs.into_iter().chain(triggers).filter(|(_, value)| !value.is_empty());
    let mut blocks = vec![
        SectionBlock::Hint(format!("`{}`", manifest.id)),
        SectionBlock::Pairs(pairs.map(|(name, value)| (name.to_owned(), value)).collect()),
        SectionBlock::Hint(overhead_text(&manifest.overhead)),
    ];
    blocks.extend(record.warnings.iter().map(|warning| SectionBlock::Diagnostic {
        headline: format_sentence(&warning.message),
        advice: format_sentence(&warning.advice),
        details: Vec::new(),
    }));
    let overwritten = describe_overwritten_settings(&record.overwritten);
    blocks.extend((!overwritten.is_empty()).then(|| SectionBlock::Diagnostic {
        headline: "Somebody else changed settings during the run.".into(),
        advice: "Some iterations ran under another setting than their case says.".into(),
        details: overwritten,
    }));
    blocks.extend(run.notes()?.into_iter().flat_map(|note| {
        let by = if note.by.is_empty() {
            String::new()
        } else {
            format!(" by {}", escape_controls_in_line(&note.by))
        };
        let about = note.metric.as_ref().map_or_else(String::new, |metric| {
            let case = note.case.as_deref().unwrap_or_default();
            let about = format!(" on the step of {metric}, {case}");
            escape_controls_in_line(&about).into_owned()
        });
        let head = format!("Note of {}{by}{about}:", format_date(note.at));
        let lines =
            note.text.lines().map(|line| SectionBlock::Text(escape_controls_in_line(line).into_owned()));
        std::iter::once(SectionBlock::Hint(head)).chain(lines.collect::<Vec<_>>())
    }));
    let console = run.target_output()?.as_deref().map(last_output_lines).filter(|text| !text.is_empty());
    blocks.extend(console.map(|text| SectionBlock::Fold {
        summary: "Last output of the targets: errors, the end of consoles".into(),
        count: None,
        blocks: vec![SectionBlock::Code(text)],
    }));
    let badge = Some((manifest.status.to_string(), manifest.status == RunStatus::Finished));
    Ok(SectionBlock::Card { heading: run_display_name(record), badge, blocks })
}

/// Lines of a console that a page has, and characters of each.
const LINES: usize = 60;

const WIDEST: usize = 300;

/// The last lines of targets' output, with what a browser would turn round shown as such; the lines of panics before them stand
/// first.
fn last_output_lines(text: &str) -> String {
    let shown =
        |line: &str| escape_controls_in_line(line.trim_end()).chars().take(WIDEST).collect::<String>();
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let (before, last) = all.split_at(all.len().saturating_sub(LINES));
    let panics: Vec<&&str> = before.iter().filter(|line| line.contains("Kernel panic")).take(LINES).collect();
    let left = before.len() - panics.len();
    let rest = (left > 0).then(|| format!("… {left} lines before")).into_iter();
    let panics = panics.into_iter().map(|line| shown(line));
    rest.chain(panics).chain(last.iter().map(|line| shown(line))).collect::<Vec<_>>().join("\n")
}

/// Nanoseconds since 1970 as `2026-11-21 15:38 UTC`.
pub(crate) fn format_date(realtime: Nanos) -> String {
    let seconds = i64::try_from(realtime.0 / 1_000_000_000).unwrap_or(0);
    jiff::Timestamp::from_second(seconds)
        .map(|at| at.strftime("%Y-%m-%d %H:%M UTC").to_string())
        .unwrap_or_default()
}

fn overhead_text(overhead: &Overhead) -> String {
    let share = |cpu: Nanos| match overhead.wall.0 {
        0 => "–".into(),
        wall => format_share(cpu.0 as f64 / wall as f64),
    };
    let stops =
        overhead.guest_stops.map(|stops| format!("; {}", guest_stops_text(stops))).unwrap_or_default();
    format!(
        "Cost of perflab itself over {}, settings applied to settings undone: {} of one CPU (monitors {}), {} ticks, {} late, {} \
         lost; {} resident at most, {} written to the end{stops}",
        format_quantity(overhead.wall.seconds(), "s"),
        share(overhead.cpu),
        share(overhead.monitors_cpu),
        overhead.ticks,
        overhead.late_ticks,
        overhead.lost_ticks,
        format_quantity(overhead.peak_rss as f64, "bytes"),
        format_quantity(overhead.bytes_written as f64, "bytes"),
    )
}

/// How guests were stopped for their profile: `1500 stops for samples from outside held guests for 1.2 % of 30 s`.
#[must_use]
pub fn guest_stops_text(stops: GuestStops) -> String {
    format!(
        "{} stops for samples from outside held guests for {} of {}",
        stops.stops,
        format_share(stops.stopped_share()),
        format_quantity(stops.sampled.seconds(), "s")
    )
}

fn plan_cards(data: &ReportData) -> Result<Vec<SectionBlock>, SectionError> {
    Ok(data.runs.iter().map(|run| plan_card(run.as_ref())).collect())
}

fn plan_card(run: &dyn RunData) -> SectionBlock {
    let manifest = &run.record().manifest;
    let plan = &manifest.plan;
    let blocks_order = if plan.has_complete_blocks() { " in complete blocks" } else { "" };
    let mut pairs = vec![
        ("Study".to_owned(), manifest.study_file.clone()),
        ("Order".to_owned(), format!("{}{blocks_order}", plan.order)),
        ("Seed".to_owned(), plan.seed.to_string()),
        ("Iterations".to_owned(), format!("{} slots, {} cases", plan.slots.len(), plan.cases.len())),
    ];
    pairs.extend(plan.factors.iter().map(|(name, levels)| (format!("Factor {name}"), levels.join(", "))));
    let mut blocks = vec![
        SectionBlock::Pairs(pairs),
        SectionBlock::Fold {
            summary: "Cases".into(),
            count: Some(plan.cases.len()),
            blocks: vec![SectionBlock::List(plan.cases.iter().map(Case::label).collect())],
        },
    ];
    if !manifest.study_text.is_empty() {
        let blocks_of_text = vec![SectionBlock::Code(manifest.study_text.clone())];
        blocks.push(SectionBlock::Fold { summary: "Study file".into(), count: None, blocks: blocks_of_text });
    }
    SectionBlock::Card { heading: run_display_name(run.record()), badge: None, blocks }
}

/// A row an iteration: when it began, how long it took, how it ended.
#[must_use]
pub fn iteration_grid(record: &RunRecord) -> Grid {
    let plan = &record.manifest.plan;
    let has_layouts = !plan.layouts.is_empty();
    let titles = ["slot", "case", "iteration", "start", "took", "outcome"].into_iter();
    let has_targets = record.iterations.iter().any(|one| one.target.is_some());
    let titles = titles.chain(has_layouts.then_some("layout")).chain(has_targets.then_some("target"));
    let mut grid = Grid::new(titles.map(GridColumn::left));
    for one in &record.iterations {
        let Some(slot) = plan.slots.get(one.slot as usize) else { continue };
        let number =
            if slot.warmup { format!("warm-up {}", slot.iteration) } else { slot.iteration.to_string() };
        let began = one.start.since(record.manifest.anchor.monotonic);
        let took = one.end.since(one.start);
        let cells = [
            u64::from(one.slot).into(),
            plan.case(slot.case).map(Case::label).unwrap_or_default().as_str().into(),
            number.as_str().into(),
            GridCell::with_text(format!("{:.3} s", began.seconds()), began.0),
            GridCell::with_text(took.to_string(), took.0),
            outcome_text(&one.outcome).as_str().into(),
        ];
        let layout = has_layouts.then(|| slot.layout.map(u64::from).into());
        let target = one.target.and_then(|target| record.manifest.targets.get(target as usize));
        let target =
            has_targets.then(|| target.map_or(GridCell::missing(), |target| target.name.as_str().into()));
        grid.add_row(cells.into_iter().chain(layout).chain(target));
    }
    grid
}

fn outcome_text(outcome: &Outcome) -> String {
    let failed = if matches!(outcome, Outcome::Failed { .. }) { "failed: " } else { "" };
    outcome.failure_reason().map_or_else(|| "ok".into(), |reason| format!("{failed}{reason}"))
}
