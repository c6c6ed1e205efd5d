//! A run's slab rows as every question takes them: input, caches with attributes, rows, the account of rows, iterations
//! on the clock, errors.
//!
//! Rows are read once: caches interned, ticks in order, every row with its attributes. The account says how many rows
//! were read, used and flagged, and why, so that none is lost silently; rows that no memory could hold are refused.
//! What concerns single rows is counted and flagged, not an error.

use std::ops::Range;

use perflab_formats::kernel::slab_counts::{CountConsistency, SlabCounts};
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::series::{RowRuns, Series};
use perflab_model::{Nanos, RunRecord};
use perflab_stats::StatsError;
use serde::Serialize;

use crate::error::AnalyzeError;
use crate::slab::usage::{SlabFacts, SlabUsage};

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

/// Attributes of one directory of /sys/kernel/slab; whatever the kernel did not give is absent, never 0.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CacheAttributes {
    /// `object_size`: bytes asked for by the creator.
    pub object_size: Option<u64>,
    /// `slab_size`: padded bytes of one slot.
    pub slab_size: Option<u64>,
    /// `objs_per_slab` of the preferred order.
    pub objs_per_slab: Option<u64>,
    /// `order`: log2 of the pages of a slab.
    pub order: Option<u64>,
    /// `align` of the slots, bytes.
    pub align: Option<u64>,
    /// Bytes of a page when it was scanned.
    pub page_size: Option<u64>,
    /// Name of the directory: `:0000192` for a group of merged caches.
    pub directory: Option<String>,
    /// All names that lead to it, the one in /proc/slabinfo among them; empty where they were not recorded.
    pub members: Vec<String>,
    /// `reclaim_account`: whether the kernel counts its slabs as reclaimable.
    pub reclaimable: Option<bool>,
    /// `cpu_partial`: most free objects on the partial list of one CPU.
    pub cpu_partial: Option<u64>,
    /// `sheaf_capacity`: objects of a sheaf; 0 for a cache without (6.18 and later).
    pub sheaf_capacity: Option<u64>,
}

/// The rows of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct SlabRecording {
    pub(crate) caches: Vec<SlabCache>,
    pub(crate) ticks: Vec<Nanos>,
    /// In order of their first ticks.
    pub(crate) rows: Vec<SlabRow>,
    pub(crate) counts: SlabRowCounts,
    pub(crate) page_size: u64,
    pub(crate) system: SlabFacts,
    pub(crate) phases: Vec<IterationSpan>,
}

impl SlabRecording {
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
    pub(crate) fn elapsed_weights(&self) -> ElapsedWeights {
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
        let near = perflab_model::problem::nearest_name(name, names).map(Into::into);
        SlabError::UnknownCache { name: name.into(), near: near.into_iter().collect() }
    }
}

/// Sums of weights, so that those of many ticks on end are one subtraction.
pub(crate) struct ElapsedWeights(Vec<u128>);

impl ElapsedWeights {
    /// The weight of these ticks together.
    pub(crate) fn weight_of(&self, ticks: Range<usize>) -> u128 {
        let until = |tick: usize| self.0.get(tick).or(self.0.last()).copied().unwrap_or(0);
        until(ticks.end).saturating_sub(until(ticks.start))
    }
}

pub(crate) fn tick_weights(ticks: &[Nanos]) -> Vec<u128> {
    let time = |number: usize| ticks.get(number).map_or(0, |at| u128::from(at.0));
    let last = ticks.len().saturating_sub(1);
    if time(last) <= time(0) {
        return vec![1; ticks.len()];
    }
    let weight = |number: usize| time((number + 1).min(last)) - time(number.saturating_sub(1));
    (0..ticks.len()).map(weight).collect()
}

/// A series that has rows.
pub(crate) fn non_empty(series: Option<&Series>) -> Option<&Series> {
    series.filter(|series| !series.at.is_empty())
}

/// The largest slab bytes that are believed: 2^52, the physical address space of x86-64 and arm64.
const MOST_BYTES: u128 = 1 << 52;

/// One cache at one tick, or at several on end that say the same, in whole objects, slabs and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlabRow {
    /// Index into [`Recording::caches`](SlabRecording::caches).
    pub cache: usize,
    /// Its first tick: index into [`Recording::ticks`](SlabRecording::ticks).
    pub tick: usize,
    /// Its last tick: it stood unchanged at all of them in between.
    pub last: usize,
    /// Objects in use, as far as the kernel knows (`active_objs`).
    pub objects: u64,
    /// Slots (`num_objs`).
    pub total_objects: u64,
    /// Slabs (`num_slabs`).
    pub slabs: u64,
    /// Padded bytes of a slot (`objsize`).
    pub slab_size: u64,
    /// Slots of a slab of the preferred order (`objperslab`).
    pub objs_per_slab: u64,
    /// Bytes of a slab: `pagesperslab` * page size.
    pub bytes_per_slab: u64,
    /// Bytes asked for by the creator, where known.
    pub object_size: Option<u64>,
    /// Most objects that may be free although counted in `objects`, where there is a bound.
    pub hidden_objects: Option<u64>,
    /// Marks.
    pub flags: SlabRowFlags,
}

