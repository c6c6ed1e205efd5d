//! A column of a monitor over time, line by line: runs, rows of one run, or levels, each from its own start.
//!
//! Gauges are values, counters growth a second between one reading and the next. A counter that went back was reset: the line has a gap.

use std::collections::{BTreeMap, BTreeSet};

use perflab_model::column::{ColumnKind, ColumnSpec};
use perflab_model::series::Series;
use perflab_model::{Case, Nanos, Outcome, RunRecord, Unit};
use perflab_stats::{mean, median};

use crate::compare::case_condition::{CaseCondition, check_conditions, matches_pattern};
use crate::error::AnalyzeError;
use crate::keyed_rows::rows_by_key;

/// A run with what one monitor recorded in it.
#[derive(Debug, Clone, PartialEq)]
pub struct MonitoredRun {
    /// What its line is called.
    pub name: String,
    /// The run.
    pub record: RunRecord,
    /// The monitor's readings.
    pub series: Series,
}

/// One reading on its line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MonitorPoint {
    /// Seconds since the line's start.
    pub seconds: f64,
    /// The value, in the unit of the lines.
    pub value: f64,
    /// The least and the most, where it is the middle of several iterations.
    pub spread: Option<(f64, f64)>,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct MonitorLine {
    /// A run, a row or a level.
    pub name: String,
    /// Its readings in parts, ascending in time, with a gap between one and the next.
    pub parts: Vec<Vec<MonitorPoint>>,
}

/// When an iteration ran, for a picture of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkedIteration {
    /// Seconds since the run's first reading.
    pub from: f64,
    /// The same.
    pub to: f64,
    /// The case's levels, or its workload.
    pub name: String,
}

/// A column over time.
#[derive(Debug, Clone, PartialEq)]
pub struct MonitorLines {
    /// The monitor.
    pub monitor: String,
    /// The column.
    pub column: String,
    /// Unit of the values: of a counter, a second.
    pub unit: Unit,
    /// Whether the column counts, so that values are rates.
    pub is_rate: bool,
    /// The lines.
    pub lines: Vec<MonitorLine>,
    /// Rows of the only run that are not drawn, since others vary more.
    pub left_out: usize,
    /// The iterations of the only run; none where there are several lines' runs.
    pub iterations: Vec<MarkedIteration>,
}

/// Which rows and iterations are drawn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MonitorLineOptions {
    /// Only rows with one of these keys, in which `*` stands for any text; all where empty.
    pub keys: Vec<String>,
    /// One line for each level of this factor, from the start of its iterations.
    pub by: Option<String>,
    /// Only iterations of cases that meet these; they need a factor.
    pub conditions: Vec<CaseCondition>,
    /// Most lines of one run.
    pub most: usize,
}

/// A value each time, in parts.
type TimedParts = Vec<Vec<(Nanos, f64)>>;

/// The column's lines.
///
/// # Errors
/// A column that the monitor has not, naming its columns; keys that no row has, and several rows of several runs or levels, naming the
/// keys; a factor that was not varied; nothing that was read.
pub fn monitor_lines(
    runs: &[MonitoredRun],
    column: &str,
    options: &MonitorLineOptions,
) -> Result<MonitorLines, AnalyzeError> {
    let Some(first) = runs.first() else {
        return Err(AnalyzeError::NoRun { side: column.to_owned() });
    };
    let spec = find_column(&first.series, column)?;
    let mut rows: Vec<(&MonitoredRun, BTreeMap<String, TimedParts>)> = Vec::new();
    for run in runs {
        rows.push((run, read_rows(&run.series, column, &options.keys)?));
    }
    let is_rate = spec.kind == ColumnKind::Counter;
    let unit = if is_rate { spec.unit.per_second() } else { spec.unit.clone() };
    let monitor = first.series.schema.monitor.clone();
    let mut found = MonitorLines {
        monitor,
        column: column.to_owned(),
        unit,
        is_rate,
        lines: Vec::new(),
        left_out: 0,
        iterations: Vec::new(),
    };
    match (&options.by, rows.as_slice()) {
        (Some(factor), rows) => found.lines = level_lines(rows, factor, column, options)?,
        (None, [(run, rows)]) => {
            let start = first_reading(&run.series);
            let lines = rows.iter().map(|(key, parts)| MonitorLine {
                name: if key.is_empty() { run.name.clone() } else { key.clone() },
                parts: line_parts(parts, start),
            });
            (found.lines, found.left_out) = liveliest_lines(lines.collect(), options.most);
            found.iterations = iteration_spans(&run.record, start);
        }
        (None, several) => {
            for (run, rows) in several {
                let parts = only_row(rows, column)?;
                let name = run.name.clone();
                found.lines.push(MonitorLine { name, parts: line_parts(parts, first_reading(&run.series)) });
            }
        }
    }
    found.lines.retain(|line| !line.parts.is_empty());
    if found.lines.is_empty() {
        return Err(AnalyzeError::NothingRead { column: format!("{}.{column}", found.monitor) });
    }
    Ok(found)
}

