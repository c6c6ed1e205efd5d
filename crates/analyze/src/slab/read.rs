//! Owns the reading of rows into a [`SlabRecording`], column by column. It refuses to drop a row without counting it.

use std::borrow::Cow;
use std::ops::Range;

use perflab_model::Nanos;
use perflab_model::series::RowRuns;

use super::attributes::{AttributeScans, CacheAttributes, attributes_at};
use super::counts::SlabRowCounts;
use super::error::SlabError;
use super::held::{HeldSlabs, held_slabs_at};
use super::hidden::HiddenObjectBound;
use super::input::SlabInput;
use super::names::CacheNaming;
use super::recording::{SlabRecording, non_empty};
use super::row::SlabRow;
use super::source::SlabColumns;

/// What a reading goes through once.
pub(super) struct SlabRecordingReader<'a> {
    input: &'a SlabInput<'a>,
    spans: &'a RowRuns,
    source: SlabColumns<'a>,
    scans: AttributeScans,
    held: HeldSlabs,
    page_size: u64,
}

/// The rows of a run: from /proc, or where that was not read, from sysfs.
pub(super) fn slab_spans<'a>(input: &SlabInput<'a>) -> Result<Cow<'a, RowRuns>, SlabError> {
    let hint = "record with `perflab slab record` as root, or import a log";
    let none = SlabError::NoRows { monitor: "slabinfo", hint };
    match input.slabinfo.filter(|spans| spans.row_count() > 0) {
        Some(spans) => Ok(Cow::Borrowed(spans)),
        None => non_empty(input.exact).map(|series| Cow::Owned(RowRuns::from_series(series))).ok_or(none),
    }
}

impl<'a> SlabRecordingReader<'a> {
    pub(super) fn new(input: &'a SlabInput<'a>, spans: &'a RowRuns) -> Result<Self, SlabError> {
        let source = match input.slabinfo.filter(|spans| spans.row_count() > 0) {
            Some(_) => SlabColumns::from_slabinfo(&spans.series),
            None => SlabColumns::from_exact(&spans.series),
        };
        let page_size = input.page_size()?;
        let scans = AttributeScans::read(input.caches, input.tool);
        let held = HeldSlabs::read(input.exact, input.tool);
        Ok(SlabRecordingReader { input, spans, source, scans, held, page_size })
    }

    pub(super) fn into_recording(self) -> SlabRecording {
        let mut names = CacheNaming::default();
        let mut rows: Vec<SlabRow> = Vec::new();
        let mut counts = SlabRowCounts::default();
        let mut known: Vec<CacheContext> = Vec::new();
        for row in (0..self.spans.series.at.len()).filter(|row| self.source.is_cache_row(*row)) {
            let span = self.spans.ticks_of_row(row);
            let Some(name) = self.source.cache_name(row) else {
                counts.count_row(None, span.len());
                continue;
            };
            let place = self.spans.places.get(row).map_or(0, |place| *place as usize);
            let cache = names.cache_number(name, place, &span);
            if cache == known.len() {
                known.push(self.cache_context(names.name(cache)));
            }
            let Some(known) = known.get(cache) else { continue };
            self.emit_row(row, span, known, |found, times| {
                counts.count_row(found.map(|found| (found.flags, found.slabs == 0)), times);
                rows.extend(found.map(|found| SlabRow { cache, ..found }));
            });
        }
        rows.sort_by_key(|row| row.tick);
        let ticks = self.spans.ticks.clone();
        let caches = names.into_caches(&rows, &ticks, &self.scans);
        let (system, phases) = (self.input.system, self.input.iteration_spans());
        SlabRecording { caches, ticks, rows, counts, page_size: self.page_size, system, phases }
    }

    /// Looked up once a cache, not once a row.
    fn cache_context(&self, name: &str) -> CacheContext<'_> {
        CacheContext { scans: self.scans.of_cache(name), held: self.held.of_cache(name) }
    }

    /// Hands on a row for all its ticks; in several stretches, where what other series know of its cache changed
    /// meanwhile. Nothing stands for a row that cannot be used.
    fn emit_row(
        &self,
        row: usize,
        span: Range<usize>,
        known: &CacheContext,
        mut take: impl FnMut(Option<SlabRow>, usize),
    ) {
        let mut stretch: Option<(Option<SlabRow>, Range<usize>)> = None;
        let mut begin = span.start;
        while begin < span.end {
            let now = self.spans.ticks.get(begin).copied().unwrap_or_default();
            let ticks = self.spans.ticks.get(begin + 1..span.end).unwrap_or_default();
            let news = known.next_change(now);
            let end = begin + 1 + news.map_or(ticks.len(), |news| ticks.partition_point(|tick| *tick < news));
            let found = self.read_row(row, known, now);
            stretch = Some(match stretch {
                Some((before, range)) if before == found => (found, range.start..end),
                before => {
                    emit_span(before, &mut take);
                    (found, begin..end)
                }
            });
            begin = end;
        }
        emit_span(stretch, &mut take);
    }

    fn read_row(&self, row: usize, known: &CacheContext, now: Nanos) -> Option<SlabRow> {
        let counted = self.source.row_counts(row, || attributes_at(known.scans, now, None))?;
        let attributes = attributes_at(known.scans, now, Some(counted.slab_size));
        let hidden = HiddenObjectBound {
            cpu_slabs: held_slabs_at(known.held, now),
            cpu_partial: attributes.and_then(|attributes| attributes.cpu_partial),
            sheaf_capacity: attributes.and_then(|attributes| attributes.sheaf_capacity),
        };
        let found = SlabRow {
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
            hidden_objects: hidden.most_hidden_objects(
                counted.slabs,
                counted.objs_per_slab,
                &self.input.system,
            ),
            flags: counted.flags,
        };
        found.is_believable().then(|| found.with_count_flags())
    }
}

/// What other series know of a cache, over time.
struct CacheContext<'a> {
    scans: &'a [(Nanos, CacheAttributes)],
    held: &'a [(Nanos, u64)],
}

impl CacheContext<'_> {
    /// When it is next told, after `now`.
    fn next_change(&self, now: Nanos) -> Option<Nanos> {
        let scan =
            self.scans.get(self.scans.partition_point(|(time, _)| *time <= now)).map(|(time, _)| *time);
        let held = self.held.get(self.held.partition_point(|(time, _)| *time <= now)).map(|(time, _)| *time);
        scan.into_iter().chain(held).min()
    }
}

fn emit_span(
    stretch: Option<(Option<SlabRow>, Range<usize>)>,
    take: &mut impl FnMut(Option<SlabRow>, usize),
) {
    if let Some((found, ticks)) = stretch {
        let found = found.map(|found| SlabRow { tick: ticks.start, last: ticks.end - 1, ..found });
        take(found, ticks.len());
    }
}
