//! Owns the slabs that CPUs held of a cache, by time. It refuses old counts of another clock: the last one before a
//! row holds, and before the first one, the first.

use std::collections::HashMap;

use perflab_model::Nanos;
use perflab_model::series::Series;

use super::columns::{int_column, row_time, rows_in_time_order, text_column};

/// `cpu_slabs` of every cache, over time.
#[derive(Debug, Default)]
pub(super) struct HeldSlabs {
    by_name: HashMap<String, Vec<(Nanos, u64)>>,
}

impl HeldSlabs {
    /// From `slab-exact` (all nodes together); where that is absent, from the slabinfo tool's `cpu`.
    pub(super) fn read(exact: Option<&Series>, tool: Option<&Series>) -> Self {
        let mut held = HeldSlabs::default();
        match (exact, tool) {
            (Some(exact), _) => held.add_series(exact, "cpu_slabs"),
            (None, Some(tool)) => held.add_series(tool, "cpu"),
            (None, None) => {}
        }
        held
    }

    fn add_series(&mut self, series: &Series, column: &str) {
        let (name, count, node) =
            (text_column(series, "cache"), int_column(series, column), int_column(series, "node"));
        for row in rows_in_time_order(series) {
            let all_nodes = node.integer(row).is_none_or(|node| node < 0);
            let (Some(name), Some(count), true) = (name.text(row), count.count(row), all_nodes) else {
                continue;
            };
            match self.by_name.get_mut(name) {
                Some(counts) => counts.push((row_time(series, row), count)),
                None => drop(self.by_name.insert(name.into(), vec![(row_time(series, row), count)])),
            }
        }
    }

    /// The counts of a cache, in order of time.
    pub(super) fn of_cache(&self, name: &str) -> &[(Nanos, u64)] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }
}

/// The count that holds at a time.
pub(super) fn held_slabs_at(counts: &[(Nanos, u64)], now: Nanos) -> Option<u64> {
    let next = counts.partition_point(|(time, _)| *time <= now);
    counts.get(next.saturating_sub(1)).map(|(_, count)| *count)
}
