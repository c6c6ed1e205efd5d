//! Metrics over runs for programs, a row for each value: what a dashboard draws.

use perflab_analyze::history::MetricHistory;
use perflab_analyze::{MetricHistories, Verdict};
use perflab_model::Nanos;
use perflab_present::history::describe_step;
use perflab_present::method_text::describe_method;
use schemars::JsonSchema;
use serde::Serialize;

use crate::laboratory::WebLaboratory;
use crate::refusal::RequestRefusal;
use crate::result_pages::history_request;
use crate::route::{RouteAnswer, RouteRequest};

/// Rows of an answer.
const MOST_POINTS: usize = 100_000;

/// Metrics over runs, in rows.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HistoryPointsDocument {
    /// Version of this document.
    format: u32,
    /// Runs that were looked at.
    runs: usize,
    /// A row for each run and metric: series by series, each with the oldest run first.
    points: Vec<HistoryPointDocument>,
    /// The steps, series by series.
    steps: Vec<HistoryStepDocument>,
    /// How the values and steps came about, and which runs were left out.
    notes: Vec<String>,
}

/// The value of a metric in one run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HistoryPointDocument {
    /// When the run began, in UTC.
    time: String,
    /// The same in nanoseconds since 1970.
    at: u64,
    /// The run's id.
    run: String,
    /// The name that somebody gave it.
    label: Option<String>,
    /// The study's title.
    study: String,
    /// The case, with the levels of its factors.
    case: String,
    /// The metric.
    metric: String,
    /// Unit of its values.
    unit: String,
    /// The commit of the tree that the run measured, else of the kernel that it ran on, where that is known.
    commit: Option<String>,
    /// The machine's id, as its fact `machine.id` has it; empty where that is unknown.
    machine: String,
    /// The median of its boots' medians.
    value: f64,
    /// The lower end of its interval, where there is one.
    low: Option<f64>,
    /// The upper end.
    high: Option<f64>,
}

/// A step between two runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HistoryStepDocument {
    /// When the first run after it began, in UTC.
    time: String,
    /// The same in nanoseconds since 1970.
    at: u64,
    /// The study's title.
    study: String,
    /// The case, with the levels of its factors.
    case: String,
    /// The metric.
    metric: String,
    /// What it means.
    verdict: Verdict,
    /// A sentence about it.
    text: String,
    /// The last run before it.
    last_good: String,
    /// The first run after it.
    first_bad: String,
    /// The commit of the tree that the first run after it measured, else of the kernel that it ran on, where that is known.
    commit: Option<String>,
}

/// To a millisecond, which every dashboard reads.
fn utc_text(at: Nanos) -> String {
    let at = jiff::Timestamp::from_nanosecond(i128::from(at.0)).unwrap_or_default();
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

fn series_points(
    found: &MetricHistories,
    series: &MetricHistory,
) -> impl Iterator<Item = HistoryPointDocument> {
    series.points.iter().filter_map(|point| {
        let run = found.runs.get(point.run)?;
        Some(HistoryPointDocument {
            time: utc_text(point.at),
            at: point.at.0,
            run: run.id.clone(),
            label: run.label.clone(),
            study: run.study.clone(),
            case: series.subject.clone(),
            metric: series.metric.clone(),
            unit: series.unit.to_string(),
            commit: run.commit.clone(),
            machine: run.machine.clone(),
            value: point.value,
            low: point.interval.map(|interval| interval.low),
            high: point.interval.map(|interval| interval.high),
        })
    })
}

fn series_steps(
    found: &MetricHistories,
    series: &MetricHistory,
) -> impl Iterator<Item = HistoryStepDocument> {
    series.steps.iter().filter_map(|step| {
        let at = series.points.get(step.at)?;
        let study = found.runs.get(at.run)?.study.clone();
        Some(HistoryStepDocument {
            time: utc_text(at.at),
            at: at.at.0,
            study,
            case: series.subject.clone(),
            metric: series.metric.clone(),
            verdict: step.verdict,
            text: describe_step(series, step),
            last_good: step.last_good.clone(),
            first_bad: step.first_bad.clone(),
            commit: step.commit.clone(),
        })
    })
}

impl HistoryPointsDocument {
    fn new(found: &MetricHistories) -> Self {
        HistoryPointsDocument {
            format: 1,
            runs: found.runs.len(),
            points: found.series.iter().flat_map(|series| series_points(found, series)).collect(),
            steps: found.series.iter().flat_map(|series| series_steps(found, series)).collect(),
            notes: found.notes.iter().map(describe_method).collect(),
        }
    }
}

/// `/api/v1/history`
pub(crate) fn send_history(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    laboratory.refuse_missing_archive()?;
    let found = laboratory.source.histories(&history_request(request)?)?;
    let rows: usize = found.series.iter().map(|series| series.points.len()).sum();
    if rows > MOST_POINTS {
        return Err(RequestRefusal::bad_request(format!(
            "{rows} values are more than the {MOST_POINTS} of an answer: choose with `study`, `metric`, `workload`, `label` or `last`"
        )));
    }
    RouteAnswer::json(&HistoryPointsDocument::new(&found))
}
