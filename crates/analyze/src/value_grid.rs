//! Values over two things: a column of a monitor by row and time, or a metric over two parameters.

use indexmap::IndexSet;
use perflab_model::Unit;
use perflab_stats::mean;

use crate::error::AnalyzeError;
use crate::monitor_lines::{MonitorLines, natural_key};
use crate::sample_lines::MetricLines;

/// Values by row and column.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueGrid {
    /// What the values are.
    pub name: String,
    /// Their unit.
    pub unit: Unit,
    /// What rows are.
    pub row_name: String,
    /// Names of the rows, from the top.
    pub rows: Vec<String>,
    /// What columns are.
    pub column_name: String,
    /// Names of the columns; empty where they are a time.
    pub columns: Vec<String>,
    /// The length of time that all columns take together, in seconds; none where they have names.
    pub seconds: Option<f64>,
    /// One list a row, one value a column; none where nothing was measured.
    pub values: Vec<Vec<Option<f64>>>,
}

/// The mean of each row of a monitor's column in each of equal lengths of time. Rows are in the order of their names.
#[must_use]
pub fn monitor_grid(lines: &MonitorLines, columns: usize) -> ValueGrid {
    let points = || lines.lines.iter().flat_map(|line| &line.parts).flatten();
    let last = points().map(|point| point.seconds).fold(0.0, f64::max);
    let longest = lines.lines.iter().map(|line| line.parts.iter().map(Vec::len).sum()).max().unwrap_or(0);
    // No more columns than readings: a column without one is a gap.
    let columns = columns.min(longest).max(1);
    let width = if last > 0.0 { last / columns as f64 } else { 1.0 };
    let place = |seconds: f64| ((seconds / width) as usize).min(columns - 1);
    let mut rows: Vec<&crate::monitor_lines::MonitorLine> = lines.lines.iter().collect();
    rows.sort_by_key(|line| natural_key(&line.name));
    let values = rows.iter().map(|line| {
        let mut cells: Vec<Vec<f64>> = vec![Vec::new(); columns];
        for point in line.parts.iter().flatten() {
            cells.iter_mut().skip(place(point.seconds)).take(1).for_each(|cell| cell.push(point.value));
        }
        cells.iter().map(|cell| mean(cell).ok()).collect()
    });
    ValueGrid {
        name: format!("{}.{}", lines.monitor, lines.column),
        unit: lines.unit.clone(),
        row_name: String::new(),
        values: values.collect(),
        rows: rows.iter().map(|line| line.name.clone()).collect(),
        column_name: "time since the first reading".into(),
        columns: Vec::new(),
        seconds: Some(last.max(width)),
    }
}

/// A median, and where it stands.
struct MeasuredCell {
    x: String,
    y: String,
    name: String,
    value: f64,
}