fn find_column<'a>(series: &'a Series, column: &str) -> Result<&'a ColumnSpec, AnalyzeError> {
    let is_number = |spec: &&ColumnSpec| matches!(spec.kind, ColumnKind::Counter | ColumnKind::Gauge);
    let columns = || series.schema.columns.iter().filter(is_number);
    columns().find(|spec| spec.name == column).ok_or_else(|| AnalyzeError::UnknownColumn {
        monitor: series.schema.monitor.clone(),
        column: column.to_owned(),
        known: columns().map(|spec| spec.name.clone()).collect(),
    })
}

/// The values of each row that is drawn, by its key: `cpu0`, or `a b` of two.
fn read_rows(
    series: &Series,
    column: &str,
    keys: &[String],
) -> Result<BTreeMap<String, TimedParts>, AnalyzeError> {
    let spec = find_column(series, column)?;
    let at = series.schema.columns.iter().position(|one| one.name == spec.name);
    let data = at.and_then(|at| series.table.cell_column(at));
    let rows = rows_by_key(series, " ", |_, text| Some(text.to_owned()));
    let is_wanted = |key: &str| keys.is_empty() || keys.iter().any(|wanted| matches_pattern(wanted, key));
    let known: Vec<String> = rows.keys().cloned().collect();
    let mut found = BTreeMap::new();
    for (key, rows) in rows.into_iter().filter(|(key, _)| is_wanted(key)) {
        let number = |row: usize| Some((*series.at.get(row)?, data.as_ref()?.number(row)?));
        let mut values: Vec<(Nanos, f64)> = rows.into_iter().filter_map(number).collect();
        values.sort_by_key(|(at, _)| *at);
        let parts = if spec.kind == ColumnKind::Counter { rate_parts(&values) } else { vec![values] };
        found.insert(key, parts.into_iter().filter(|part| !part.is_empty()).collect());
    }
    if found.is_empty() && !keys.is_empty() {
        let column = format!("{}.{column}", series.schema.monitor);
        return Err(AnalyzeError::UnknownRow { column, keys: keys.join(", "), known: some_of(known) });
    }
    Ok(found)
}

/// As many keys are listed in an error.
const MOST_KEYS: usize = 12;

fn some_of(mut keys: Vec<String>) -> Vec<String> {
    let more = keys.len().saturating_sub(MOST_KEYS);
    keys.truncate(MOST_KEYS);
    keys.extend((more > 0).then(|| format!("and {more} more")));
    keys
}

/// Growth a second between readings, each at the later one; apart where a counter was reset.
fn rate_parts(values: &[(Nanos, f64)]) -> TimedParts {
    let mut parts = vec![Vec::new()];
    for pair in values.windows(2) {
        let [(before, one), (at, next)] = pair else { continue };
        let seconds = at.since(*before).seconds();
        if next < one || seconds <= 0.0 {
            parts.push(Vec::new());
        } else if let Some(part) = parts.last_mut() {
            part.push((*at, (next - one) / seconds));
        }
    }
    parts
}

fn first_reading(series: &Series) -> Nanos {
    series.at.iter().min().copied().unwrap_or_default()
}

fn line_parts(parts: &TimedParts, start: Nanos) -> Vec<Vec<MonitorPoint>> {
    let point = |(at, value): &(Nanos, f64)| MonitorPoint {
        seconds: at.since(start).seconds(),
        value: *value,
        spread: None,
    };
    parts.iter().map(|part| part.iter().map(point).collect()).collect()
}

