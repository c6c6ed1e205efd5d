//! The table of caches, folded and sorted, and the histogram of their efficiencies.
//!
//! kmalloc's families are folded into size classes; buckets of other names (`msg_msg-64`) are caches of their own use.
//! A row that stands for several caches has a layout only where they share it. The histogram is by rows and by bytes;
//! torn rows above 100 % and caches without slabs are counted beside the bins.

use std::collections::HashMap;

use perflab_model::Nanos;
use perflab_model::named::Named;
use serde::Serialize;

use crate::slab::recording::{ElapsedWeights, SlabCache, SlabRecording, SlabRow, SlabRowCounts};
use crate::slab::usage::{SlabUsage, UnweightedMean, UsageIntegral, saturating_product, serialize_unsigned};

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

impl Named for CacheOrder {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (CacheOrder::Waste, "wasted", "most bytes wasted first"),
        (CacheOrder::Efficiency, "efficiency", "lowest efficiency first, integrated over time"),
        (
            CacheOrder::Unweighted,
            "unweighted",
            "lowest mean of the ticks' efficiencies first, each tick alike",
        ),
        (CacheOrder::Bytes, "bytes", "most slab bytes first"),
        (CacheOrder::Name, "name", "by name"),
    ];
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
    /// Mean of the efficiencies of all rows, each row alike: no memory quantity, see [`CacheOrder::Unweighted`].
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
    let of = |requested: &dyn Fn(&CacheRow) -> bool| sum_usage(&caches, weight, requested);
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

fn sum_usage(lines: &[CacheRow], weight: u128, requested: &dyn Fn(&CacheRow) -> bool) -> UsageIntegral {
    let mut sum = UsageIntegral { weight, ..UsageIntegral::default() };
    lines.iter().filter(|line| requested(line)).for_each(|line| sum.usage.add(&line.mean.usage));
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

/// A line while rows are added, in order of their first ticks.
struct CacheRowBuilder {
    line: CacheRow,
    layout: CommonLayout,
    /// The rows that stand at the tick that is reached: each with its last one.
    standing: Vec<(usize, SlabUsage)>,
    /// The tick that is reached: all before it are in the sums.
    reached: usize,
    unweighted: UnweightedMean,
}

/// The ticks of a run.
struct TickClock<'a> {
    pub(crate) ticks: &'a [Nanos],
    elapsed: ElapsedWeights,
}

/// What is the same for all rows of a line so far.
#[derive(Default)]
struct CommonLayout {
    object_size: CommonValue,
    slab_size: CommonValue,
    objs_per_slab: CommonValue,
    bytes_per_slab: CommonValue,
}

#[derive(Default, Clone, Copy)]
enum CommonValue {
    #[default]
    Unseen,
    One(Option<u64>),
    Several,
}

impl CommonValue {
    fn observe(&mut self, value: Option<u64>) {
        *self = match *self {
            CommonValue::Unseen => CommonValue::One(value),
            CommonValue::One(known) if known == value => CommonValue::One(known),
            _ => CommonValue::Several,
        };
    }

    fn value(self) -> Option<u64> {
        if let CommonValue::One(value) = self { value } else { None }
    }
}

impl CacheRowBuilder {
    pub(crate) fn new(mut line: CacheRow, weight: u128) -> Self {
        line.mean.weight = weight;
        let (layout, standing) = (CommonLayout::default(), Vec::new());
        CacheRowBuilder { line, layout, standing, reached: 0, unweighted: UnweightedMean::default() }
    }

    pub(crate) fn add_row(&mut self, row: &SlabRow, usage: &SlabUsage, clock: &TickClock) {
        self.advance_to(row.tick, clock);
        self.standing.push((row.last, *usage));
        self.line.flagged += row.tick_count() * usize::from(row.flags.is_doubtful());
        self.layout.object_size.observe(row.object_size);
        self.layout.slab_size.observe(Some(row.slab_size));
        self.layout.objs_per_slab.observe(Some(row.objs_per_slab));
        self.layout.bytes_per_slab.observe(Some(row.bytes_per_slab));
    }

    /// Adds up the ticks before `tick`, as many at once as have the same rows.
    fn advance_to(&mut self, tick: usize, clock: &TickClock) {
        while self.reached < tick {
            let first_end = self.standing.iter().map(|(last, _)| last + 1).min();
            let end = first_end.unwrap_or(tick).min(tick);
            self.add_ticks(end, clock);
            self.standing.retain(|(last, _)| *last >= end);
            self.reached = end;
        }
    }

