//! Owns the table of caches: bytes, where they went, and who is worst. It refuses to cut the list: whoever prints it
//! does.

use std::collections::HashMap;

use perflab_model::Nanos;
use serde::Serialize;

use super::class::size_class;
use super::counts::SlabRowCounts;
use super::line::{CacheRowBuilder, TickClock};
use super::mean::{UnweightedMean, UsageIntegral};
use super::ratio::serialize_unsigned;
use super::recording::{SlabCache, SlabRecording};
use super::usage::SlabUsage;

/// How to show caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheTableOptions {
    /// kmalloc's families become one line a size class.
    pub fold_kmalloc: bool,
}

/// Which line comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheOrder {
    /// most bytes wasted on average
    #[default]
    Waste,
    /// lowest efficiency, integrated over time
    Efficiency,
    /// lowest unweighted mean of the ticks' efficiencies
    Unweighted,
    /// most slab bytes on average
    Bytes,
    /// by name
    Name,
}

/// All caches of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheTable {
    /// First tick.
    pub from: Nanos,
    /// Last tick.
    pub to: Nanos,
    /// Ticks.
    pub ticks: usize,
    /// Bytes of a page.
    pub page_size: u64,
    /// Rows read, used, flagged.
    pub rows: SlabRowCounts,
    /// All caches together, on average over time.
    pub total: UsageIntegral,
    /// All caches together at the last tick.
    pub end: SlabUsage,
    /// Mean of the efficiencies of all rows, each row alike: no memory quantity, see [`CacheOrder::UnweightedMean`].
    pub unweighted: Option<f64>,
    /// Caches whose slabs the kernel can reclaim, on average over time.
    pub reclaimable: UsageIntegral,
    /// Caches whose slabs it cannot.
    pub unreclaimable: UsageIntegral,
    /// Caches of which that is not known.
    pub unknown: UsageIntegral,
    /// One line a cache (or class), most bytes wasted first.
    pub caches: Vec<CacheRow>,
}

/// One cache, one group of merged caches, or one size class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheRow {
    /// Its name in /proc/slabinfo (`name#2` for a repeated one), or the class.
    pub name: String,
    /// The caches folded into this line; one unless it is a class.
    pub caches: Vec<String>,
    /// All names that share its slabs: the group of merged caches.
    pub members: Vec<String>,
    /// Bytes asked for by the creator; null where unknown or not the same for all of a class.
    pub object_size: Option<u64>,
    /// Padded bytes of a slot; null where not the same.
    pub slab_size: Option<u64>,
    /// Slots of a slab; null where not the same.
    pub objs_per_slab: Option<u64>,
    /// Bytes of a slab; null where not the same.
    pub bytes_per_slab: Option<u64>,
    /// Whether its slabs count as reclaimable; null where unknown or mixed.
    pub reclaimable: Option<bool>,
    /// Ticks at which it was there.
    pub ticks: usize,
    /// Its rows with a mark of doubt.
    pub flagged: usize,
    /// On average over the whole run.
    pub mean: UsageIntegral,
    /// Mean of its efficiencies over its ticks with slabs.
    pub unweighted: Option<f64>,
    /// At the run's last tick: nothing where it is gone.
    pub end: SlabUsage,
    /// Largest S, bytes.
    #[serde(serialize_with = "serialize_unsigned")]
    pub peak_bytes: u128,
    /// When that was first reached.
    pub peak_at: Nanos,
}

impl CacheTable {
    /// The lines in another order; ties by name. Caches that never had a slab come last when sorted by efficiency.
    #[must_use]
    pub fn sorted_rows(&self, order: CacheOrder) -> Vec<&CacheRow> {
        let mut lines: Vec<&CacheRow> = self.caches.iter().collect();
        let falling = |value: fn(&CacheRow) -> f64| {
            move |a: &&CacheRow, b: &&CacheRow| {
                value(b).total_cmp(&value(a)).then_with(|| a.name.cmp(&b.name))
            }
        };
        let efficiency = |line: &CacheRow| -line.mean.overall().value().unwrap_or(f64::INFINITY);
        match order {
            CacheOrder::Waste => lines.sort_by(falling(|line| line.mean.wasted_bytes())),
            CacheOrder::Bytes => lines.sort_by(falling(|line| line.mean.slab_bytes())),
            CacheOrder::Efficiency => lines.sort_by(falling(efficiency)),
            CacheOrder::Unweighted => {
                lines.sort_by(falling(|line| -line.unweighted.unwrap_or(f64::INFINITY)))
            }
            CacheOrder::Name => lines.sort_by(|a, b| a.name.cmp(&b.name)),
        }
        lines
    }
}