/// The only row of a run.
fn only_row<'a>(
    rows: &'a BTreeMap<String, TimedParts>,
    column: &str,
) -> Result<&'a TimedParts, AnalyzeError> {
    let mut parts = rows.values();
    match (parts.next(), parts.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(AnalyzeError::NothingRead { column: column.to_owned() }),
        _ => {
            let known = some_of(rows.keys().cloned().collect());
            Err(AnalyzeError::SeveralRows { column: column.to_owned(), known })
        }
    }
}

/// The lines that vary most, as many as there may be, by name; and how many are left out.
fn liveliest_lines(lines: Vec<MonitorLine>, most: usize) -> (Vec<MonitorLine>, usize) {
    let range = |line: &MonitorLine| {
        let values = || line.parts.iter().flatten().map(|point| point.value);
        let ends = (values().reduce(f64::min), values().reduce(f64::max));
        ends.0.zip(ends.1).map_or(-1.0, |(low, high)| high - low)
    };
    let mut order: Vec<(f64, MonitorLine)> = lines.into_iter().map(|line| (range(&line), line)).collect();
    order.retain(|(range, _)| *range >= 0.0);
    let left_out = order.len().saturating_sub(most);
    order.sort_by(|one, other| other.0.total_cmp(&one.0));
    order.truncate(most);
    let mut kept: Vec<MonitorLine> = order.into_iter().map(|(_, line)| line).collect();
    kept.sort_by_key(|line| natural_key(&line.name));
    (kept, left_out)
}

/// `cpu2` before `cpu10`.
pub(crate) fn natural_key(name: &str) -> (String, u64, String) {
    let head: String = name.chars().take_while(|letter| !letter.is_ascii_digit()).collect();
    let digits: String = name.chars().skip(head.chars().count()).take_while(char::is_ascii_digit).collect();
    (head, digits.parse().unwrap_or(0), name.to_owned())
}

/// The iterations of a run, as long as there are few enough to be told apart.
fn iteration_spans(record: &RunRecord, start: Nanos) -> Vec<MarkedIteration> {
    let plan = &record.manifest.plan;
    let span = |iteration: &perflab_model::IterationRecord| {
        let case = plan.case(plan.slots.get(iteration.slot as usize)?.case)?;
        let levels: Vec<&str> = case.levels.values().map(String::as_str).collect();
        Some(MarkedIteration {
            from: iteration.start.since(start).seconds(),
            to: iteration.end.since(start).seconds(),
            name: if levels.is_empty() { case.workload.clone() } else { levels.join(" ") },
        })
    };
    record.iterations.iter().filter(|one| one.target.is_none()).filter_map(span).collect()
}

/// The readings of an iteration by the step of the clock since its start.
type SteppedReadings = BTreeMap<u64, Vec<f64>>;

/// Where a level stands: which run, and which of the study's levels, whatever was measured first.
type LevelPlace = (usize, usize);

