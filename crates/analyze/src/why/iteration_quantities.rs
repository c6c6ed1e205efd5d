//! What is known of each iteration beside its metrics: how much of each thing that monitors count came in it.

use std::collections::BTreeMap;

use perflab_formats::kernel::counters::counts_of_workload;
use perflab_formats::kernel::events::tells_of_iterations;
use perflab_model::series::Series;
use perflab_model::{Direction, EdgeReadings, Outcome, RunRecord, Sample, Unit};

use crate::monitor_metric::{CounterMeasure, kernel_averages, summarise_counters_as};
use crate::why::cause_table::is_consequence;

/// How long an iteration took, as a quantity of it.
pub(crate) const DURATION: &str = "iteration-duration";

/// CPU time of everything but the workload, in an iteration.
pub(crate) const OTHERS: &str = "others-cpu-time";

/// Columns of the time that CPUs were in use: `guest` is in `user`, and `guest_nice` in `nice`.
const BUSY: &[&str] = &["user", "nice", "system", "irq", "softirq", "steal"];

/// So many rows of a monitor have quantities of their own; of more, their sum has.
const MOST_ROWS: usize = 24;

/// What a monitor could not say of a run's iterations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuantityGap {
    /// The run's id.
    pub run: String,
    /// The monitor.
    pub monitor: String,
    /// Iterations without any number of it.
    pub iterations: usize,
    /// Counters that went backwards in some iteration.
    pub went_back: usize,
}

/// Adds how long each iteration took, as a sample of it.
pub fn add_durations(record: &mut RunRecord) {
    let found: Vec<Sample> = record
        .iterations
        .iter()
        .filter(|iteration| iteration.outcome == Outcome::Ok && iteration.target.is_none())
        .filter_map(|iteration| {
            let slot = record.manifest.plan.slots.get(iteration.slot as usize).filter(|slot| !slot.warmup)?;
            Some(Sample {
                boot: slot.boot,
                target: None,
                case: slot.case,
                iteration: slot.iteration,
                metric: DURATION.into(),
                value: iteration.end.since(iteration.start).seconds(),
                unit: Unit::new("s"),
                direction: Direction::Neither,
                primary: false,
                start: iteration.start,
                end: iteration.end,
            })
        })
        .collect();
    record.samples.extend(found);
}

/// Adds what a monitor read as samples of each iteration, by names such as `vmstat pgfault`: the growth of counters, the mean of gauges.
/// Rows (CPUs, devices) are there each and as their sum.
pub fn add_monitor_quantities(
    record: &mut RunRecord,
    monitor: &str,
    series: &Series,
    edges: Option<&EdgeReadings>,
) -> Option<QuantityGap> {
    let whole = RunRecord { samples: Vec::new(), ..record.clone() };
    let found = summarise_counters_as(&whole, series, edges, CounterMeasure::Growth);
    let schema = edges.map_or(&series.schema, |edges| &edges.schema);
    let counters: Vec<&str> = schema
        .columns
        .iter()
        .filter(|column| column.kind == perflab_model::column::ColumnKind::Counter)
        .map(|column| column.name.as_str())
        .collect();
    let throttled = sum_throttling(monitor, &found.record.samples);
    let mut rows: BTreeMap<String, Vec<Sample>> = BTreeMap::new();
    let mut sums: BTreeMap<(String, u32, u32, u32), Sample> = BTreeMap::new();
    let is_average = |column: &str| kernel_averages(monitor).any(|(name, _)| name == column);
    for sample in found.record.samples {
        let (column, key) = match sample.metric.split_once(' ') {
            Some((column, key)) => (column.to_owned(), key.to_owned()),
            None => (sample.metric.to_string(), String::new()),
        };
        let name = format!("{monitor} {}", sample.metric);
        // An event without a key has one row.
        let is_whole = key.is_empty() || is_total_row(&key);
        if tells_of_iterations(monitor) && !(is_told_of_events(&column) && is_whole) {
            continue;
        }
        if is_average(&column) || is_consequence(&name) && !is_busy_time(monitor, &column) {
            continue;
        }
        let is_total = is_total_row(&key);
        if counters.contains(&column.as_str()) && !key.is_empty() && !is_total && can_be_added(monitor) {
            let at = (column, sample.boot, sample.case, sample.iteration);
            let name = format!("{monitor} {}", at.0);
            sums.entry(at)
                .and_modify(|sum| sum.value += sample.value)
                .or_insert_with(|| Sample { metric: name.into(), ..sample.clone() });
        }
        rows.entry(name.clone()).or_default().push(Sample { metric: name.into(), ..sample });
    }
    if monitor == "stat" {
        add_time_of_others(record, &rows);
        rows.retain(|name, _| !is_consequence(name));
        sums.retain(|(column, ..), _| !is_consequence(&format!("stat {column}")));
    }
    // Rows of a column: single ones are told only where they are few.
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let column_of = |name: &str| name.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" ");
    for name in rows.keys() {
        *counts.entry(column_of(name)).or_default() += 1;
    }
    let has_total = |name: &str| {
        rows.keys().any(|other| column_of(other) == column_of(name) && is_total_row(row_key(other)))
    };
    let kept: Vec<String> = rows
        .keys()
        .filter(|name| {
            let few = counts.get(&column_of(name)).is_some_and(|count| *count <= MOST_ROWS);
            few || is_total_row(row_key(name))
        })
        .cloned()
        .collect();
    let summed: Vec<Sample> = sums
        .into_values()
        .filter(|sum| {
            let is_only = counts.get(sum.metric.as_str()).copied().unwrap_or_default() < 2;
            !is_only && !has_total(&sum.metric)
        })
        .collect();
    for name in kept {
        record.samples.extend(rows.remove(&name).unwrap_or_default());
    }
    record.samples.extend(summed);
    record.samples.extend(throttled);
    let went_back = found.went_back.len();
    (found.left_out > 0 || went_back > 0).then(|| QuantityGap {
        run: record.manifest.id.clone(),
        monitor: monitor.to_owned(),
        iterations: found.left_out,
        went_back,
    })
}

