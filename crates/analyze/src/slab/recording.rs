//! Owns a run's slab rows, read once: caches interned, ticks in order, every row with its attributes. It refuses to
//! analyse: the questions are asked by the other modules.

use std::ops::Range;

use perflab_model::Nanos;
use perflab_model::series::Series;
use serde::Serialize;

use super::attributes::CacheAttributes;
use super::counts::SlabRowCounts;
use super::error::SlabError;
use super::input::{SlabFacts, SlabInput};
use super::phase::IterationSpan;
use super::read::{self, SlabRecordingReader};
use super::row::SlabRow;

/// A cache: its name in /proc/slabinfo, and which of that name it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SlabCache {
    /// Name in /proc/slabinfo: of a group of merged caches, the first that still lives.
    pub name: String,
    /// 0 for the first row of that name in a tick, 1 for the second.
    pub ordinal: u32,
    /// The last scan of its attributes that fits it.
    pub attributes: Option<CacheAttributes>,
}

impl SlabCache {
    /// The name, with `#2` behind the second cache of that name.
    #[must_use]
    pub fn label(&self) -> String {
        match self.ordinal {
            0 => self.name.clone(),
            ordinal => format!("{}#{}", self.name, u64::from(ordinal) + 1),
        }
    }

    /// All names that stand for it, itself alone where no others are known.
    #[must_use]
    pub fn members(&self) -> Vec<String> {
        let known = self.attributes.as_ref().map(|attributes| attributes.members.clone()).unwrap_or_default();
        if known.is_empty() { vec![self.name.clone()] } else { known }
    }
}

/// The rows of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct SlabRecording {
    pub(super) caches: Vec<SlabCache>,
    pub(super) ticks: Vec<Nanos>,
    /// In order of their first ticks.
    pub(super) rows: Vec<SlabRow>,
    pub(super) counts: SlabRowCounts,
    pub(super) page_size: u64,
    pub(super) system: SlabFacts,
    pub(super) phases: Vec<IterationSpan>,
}

impl SlabRecording {
    /// Reads the series of a run.
    ///
    /// # Errors
    /// No `slabinfo` (or, in its place, `slab-exact`) with rows, no page size, several page sizes in one run.
    pub fn read(input: &SlabInput) -> Result<Self, SlabError> {
        let rows = read::slab_spans(input)?;
        Ok(SlabRecordingReader::new(input, &rows)?.into_recording())
    }

    /// Every cache that was seen, in the order of first sight.
    #[must_use]
    pub fn caches(&self) -> &[SlabCache] {
        &self.caches
    }

    /// The times of the ticks, CLOCK_MONOTONIC.
    #[must_use]
    pub fn ticks(&self) -> &[Nanos] {
        &self.ticks
    }

    /// All usable rows, in order of their first ticks; each once for all ticks at which it stood.
    #[must_use]
    pub fn rows(&self) -> &[SlabRow] {
        &self.rows
    }

    /// How many rows were read, used and flagged.
    #[must_use]
    pub fn counts(&self) -> SlabRowCounts {
        self.counts
    }

    /// Bytes of a page.
    #[must_use]
    pub fn page_size(&self) -> u64 {
        self.page_size
    }

    /// The run's iterations.
    #[must_use]
    pub fn iteration_spans(&self) -> &[IterationSpan] {
        &self.phases
    }

    /// The time that each tick stands for, in half nanoseconds: half-way from the tick before to the one after (the
    /// trapezoid rule in integers); 1 each where no time passes.
    #[must_use]
    pub fn tick_weights(&self) -> Vec<u128> {
        tick_weights(&self.ticks)
    }

    /// The sum of the weights of all ticks before each, and of all of them.
    #[must_use]
    pub(super) fn elapsed_weights(&self) -> ElapsedWeights {
        let mut sums = vec![0];
        for weight in self.tick_weights() {
            sums.push(sums.last().copied().unwrap_or(0) + weight);
        }
        ElapsedWeights(sums)
    }

    /// Numbers of the caches called `name` (or `name#2`, a label).
    ///
    /// # Errors
    /// No such cache; the error names those that are near.
    pub fn find_caches(&self, name: &str) -> Result<Vec<usize>, SlabError> {
        let matches = |cache: &SlabCache| {
            let members = cache.attributes.iter().flat_map(|attributes| &attributes.members);
            cache.name == name || cache.label() == name || members.into_iter().any(|member| member == name)
        };
        let found = |(number, cache): (usize, &SlabCache)| matches(cache).then_some(number);
        let found: Vec<usize> = self.caches.iter().enumerate().filter_map(found).collect();
        if found.is_empty() { Err(self.unknown_cache(name)) } else { Ok(found) }
    }

    fn unknown_cache(&self, name: &str) -> SlabError {
        let names = self.caches.iter().map(|cache| cache.name.as_str());
        let near = perflab_model::nearest::nearest_name(name, names).map(Into::into);
        SlabError::UnknownCache { name: name.into(), near: near.into_iter().collect() }
    }
}

/// Sums of weights, so that those of many ticks on end are one subtraction.
pub(super) struct ElapsedWeights(Vec<u128>);

impl ElapsedWeights {
    /// The weight of these ticks together.
    pub(super) fn weight_of(&self, ticks: Range<usize>) -> u128 {
        let until = |tick: usize| self.0.get(tick).or(self.0.last()).copied().unwrap_or(0);
        until(ticks.end).saturating_sub(until(ticks.start))
    }
}

pub(super) fn tick_weights(ticks: &[Nanos]) -> Vec<u128> {
    let time = |number: usize| ticks.get(number).map_or(0, |at| u128::from(at.0));
    let last = ticks.len().saturating_sub(1);
    if time(last) <= time(0) {
        return vec![1; ticks.len()];
    }
    let weight = |number: usize| time((number + 1).min(last)) - time(number.saturating_sub(1));
    (0..ticks.len()).map(weight).collect()
}

/// A series that has rows.
pub(super) fn non_empty(series: Option<&Series>) -> Option<&Series> {
    series.filter(|series| !series.at.is_empty())
}