/// One line a level: at each step of the clock since the start of an iteration, the middle of its iterations, the least and the most.
fn level_lines(
    runs: &[(&MonitoredRun, BTreeMap<String, TimedParts>)],
    factor: &str,
    column: &str,
    options: &MonitorLineOptions,
) -> Result<Vec<MonitorLine>, AnalyzeError> {
    check_conditions(runs.iter().map(|(run, _)| &run.record), &options.conditions)?;
    let is_drawn = |case: &&Case| {
        case.levels.contains_key(factor)
            && options.conditions.iter().all(|condition| condition.is_met_by(case))
    };
    let drawn = runs.iter().flat_map(|(run, _)| run.record.manifest.plan.cases.iter().filter(is_drawn));
    let workloads: BTreeSet<&str> = drawn.map(|case| case.workload.as_str()).collect();
    let mut levels: BTreeMap<(LevelPlace, String), Vec<SteppedReadings>> = BTreeMap::new();
    let mut names: BTreeMap<String, LevelPlace> = BTreeMap::new();
    let mut step = 1;
    for (number, (run, rows)) in runs.iter().enumerate() {
        let parts = only_row(rows, column)?;
        step = run.series.schema.interval.0.max(step);
        let plan = &run.record.manifest.plan;
        for iteration in run.record.iterations.iter().filter(|one| one.outcome == Outcome::Ok) {
            let slot = plan.slots.get(iteration.slot as usize).filter(|slot| !slot.warmup);
            let Some(case) = slot.and_then(|slot| plan.case(slot.case)) else { continue };
            let Some(level) = case.levels.get(factor).filter(|_| is_drawn(&case)) else { continue };
            // Workloads do different things: a curve through two of them is of neither.
            let words = [
                (runs.len() > 1).then_some(run.name.as_str()),
                (workloads.len() > 1).then_some(case.workload.as_str()),
                Some(level),
            ];
            let name = words.into_iter().flatten().collect::<Vec<_>>().join(" ");
            let rank = plan.factors.get(factor).and_then(|all| all.iter().position(|one| one == level));
            let at = *names.entry(name.clone()).or_insert((number, rank.unwrap_or(usize::MAX)));
            let mut steps = SteppedReadings::new();
            for (time, value) in parts.iter().flatten() {
                if (iteration.start..iteration.end).contains(time) {
                    steps.entry(time.since(iteration.start).0 / step).or_default().push(*value);
                }
            }
            levels.entry((at, name)).or_default().push(steps);
        }
    }
    if levels.is_empty() {
        let known = runs.iter().flat_map(|(run, _)| run.record.manifest.plan.factors.keys());
        let known: BTreeSet<String> = known.cloned().collect();
        let side = runs.iter().map(|(run, _)| run.name.as_str()).collect::<Vec<_>>().join(", ");
        let known = known.into_iter().collect();
        return Err(AnalyzeError::UnknownFactor { factor: factor.to_owned(), side, known });
    }
    let mut lines = Vec::new();
    for ((_, name), iterations) in levels {
        lines.push(MonitorLine { name, parts: middle_parts(&iterations, step) });
    }
    Ok(lines)
}

