//! From series to a [`SlabRecording`]: caches by position and name, attributes and held slabs by time.
//!
//! Counts come from one source per run: the lines of /proc/slabinfo, or where that was not read, the files of
//! /sys/kernel/slab. A column that is missing, or of another type, reads as missing everywhere; no row is dropped
//! without being counted.
//!
//! The kernel lists its caches in one order, so most names are where they were a tick before: a name is hashed only
//! where it moved. Slabs that CPUs held are those of the last reading before a row, or the first one before any.
//! Attributes belong to a cache only where its padded size agrees, since another cache may have had the same name.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use perflab_formats::kernel::slabinfo::SlabinfoRow;
use perflab_formats::kernel::sysfs_slab::{SlabCacheRow, SlabExactRow};
use perflab_formats::tool::slabinfo_tool::SlabinfoToolRow;
use perflab_model::Nanos;
use perflab_model::series::{RowRuns, Series};
use perflab_model::table::TypedColumn;

use crate::slab::recording::{
    CacheAttributes, SlabCache, SlabError, SlabInput, SlabRecording, SlabRow, SlabRowCounts, SlabRowFlags,
    non_empty,
};
use crate::slab::usage::HiddenObjectBound;

impl SlabRecording {
    /// Reads the series of a run.
    ///
    /// # Errors
    /// No `slabinfo` (or, in its place, `slab-exact`) with rows, no page size, several page sizes in one run.
    pub fn read(input: &SlabInput) -> Result<Self, SlabError> {
        let rows = slab_spans(input)?;
        Ok(SlabRecordingReader::new(input, &rows)?.into_recording())
    }
}

impl SlabInput<'_> {
    /// Bytes of a page: what all scans say, else the fact.
    ///
    /// # Errors
    /// Nothing says it; scans disagree.
    pub fn page_size(&self) -> Result<u64, SlabError> {
        let scans = self.caches.map(|series| (series.at.len(), series.column(SlabCacheRow::PAGE_SIZE)));
        let sizes = scans.iter().flat_map(|(rows, sizes)| (0..*rows).filter_map(|row| sizes.count(row)));
        let known: BTreeSet<u64> = sizes.filter(|size| *size > 0).collect();
        match known.first() {
            None => self.system.page_size.filter(|size| *size > 0).ok_or(SlabError::NoPageSize),
            Some(one) if known.len() == 1 => Ok(*one),
            Some(_) => Err(SlabError::MixedPageSizes { sizes: known.into_iter().collect() }),
        }
    }
}

/// What a reading goes through once.
pub(crate) struct SlabRecordingReader<'a> {
    input: &'a SlabInput<'a>,
    spans: &'a RowRuns,
    source: SlabColumns<'a>,
    scans: AttributeScans,
    held: HeldSlabs,
    page_size: u64,
}

/// The rows of a run: from /proc, or where that was not read, from sysfs.
pub(crate) fn slab_spans<'a>(input: &SlabInput<'a>) -> Result<Cow<'a, RowRuns>, SlabError> {
    let hint = "record with `perflab slab record` as root, or import a log";
    let none = SlabError::NoRows { monitor: "slabinfo", hint };
    match input.slabinfo.filter(|spans| spans.row_count() > 0) {
        Some(spans) => Ok(Cow::Borrowed(spans)),
        None => non_empty(input.exact).map(|series| Cow::Owned(RowRuns::from_series(series))).ok_or(none),
    }
}

impl<'a> SlabRecordingReader<'a> {
    pub(crate) fn new(input: &'a SlabInput<'a>, spans: &'a RowRuns) -> Result<Self, SlabError> {
        let source = match input.slabinfo.filter(|spans| spans.row_count() > 0) {
            Some(_) => SlabColumns::from_slabinfo(&spans.series),
            None => SlabColumns::from_exact(&spans.series),
        };
        let page_size = input.page_size()?;
        let scans = AttributeScans::read(input.caches, input.tool);
        let held = HeldSlabs::read(input.exact, input.tool);
        Ok(SlabRecordingReader { input, spans, source, scans, held, page_size })
    }

