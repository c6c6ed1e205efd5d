//! Owns a comparison with the statistics that the reader chose (`--stat`), beside the change and the verdict, which stay.
//! It refuses a number for a sample that has none: the cell is empty.

use perflab_analyze::{Comparison, SampleStatistic, VerdictRow};

use super::format::{GridError, OutputFormat};
use super::grid::{Grid, GridCell, GridColumn};
use super::number::{ShownUnit, fitting_shown_unit, format_four_digits};
use super::words::{RowText, change_title, shorten_name, side_names};

/// The comparison, two columns a statistic: baseline and candidate.
///
/// # Errors
/// A number that JSON or CSV cannot hold.
pub fn render_statistics(
    comparison: &Comparison,
    chosen: &[SampleStatistic],
    format: OutputFormat,
    width: Option<usize>,
    colour: bool,
) -> Result<String, GridError> {
    let mut grid = Grid::new(statistic_columns(comparison, chosen));
    for row in &comparison.rows {
        grid.add_row(statistic_cells(row, chosen));
    }
    grid.render(format, width, colour)
}

fn statistic_columns(comparison: &Comparison, chosen: &[SampleStatistic]) -> Vec<GridColumn> {
    let mut columns: Vec<GridColumn> = ["case", "metric", "unit", "candidate"].map(GridColumn::left).into();
    let pairs = chosen.iter().flat_map(|statistic| {
        [shorten_name(&comparison.baseline, &side_names(comparison)), "candidate".into()]
            .map(|side| format!("{statistic} {side}"))
    });
    columns.extend(pairs.map(|title| GridColumn::right(&title)));
    columns.push(GridColumn::right(&change_title(comparison)));
    columns.push(GridColumn::left("verdict"));
    columns
}

fn statistic_cells(row: &VerdictRow, chosen: &[SampleStatistic]) -> Vec<GridCell> {
    let words = RowText::from_row(row);
    let samples = [&row.baseline, &row.candidate].map(|side| {
        let values = side.iter().flat_map(|summary| summary.values.iter()).map(|point| point.value);
        values.collect::<Vec<f64>>()
    });
    let found: Vec<[Option<f64>; 2]> = chosen
        .iter()
        .map(|statistic| [&samples[0], &samples[1]].map(|values| statistic.value(values, row.direction)))
        .collect();
    let with_unit = chosen.iter().zip(&found).filter(|(statistic, _)| statistic.has_unit());
    let largest =
        with_unit.flat_map(|(_, pair)| pair.iter().flatten()).fold(0.0_f64, |most, v| most.max(v.abs()));
    let unit = fitting_shown_unit(&row.unit.0, largest);
    let mut cells = vec![
        GridCell::from(row.subject.as_str()),
        GridCell::from(row.metric.as_str()),
        GridCell::with_text(unit.name.as_str(), row.unit.0.as_str()),
        GridCell::from(row.candidate_name.as_str()),
    ];
    for (statistic, pair) in chosen.iter().zip(found) {
        cells.extend(pair.map(|value| statistic_cell(value, *statistic, &unit)));
    }
    cells.push(GridCell::with_text(words.change, row.change.map(|change| change.value)));
    cells.push(GridCell::with_text(words.verdict, row.verdict_word()));
    cells
}

fn statistic_cell(value: Option<f64>, statistic: SampleStatistic, unit: &ShownUnit) -> GridCell {
    let Some(value) = value else { return GridCell::missing() };
    let text = match statistic {
        SampleStatistic::Variation | SampleStatistic::HarmonicVariation => format!("{value:.2} %"),
        statistic if statistic.has_unit() => unit.format_value(value),
        _ => format_four_digits(value),
    };
    GridCell::with_text(text, value)
}
