//! Owns the table of two factors' effects and interaction. It refuses to hide what has no row.

use perflab_analyze::Interactions;
use perflab_analyze::interaction::EffectRow;

use super::advice::wrapped;
use super::format::{Format, TableError};
use super::grid::{Cell, Column, Grid};
use super::number::probability;
use super::words::change_in_words;

const TEXT_WIDTH: usize = 100;

/// Effects and interactions.
///
/// # Errors
/// A number that JSON or CSV cannot hold.
pub fn render_interactions(
    found: &Interactions,
    format: Format,
    width: Option<usize>,
    colour: bool,
) -> Result<String, TableError> {
    if format == Format::Json {
        return Ok(serde_json::to_string_pretty(found)? + "\n");
    }
    let mut text = grid(found).render(format, width, colour)?;
    if matches!(format, Format::Table | Format::Markdown) {
        text.push('\n');
        let left_out = found.left_out.iter().map(|one| format!("left out: {one}"));
        let notes = found.notes.iter().map(|note| format!("note: {note}"));
        for line in
            left_out.chain(notes).flat_map(|note| wrapped(&note, width.unwrap_or(TEXT_WIDTH), "", "  "))
        {
            text += &(line + "\n");
        }
    }
    Ok(text)
}

fn grid(found: &Interactions) -> Grid {
    let change = format!("change [{} % CI]", (found.confidence * 1000.0).round() / 10.0);
    let left = ["case", "metric", "effect"].map(Column::left);
    let rest = [Column::right(&change), Column::left("verdict"), Column::right("q"), Column::right("blocks")];
    let mut grid = Grid::new(left.into_iter().chain(rest));
    for row in &found.rows {
        grid.add([
            Cell::from(row.subject.as_str()),
            Cell::from(row.metric.as_str()),
            Cell::from(row.effect.as_str()),
            Cell::shown(change_in_words(row.change, &row.unit.0), row.change.value),
            Cell::shown(word(row), row.word()),
            Cell::shown(probability(row.q), row.q),
            row.blocks.map_or_else(|| Cell::shown("means", serde_json::Value::Null), Cell::from),
        ]);
    }
    grid
}

fn word(row: &EffectRow) -> String {
    let symbol = match row.word() {
        "better" => '✓',
        "worse" => '✗',
        "same" | "none" => '=',
        "interacts" => '×',
        "changed" => '≠',
        _ => '?',
    };
    format!("{symbol} {}", row.word())
}