impl SlabRow {
    /// Whether its bytes could exist.
    pub(crate) fn is_believable(&self) -> bool {
        let slots = wide_product(self.total_objects.max(self.objects), self.slab_size);
        wide_product(self.slabs, self.bytes_per_slab) <= MOST_BYTES && slots <= MOST_BYTES
    }

    /// Adds the marks that follow from the counts themselves.
    pub(crate) fn with_count_flags(mut self) -> Self {
        let room = wide_product(self.slabs, self.objs_per_slab);
        let total = u128::from(self.total_objects);
        let counts = SlabCounts {
            in_use: self.objects,
            objects: self.total_objects,
            per_slab: self.objs_per_slab,
            active_slabs: None,
            slabs: self.slabs,
        };
        self.flags.torn |= matches!(counts.consistency(), CountConsistency::Torn(_));
        self.flags.smaller_slabs = total < room;
        self
    }

    /// At how many ticks it stood.
    #[must_use]
    pub fn tick_count(&self) -> usize {
        self.ticks().len()
    }

    /// The ticks at which it stood.
    #[must_use]
    pub fn ticks(&self) -> Range<usize> {
        self.tick..self.last + 1
    }

    /// Its bytes, by the formulas of [`SlabUsage`].
    #[must_use]
    pub fn usage(&self) -> SlabUsage {
        let size = self.object_size.unwrap_or(self.slab_size);
        let slab_bytes = wide_product(self.slabs, self.bytes_per_slab);
        let slot_bytes = wide_product(self.total_objects, self.slab_size);
        let hidden = self.hidden_objects.map(|hidden| wide_product(hidden.min(self.objects), size));
        SlabUsage {
            slab_bytes,
            slot_bytes,
            object_bytes: wide_product(self.total_objects, size),
            used_bytes: wide_product(self.objects, size),
            unknown_slot_bytes: if self.object_size.is_none() { slot_bytes } else { 0 },
            hidden_bytes: hidden.unwrap_or(0),
            unbounded_slab_bytes: if hidden.is_none() { slab_bytes } else { 0 },
        }
    }
}

/// Two factors of 64 bits always fit.
fn wide_product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

/// Marks on one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SlabRowFlags {
    /// Its counts were not taken at one instant: more objects than slots, or more slots than its slabs hold.
    pub torn: bool,
    /// The kernel extrapolated `active_objs` (more than 10,000 partial slabs on a node, 6.12 and later).
    pub approximate: bool,
    /// The source marked a field of it as broken.
    pub malformed: bool,
    /// Fewer slots than slabs * objs_per_slab: some slabs are of a smaller order, S is an upper bound.
    pub smaller_slabs: bool,
}

impl SlabRowFlags {
    /// Reads the `flags` column; unknown words count as malformed.
    pub(crate) fn parse(text: &str) -> Self {
        let mut flags = SlabRowFlags::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "torn" => flags.torn = true,
                "approximate" => flags.approximate = true,
                _ => flags.malformed = true,
            }
        }
        flags
    }

    /// Whether any mark makes the row's numbers doubtful; smaller slabs are no doubt, but a fact.
    #[must_use]
    pub fn is_doubtful(self) -> bool {
        self.torn || self.approximate || self.malformed
    }
}

/// What became of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SlabRowCounts {
    /// Rows of the series.
    pub read: usize,
    /// Rows that every sum contains, flagged ones among them.
    pub used: usize,
    /// Rows that cannot be used: a count is missing, below zero, or larger than any memory.
    pub unusable: usize,
    /// Used rows with a mark of doubt.
    pub flagged: usize,
    /// Used rows marked torn.
    pub torn: usize,
    /// Used rows marked approximate.
    pub approximate: usize,
    /// Used rows marked malformed.
    pub malformed: usize,
    /// Used rows with slabs of a smaller order.
    pub smaller_slabs: usize,
    /// Used rows of caches without slabs: they hold 0 bytes and have no efficiency.
    pub empty: usize,
}

impl SlabRowCounts {
    /// Counts as many rows that say the same; nothing stands for unusable ones.
    pub(crate) fn count_row(&mut self, row: Option<(SlabRowFlags, bool)>, times: usize) {
        self.read += times;
        let Some((flags, empty)) = row else {
            self.unusable += times;
            return;
        };
        self.used += times;
        self.flagged += times * usize::from(flags.is_doubtful());
        self.torn += times * usize::from(flags.torn);
        self.approximate += times * usize::from(flags.approximate);
        self.malformed += times * usize::from(flags.malformed);
        self.smaller_slabs += times * usize::from(flags.smaller_slabs);
        self.empty += times * usize::from(empty);
    }
}

