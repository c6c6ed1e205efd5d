//! One run for people: heading, plan, own cost, gaps, iterations, medians.
//!
//! They are texts only, so that the template decides nothing.

use perflab_analyze::MetricHistories;
use perflab_model::untrusted_text::escape_controls_in_line;
use perflab_model::{RunPlan, RunRecord, RunStatus};
use serde::Serialize;

use crate::comparison::section;
use crate::number::report::format_quantity;
use crate::section::{ReportData, ReportRun};
use crate::{facts, fairness, run_viewer, startup};

/// Everything but data, style and script.
#[derive(Debug, Serialize)]
pub(crate) struct PageView {
    pub(crate) title: String,
    description: Option<String>,
    reference: Option<String>,
    writer: String,
    runs: Vec<RunCard>,
    comparisons: Vec<section::ComparisonView>,
    facts: facts::FactsTable,
    slabs: Vec<crate::slab::section::SlabSection>,
    traces: Vec<crate::section::TraceSection>,
    startups: Vec<startup::StartupView>,
    fairness: Vec<fairness::FairnessView>,
    history: Option<crate::history::HistorySection>,
}

/// One run's card and plan.
#[derive(Debug, Serialize)]
struct RunCard {
    name: String,
    id: String,
    began: String,
    wall: String,
    target: String,
    kernel: String,
    cpu: String,
    status: String,
    fine: bool,
    failed: usize,
    cost: OverheadText,
    warnings: Vec<PageDiagnostic>,
    /// The last output of targets, where an iteration failed.
    console: Option<String>,
    plan: PlanCard,
}

/// What perflab itself cost.
#[derive(Debug, Serialize)]
struct OverheadText {
    cpu: String,
    monitors: String,
    memory: String,
    written: String,
    ticks: u64,
    late: u64,
    lost: u64,
}

/// A warning with what to do about it.
#[derive(Debug, Serialize)]
struct PageDiagnostic {
    message: String,
    advice: String,
}

#[derive(Debug, Serialize)]
struct PlanCard {
    study: String,
    text: String,
    order: String,
    seed: String,
    slots: usize,
    factors: Vec<(String, String)>,
    cases: Vec<String>,
}

/// The page of an input.
pub(crate) fn page_view(input: &ReportData, history: Option<&MetricHistories>) -> PageView {
    let study = input.runs.first().map(|run| &run.record.manifest.study);
    let title = study.map(|study| study.title.clone()).filter(|_| input.title.is_empty());
    PageView {
        title: title.unwrap_or_else(|| input.title.clone()),
        description: study.and_then(|study| study.description.clone()),
        reference: study.and_then(|study| study.reference.clone()),
        writer: input.runs.first().map(|run| run.record.manifest.writer.clone()).unwrap_or_default(),
        runs: input.runs.iter().map(run_card).collect(),
        comparisons: section::comparison_views(&input.comparisons),
        facts: facts::facts_table(&input.runs),
        slabs: crate::slab::section::slab_sections(&input.runs),
        traces: input.traces.clone(),
        startups: startup::startup_views(input.runs.iter().map(|run| &run.record)),
        fairness: fairness::fairness_views(input.runs.iter().map(|run| &run.record)),
        history: history.map(crate::history::HistorySection::from_history),
    }
}

fn run_card(input: &ReportRun) -> RunCard {
    let record = &input.record;
    let manifest = &record.manifest;
    let fact = |key| manifest.facts.value(key).map(ToString::to_string).unwrap_or_default();
    let warnings = record.warnings.iter();
    RunCard {
        name: run_viewer::run_display_name(record),
        id: manifest.id.clone(),
        began: format_date(manifest.anchor.realtime.0),
        wall: format_quantity(manifest.overhead.wall.seconds(), "s"),
        target: manifest.target.clone(),
        kernel: fact("kernel.release"),
        cpu: fact("cpu.model"),
        status: manifest.status.to_string(),
        fine: manifest.status == RunStatus::Finished,
        failed: record.iterations.iter().filter(|one| one.outcome != perflab_model::Outcome::Ok).count(),
        cost: overhead_text(record),
        warnings: warnings.map(page_diagnostic).collect(),
        console: input.consoles.as_deref().map(last_output_lines).filter(|text| !text.is_empty()),
        plan: plan_card(record, &manifest.plan),
    }
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

fn page_diagnostic(warning: &perflab_model::run::RunWarning) -> PageDiagnostic {
    PageDiagnostic { message: format_sentence(&warning.message), advice: format_sentence(&warning.advice) }
}

/// With a capital letter and a full stop, as a fragment needs to stand alone.
pub(crate) fn format_sentence(fragment: &str) -> String {
    let mut rest = fragment.trim_end_matches('.').chars();
    let capital = rest.next().into_iter().flat_map(char::to_uppercase);
    let text: String = capital.chain(rest).collect();
    if text.is_empty() { text } else { text + "." }
}

/// Nanoseconds since 1970 as `2026-11-21 15:38 UTC`.
fn format_date(realtime: u64) -> String {
    let seconds = i64::try_from(realtime / 1_000_000_000).unwrap_or(0);
    jiff::Timestamp::from_second(seconds)
        .map(|at| at.strftime("%Y-%m-%d %H:%M UTC").to_string())
        .unwrap_or_default()
}

fn overhead_text(record: &RunRecord) -> OverheadText {
    let overhead = &record.manifest.overhead;
    let share = |cpu: perflab_model::Nanos| match overhead.wall.0 {
        0 => "–".into(),
        wall => format!("{:.2}\u{a0}%", cpu.0 as f64 / wall as f64 * 100.0),
    };
    OverheadText {
        cpu: share(overhead.cpu),
        monitors: share(overhead.monitors_cpu),
        memory: format_quantity(overhead.peak_rss as f64, "bytes"),
        written: format_quantity(overhead.bytes_written as f64, "bytes"),
        ticks: overhead.ticks,
        late: overhead.late_ticks,
        lost: overhead.lost_ticks,
    }
}

fn plan_card(record: &RunRecord, plan: &RunPlan) -> PlanCard {
    PlanCard {
        study: record.manifest.study_file.clone(),
        text: record.manifest.study_text.clone(),
        order: plan.order.clone(),
        seed: plan.seed.to_string(),
        slots: plan.slots.len(),
        factors: plan.factors.iter().map(|(name, levels)| (name.clone(), levels.join(", "))).collect(),
        cases: plan.cases.iter().map(perflab_model::Case::label).collect(),
    }
}
