//! Owns the slabs that CPUs held of a cache, by time. It refuses old counts of another clock: the last one before a
//! row holds, and before the first one, the first.

use std::collections::HashMap;

use perflab_model::Nanos;
use perflab_model::series::Series;

use super::columns::{at, in_time, ints, texts};

/// `cpu_slabs` of every cache, over time.
#[derive(Debug, Default)]
pub(super) struct Held {
    by_name: HashMap<String, Vec<(Nanos, u64)>>,
}

impl Held {
    /// From `slab-exact` (all nodes together); where that is absent, from the slabinfo tool's `cpu`.
    pub(super) fn read(exact: Option<&Series>, tool: Option<&Series>) -> Self {
        let mut held = Held::default();
        match (exact, tool) {
            (Some(exact), _) => held.add(exact, "cpu_slabs"),
            (None, Some(tool)) => held.add(tool, "cpu"),
            (None, None) => {}
        }
        held
    }

    fn add(&mut self, series: &Series, column: &str) {
        let (name, count, node) = (texts(series, "cache"), ints(series, column), ints(series, "node"));
        for row in in_time(series) {
            let all_nodes = node.signed(row).is_none_or(|node| node < 0);
            let (Some(name), Some(count), true) = (name.text(row), count.count(row), all_nodes) else {
                continue;
            };
            match self.by_name.get_mut(name) {
                Some(counts) => counts.push((at(series, row), count)),
                None => drop(self.by_name.insert(name.into(), vec![(at(series, row), count)])),
            }
        }
    }

    /// The counts of a cache, in order of time.
    pub(super) fn of(&self, name: &str) -> &[(Nanos, u64)] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }
}

/// The count that holds at a time.
pub(super) fn cpu_slabs(counts: &[(Nanos, u64)], now: Nanos) -> Option<u64> {
    let next = counts.partition_point(|(time, _)| *time <= now);
    counts.get(next.saturating_sub(1)).map(|(_, count)| *count)
}
