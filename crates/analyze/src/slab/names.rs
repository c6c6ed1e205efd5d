//! Owns the numbers of caches: by name, and by place among those of one name. It refuses to hash a name twice: the kernel
//! lists its caches in one order, so most names stand where they stood a tick before.

use std::collections::HashMap;
use std::ops::Range;

use perflab_model::Nanos;

use super::attributes::{AttributeScans, CacheAttributes, attributes_at};
use super::recording::SlabCache;
use super::row::SlabRow;

/// Caches by name and ordinal.
#[derive(Default)]
pub(super) struct CacheNaming {
    names: Vec<(String, u32)>,
    numbers: HashMap<String, Vec<usize>>,
    /// The cache that stood last at each place.
    at_place: Vec<usize>,
    /// Until which tick, that one excluded, the last row of each cache stands.
    until: Vec<usize>,
}

impl CacheNaming {
    pub(super) fn name(&self, number: usize) -> &str {
        self.names.get(number).map_or("", |(name, _)| name)
    }

    /// The number of the next row's cache, which has that place among the rows of these ticks.
    pub(super) fn cache_number(&mut self, name: &str, place: usize, ticks: &Range<usize>) -> usize {
        let guess = self.at_place.get(place).copied().filter(|guess| self.name(*guess) == name);
        let fits = guess.filter(|guess| self.is_next_free(*guess, ticks.start));
        let number = fits.unwrap_or_else(|| self.find_or_add(name, ticks.start));
        if let Some(until) = self.until.get_mut(number) {
            *until = ticks.end;
        }
        if self.at_place.len() <= place {
            self.at_place.resize(place + 1, usize::MAX);
        }
        self.at_place.iter_mut().skip(place).take(1).for_each(|there| *there = number);
        number
    }

    /// Whether it is the first of its name that has no row at that tick yet.
    fn is_next_free(&self, number: usize, tick: usize) -> bool {
        let is_free = self.until.get(number).is_some_and(|until| *until <= tick);
        let ordinal = self.names.get(number).map_or(0, |(_, ordinal)| *ordinal);
        is_free && (ordinal == 0 || self.find_free(self.name(number), tick) == Some(number))
    }

    fn find_free(&self, name: &str, tick: usize) -> Option<usize> {
        let known = self.numbers.get(name)?;
        known.iter().copied().find(|number| self.until.get(*number).is_some_and(|until| *until <= tick))
    }

    fn find_or_add(&mut self, name: &str, tick: usize) -> usize {
        if let Some(known) = self.find_free(name, tick) {
            return known;
        }
        let number = self.names.len();
        let same = self.numbers.entry(name.into()).or_default();
        self.names.push((name.into(), u32::try_from(same.len()).unwrap_or(u32::MAX)));
        self.until.push(0);
        same.push(number);
        number
    }

    /// The caches, each with the last attributes that fit its last row.
    pub(super) fn into_caches(
        self,
        rows: &[SlabRow],
        ticks: &[Nanos],
        scans: &AttributeScans,
    ) -> Vec<SlabCache> {
        let mut attributes: Vec<Option<CacheAttributes>> = vec![None; self.names.len()];
        let mut open = vec![true; self.names.len()];
        for row in rows.iter().rev() {
            let Some(wanted) = open.get_mut(row.cache).filter(|open| **open) else { continue };
            *wanted = false;
            let (name, _) = self.names.get(row.cache).map_or(("", 0), |(name, ordinal)| (name, *ordinal));
            let now = ticks.get(row.last).copied().unwrap_or_default();
            if let Some(slot) = attributes.get_mut(row.cache) {
                *slot = attributes_at(scans.of_cache(name), now, Some(row.slab_size)).cloned();
            }
        }
        let named = self.names.into_iter().zip(attributes);
        named.map(|((name, ordinal), attributes)| SlabCache { name, ordinal, attributes }).collect()
    }
}