/// The series of one run, each optional; column names as in `docs/format.md`.
#[derive(Debug, Clone, Copy, Default)]
pub struct SlabInput<'a> {
    /// `slabinfo`: one row a cache a tick.
    pub slabinfo: Option<&'a RowRuns>,
    /// `slab-caches`: static attributes from /sys/kernel/slab.
    pub caches: Option<&'a Series>,
    /// `slab-exact`: exact counts from /sys/kernel/slab, on a slow clock.
    pub exact: Option<&'a Series>,
    /// `meminfo`, for the residual.
    pub meminfo: Option<&'a Series>,
    /// `slabinfo-tool`: what the kernel's slabinfo tool printed (imports only).
    pub tool: Option<&'a Series>,
    /// What the target is.
    pub system: SlabFacts,
    /// What happened when: marks on every timeline.
    pub record: Option<&'a RunRecord>,
}

impl SlabInput<'_> {
    /// The run's phases, in order of time; none without a record.
    #[must_use]
    pub fn iteration_spans(&self) -> Vec<IterationSpan> {
        self.record.map(iteration_spans).unwrap_or_default()
    }

    /// When the first iteration began and the last one ended.
    #[must_use]
    pub fn busy_span(&self) -> Option<(Nanos, Nanos)> {
        let phases = self.iteration_spans();
        Some((phases.iter().map(|phase| phase.start).min()?, phases.iter().map(|phase| phase.end).max()?))
    }
}

/// One iteration on the clock of the series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IterationSpan {
    /// The case in one line; `warm-up` before it where it was not measured.
    pub name: String,
    /// Which iteration of its case, from 0.
    pub iteration: u32,
    /// When its process was started, CLOCK_MONOTONIC.
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
}

/// The iterations of a run, in order of time.
#[must_use]
pub fn iteration_spans(record: &RunRecord) -> Vec<IterationSpan> {
    let plan = &record.manifest.plan;
    let phase = |iteration: &perflab_model::IterationRecord| {
        let slot = plan.slots.get(iteration.slot as usize);
        let case = slot.and_then(|slot| plan.case(slot.case));
        let label = case.map_or_else(|| format!("iteration {}", iteration.slot), |case| case.label());
        let warmup = slot.is_some_and(|slot| slot.warmup);
        IterationSpan {
            name: if warmup { format!("warm-up {label}") } else { label },
            iteration: slot.map_or(iteration.slot, |slot| slot.iteration),
            start: iteration.start,
            end: iteration.end,
        }
    };
    let mut found: Vec<IterationSpan> = record.iterations.iter().map(phase).collect();
    found.sort_by_key(|phase| phase.start);
    found
}

/// Why slabs cannot be analysed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SlabError {
    /// The run has no rows of the kind that the question is about.
    #[error("no rows of `{monitor}` in this run: {hint}")]
    NoRows {
        /// The monitor.
        monitor: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// Nothing says how large a page is.
    #[error(
        "page size unknown: neither a `page_size` of `slab-caches` nor the fact `memory.page_size` is there"
    )]
    NoPageSize,
    /// Scans of one run disagree.
    #[error("mixed page sizes in one run: {}", list_sizes(sizes))]
    MixedPageSizes {
        /// All of them, bytes.
        sizes: Vec<u64>,
    },
    /// No cache of that name.
    #[error("no cache `{name}`{}", suggest_names(near))]
    UnknownCache {
        /// What was asked for.
        name: String,
        /// Names like it.
        near: Vec<String>,
    },
    /// A layout that cannot be.
    #[error("{what}")]
    Layout {
        /// Why not.
        what: String,
    },
    /// What stands in the way of a comparison.
    #[error(transparent)]
    Compare(#[from] AnalyzeError),
    /// A statistic without an answer.
    #[error("{subject}: {source}")]
    Statistic {
        /// Of what.
        subject: String,
        /// Why.
        source: StatsError,
    },
}

impl Classify for SlabError {
    fn class(&self) -> ErrorClass {
        match self {
            SlabError::NoRows { .. }
            | SlabError::NoPageSize
            | SlabError::MixedPageSizes { .. }
            | SlabError::UnknownCache { .. }
            | SlabError::Layout { .. }
            | SlabError::Statistic { .. } => ErrorClass::Usage,
            SlabError::Compare(error) => error.class(),
        }
    }
}

fn list_sizes(sizes: &[u64]) -> String {
    sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

fn suggest_names(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}
