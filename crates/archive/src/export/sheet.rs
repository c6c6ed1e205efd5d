//! What all formats are made of: the run, and a summary of each metric of each case.

use indexmap::IndexMap;
use perflab_model::{Case, Direction, RunRecord, Sample};

/// The interval of the median of some values, where they allow one: its lower and upper limit.
pub type MedianIntervalFn<'a> = &'a dyn Fn(&[f64]) -> Option<(f64, f64)>;

/// One metric of one case.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSummary<'a> {
    /// The case.
    pub case: &'a Case,
    /// Name, unit, direction and whether it decides.
    pub of: &'a Sample,
    /// How many values there are.
    pub count: usize,
    /// Their median.
    pub median: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// The least value.
    pub least: f64,
    /// The greatest value.
    pub greatest: f64,
}

/// A run and its summaries, in the order of the study's cases; metrics as they were first measured.
#[derive(Debug)]
pub struct ExportSheet<'a> {
    /// The run.
    pub record: &'a RunRecord,
    /// A summary of each metric of each case.
    pub summaries: Vec<MetricSummary<'a>>,
}

impl<'a> ExportSheet<'a> {
    /// Sums a run up.
    pub fn from_record(record: &'a RunRecord, interval: MedianIntervalFn<'_>) -> Self {
        let mut groups: IndexMap<(u32, &str, &str), (&Sample, Vec<f64>)> = IndexMap::new();
        for sample in &record.samples {
            let key = (sample.case, sample.metric.as_str(), sample.unit.0.as_str());
            groups.entry(key).or_insert_with(|| (sample, Vec::new())).1.push(sample.value);
        }
        // As the study has its cases, not as they happened to be drawn.
        groups.sort_by(|(one, _, _), _, (other, _, _), _| one.cmp(other));
        let summary = |(of, values): (&'a Sample, Vec<f64>)| {
            let case = record.manifest.plan.case(of.case)?;
            Some(summarise_metric(case, of, values, interval))
        };
        ExportSheet { record, summaries: groups.into_values().filter_map(summary).collect() }
    }

    /// The case of a sample.
    pub(super) fn case_of_sample(&self, sample: &Sample) -> Option<&'a Case> {
        self.record.manifest.plan.case(sample.case)
    }
}

fn summarise_metric<'a>(
    case: &'a Case,
    of: &'a Sample,
    mut values: Vec<f64>,
    interval: MedianIntervalFn<'_>,
) -> MetricSummary<'a> {
    let limits = interval(&values);
    values.sort_by(f64::total_cmp);
    let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
    let middle = values.len() / 2;
    let median = if values.len() % 2 == 1 {
        at(middle)
    } else {
        f64::midpoint(at(middle.saturating_sub(1)), at(middle))
    };
    let (least, greatest) = (at(0), at(values.len().saturating_sub(1)));
    MetricSummary { case, of, count: values.len(), median, interval: limits, least, greatest }
}

/// Which way is good, as an arrow.
pub(super) fn direction_arrow(direction: Direction) -> &'static str {
    match direction {
        Direction::Higher => "more",
        Direction::Lower => "less",
        Direction::Neither => "-",
    }
}