    pub(crate) fn into_recording(self) -> SlabRecording {
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

    /// Hands on a row for all its ticks; in several ranges, where what other series know of its cache changed
    /// meanwhile. Nothing stands for a row that cannot be used.
    fn emit_row(
        &self,
        row: usize,
        span: Range<usize>,
        known: &CacheContext,
        mut take: impl FnMut(Option<SlabRow>, usize),
    ) {
        let mut pending: Option<(Option<SlabRow>, Range<usize>)> = None;
        let mut begin = span.start;
        while begin < span.end {
            let now = self.spans.ticks.get(begin).copied().unwrap_or_default();
            let ticks = self.spans.ticks.get(begin + 1..span.end).unwrap_or_default();
            let news = known.next_change(now);
            let end = begin + 1 + news.map_or(ticks.len(), |news| ticks.partition_point(|tick| *tick < news));
            let found = self.read_row(row, known, now);
            pending = Some(match pending {
                Some((before, range)) if before == found => (found, range.start..end),
                before => {
                    emit_span(before, &mut take);
                    (found, begin..end)
                }
            });
            begin = end;
        }
        emit_span(pending, &mut take);
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
    /// When it is next reported, after `now`.
    fn next_change(&self, now: Nanos) -> Option<Nanos> {
        let scan =
            self.scans.get(self.scans.partition_point(|(time, _)| *time <= now)).map(|(time, _)| *time);
        let held = self.held.get(self.held.partition_point(|(time, _)| *time <= now)).map(|(time, _)| *time);
        scan.into_iter().chain(held).min()
    }
}

fn emit_span(span: Option<(Option<SlabRow>, Range<usize>)>, take: &mut impl FnMut(Option<SlabRow>, usize)) {
    if let Some((found, ticks)) = span {
        let found = found.map(|found| SlabRow { tick: ticks.start, last: ticks.end - 1, ..found });
        take(found, ticks.len());
    }
}

/// Caches by name and ordinal.
#[derive(Default)]
struct CacheNaming {
    names: Vec<(String, u32)>,
    numbers: HashMap<String, Vec<usize>>,
    /// The cache that stood last at each place.
    at_place: Vec<usize>,
    /// Until which tick, that one excluded, the last row of each cache stands.
    until: Vec<usize>,
}

impl CacheNaming {
    pub(crate) fn name(&self, number: usize) -> &str {
        self.names.get(number).map_or("", |(name, _)| name)
    }

    /// The number of the next row's cache, which has that place among the rows of these ticks.
    fn cache_number(&mut self, name: &str, place: usize, ticks: &Range<usize>) -> usize {
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
    fn into_caches(self, rows: &[SlabRow], ticks: &[Nanos], scans: &AttributeScans) -> Vec<SlabCache> {
        let mut attributes: Vec<Option<CacheAttributes>> = vec![None; self.names.len()];
        let mut open = vec![true; self.names.len()];
        for row in rows.iter().rev() {
            let Some(requested) = open.get_mut(row.cache).filter(|open| **open) else { continue };
            *requested = false;
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

/// The texts of a column, numbered in the order of first sight.
pub(crate) struct NameNumbers<'a> {
    column: TypedColumn<'a, str>,
    /// By the text's number in the column.
    numbers: Vec<Option<usize>>,
    names: Vec<String>,
}

impl<'a> NameNumbers<'a> {
    /// Of a column, before any row.
    pub(crate) fn new(column: TypedColumn<'a, str>) -> Self {
        NameNumbers { column, numbers: vec![None; column.texts().count()], names: Vec::new() }
    }

    /// The number of a row's text; nothing where it is missing.
    pub(crate) fn number(&mut self, row: usize) -> Option<usize> {
        let number = self.numbers.get_mut(self.column.text_number(row)?)?;
        if number.is_none() {
            *number = Some(self.names.len());
            self.names.push(self.column.get(row)?.into());
        }
        *number
    }

    /// All texts that were numbered, by number.
    pub(crate) fn into_names(self) -> Vec<String> {
        self.names
    }
}

/// The counts of a row, as they were recorded.
struct RecordedCounts {
    pub(crate) objects: u64,
    pub(crate) total_objects: u64,
    pub(crate) slabs: u64,
    pub(crate) slab_size: u64,
    pub(crate) objs_per_slab: u64,
    pub(crate) pages_per_slab: u64,
    pub(crate) flags: SlabRowFlags,
}

/// The columns of the counts, and of the layout where the series has it.
struct SlabColumns<'a> {
    name: TypedColumn<'a, str>,
    flags: TypedColumn<'a, str>,
    /// Only rows of all nodes together are read.
    node: TypedColumn<'a, i64>,
    objects: TypedColumn<'a, i64>,
    total_objects: TypedColumn<'a, i64>,
    slabs: TypedColumn<'a, i64>,
    layout: Option<[TypedColumn<'a, i64>; 3]>,
}

impl<'a> SlabColumns<'a> {
    /// The columns of `slabinfo`.
    fn from_slabinfo(series: &'a Series) -> Self {
        let layout = [SlabinfoRow::OBJSIZE, SlabinfoRow::OBJPERSLAB, SlabinfoRow::PAGESPERSLAB];
        SlabColumns {
            name: series.column(SlabinfoRow::CACHE),
            flags: series.column(SlabinfoRow::FLAGS),
            node: TypedColumn::absent(),
            objects: series.column(SlabinfoRow::ACTIVE_OBJS),
            total_objects: series.column(SlabinfoRow::NUM_OBJS),
            slabs: series.column(SlabinfoRow::NUM_SLABS),
            layout: Some(layout.map(|column| series.column(column))),
        }
    }

    /// The columns of `slab-exact`; the layout is in the attributes.
    fn from_exact(series: &'a Series) -> Self {
        SlabColumns {
            name: series.column(SlabExactRow::CACHE),
            flags: series.column(SlabExactRow::FLAGS),
            node: series.column(SlabExactRow::NODE),
            objects: series.column(SlabExactRow::OBJECTS),
            total_objects: series.column(SlabExactRow::TOTAL_OBJECTS),
            slabs: series.column(SlabExactRow::SLABS),
            layout: None,
        }
    }

    /// Whether the row stands for a cache, and not for one node of it.
    fn is_cache_row(&self, row: usize) -> bool {
        self.node.get(row).is_none_or(|node| node < 0)
    }

    fn cache_name(&self, row: usize) -> Option<&'a str> {
        self.name.get(row)
    }

    /// The counts of a row; nothing where one is missing.
    fn row_counts<'s>(
        &self,
        row: usize,
        attributes: impl FnOnce() -> Option<&'s CacheAttributes>,
    ) -> Option<RecordedCounts> {
        let [slab_size, objs_per_slab, pages_per_slab] = match &self.layout {
            Some([size, objs, pages]) => [size.count(row)?, objs.count(row)?, pages.count(row)?],
            None => slab_layout(attributes()?)?,
        };
        Some(RecordedCounts {
            objects: self.objects.count(row)?,
            total_objects: self.total_objects.count(row)?,
            slabs: self.slabs.count(row)?,
            slab_size,
            objs_per_slab,
            pages_per_slab,
            flags: self.flags.get(row).map(SlabRowFlags::parse).unwrap_or_default(),
        })
    }
}

/// Padded size, slots and pages of a slab.
fn slab_layout(attributes: &CacheAttributes) -> Option<[u64; 3]> {
    let order = u32::try_from(attributes.order?).ok()?;
    Some([attributes.slab_size?, attributes.objs_per_slab?, 1_u64.checked_shl(order)?])
}

/// Row numbers in order of time; of equal times, as recorded.
pub(crate) fn rows_in_time_order(series: &Series) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..series.at.len()).collect();
    if !series.at.is_sorted() {
        rows.sort_by_key(|row| series.at.get(*row).copied());
    }
    rows
}

/// The time of a row.
pub(crate) fn row_time(series: &Series, row: usize) -> Nanos {
    series.at.get(row).copied().unwrap_or_default()
}

/// `cpu_slabs` of every cache, over time.
#[derive(Debug, Default)]
struct HeldSlabs {
    by_name: HashMap<String, Vec<(Nanos, u64)>>,
}

impl HeldSlabs {
    /// From `slab-exact` (all nodes together); where that is absent, from the slabinfo tool's `cpu`.
    pub(crate) fn read(exact: Option<&Series>, tool: Option<&Series>) -> Self {
        let mut held = HeldSlabs::default();
        match (exact, tool) {
            (Some(exact), _) => {
                let (name, count) =
                    (exact.column(SlabExactRow::CACHE), exact.column(SlabExactRow::CPU_SLABS));
                held.add_series(exact, name, count, exact.column(SlabExactRow::NODE));
            }
            (None, Some(tool)) => {
                let (name, count) = (tool.column(SlabinfoToolRow::CACHE), tool.column(SlabinfoToolRow::CPU));
                held.add_series(tool, name, count, TypedColumn::absent());
            }
            (None, None) => {}
        }
        held
    }