/// The middle of the iterations at each step that half of them reach; apart where fewer have a reading.
fn middle_parts(iterations: &[SteppedReadings], step: u64) -> Vec<Vec<MonitorPoint>> {
    let mut steps = SteppedReadings::new();
    for (step, values) in iterations.iter().flatten() {
        steps.entry(*step).or_default().extend(mean(values).ok());
    }
    let mut parts: Vec<Vec<MonitorPoint>> = Vec::new();
    let mut last = None;
    for (at, values) in steps.iter().filter(|(_, values)| values.len() * 2 >= iterations.len()) {
        let Ok(value) = median(values) else { continue };
        let ends = (values.iter().copied().reduce(f64::min), values.iter().copied().reduce(f64::max));
        let seconds = Nanos(at.saturating_mul(step).saturating_add(step / 2)).seconds();
        let point = MonitorPoint { seconds, value, spread: ends.0.zip(ends.1) };
        match parts.last_mut().filter(|_| last.is_some_and(|last| *at <= last + 2)) {
            Some(part) => part.push(point),
            None => parts.push(vec![point]),
        }
        last = Some(*at);
    }
    parts
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::RunBuilder;
    use perflab_model::series::SeriesSchema;
    use perflab_model::{CellRow, TableCell};

    use super::*;

    /// A reading each 100 ms from 1 s on: a counter that grows by 10 a reading and is reset once, and a gauge, of two devices.
    fn monitored(name: &str, reset_at: u64) -> MonitoredRun {
        let record = RunBuilder::new(name)
            .with(|lab| {
                lab.iterations = 2;
                lab.factors = vec![("pages", vec!["huge", "small"])];
            })
            .build_run(|_| Some(1.0));
        let columns = vec![
            ColumnSpec::key("device"),
            ColumnSpec::counter("reads", "requests"),
            ColumnSpec::gauge("queue", "1"),
        ];
        let schema = SeriesSchema {
            stored: perflab_model::series::StoredRows::Every,
            monitor: "m".into(),
            source: "s".into(),
            interval: Nanos(100_000_000),
            columns,
        };
        let rows: Vec<(Nanos, CellRow)> = (0..40_u64)
            .flat_map(|tick| {
                let at = Nanos(1_000_000_000 + tick * 100_000_000);
                let reads = 10 * (if tick >= reset_at { tick - reset_at } else { tick }) as i64;
                [("sda", reads), ("sdb", 5)].map(|(device, reads)| {
                    let queue = TableCell::Int(tick as i64 % 4);
                    (at, vec![TableCell::Text(device.into()), TableCell::Int(reads), queue])
                })
            })
            .collect();
        MonitoredRun { name: name.into(), record, series: Series::from_rows(schema, &rows) }
    }

    fn of_key(key: &str) -> MonitorLineOptions {
        MonitorLineOptions { keys: vec![key.into()], most: 7, ..MonitorLineOptions::default() }
    }

    #[test]
    fn counters_are_rates_with_gaps_where_they_were_reset() {
        let found = monitor_lines(&[monitored("a", 20)], "reads", &of_key("sda")).unwrap();
        assert_eq!((found.unit.to_string().as_str(), found.lines.len()), ("requests/s", 1));
        let parts = &found.lines[0].parts;
        assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [19, 19]);
        assert!(parts.iter().flatten().all(|point| (point.value - 100.0).abs() < 1e-9));
        assert_eq!(found.iterations.len(), 4);
    }

    #[test]
    fn rows_of_one_run_are_lines_and_those_of_several_need_a_key() {
        let all = MonitorLineOptions { most: 1, ..MonitorLineOptions::default() };
        let found = monitor_lines(&[monitored("a", 99)], "queue", &all).unwrap();
        assert_eq!((found.lines.len(), found.left_out), (1, 1));
        let both = [monitored("a", 99), monitored("b", 99)];
        let error = monitor_lines(&both, "queue", &all).unwrap_err();
        assert!(matches!(error, AnalyzeError::SeveralRows { known, .. } if known == ["sda", "sdb"]));
        let found = monitor_lines(&both, "queue", &of_key("sdb")).unwrap();
        let names: Vec<&str> = found.lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(found.lines.iter().all(|line| line.parts[0][0].seconds == 0.0));
    }

    #[test]
    fn a_level_is_the_middle_of_its_iterations() {
        let options = MonitorLineOptions { by: Some("pages".into()), ..of_key("sda") };
        // Whichever was measured first.
        let mut other_first = monitored("a", 99);
        other_first.record.iterations.reverse();
        let names = |run: MonitoredRun| -> Vec<String> {
            monitor_lines(&[run], "reads", &options)
                .unwrap()
                .lines
                .into_iter()
                .map(|line| line.name)
                .collect()
        };
        assert_eq!(
            (names(monitored("a", 99)), names(other_first)),
            (vec!["huge".to_owned(), "small".to_owned()], vec!["huge".to_owned(), "small".to_owned()])
        );
        let found = monitor_lines(&[monitored("a", 99)], "queue", &options).unwrap();
        let names: Vec<&str> = found.lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["huge", "small"]);
        let first = found.lines[0].parts[0][0];
        // Iterations begin at 1 s and 3 s: readings 0 and 20, which are both 0.
        assert_eq!((first.value, first.spread), (0.0, Some((0.0, 0.0))));
        assert_eq!(found.lines[0].parts[0].len(), 5);
    }

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        let runs = [monitored("a", 99)];
        let refused =
            |column: &str, options: &MonitorLineOptions| monitor_lines(&runs, column, options).unwrap_err();
        let unknown = refused("writes", &of_key("sda"));
        assert!(matches!(unknown, AnalyzeError::UnknownColumn { known, .. } if known == ["reads", "queue"]));
        assert!(matches!(refused("reads", &of_key("sdz")), AnalyzeError::UnknownRow { .. }));
        let by = MonitorLineOptions { by: Some("size".into()), ..of_key("sda") };
        assert!(matches!(refused("reads", &by), AnalyzeError::UnknownFactor { .. }));
        assert!(monitor_lines(&[], "reads", &of_key("sda")).is_err());
    }

    #[test]
    fn numbers_in_names_count() {
        let mut names = ["cpu10", "cpu2", "cpu", "total"];
        names.sort_by_key(|name| natural_key(name));
        assert_eq!(names, ["cpu", "cpu2", "cpu10", "total"]);
    }
}