    /// Adds up the ticks from the one that is reached up to `end`.
    fn add_ticks(&mut self, end: usize, clock: &TickClock) {
        if self.standing.is_empty() {
            return;
        }
        let mut now = SlabUsage::default();
        self.standing.iter().for_each(|(_, usage)| now.add(usage));
        let times = end - self.reached;
        self.line.ticks += times;
        self.line.mean.add(&now, clock.elapsed.weight_of(self.reached..end));
        self.unweighted.add(now.overall(), times);
        if now.slab_bytes > self.line.peak_bytes {
            self.line.peak_bytes = now.slab_bytes;
            self.line.peak_at = clock.ticks.get(self.reached).copied().unwrap_or_default();
        }
        if end == clock.ticks.len() {
            self.line.end = now;
        }
    }

    fn finish(mut self, clock: &TickClock) -> CacheRow {
        self.advance_to(clock.ticks.len(), clock);
        CacheRow {
            unweighted: self.unweighted.mean(),
            object_size: self.layout.object_size.value(),
            slab_size: self.layout.slab_size.value(),
            objs_per_slab: self.layout.objs_per_slab.value(),
            bytes_per_slab: self.layout.bytes_per_slab.value(),
            ..self.line
        }
    }
}

/// The size class of a kmalloc cache of any family (`kmalloc-1k`, `kmalloc-cg-1k`, `kmalloc-rcl-1k`,
/// `kmalloc-rnd-07-1k`, `dma-kmalloc-1k`): `kmalloc-1k`. Nothing for other caches.
#[must_use]
pub fn size_class(name: &str) -> Option<String> {
    let family = name.strip_prefix("dma-").unwrap_or(name).strip_prefix("kmalloc-")?;
    let size = family.rsplit('-').next()?;
    let digits = size.trim_end_matches(['k', 'M']);
    let is_size = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_size.then(|| format!("kmalloc-{size}"))
}

/// Efficiencies (U / S) of all rows in equal bins from 0 to 100 %.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EfficiencyHistogram {
    /// From 0 to 100 %; the last contains 100 % itself.
    pub bins: Vec<EfficiencyBin>,
    /// Rows above 100 %: torn.
    pub above: EfficiencyBin,
    /// Rows of caches without slabs, which have no efficiency.
    pub empty_rows: usize,
}

/// Rows whose efficiency lies in [low, high).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EfficiencyBin {
    /// Lower limit, per cent.
    pub low: f64,
    /// Upper limit, per cent; null for no limit.
    pub high: Option<f64>,
    /// Rows: one a cache a tick.
    pub rows: usize,
    /// Slab bytes of these rows, on average over the run's time.
    pub bytes: f64,
}

/// Makes the histogram with that many bins, at least one.
#[must_use]
pub fn efficiency_histogram(recording: &SlabRecording, bins: usize) -> EfficiencyHistogram {
    let count = bins.max(1);
    let elapsed = recording.elapsed_weights();
    let all = elapsed.weight_of(0..recording.ticks().len());
    let mut found = vec![(0_usize, 0_u128); count + 1];
    let mut empty_rows = 0;
    for row in recording.rows() {
        let usage = row.usage();
        let Some(number) = bin_of(&usage, count) else {
            empty_rows += row.tick_count();
            continue;
        };
        if let Some((rows, bytes)) = found.get_mut(number) {
            *rows += row.tick_count();
            *bytes =
                bytes.saturating_add(saturating_product(usage.slab_bytes, elapsed.weight_of(row.ticks())));
        }
    }
    let limit = |number: usize| 100.0 * number as f64 / count as f64;
    let bin = |(number, (rows, bytes)): (usize, (usize, u128))| {
        let high = (number < count).then(|| limit(number + 1));
        EfficiencyBin { low: limit(number), high, rows, bytes: bytes as f64 / all.max(1) as f64 }
    };
    let mut bins: Vec<EfficiencyBin> = found.into_iter().enumerate().map(bin).collect();
    let above = bins.pop().unwrap_or(EfficiencyBin { low: 100.0, high: None, rows: 0, bytes: 0.0 });
    EfficiencyHistogram { bins, above, empty_rows }
}

/// The bin in integers, so that a limit belongs to one side on every machine; `count` stands for above 100 %.
fn bin_of(usage: &SlabUsage, count: usize) -> Option<usize> {
    let exact = usage.used_bytes.checked_mul(count as u128)?.checked_div(usage.slab_bytes)?;
    let number = usize::try_from(exact).unwrap_or(count);
    match usage.used_bytes == usage.slab_bytes {
        true => Some(count - 1),
        false => Some(number.min(count)),
    }
}
