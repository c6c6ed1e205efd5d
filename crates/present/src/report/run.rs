//! One run of `model` as the front end reads it: cases, iterations and samples on one clock.

use indexmap::IndexMap;
use perflab_model::{IterationRecord, Nanos, Outcome, RunRecord, Sample};

use super::input::ReportRun;
use super::{data, series};

/// Microseconds since the run's first moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunClock {
    origin: Nanos,
    end: Nanos,
}

impl RunClock {
    /// The clock of a run: from the first to the last thing that it recorded.
    pub(super) fn from_run(input: &ReportRun) -> Self {
        let iterations = input.record.iterations.iter().flat_map(|one| [one.start, one.end]);
        let ticks =
            input.series.iter().flat_map(|one| [one.ticks.first(), one.ticks.last()]).flatten().copied();
        let (origin, end) = iterations
            .chain(ticks)
            .fold((Nanos(u64::MAX), Nanos(0)), |(first, last), at| (first.min(at), last.max(at)));
        RunClock { origin: origin.min(end), end }
    }

    /// A moment, in microseconds; negative before the first.
    pub(super) fn micros_at(self, at: Nanos) -> i64 {
        let difference = i128::from(at.0) - i128::from(self.origin.0);
        i64::try_from(difference.div_euclid(1000)).unwrap_or(0)
    }

    /// The run's length in microseconds.
    pub(super) fn length_in_micros(self) -> i64 {
        self.micros_at(self.end)
    }
}

/// The whole run.
pub(super) fn viewer_run(input: &ReportRun) -> data::ViewerRun {
    let clock = RunClock::from_run(input);
    let record = &input.record;
    let warmups: Vec<bool> = record.manifest.plan.slots.iter().map(|slot| slot.warmup).collect();
    data::ViewerRun {
        name: run_display_name(record),
        length: clock.length_in_micros(),
        cases: record.manifest.plan.cases.iter().map(viewer_case).collect(),
        iterations: record
            .iterations
            .iter()
            .filter_map(|one| viewer_iteration(record, one, &warmups, clock))
            .collect(),
        metrics: viewer_metrics(&record.samples, clock),
        monitors: series::viewer_monitors(input, clock),
    }
}

/// What a run is called on the page: its label, or the beginning of its id, by which the command line finds it.
pub(super) fn run_display_name(record: &RunRecord) -> String {
    let id = &record.manifest.id;
    record.manifest.label.clone().unwrap_or_else(|| id.get(..10).unwrap_or(id).to_owned())
}

fn viewer_case(case: &perflab_model::Case) -> data::ViewerCase {
    data::ViewerCase {
        label: case.label(),
        subject: case.label_without_levels(),
        levels: case.levels.clone(),
    }
}

fn viewer_iteration(
    record: &RunRecord,
    one: &IterationRecord,
    warmups: &[bool],
    clock: RunClock,
) -> Option<data::ViewerIteration> {
    let slot = record.manifest.plan.slots.get(one.slot as usize)?;
    Some(data::ViewerIteration {
        case: slot.case,
        iteration: slot.iteration,
        warmup: warmups.get(one.slot as usize).copied().unwrap_or(false),
        failure: failure_text(&one.outcome),
        start: clock.micros_at(one.start),
        end: clock.micros_at(one.end),
    })
}

fn failure_text(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Ok => None,
        Outcome::Failed { reason } => Some(reason.clone()),
        Outcome::TimedOut { limit } => Some(format!("stopped at its time limit of {limit}")),
        Outcome::Interrupted => Some("the run was stopped".into()),
    }
}

fn viewer_metrics(samples: &[Sample], clock: RunClock) -> Vec<data::ViewerMetric> {
    let mut found: IndexMap<(&str, &str), data::ViewerMetric> = IndexMap::new();
    for sample in samples {
        let metric = found.entry((&sample.metric, &sample.unit.0)).or_insert_with(|| empty_metric(sample));
        metric.case.push(sample.case);
        metric.iteration.push(sample.iteration);
        metric.start.push(clock.micros_at(sample.start));
        metric.value.push(sample.value);
    }
    let mut metrics: Vec<data::ViewerMetric> = found.into_values().collect();
    metrics.sort_by_key(|metric| !metric.primary);
    metrics
}

fn empty_metric(sample: &Sample) -> data::ViewerMetric {
    data::ViewerMetric {
        name: String::from(&sample.metric),
        unit: sample.unit.to_string(),
        direction: sample.direction.to_string(),
        primary: sample.primary,
        case: Vec::new(),
        iteration: Vec::new(),
        start: Vec::new(),
        value: Vec::new(),
    }
}