/// Makes the table.
#[must_use]
pub fn cache_table(recording: &SlabRecording, options: &CacheTableOptions) -> CacheTable {
    let ticks = recording.ticks();
    let clock = TickClock { ticks, elapsed: recording.elapsed_weights() };
    let weight = clock.elapsed.weight_of(0..ticks.len());
    let (lines, line_of) = group_caches(recording, options);
    let mut lines: Vec<CacheRowBuilder> =
        lines.into_iter().map(|line| CacheRowBuilder::new(line, weight)).collect();
    let mut unweighted = UnweightedMean::default();
    for row in recording.rows() {
        let usage = row.usage();
        unweighted.add(usage.overall(), row.tick_count());
        let line = line_of.get(row.cache).and_then(|line| lines.get_mut(*line));
        if let Some(line) = line {
            line.add_row(row, &usage, &clock);
        }
    }
    let mut caches: Vec<CacheRow> = lines.into_iter().map(|line| line.finish(&clock)).collect();
    caches.sort_by(|a, b| {
        b.mean.wasted_bytes().total_cmp(&a.mean.wasted_bytes()).then_with(|| a.name.cmp(&b.name))
    });
    let of = |wanted: &dyn Fn(&CacheRow) -> bool| sum_usage(&caches, weight, wanted);
    CacheTable {
        from: ticks.first().copied().unwrap_or_default(),
        to: ticks.last().copied().unwrap_or_default(),
        ticks: ticks.len(),
        page_size: recording.page_size(),
        rows: recording.counts(),
        total: of(&|_| true),
        reclaimable: of(&|line| line.reclaimable == Some(true)),
        unreclaimable: of(&|line| line.reclaimable == Some(false)),
        unknown: of(&|line| line.reclaimable.is_none()),
        end: caches.iter().fold(SlabUsage::default(), |mut sum, line| {
            sum.add(&line.end);
            sum
        }),
        unweighted: unweighted.mean(),
        caches,
    }
}

fn sum_usage(lines: &[CacheRow], weight: u128, wanted: &dyn Fn(&CacheRow) -> bool) -> UsageIntegral {
    let mut sum = UsageIntegral { weight, ..UsageIntegral::default() };
    lines.iter().filter(|line| wanted(line)).for_each(|line| sum.usage.add(&line.mean.usage));
    sum
}

/// The empty lines, and the line of each cache.
fn group_caches(recording: &SlabRecording, options: &CacheTableOptions) -> (Vec<CacheRow>, Vec<usize>) {
    let mut lines: Vec<CacheRow> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let line_of = recording.caches().iter().map(|cache| {
        let class = if options.fold_kmalloc { size_class(&cache.name) } else { None };
        let name = class.unwrap_or_else(|| cache.label());
        let line = *known.entry(name.clone()).or_insert(lines.len());
        match lines.get_mut(line) {
            Some(line) => line.add_member(cache),
            None => lines.push(CacheRow::from_cache(name, cache)),
        }
        line
    });
    let line_of = line_of.collect();
    (lines, line_of)
}

impl CacheRow {
    fn from_cache(name: String, cache: &SlabCache) -> Self {
        CacheRow {
            name,
            caches: vec![cache.label()],
            members: cache.members(),
            object_size: None,
            slab_size: None,
            objs_per_slab: None,
            bytes_per_slab: None,
            reclaimable: is_reclaimable(cache),
            ticks: 0,
            flagged: 0,
            mean: UsageIntegral::default(),
            unweighted: None,
            end: SlabUsage::default(),
            peak_bytes: 0,
            peak_at: Nanos(0),
        }
    }

    fn add_member(&mut self, cache: &SlabCache) {
        self.caches.push(cache.label());
        self.members.extend(cache.members());
        if self.reclaimable != is_reclaimable(cache) {
            self.reclaimable = None;
        }
    }
}

fn is_reclaimable(cache: &SlabCache) -> Option<bool> {
    cache.attributes.as_ref()?.reclaimable
}