    fn add_series(
        &mut self,
        series: &Series,
        name: TypedColumn<'_, str>,
        count: TypedColumn<'_, i64>,
        node: TypedColumn<'_, i64>,
    ) {
        for row in rows_in_time_order(series) {
            let all_nodes = node.get(row).is_none_or(|node| node < 0);
            let (Some(name), Some(count), true) = (name.get(row), count.count(row), all_nodes) else {
                continue;
            };
            match self.by_name.get_mut(name) {
                Some(counts) => counts.push((row_time(series, row), count)),
                None => drop(self.by_name.insert(name.into(), vec![(row_time(series, row), count)])),
            }
        }
    }

    /// The counts of a cache, in order of time.
    fn of_cache(&self, name: &str) -> &[(Nanos, u64)] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }
}

/// The count that holds at a time.
fn held_slabs_at(counts: &[(Nanos, u64)], now: Nanos) -> Option<u64> {
    let next = counts.partition_point(|(time, _)| *time <= now);
    counts.get(next.saturating_sub(1)).map(|(_, count)| *count)
}

/// Every scan of every cache.
#[derive(Debug, Default)]
struct AttributeScans {
    by_name: HashMap<String, Vec<(Nanos, CacheAttributes)>>,
}

impl AttributeScans {
    /// From `slab-caches`; what that lacks of a cache, from what the slabinfo tool printed.
    pub(crate) fn read(caches: Option<&Series>, tool: Option<&Series>) -> Self {
        let mut scans = AttributeScans::default();
        caches.into_iter().for_each(|series| scans.add_series(series));
        tool.into_iter().for_each(|series| scans.fill_from_tool(series));
        scans
    }

