//! The table of functions.

use perflab_analyze::flame::{FrameRole, FunctionRow, ProfileAmount};

use crate::table::{Grid, GridCell, GridColumn};

/// The first `top` functions, as shares of `all`.
#[must_use]
pub fn function_grid(rows: &[FunctionRow], all: ProfileAmount, top: usize) -> Grid {
    let numbers = ["self", "inclusive", "self samples", "inclusive samples"].map(GridColumn::right);
    let mut grid = Grid::new(["function", "where"].map(GridColumn::left).into_iter().chain(numbers));
    for row in rows.iter().take(top) {
        grid.add_row([
            row.function.name.as_str().into(),
            function_place(row).into(),
            percent_of_cell(row.own.samples, all.samples),
            percent_of_cell(row.inclusive.samples, all.samples),
            row.own.samples.into(),
            row.inclusive.samples.into(),
        ]);
    }
    grid
}

fn function_place(row: &FunctionRow) -> &'static str {
    match (row.function.role, row.function.inlined) {
        (FrameRole::Kernel, false) => "kernel",
        (FrameRole::Kernel, true) => "kernel, inlined",
        (FrameRole::User, false) => "user",
        (FrameRole::User, true) => "user, inlined",
        _ => "",
    }
}

/// `part` of `all` in percent.
pub(super) fn percent_of_cell(part: u64, all: u64) -> GridCell {
    if all == 0 {
        return GridCell::missing();
    }
    let share = part as f64 / all as f64;
    GridCell::with_text(format!("{:.2} %", 100.0 * share), share)
}
