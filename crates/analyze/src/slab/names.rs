//! Owns the numbers of caches: by name, and by place among those of one name. It refuses to hash a name twice: the kernel
//! lists its caches in one order, so most names stand where they stood a tick before.

use std::collections::HashMap;

use perflab_model::Nanos;

use super::attributes::{Attributes, Scans, holding};
use super::recording::Cache;
use super::row::Observed;

/// Caches by name and ordinal.
#[derive(Default)]
pub(super) struct Names {
    names: Vec<(String, u32)>,
    numbers: HashMap<String, Vec<usize>>,
    /// Caches of the tick before, and of this one, in their order.
    before: Vec<usize>,
    now: Vec<usize>,
    /// The tick in which a cache was last seen.
    seen: Vec<u64>,
    tick: u64,
}

impl Names {
    pub(super) fn next_tick(&mut self) {
        std::mem::swap(&mut self.before, &mut self.now);
        self.now.clear();
        self.tick += 1;
    }

    pub(super) fn name(&self, number: usize) -> &str {
        self.names.get(number).map_or("", |(name, _)| name)
    }

    /// The number of the next row's cache.
    pub(super) fn number(&mut self, name: &str) -> usize {
        let guess = self.before.get(self.now.len()).copied().filter(|guess| self.name(*guess) == name);
        let fits = guess.filter(|guess| self.is_next(*guess));
        let number = fits.unwrap_or_else(|| self.looked_up(name));
        if let Some(seen) = self.seen.get_mut(number) {
            *seen = self.tick;
        }
        self.now.push(number);
        number
    }

    /// Whether it is the first of its name that this tick has not shown yet.
    fn is_next(&self, number: usize) -> bool {
        let is_new = self.seen.get(number) != Some(&self.tick);
        let ordinal = self.names.get(number).map_or(0, |(_, ordinal)| *ordinal);
        is_new && (ordinal == 0 || self.looked(self.name(number)) == Some(number))
    }

    fn looked(&self, name: &str) -> Option<usize> {
        let known = self.numbers.get(name)?;
        known.iter().copied().find(|number| self.seen.get(*number) != Some(&self.tick))
    }

    fn looked_up(&mut self, name: &str) -> usize {
        if let Some(known) = self.looked(name) {
            return known;
        }
        let number = self.names.len();
        let same = self.numbers.entry(name.into()).or_default();
        self.names.push((name.into(), u32::try_from(same.len()).unwrap_or(u32::MAX)));
        self.seen.push(0);
        same.push(number);
        number
    }

    /// The caches, each with the last attributes that fit its last row.
    pub(super) fn caches(self, rows: &[Observed], ticks: &[Nanos], scans: &Scans) -> Vec<Cache> {
        let mut attributes: Vec<Option<Attributes>> = vec![None; self.names.len()];
        let mut open = vec![true; self.names.len()];
        for row in rows.iter().rev() {
            let Some(wanted) = open.get_mut(row.cache).filter(|open| **open) else { continue };
            *wanted = false;
            let (name, _) = self.names.get(row.cache).map_or(("", 0), |(name, ordinal)| (name, *ordinal));
            let now = ticks.get(row.tick).copied().unwrap_or_default();
            if let Some(slot) = attributes.get_mut(row.cache) {
                *slot = holding(scans.of(name), now, Some(row.slab_size)).cloned();
            }
        }
        let named = self.names.into_iter().zip(attributes);
        named.map(|((name, ordinal), attributes)| Cache { name, ordinal, attributes }).collect()
    }
}