    fn add_series(&mut self, series: &Series) {
        let (name, read) = (series.column(SlabCacheRow::CACHE), attribute_reader(series));
        for row in rows_in_time_order(series) {
            let Some(name) = name.get(row) else { continue };
            let scan = (row_time(series, row), read(row));
            match self.by_name.get_mut(name) {
                Some(scans) => scans.push(scan),
                None => drop(self.by_name.insert(name.into(), vec![scan])),
            }
        }
    }

    /// The first row of each name says what does not change.
    fn fill_from_tool(&mut self, tool: &Series) {
        let (name, flags) = (tool.column(SlabinfoToolRow::CACHE), tool.column(SlabinfoToolRow::FLAGS));
        let (size, order) = (tool.column(SlabinfoToolRow::OBJECT_SIZE), tool.column(SlabinfoToolRow::ORDER));
        let objs_per_slab = tool.column(SlabinfoToolRow::OBJS_PER_SLAB);
        let mut seen = HashSet::new();
        for row in rows_in_time_order(tool) {
            let Some(name) = name.get(row).filter(|name| seen.insert(*name)) else { continue };
            // `a`: the tool read 1 in reclaim_account.
            let reclaimable = flags.get(row).map(|flags| flags.contains('a'));
            let found = CacheAttributes {
                object_size: size.count(row).filter(|size| *size > 0),
                objs_per_slab: objs_per_slab.count(row),
                order: order.count(row),
                reclaimable,
                ..CacheAttributes::default()
            };
            match self.by_name.get_mut(name) {
                Some(scans) => scans.iter_mut().for_each(|(_, scan)| scan.fill_missing(&found)),
                None => drop(self.by_name.insert(name.into(), vec![(row_time(tool, row), found)])),
            }
        }
    }

