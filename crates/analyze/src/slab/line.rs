//! Owns one line of the table while rows are added to it. It refuses a layout that its caches do not share.

use perflab_model::Nanos;

use super::mean::Unweighted;
use super::recording::Elapsed;
use super::row::Observed;
use super::show::CacheLine;
use super::usage::Usage;

/// A line while rows are added, in order of their first ticks.
pub(super) struct Running {
    line: CacheLine,
    layout: Layout,
    /// The rows that stand at the tick that is reached: each with its last one.
    standing: Vec<(usize, Usage)>,
    /// The tick that is reached: all before it are in the sums.
    reached: usize,
    unweighted: Unweighted,
}

/// The ticks of a run.
pub(super) struct Clock<'a> {
    pub(super) ticks: &'a [Nanos],
    pub(super) elapsed: Elapsed,
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
        let (layout, standing) = (Layout::default(), Vec::new());
        Running { line, layout, standing, reached: 0, unweighted: Unweighted::default() }
    }

    pub(super) fn add(&mut self, row: &Observed, usage: &Usage, clock: &Clock) {
        self.advance(row.tick, clock);
        self.standing.push((row.last, *usage));
        self.line.flagged += row.times() * usize::from(row.flags.any());
        self.layout.object_size.see(row.object_size);
        self.layout.slab_size.see(Some(row.slab_size));
        self.layout.objs_per_slab.see(Some(row.objs_per_slab));
        self.layout.bytes_per_slab.see(Some(row.bytes_per_slab));
    }

    /// Adds up the ticks before `tick`, as many at once as have the same rows.
    fn advance(&mut self, tick: usize, clock: &Clock) {
        while self.reached < tick {
            let first_end = self.standing.iter().map(|(last, _)| last + 1).min();
            let end = first_end.unwrap_or(tick).min(tick);
            self.stretch(end, clock);
            self.standing.retain(|(last, _)| *last >= end);
            self.reached = end;
        }
    }

    /// Adds up the ticks from the one that is reached up to `end`.
    fn stretch(&mut self, end: usize, clock: &Clock) {
        if self.standing.is_empty() {
            return;
        }
        let mut now = Usage::default();
        self.standing.iter().for_each(|(_, usage)| now.add(usage));
        let times = end - self.reached;
        self.line.ticks += times;
        self.line.mean.add(&now, clock.elapsed.of(self.reached..end));
        self.unweighted.add(now.overall(), times);
        if now.slab_bytes > self.line.peak_bytes {
            self.line.peak_bytes = now.slab_bytes;
            self.line.peak_at = clock.ticks.get(self.reached).copied().unwrap_or_default();
        }
        if end == clock.ticks.len() {
            self.line.end = now;
        }
    }

    pub(super) fn finished(mut self, clock: &Clock) -> CacheLine {
        self.advance(clock.ticks.len(), clock);
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
