//! Owns the table of two factors' effects and interaction. It refuses to hide what has no row.

use perflab_analyze::InteractionTable;
use perflab_analyze::interaction::EffectRow;

use super::advice::wrap_text;
use super::format::{GridError, OutputFormat};
use super::grid::{Grid, GridCell, GridColumn};
use super::number::format_probability;
use super::words::format_change;

const TEXT_WIDTH: usize = 100;

/// Effects and interactions.
///
/// # Errors
/// A number that JSON or CSV cannot hold.
pub fn render_interactions(
    found: &InteractionTable,
    format: OutputFormat,
    width: Option<usize>,
    colour: bool,
) -> Result<String, GridError> {
    if format == OutputFormat::Json {
        return Ok(serde_json::to_string_pretty(found)? + "\n");
    }
    let mut text = effect_grid(found).render(format, width, colour)?;
    if matches!(format, OutputFormat::Table | OutputFormat::Markdown) {
        text.push('\n');
        let left_out = found.left_out.iter().map(|one| format!("left out: {one}"));
        let notes = found.notes.iter().map(|note| format!("note: {note}"));
        for line in
            left_out.chain(notes).flat_map(|note| wrap_text(&note, width.unwrap_or(TEXT_WIDTH), "", "  "))
        {
            text += &(line + "\n");
        }
    }
    Ok(text)
}

fn effect_grid(found: &InteractionTable) -> Grid {
    let change = format!("change [{} % CI]", (found.confidence * 1000.0).round() / 10.0);
    let left = ["case", "metric", "effect"].map(GridColumn::left);
    let rest = [
        GridColumn::right(&change),
        GridColumn::left("verdict"),
        GridColumn::right("q"),
        GridColumn::right("blocks"),
    ];
    let mut grid = Grid::new(left.into_iter().chain(rest));
    for row in &found.rows {
        grid.add_row([
            GridCell::from(row.subject.as_str()),
            GridCell::from(row.metric.as_str()),
            GridCell::from(row.effect.as_str()),
            GridCell::with_text(format_change(row.change, &row.unit.0), row.change.value),
            GridCell::with_text(effect_verdict_text(row), row.verdict_word()),
            GridCell::with_text(format_probability(row.q), row.q),
            row.blocks.map_or_else(|| GridCell::with_text("means", serde_json::Value::Null), GridCell::from),
        ]);
    }
    grid
}

fn effect_verdict_text(row: &EffectRow) -> String {
    let symbol = match row.verdict_word() {
        "better" => '✓',
        "worse" => '✗',
        "same" | "none" => '=',
        "interacts" => '×',
        "changed" => '≠',
        _ => '?',
    };
    format!("{symbol} {}", row.verdict_word())
}
