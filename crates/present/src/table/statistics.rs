//! Owns a comparison with the statistics that the reader chose (`--stat`), beside the change and the verdict, which stay.
//! It refuses a number for a sample that has none: the cell is empty.

use perflab_analyze::{Comparison, Row, Statistic};

use super::format::{Format, TableError};
use super::grid::{Cell, Column, Grid};
use super::number::{ShownUnit, shown_unit, significant};
use super::words::{Words, change_title, short, sides};

/// The comparison, two columns a statistic: baseline and candidate.
///
/// # Errors
/// A number that JSON or CSV cannot hold.
pub fn render_statistics(
    comparison: &Comparison,
    chosen: &[Statistic],
    format: Format,
    width: Option<usize>,
    colour: bool,
) -> Result<String, TableError> {
    let mut grid = Grid::new(columns(comparison, chosen));
    for row in &comparison.rows {
        grid.add(cells(row, chosen));
    }
    grid.render(format, width, colour)
}

fn columns(comparison: &Comparison, chosen: &[Statistic]) -> Vec<Column> {
    let mut columns: Vec<Column> = ["case", "metric", "unit", "candidate"].map(Column::left).into();
    let pairs = chosen.iter().flat_map(|statistic| {
        [short(&comparison.baseline, &sides(comparison)), "candidate".into()]
            .map(|side| format!("{statistic} {side}"))
    });
    columns.extend(pairs.map(|title| Column::right(&title)));
    columns.push(Column::right(&change_title(comparison)));
    columns.push(Column::left("verdict"));
    columns
}

fn cells(row: &Row, chosen: &[Statistic]) -> Vec<Cell> {
    let words = Words::of(row);
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
    let unit = shown_unit(&row.unit.0, largest);
    let mut cells = vec![
        Cell::from(row.subject.as_str()),
        Cell::from(row.metric.as_str()),
        Cell::shown(unit.name.as_str(), row.unit.0.as_str()),
        Cell::from(row.candidate_name.as_str()),
    ];
    for (statistic, pair) in chosen.iter().zip(found) {
        cells.extend(pair.map(|value| cell(value, *statistic, &unit)));
    }
    cells.push(Cell::shown(words.change, row.change.map(|change| change.value)));
    cells.push(Cell::shown(words.verdict, row.word()));
    cells
}

fn cell(value: Option<f64>, statistic: Statistic, unit: &ShownUnit) -> Cell {
    let Some(value) = value else { return Cell::missing() };
    let text = match statistic {
        Statistic::Variation | Statistic::HarmonicVariation => format!("{value:.2} %"),
        statistic if statistic.has_unit() => unit.text(value),
        _ => significant(value),
    };
    Cell::shown(text, value)
}
