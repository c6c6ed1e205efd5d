//! The tables of `perflab trace`.

use perflab_analyze::trace::{CauseRow, Comparison, Outlier, Report, Share};
use perflab_model::trace::Operations;

use crate::table::{Cell, Column, Grid};

fn time(ns: i64) -> Cell {
    Cell::quantity(ns as f64, "ns")
}

fn percent(share: f64) -> Cell {
    Cell::shown(format!("{:.1} %", share * 100.0), share)
}

/// One row a cause, and one each for what is mixed and what is unexplained.
#[must_use]
pub fn causes_grid(report: &Report) -> Grid {
    let numbers = [
        "operations",
        "time",
        "longest",
        "outliers",
        "coverage",
        "excess",
        "precision",
        "recall",
        "lift",
        "rank corr.",
        "p99.9 without",
    ];
    let mut grid = Grid::new(std::iter::once(Column::left("cause")).chain(numbers.map(Column::right)));
    for cause in &report.causes {
        grid.add(cause_cells(report, cause));
    }
    for (name, share) in [("mixed", &report.mixed), ("unexplained", &report.unexplained)] {
        grid.add(rest_cells(name, share));
    }
    grid
}

/// What is not judged has no figure.
fn cause_cells(report: &Report, cause: &CauseRow) -> [Cell; 12] {
    let is_judged = report.is_cause_judged(&cause.name);
    let own = |ns| if is_judged { time(ns) } else { Cell::missing() };
    [
        cause.name.as_str().into(),
        cause.operations.into(),
        own(cause.time),
        own(cause.longest),
        cause.share.outliers.into(),
        percent(cause.share.coverage),
        percent(cause.share.excess),
        percent(cause.precision),
        percent(cause.recall),
        Cell::shown(format!("{:.1}", cause.lift), cause.lift),
        cause.rank_correlation.map(|rho| Cell::shown(format!("{rho:.2}"), rho)).into(),
        if report.is_judged(report.quantiles[2]) { time(cause.without[2]) } else { Cell::missing() },
    ]
}

fn rest_cells(name: &str, share: &Share) -> [Cell; 7] {
    let none = Cell::missing;
    [
        name.into(),
        none(),
        none(),
        none(),
        share.outliers.into(),
        percent(share.coverage),
        percent(share.excess),
    ]
}

/// The slowest operations, each with what happened in it.
#[must_use]
pub fn slowest_grid(operations: &Operations, report: &Report, top: usize) -> Grid {
    let mut grid = Grid::new([
        Column::right("operation"),
        Column::right("time"),
        Column::right("above usual"),
        Column::left("because of"),
        Column::left("spans"),
        Column::left("kernel"),
        Column::left("numbers"),
    ]);
    let mut slowest: Vec<&Outlier> = report.outliers.iter().collect();
    slowest.sort_by_key(|outlier| std::cmp::Reverse(outlier.time));
    for outlier in slowest.into_iter().take(top) {
        grid.add([
            outlier.row.into(),
            time(outlier.time),
            time(outlier.excess),
            report.name(outlier).into(),
            spans(operations, outlier.row).into(),
            kernel(operations, outlier.row).into(),
            numbers(operations, outlier.row).into(),
        ]);
    }
    grid
}

/// What happened in an operation, in one line: its spans, what the kernel did, its numbers.
pub(super) fn told(operations: &Operations, row: u32) -> String {
    let parts = [spans(operations, row), kernel(operations, row), numbers(operations, row)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

fn spans(operations: &Operations, row: u32) -> String {
    let told = operations.spans.iter().filter_map(|span| {
        let count =
            span.count.get(row).filter(|count| *count > 1).map_or(String::new(), |n| format!(" ({n})"));
        Some(format!("{} {}{count}", span.name, Cell::quantity(span.time.get(row)? as f64, "ns").text()))
    });
    told.collect::<Vec<_>>().join(", ")
}

fn kernel(operations: &Operations, row: u32) -> String {
    let away = [("preempted", &operations.preempted), ("waited", &operations.waited)];
    let away = away.into_iter().filter_map(|(name, column)| {
        Some(format!("{name} {}", Cell::quantity(column.get(row)? as f64, "ns").text()))
    });
    let faults =
        operations.faults.get(row).map(|n| format!("{n} page fault{}", if n == 1 { "" } else { "s" }));
    away.chain(faults).collect::<Vec<_>>().join(", ")
}

fn numbers(operations: &Operations, row: u32) -> String {
    let told = operations
        .numbers
        .iter()
        .filter_map(|number| Some(format!("{} {}", number.name, number.values.get(row)?)));
    told.collect::<Vec<_>>().join(", ")
}

/// Quantiles before and after, then outliers by cause.
#[must_use]
pub fn changes_grid(found: &Comparison) -> Grid {
    let mut grid = Grid::new([
        Column::left("what"),
        Column::right(&found.names.0),
        Column::right(&found.names.1),
        Column::right("ratio"),
        Column::left("95 % interval"),
    ]);
    for change in &found.quantiles {
        let interval = change.interval.map(|(low, high)| Cell::from(format!("{low:.3} to {high:.3}")));
        let ratio = Cell::shown(format!("{:.3}", change.ratio()), change.ratio());
        grid.add([
            change.name.as_str().into(),
            time(change.before),
            time(change.after),
            ratio,
            interval.into(),
        ]);
    }
    for cause in found.causes.iter().filter(|cause| cause.outliers != (0, 0)) {
        let name = format!("outliers: {}", cause.name);
        grid.add([name.into(), cause.outliers.0.into(), cause.outliers.1.into()]);
    }
    grid
}
