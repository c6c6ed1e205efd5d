//! The table of functions.

use perflab_analyze::flame::{Amount, FunctionRow, Role};

use crate::table::{Cell, Column, Grid};

/// The first `top` functions, as shares of `all`.
#[must_use]
pub fn grid(rows: &[FunctionRow], all: Amount, top: usize) -> Grid {
    let numbers = ["self", "inclusive", "self samples", "inclusive samples"].map(Column::right);
    let mut grid = Grid::new(["function", "where"].map(Column::left).into_iter().chain(numbers));
    for row in rows.iter().take(top) {
        grid.add([
            row.function.name.as_str().into(),
            place(row).into(),
            share(row.own.samples, all.samples),
            share(row.inclusive.samples, all.samples),
            row.own.samples.into(),
            row.inclusive.samples.into(),
        ]);
    }
    grid
}

fn place(row: &FunctionRow) -> &'static str {
    match (row.function.role, row.function.inlined) {
        (Role::Kernel, false) => "kernel",
        (Role::Kernel, true) => "kernel, inlined",
        (Role::User, false) => "user",
        (Role::User, true) => "user, inlined",
        _ => "",
    }
}

/// `part` of `all` in percent.
pub(super) fn share(part: u64, all: u64) -> Cell {
    if all == 0 {
        return Cell::missing();
    }
    let share = part as f64 / all as f64;
    Cell::shown(format!("{:.2} %", 100.0 * share), share)
}
