//! What became of every sample, as a table and in one line.

use perflab_model::profile::{ProfileSummary, SampleCounts};

use super::functions::percent_of_cell;
use crate::table::{Grid, GridColumn};

/// The parts by name, disjoint, in the order of the table.
pub(super) fn named_sample_parts(parts: &SampleCounts) -> [(&'static str, u64); 5] {
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
pub fn sample_part_grid(parts: &SampleCounts) -> Grid {
    let numbers = ["count", "share of all"].map(GridColumn::right);
    let mut grid = Grid::new([GridColumn::left("samples")].into_iter().chain(numbers));
    for (name, count) in named_sample_parts(parts).into_iter().chain([("all", parts.total())]) {
        grid.add_row([name.into(), count.into(), percent_of_cell(count, parts.total())]);
    }
    grid
}

/// The same in a line; parts that are nothing are left out.
#[must_use]
pub fn sample_account(parts: &SampleCounts) -> String {
    let all = parts.total();
    if all == 0 {
        return "no sample was taken: nothing ran, or not for long enough".into();
    }
    let told = |(name, count): (&str, u64)| {
        (count > 0).then(|| format!("{count} {name} ({:.2} %)", 100.0 * count as f64 / all as f64))
    };
    let told: Vec<String> = named_sample_parts(parts).into_iter().filter_map(told).collect();
    format!("{all} samples: {}", told.join(", "))
}

/// Where samples come from, in a line: `perf.data, cpu-clock at 499 Hz`.
#[must_use]
pub fn profile_source_text(about: &ProfileSummary) -> String {
    let event = if about.event.is_empty() { String::new() } else { format!(", {}", about.event) };
    let rate = about.frequency.map(|rate| format!(" at {rate} Hz")).unwrap_or_default();
    format!("{}{event}{rate}", about.source)
}
