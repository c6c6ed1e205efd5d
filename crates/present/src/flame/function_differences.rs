//! Functions of two sides in a table, those that moved first.

use perflab_analyze::flame::{FunctionDifference, FunctionDifferences, FunctionShare};

use crate::flame::grids::{function_place, profile_share_cell};
use crate::grid::{Grid, GridCell, GridColumn};
use perflab_model::quantity::{format_probability, format_signed};

/// The first `top` functions; all that moved stand in front of those that did not.
#[must_use]
pub fn function_difference_grid(found: &FunctionDifferences, names: [&str; 2], top: usize) -> Grid {
    let difference = format!("{} - {}", names[1], names[0]);
    let numbers = [names[0], names[1], &difference].map(GridColumn::right);
    let head = ["function", "where"].map(GridColumn::left).into_iter().chain(numbers);
    let mut grid = Grid::new(head.chain([GridColumn::left("moved"), GridColumn::right("q")]));
    for row in found.functions.iter().take(top) {
        let points = |value: f64| format_signed(100.0 * value, 2);
        let (low, high) = row.interval;
        let text = format!("{} [{}, {}]", points(row.difference), points(low), points(high));
        grid.add_row([
            row.function.name.as_str().into(),
            function_place(&row.function).into(),
            profile_share_cell(&row.before),
            profile_share_cell(&row.after),
            GridCell::with_text(text, row.difference),
            moved_word(row).into(),
            GridCell::with_text(format_probability(row.q), row.q),
        ]);
    }
    grid
}

fn moved_word(row: &FunctionDifference) -> &'static str {
    match (row.differs, row.difference > 0.0) {
        (false, _) => "",
        (true, true) => "more",
        (true, false) => "less",
    }
}

/// What shares are of, how many functions moved, and what the intervals are worth.
#[must_use]
pub fn function_difference_sentences(found: &FunctionDifferences, top: usize) -> Vec<String> {
    let moved = found.functions.iter().filter(|row| row.differs).count();
    let share = match found.share {
        FunctionShare::Inclusive => "samples with the function on their stack",
        FunctionShare::Own => "samples that end in the function",
    };
    let cut =
        if found.functions.len() > top { format!("; the first {top} are shown") } else { String::new() };
    let mut lines = vec![format!(
        "{moved} of {} functions moved (false discovery rate 5 % at most; {} more have too few samples){cut}",
        found.functions.len(),
        found.not_judged
    )];
    lines.push(format!("shares are of all samples kept: {share}; differences in points, after less before"));
    lines.push(match found.counts_only {
        false => format!("95 % intervals over {} and {} (Welch)", found.before, found.after),
        true => "warning: a side was not repeated: intervals know the counting of samples only, and are too narrow; record both \
                 sides several times"
            .into(),
    });
    lines
}