/// The median of a metric over two parameters or factors, the first across. Metrics and cases are those of lines that were chosen so that
/// nothing else varies.
///
/// # Errors
/// A parameter that no case has; several metrics or cases that stand in one cell, naming what varies.
pub fn metric_grid(metrics: &[MetricLines], [across, down]: [&str; 2]) -> Result<ValueGrid, AnalyzeError> {
    let value = |metric: &MetricLines, key: &str| {
        metric.point.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
    };
    let known = || {
        let keys = metrics.iter().flat_map(|metric| metric.point.iter().map(|(name, _)| name.clone()));
        keys.collect::<IndexSet<String>>().into_iter().collect::<Vec<_>>()
    };
    for key in [across, down] {
        if metrics.iter().all(|metric| value(metric, key).is_none()) {
            return Err(AnalyzeError::UnknownConditionKey { key: key.to_owned(), known: known() });
        }
    }
    let mut cells: Vec<MeasuredCell> = Vec::new();
    for metric in metrics {
        let (Some(x), Some(y)) = (value(metric, across), value(metric, down)) else { continue };
        for line in &metric.lines {
            let Ok(found) = line.median(0.95) else { continue };
            let name = format!("{}, {} ({})", metric.subject, metric.metric, line.name);
            if let Some(other) = cells.iter().find(|cell| (&cell.x, &cell.y) == (&x, &y)) {
                return Err(AnalyzeError::SeveralInCell { one: other.name.clone(), other: name });
            }
            cells.push(MeasuredCell { x: x.clone(), y: y.clone(), name, value: found.value });
        }
    }
    let names = |of: fn(&MeasuredCell) -> &String| {
        let mut names: Vec<String> =
            cells.iter().map(of).cloned().collect::<IndexSet<_>>().into_iter().collect();
        // Numbers ascend; sizes and other texts stay in the order of the study.
        if names.iter().all(|name| name.parse::<f64>().is_ok()) {
            names.sort_by(|one, other| {
                one.parse::<f64>().unwrap_or(0.0).total_cmp(&other.parse().unwrap_or(0.0))
            });
        }
        names
    };
    let (columns, rows) = (names(|cell| &cell.x), names(|cell| &cell.y));
    let cell = |row: &String, column: &String| {
        cells.iter().find(|cell| (&cell.x, &cell.y) == (column, row)).map(|cell| cell.value)
    };
    let values = rows.iter().map(|row| columns.iter().map(|column| cell(row, column)).collect()).collect();
    let first = metrics.first();
    Ok(ValueGrid {
        name: first.map_or_else(String::new, |metric| metric.metric.clone()),
        unit: first.map_or_else(Unit::default, |metric| metric.unit.clone()),
        row_name: down.to_owned(),
        rows,
        column_name: across.to_owned(),
        columns,
        seconds: None,
        values,
    })
}

#[cfg(test)]
mod tests {
    use perflab_model::{Direction, Nanos};

    use super::*;
    use crate::compare::comparison::SamplePoint;
    use crate::monitor_lines::{MonitorLine, MonitorPoint};
    use crate::sample_lines::SampleLine;

    fn metric(threads: &str, size: &str, value: f64) -> MetricLines {
        let point = SamplePoint { value, at: Nanos(0), run: 0, boot: 0, iteration: 0 };
        MetricLines {
            subject: format!("sweep threads={threads} size={size}"),
            point: vec![("threads".into(), threads.into()), ("size".into(), size.into())],
            metric: "time".into(),
            unit: Unit::new("s"),
            direction: Direction::Lower,
            primary: true,
            lines: vec![SampleLine { name: "run".into(), points: vec![point], machines: Default::default() }],
        }
    }

    #[test]
    fn a_metric_stands_over_two_parameters() {
        let metrics = [metric("10", "4K", 1.0), metric("2", "4K", 2.0), metric("2", "64K", 3.0)];
        let found = metric_grid(&metrics, ["threads", "size"]).unwrap();
        assert_eq!((found.columns.join(","), found.rows.join(",")), ("2,10".into(), "4K,64K".into()));
        assert_eq!(found.values, [vec![Some(2.0), Some(1.0)], vec![Some(3.0), None]]);
        let unknown = metric_grid(&metrics, ["threads", "pages"]).unwrap_err();
        assert!(matches!(unknown, AnalyzeError::UnknownConditionKey { known, .. } if known.len() == 2));
        let twice = [metric("1", "4K", 1.0), metric("1", "4K", 2.0)];
        assert!(matches!(metric_grid(&twice, ["threads", "size"]), Err(AnalyzeError::SeveralInCell { .. })));
    }

    #[test]
    fn rows_of_a_monitor_are_means_over_time() {
        let point = |seconds: f64, value: f64| MonitorPoint { seconds, value, spread: None };
        let line = |name: &str, scale: f64| MonitorLine {
            name: name.into(),
            parts: vec![(0..100).map(|at| point(f64::from(at), scale * f64::from(at / 50))).collect()],
        };
        let lines = MonitorLines {
            monitor: "m".into(),
            column: "c".into(),
            unit: Unit::new("1"),
            is_rate: false,
            lines: vec![line("cpu10", 1.0), line("cpu2", 2.0)],
            left_out: 0,
            iterations: Vec::new(),
        };
        let found = monitor_grid(&lines, 2);
        assert_eq!(found.rows, ["cpu2", "cpu10"]);
        assert_eq!(found.values[0][1], Some(2.0));
        assert!(found.values[0][0].is_some_and(|mean| mean < 0.05));
    }
}
