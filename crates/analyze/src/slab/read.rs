//! Owns the reading of rows into a [`Recording`], column by column. It refuses to drop a row without counting it.

use std::borrow::Cow;
use std::ops::Range;

use perflab_model::Nanos;
use perflab_model::series::Spans;

use super::attributes::{Attributes, Scans, holding};
use super::counts::RowCounts;
use super::error::SlabError;
use super::held::{Held, cpu_slabs};
use super::hidden::Hidden;
use super::input::Input;
use super::names::Names;
use super::recording::{Recording, with_rows};
use super::row::Observed;
use super::source::Source;

/// What a reading goes through once.
pub(super) struct Reading<'a> {
    input: &'a Input<'a>,
    spans: &'a Spans,
    source: Source<'a>,
    scans: Scans,
    held: Held,
    page_size: u64,
}

/// The rows of a run: from /proc, or where that was not read, from sysfs.
pub(super) fn rows<'a>(input: &Input<'a>) -> Result<Cow<'a, Spans>, SlabError> {
    let hint = "record with `perflab slab record` as root, or import a log";
    let none = SlabError::NoRows { monitor: "slabinfo", hint };
    match input.slabinfo.filter(|spans| spans.rows() > 0) {
        Some(spans) => Ok(Cow::Borrowed(spans)),
        None => with_rows(input.exact).map(|series| Cow::Owned(Spans::of(series))).ok_or(none),
    }
}

impl<'a> Reading<'a> {
    pub(super) fn of(input: &'a Input<'a>, spans: &'a Spans) -> Result<Self, SlabError> {
        let source = match input.slabinfo.filter(|spans| spans.rows() > 0) {
            Some(_) => Source::proc(&spans.series),
            None => Source::exact(&spans.series),
        };
        let page_size = input.page_size()?;
        let scans = Scans::read(input.caches, input.tool);
        let held = Held::read(input.exact, input.tool);
        Ok(Reading { input, spans, source, scans, held, page_size })
    }

    pub(super) fn recording(self) -> Recording {
        let mut names = Names::default();
        let mut rows: Vec<Observed> = Vec::new();
        let mut counts = RowCounts::default();
        let mut known: Vec<Known> = Vec::new();
        for row in (0..self.spans.series.at.len()).filter(|row| self.source.is_row(*row)) {
            let span = self.spans.span(row);
            let Some(name) = self.source.name(row) else {
                counts.count(None, span.len());
                continue;
            };
            let place = self.spans.place.get(row).map_or(0, |place| *place as usize);
            let cache = names.number(name, place, &span);
            if cache == known.len() {
                known.push(self.known(names.name(cache)));
            }
            let Some(known) = known.get(cache) else { continue };
            self.stretches(row, span, known, |found, times| {
                counts.count(found.map(|found| (found.flags, found.slabs == 0)), times);
                rows.extend(found.map(|found| Observed { cache, ..found }));
            });
        }
        rows.sort_by_key(|row| row.tick);
        let ticks = self.spans.ticks.clone();
        let caches = names.caches(&rows, &ticks, &self.scans);
        let (system, phases) = (self.input.system, self.input.phases());
        Recording { caches, ticks, rows, counts, page_size: self.page_size, system, phases }
    }

    /// Looked up once a cache, not once a row.
    fn known(&self, name: &str) -> Known<'_> {
        Known { scans: self.scans.of(name), held: self.held.of(name) }
    }

    /// Hands on a row for all its ticks; in several stretches, where what other series know of its cache changed
    /// meanwhile. Nothing stands for a row that cannot be used.
    fn stretches(
        &self,
        row: usize,
        span: Range<usize>,
        known: &Known,
        mut take: impl FnMut(Option<Observed>, usize),
    ) {
        let mut stretch: Option<(Option<Observed>, Range<usize>)> = None;
        let mut begin = span.start;
        while begin < span.end {
            let now = self.spans.ticks.get(begin).copied().unwrap_or_default();
            let ticks = self.spans.ticks.get(begin + 1..span.end).unwrap_or_default();
            let news = known.next(now);
            let end = begin + 1 + news.map_or(ticks.len(), |news| ticks.partition_point(|tick| *tick < news));
            let found = self.row(row, known, now);
            stretch = Some(match stretch {
                Some((before, range)) if before == found => (found, range.start..end),
                before => {
                    hand_on(before, &mut take);
                    (found, begin..end)
                }
            });
            begin = end;
        }
        hand_on(stretch, &mut take);
    }

    fn row(&self, row: usize, known: &Known, now: Nanos) -> Option<Observed> {
        let counted = self.source.counted(row, || holding(known.scans, now, None))?;
        let attributes = holding(known.scans, now, Some(counted.slab_size));
        let hidden = Hidden {
            cpu_slabs: cpu_slabs(known.held, now),
            cpu_partial: attributes.and_then(|attributes| attributes.cpu_partial),
            sheaf_capacity: attributes.and_then(|attributes| attributes.sheaf_capacity),
        };
        let found = Observed {
            cache: 0,
            tick: 0,
            last: 0,
            objects: counted.objects,
            total_objects: counted.total_objects,
            slabs: counted.slabs,
            slab_size: counted.slab_size,
            objs_per_slab: counted.objs_per_slab,
            bytes_per_slab: counted.pages_per_slab.checked_mul(self.page_size)?,
            object_size: attributes.and_then(|attributes| attributes.object_size),
            hidden_objects: hidden.objects(counted.slabs, counted.objs_per_slab, &self.input.system),
            flags: counted.flags,
        };
        found.is_believable().then(|| found.checked())
    }
}

/// What other series know of a cache, over time.
struct Known<'a> {
    scans: &'a [(Nanos, Attributes)],
    held: &'a [(Nanos, u64)],
}

impl Known<'_> {
    /// When it is next told, after `now`.
    fn next(&self, now: Nanos) -> Option<Nanos> {
        let scan =
            self.scans.get(self.scans.partition_point(|(time, _)| *time <= now)).map(|(time, _)| *time);
        let held = self.held.get(self.held.partition_point(|(time, _)| *time <= now)).map(|(time, _)| *time);
        scan.into_iter().chain(held).min()
    }
}

fn hand_on(
    stretch: Option<(Option<Observed>, Range<usize>)>,
    take: &mut impl FnMut(Option<Observed>, usize),
) {
    if let Some((found, ticks)) = stretch {
        let found = found.map(|found| Observed { tick: ticks.start, last: ticks.end - 1, ..found });
        take(found, ticks.len());
    }
}
