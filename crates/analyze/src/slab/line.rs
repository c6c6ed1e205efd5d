//! Owns one line of the table while rows are added to it. It refuses a layout that its caches do not share.

use perflab_model::Nanos;

use super::mean::Unweighted;
use super::row::Observed;
use super::show::CacheLine;
use super::usage::Usage;

/// A line while rows are added.
pub(super) struct Running {
    line: CacheLine,
    layout: Layout,
    tick: Option<usize>,
    now: Usage,
    unweighted: Unweighted,
}

/// What is the same for all rows of a line so far.
#[derive(Default)]
struct Layout {
    object_size: Same,
    slab_size: Same,
    objs_per_slab: Same,
    bytes_per_slab: Same,
}

#[derive(Default, Clone, Copy)]
enum Same {
    #[default]
    Unseen,
    One(Option<u64>),
    Several,
}

impl Same {
    fn see(&mut self, value: Option<u64>) {
        *self = match *self {
            Same::Unseen => Same::One(value),
            Same::One(known) if known == value => Same::One(known),
            _ => Same::Several,
        };
    }

    fn value(self) -> Option<u64> {
        if let Same::One(value) = self { value } else { None }
    }
}

impl Running {
    pub(super) fn new(mut line: CacheLine, weight: u128) -> Self {
        line.mean.weight = weight;
        let (layout, now) = (Layout::default(), Usage::default());
        Running { line, layout, tick: None, now, unweighted: Unweighted::default() }
    }

    pub(super) fn add(&mut self, row: &Observed, usage: &Usage, weights: &[u128], ticks: &[Nanos]) {
        if self.tick != Some(row.tick) {
            self.close(weights, ticks);
            self.tick = Some(row.tick);
            self.line.ticks += 1;
        }
        self.now.add(usage);
        self.line.flagged += usize::from(row.flags.any());
        self.layout.object_size.see(row.object_size);
        self.layout.slab_size.see(Some(row.slab_size));
        self.layout.objs_per_slab.see(Some(row.objs_per_slab));
        self.layout.bytes_per_slab.see(Some(row.bytes_per_slab));
    }

    /// Ends the tick that is under way.
    fn close(&mut self, weights: &[u128], ticks: &[Nanos]) {
        let Some(tick) = self.tick else { return };
        self.line.mean.add(&self.now, weights.get(tick).copied().unwrap_or_default());
        self.unweighted.add(self.now.overall());
        if self.now.slab_bytes > self.line.peak_bytes {
            self.line.peak_bytes = self.now.slab_bytes;
            self.line.peak_at = ticks.get(tick).copied().unwrap_or_default();
        }
        self.line.end = std::mem::take(&mut self.now);
    }

    pub(super) fn finished(mut self, last: usize, weights: &[u128], ticks: &[Nanos]) -> CacheLine {
        self.close(weights, ticks);
        if self.tick != Some(last) {
            self.line.end = Usage::default();
        }
        CacheLine {
            unweighted: self.unweighted.mean(),
            object_size: self.layout.object_size.value(),
            slab_size: self.layout.slab_size.value(),
            objs_per_slab: self.layout.objs_per_slab.value(),
            bytes_per_slab: self.layout.bytes_per_slab.value(),
            ..self.line
        }
    }
}