/// Columns of control groups that say how often, and for how long, a quota held them up.
const THROTTLING: &[&str] = &["cpu_nr_throttled", "cpu_throttled_usec", "cpu_throttled_time"];

/// Throttling of all groups together: a group that is made for a limit is there on one side only, and nobody throttles what is not there.
fn sum_throttling(monitor: &str, samples: &[Sample]) -> Vec<Sample> {
    if monitor.split('.').next() != Some("cgroup") {
        return Vec::new();
    }
    let mut sums: BTreeMap<(&str, u32, u32, u32), Sample> = BTreeMap::new();
    for sample in samples {
        let column = sample.metric.split(' ').next().unwrap_or_default();
        let Some(column) = THROTTLING.iter().find(|known| **known == column) else { continue };
        let at = (*column, sample.boot, sample.case, sample.iteration);
        let sum = Sample { metric: format!("{monitor} {column}").into(), ..sample.clone() };
        sums.entry(at).and_modify(|all| all.value += sample.value).or_insert(sum);
    }
    sums.into_values().collect()
}

/// What is the workload's own, so that more of it is more work, however long an iteration took.
pub(crate) fn is_of_workload(name: &str) -> bool {
    let monitor = name.split(' ').next().unwrap_or(name);
    (!name.contains(' ') && name != OTHERS) || counts_of_workload(monitor)
}

/// Of events, how often, how much in all and on average: percentiles of a few are chance.
fn is_told_of_events(column: &str) -> bool {
    [".count", ".sum", ".mean"].iter().any(|end| column.ends_with(end))
}

fn is_busy_time(monitor: &str, column: &str) -> bool {
    monitor == "stat" && BUSY.contains(&column)
}

/// Processes come and go: their rows do not add up to anything.
fn can_be_added(monitor: &str) -> bool {
    !matches!(monitor.split('.').next(), Some("tasks" | "events" | "pressure" | "cgroup"))
}

fn row_key(name: &str) -> &str {
    name.splitn(3, ' ').nth(2).unwrap_or_default()
}

/// `cpu=cpu` of /proc/stat, `all` of events.
fn is_total_row(key: &str) -> bool {
    key.split(' ').next().is_some_and(|first| {
        first == "cpu=cpu" || first.split_once('=').is_some_and(|(_, value)| value == "all")
    })
}

/// CPU time of the whole machine less that of the workload.
fn add_time_of_others(record: &mut RunRecord, rows: &BTreeMap<String, Vec<Sample>>) {
    let mut busy: BTreeMap<(u32, u32, u32), Sample> = BTreeMap::new();
    for column in BUSY {
        for sample in rows.get(&format!("stat {column} cpu=cpu")).into_iter().flatten() {
            let at = (sample.boot, sample.case, sample.iteration);
            let seconds = sample.value / 1e9;
            busy.entry(at).and_modify(|sum| sum.value += seconds).or_insert_with(|| Sample {
                metric: OTHERS.into(),
                unit: Unit::new("s"),
                value: seconds,
                ..sample.clone()
            });
        }
    }
    for sample in &record.samples {
        if matches!(sample.metric.as_str(), "user" | "system")
            && let Some(sum) = busy.get_mut(&(sample.boot, sample.case, sample.iteration))
        {
            sum.value -= sample.value;
        }
    }
    record.samples.extend(busy.into_values());
}
