//! Tables of causes, slowest operations and changes.

use perflab_analyze::operations::{
    OperationCauseRow, OperationComparison, OperationReport, OutlierOperation, OutlierShare,
};
use perflab_model::operation::OperationColumns;

use crate::grid::{Grid, GridCell, GridColumn};
use perflab_model::quantity::format_share;

fn operation_time_cell(ns: i64) -> GridCell {
    GridCell::quantity(ns as f64, "ns")
}

fn operation_share_cell(share: f64) -> GridCell {
    GridCell::with_text(format_share(share), share)
}

/// One row a cause, and one each for what is mixed and what is unexplained.
#[must_use]
pub fn causes_grid(report: &OperationReport) -> Grid {
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
    let mut grid =
        Grid::new(std::iter::once(GridColumn::left("cause")).chain(numbers.map(GridColumn::right)));
    for cause in &report.causes {
        grid.add_row(cause_cells(report, cause));
    }
    for (name, share) in [("mixed", &report.mixed), ("unexplained", &report.unexplained)] {
        grid.add_row(remainder_cells(name, share));
    }
    grid
}

/// What is not judged has no figure.
fn cause_cells(report: &OperationReport, cause: &OperationCauseRow) -> [GridCell; 12] {
    let is_judged = report.is_cause_beyond_probe_cost(&cause.name);
    let own = |ns| if is_judged { operation_time_cell(ns) } else { GridCell::missing() };
    [
        cause.name.as_str().into(),
        cause.operations.into(),
        own(cause.time),
        own(cause.longest),
        cause.share.outliers.into(),
        operation_share_cell(cause.share.coverage),
        operation_share_cell(cause.share.excess),
        operation_share_cell(cause.precision),
        operation_share_cell(cause.recall),
        GridCell::with_text(format!("{:.1}", cause.lift), cause.lift),
        cause.rank_correlation.map(|rho| GridCell::with_text(format!("{rho:.2}"), rho)).into(),
        if report.is_beyond_probe_cost(report.quantiles[2]) {
            operation_time_cell(cause.quantiles_without[2])
        } else {
            GridCell::missing()
        },
    ]
}

fn remainder_cells(name: &str, share: &OutlierShare) -> [GridCell; 7] {
    let none = GridCell::missing;
    [
        name.into(),
        none(),
        none(),
        none(),
        share.outliers.into(),
        operation_share_cell(share.coverage),
        operation_share_cell(share.excess),
    ]
}

/// The slowest operations, each with what happened in it.
#[must_use]
pub fn slowest_grid(operations: &OperationColumns, report: &OperationReport, top: usize) -> Grid {
    let mut grid = Grid::new([
        GridColumn::right("operation"),
        GridColumn::right("time"),
        GridColumn::right("above usual"),
        GridColumn::left("because of"),
        GridColumn::left("spans"),
        GridColumn::left("kernel"),
        GridColumn::left("numbers"),
    ]);
    let mut slowest: Vec<&OutlierOperation> = report.outliers.iter().collect();
    slowest.sort_by_key(|outlier| std::cmp::Reverse(outlier.time));
    for outlier in slowest.into_iter().take(top) {
        grid.add_row([
            outlier.row.into(),
            operation_time_cell(outlier.time),
            operation_time_cell(outlier.excess),
            report.outlier_cause(outlier).into(),
            span_text(operations, outlier.row).into(),
            kernel_event_text(operations, outlier.row).into(),
            attribute_text(operations, outlier.row).into(),
        ]);
    }
    grid
}

/// What happened in an operation, in one line: its spans, what the kernel did, its numbers.
pub(crate) fn operation_description(operations: &OperationColumns, row: u32) -> String {
    let parts =
        [span_text(operations, row), kernel_event_text(operations, row), attribute_text(operations, row)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

fn span_text(operations: &OperationColumns, row: u32) -> String {
    let texts = operations.spans.iter().filter_map(|span| {
        let count =
            span.count.get(row).filter(|count| *count > 1).map_or(String::new(), |n| format!(" ({n})"));
        Some(format!("{} {}{count}", span.name, GridCell::quantity(span.time.get(row)? as f64, "ns").text()))
    });
    texts.collect::<Vec<_>>().join(", ")
}

fn kernel_event_text(operations: &OperationColumns, row: u32) -> String {
    let away = [("preempted", &operations.preempted), ("waited", &operations.waited)];
    let away = away.into_iter().filter_map(|(name, column)| {
        Some(format!("{name} {}", GridCell::quantity(column.get(row)? as f64, "ns").text()))
    });
    let faults =
        operations.faults.get(row).map(|n| format!("{n} page fault{}", if n == 1 { "" } else { "s" }));
    away.chain(faults).collect::<Vec<_>>().join(", ")
}

fn attribute_text(operations: &OperationColumns, row: u32) -> String {
    let texts = operations
        .numbers
        .iter()
        .filter_map(|number| Some(format!("{} {}", number.name, number.values.get(row)?)));
    texts.collect::<Vec<_>>().join(", ")
}

/// Quantiles before and after, then outliers by cause.
#[must_use]
pub fn changes_grid(found: &OperationComparison) -> Grid {
    let mut grid = Grid::new([
        GridColumn::left("what"),
        GridColumn::right(&found.names.0),
        GridColumn::right(&found.names.1),
        GridColumn::right("ratio"),
        GridColumn::left("95 % interval"),
    ]);
    for change in &found.quantiles {
        let interval = change.interval.map(|(low, high)| GridCell::from(format!("{low:.3} to {high:.3}")));
        let ratio = GridCell::with_text(format!("{:.3}", change.ratio()), change.ratio());
        grid.add_row([
            change.name.as_str().into(),
            operation_time_cell(change.before),
            operation_time_cell(change.after),
            ratio,
            interval.into(),
        ]);
    }
    for cause in found.causes.iter().filter(|cause| cause.outliers != (0, 0)) {
        let name = format!("outliers: {}", cause.name);
        grid.add_row([name.into(), cause.outliers.0.into(), cause.outliers.1.into()]);
    }
    grid
}
