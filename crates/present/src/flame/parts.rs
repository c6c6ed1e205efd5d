//! What became of every sample, as a table and in one line.

use perflab_model::profile::{Parts, Profiled};

use super::functions::share;
use crate::table::{Column, Grid};

/// The parts by name, disjoint, in the order of the table.
pub(super) fn named(parts: &Parts) -> [(&'static str, u64); 5] {
    [
        ("with a stack", parts.stacks),
        ("without a stack", parts.stackless),
        ("of dying tasks", parts.dead),
        ("lost for want of room", parts.lost),
        ("unreadable", parts.unreadable),
    ]
}

/// Every part and its share of all; they sum to 100 %.
#[must_use]
pub fn grid(parts: &Parts) -> Grid {
    let numbers = ["count", "share of all"].map(Column::right);
    let mut grid = Grid::new([Column::left("samples")].into_iter().chain(numbers));
    for (name, count) in named(parts).into_iter().chain([("all", parts.all())]) {
        grid.add([name.into(), count.into(), share(count, parts.all())]);
    }
    grid
}

/// The same in a line; parts that are nothing are left out.
#[must_use]
pub fn account(parts: &Parts) -> String {
    let all = parts.all();
    if all == 0 {
        return "no sample was taken: nothing ran, or not for long enough".into();
    }
    let told = |(name, count): (&str, u64)| {
        (count > 0).then(|| format!("{count} {name} ({:.2} %)", 100.0 * count as f64 / all as f64))
    };
    let told: Vec<String> = named(parts).into_iter().filter_map(told).collect();
    format!("{all} samples: {}", told.join(", "))
}

/// Where samples come from, in a line: `perf.data, cpu-clock at 499 Hz`.
#[must_use]
pub fn source(about: &Profiled) -> String {
    let event = if about.event.is_empty() { String::new() } else { format!(", {}", about.event) };
    let rate = about.frequency.map(|rate| format!(" at {rate} Hz")).unwrap_or_default();
    format!("{}{event}{rate}", about.source)
}
