//! Owns one line of the table while rows are added to it. It refuses a layout that its caches do not share.

use perflab_model::Nanos;

use super::mean::UnweightedMean;
use super::recording::ElapsedWeights;
use super::row::SlabRow;
use super::show::CacheRow;
use super::usage::SlabUsage;

/// A line while rows are added, in order of their first ticks.
pub(super) struct CacheRowBuilder {
    line: CacheRow,
    layout: CommonLayout,
    /// The rows that stand at the tick that is reached: each with its last one.
    standing: Vec<(usize, SlabUsage)>,
    /// The tick that is reached: all before it are in the sums.
    reached: usize,
    unweighted: UnweightedMean,
}

/// The ticks of a run.
pub(super) struct TickClock<'a> {
    pub(super) ticks: &'a [Nanos],
    pub(super) elapsed: ElapsedWeights,
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
    pub(super) fn new(mut line: CacheRow, weight: u128) -> Self {
        line.mean.weight = weight;
        let (layout, standing) = (CommonLayout::default(), Vec::new());
        CacheRowBuilder { line, layout, standing, reached: 0, unweighted: UnweightedMean::default() }
    }

    pub(super) fn add_row(&mut self, row: &SlabRow, usage: &SlabUsage, clock: &TickClock) {
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

    pub(super) fn finish(mut self, clock: &TickClock) -> CacheRow {
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
