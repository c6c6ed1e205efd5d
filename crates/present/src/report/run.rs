//! One run of `model` as the front end reads it: cases, iterations and samples on one clock.

use indexmap::IndexMap;
use perflab_model::{Iteration, Nanos, Outcome, RunRecord, Sample};

use super::input::RunInput;
use super::{data, series};

/// Microseconds since the run's first moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    origin: Nanos,
    end: Nanos,
}

impl Clock {
    /// The clock of a run: from the first to the last thing that it recorded.
    pub(super) fn of(input: &RunInput) -> Self {
        let iterations = input.record.iterations.iter().flat_map(|one| [one.start, one.end]);
        let ticks =
            input.series.iter().flat_map(|one| [one.ticks.first(), one.ticks.last()]).flatten().copied();
        let (origin, end) = iterations
            .chain(ticks)
            .fold((Nanos(u64::MAX), Nanos(0)), |(first, last), at| (first.min(at), last.max(at)));
        Clock { origin: origin.min(end), end }
    }

    /// A moment, in microseconds; negative before the first.
    pub(super) fn micros(self, at: Nanos) -> i64 {
        let difference = i128::from(at.0) - i128::from(self.origin.0);
        i64::try_from(difference.div_euclid(1000)).unwrap_or(0)
    }

    /// The run's length in microseconds.
    pub(super) fn length(self) -> i64 {
        self.micros(self.end)
    }
}

/// The whole run.
pub(super) fn run(input: &RunInput) -> data::Run {
    let clock = Clock::of(input);
    let record = &input.record;
    let warmups: Vec<bool> = record.manifest.plan.slots.iter().map(|slot| slot.warmup).collect();
    data::Run {
        name: name(record),
        length: clock.length(),
        cases: record.manifest.plan.cases.iter().map(case).collect(),
        iterations: record
            .iterations
            .iter()
            .filter_map(|one| iteration(record, one, &warmups, clock))
            .collect(),
        metrics: metrics(&record.samples, clock),
        monitors: series::monitors(input, clock),
    }
}

/// What a run is called on the page: its label, or the beginning of its id, by which the command line finds it.
pub(super) fn name(record: &RunRecord) -> String {
    let id = &record.manifest.id;
    record.manifest.label.clone().unwrap_or_else(|| id.get(..10).unwrap_or(id).to_owned())
}

fn case(case: &perflab_model::Case) -> data::Case {
    data::Case { label: case.label(), subject: case.subject(), levels: case.levels.clone() }
}

fn iteration(record: &RunRecord, one: &Iteration, warmups: &[bool], clock: Clock) -> Option<data::Iteration> {
    let slot = record.manifest.plan.slots.get(one.slot as usize)?;
    Some(data::Iteration {
        case: slot.case,
        iteration: slot.iteration,
        warmup: warmups.get(one.slot as usize).copied().unwrap_or(false),
        failure: failure(&one.outcome),
        start: clock.micros(one.start),
        end: clock.micros(one.end),
    })
}

fn failure(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Ok => None,
        Outcome::Failed { reason } => Some(reason.clone()),
        Outcome::TimedOut { limit } => Some(format!("stopped at its time limit of {limit}")),
        Outcome::Interrupted => Some("the run was stopped".into()),
    }
}

fn metrics(samples: &[Sample], clock: Clock) -> Vec<data::Metric> {
    let mut found: IndexMap<(&str, &str), data::Metric> = IndexMap::new();
    for sample in samples {
        let metric = found.entry((&sample.metric, &sample.unit.0)).or_insert_with(|| empty(sample));
        metric.case.push(sample.case);
        metric.iteration.push(sample.iteration);
        metric.start.push(clock.micros(sample.start));
        metric.value.push(sample.value);
    }
    let mut metrics: Vec<data::Metric> = found.into_values().collect();
    metrics.sort_by_key(|metric| !metric.primary);
    metrics
}

fn empty(sample: &Sample) -> data::Metric {
    data::Metric {
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