    /// The scans of a cache, in order of time.
    fn of_cache(&self, name: &str) -> &[(Nanos, CacheAttributes)] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }
}

impl CacheAttributes {
    /// Takes what it lacks from `other`.
    fn fill_missing(&mut self, other: &CacheAttributes) {
        self.object_size = self.object_size.or(other.object_size);
        self.objs_per_slab = self.objs_per_slab.or(other.objs_per_slab);
        self.order = self.order.or(other.order);
        self.reclaimable = self.reclaimable.or(other.reclaimable);
    }
}

fn attribute_reader<'a>(series: &'a Series) -> impl Fn(usize) -> CacheAttributes + 'a {
    let (object, slab) = (series.column(SlabCacheRow::OBJECT_SIZE), series.column(SlabCacheRow::SLAB_SIZE));
    let (objs, order) = (series.column(SlabCacheRow::OBJS_PER_SLAB), series.column(SlabCacheRow::ORDER));
    let (align, page) = (series.column(SlabCacheRow::ALIGN), series.column(SlabCacheRow::PAGE_SIZE));
    let reclaim = series.column(SlabCacheRow::RECLAIM_ACCOUNT);
    let cpu_partial = series.column(SlabCacheRow::CPU_PARTIAL);
    let sheaf = series.column(SlabCacheRow::SHEAF_CAPACITY);
    let (directory, aliases) = (series.column(SlabCacheRow::DIRECTORY), series.column(SlabCacheRow::ALIASES));
    move |row| CacheAttributes {
        object_size: object.count(row).filter(|size| *size > 0),
        slab_size: slab.count(row).filter(|size| *size > 0),
        objs_per_slab: objs.count(row),
        order: order.count(row),
        align: align.count(row),
        page_size: page.count(row).filter(|size| *size > 0),
        directory: directory.get(row).map(Into::into),
        members: aliases.get(row).map(parse_members).unwrap_or_default(),
        reclaimable: reclaim.count(row).map(|flag| flag > 0),
        cpu_partial: cpu_partial.count(row),
        sheaf_capacity: sheaf.count(row),
    }
}

fn parse_members(text: &str) -> Vec<String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(Into::into).collect()
}

/// The scan that holds at `at`: the last one before, else the first; and only if its slots are of the size that the row
/// says, where it says one.
fn attributes_at(
    scans: &[(Nanos, CacheAttributes)],
    at: Nanos,
    slab_size: Option<u64>,
) -> Option<&CacheAttributes> {
    let next = scans.partition_point(|(time, _)| *time <= at);
    let (_, found) = scans.get(next.saturating_sub(1))?;
    let Some(slab_size) = slab_size else { return Some(found) };
    let fits = found.slab_size.is_none_or(|size| size == slab_size);
    let holds = found.object_size.is_none_or(|size| size <= slab_size);
    (fits && holds).then_some(found)
}

#[cfg(test)]
mod tests {
    use perflab_model::TableBuilder;
    use perflab_model::{ColumnSpec, TableCell};

    use super::*;

    #[test]
    fn numbers_are_those_of_first_sight_in_any_order() {
        let mut builder = TableBuilder::new(vec![ColumnSpec::key("cache")].into());
        for name in ["z", "a", "b", "a", "c", "b", "b", "a", "d"] {
            builder.push_cells(&[TableCell::Text(name.into())]);
        }
        let table = builder.finish();
        let mut names = NameNumbers::new(table.column("cache").unwrap());
        let numbers: Vec<Option<usize>> = (1..10).map(|row| names.number(row)).collect();
        assert_eq!(numbers, [Some(0), Some(1), Some(0), Some(2), Some(1), Some(1), Some(0), Some(3), None]);
        assert_eq!(names.into_names(), ["a", "b", "c", "d"]);
    }
}
