//! `--method notebook`: the figures of the notebook of 2019, recomputed from the same rows, and why they differ from
//! ours.
//!
//! Source: davidgengenbach/linux-slab-efficiency-analysis, the notebook's text, cells 3 to 11. Its faults are part of
//! its figures and are kept; the reasons say what was done, and what that does to the number.
//!
//! | figure | made of | how the notebook makes it |
//! |---|---|---|
//! | [`NotebookTable`] | `slabinfo-tool` | mean over ticks of the printed %Ef and of Space, caches with the lowest %Ef first |
//! | [`notebook_timeline`] | `slabinfo-tool` | mean of %Ef over caches; mean weighted by Space |
//! | [`notebook_cache`] | `slabinfo-tool` | %Ef of one cache, as printed |
//! | [`notebook_tool_histogram`] | `slabinfo-tool` | all %Ef in 60 bins |
//! | [`notebook_proc_histogram`] | `slabinfo` | num_objs * objsize * 100 / (num_slabs * 4096 * 2^order) in 100 bins |
//!
//! Rows above 100 % are left out of all but the last, Space is read as decimal K, and M is multiplied by 1024. Bins are
//! those of numpy's `histogram`: equal, from the least to the greatest finite value, the last closed. The last figure
//! is the packing, one constant per cache; the notebook calls it efficiency. The order among equal caches of its table
//! is not defined. How long the test took is the notebook's own count of ticks, since it does not know the workload's
//! time.

use std::collections::HashMap;

use perflab_formats::kernel::slabinfo::SlabinfoRow;
use perflab_formats::kernel::sysfs_slab::SlabCacheRow;
use perflab_formats::tool::slabinfo_tool::SlabinfoToolRow;
use perflab_model::Nanos;
use perflab_model::series::{RowRuns, Series};
use serde::Serialize;

use crate::slab::cache_table::CacheOrder;
use crate::slab::recording::{SlabError, SlabInput, non_empty, tick_weights};
use crate::slab::recording_reader::{NameNumbers, row_time, rows_in_time_order};
use crate::slab::usage::{ExactRatio, saturating_product};

/// What the notebook leaves out.
const MOST_PERCENT: i64 = 100;

/// One row.
struct NotebookToolRow {
    pub(crate) name: usize,
    pub(crate) tick: usize,
    /// %Ef as printed.
    pub(crate) percent: i64,
    /// Space in the notebook's kB; nothing for a unit at which it stops.
    kb: Option<f64>,
    is_mega: bool,
    /// objects * object_size and slab bytes; nothing where a count or the page size is missing.
    pub(crate) exact: Option<ExactRatio>,
}

/// All rows.
struct NotebookFrame {
    pub(crate) names: Vec<String>,
    pub(crate) ticks: Vec<Nanos>,
    pub(crate) weights: Vec<u128>,
    rows: Vec<NotebookToolRow>,
}

impl NotebookFrame {
    pub(crate) fn read(input: &SlabInput) -> Result<Self, SlabError> {
        let hint = "import a folder that holds what the kernel's slabinfo tool printed";
        let none = SlabError::NoRows { monitor: "slabinfo-tool", hint };
        let series = non_empty(input.tool).ok_or(none)?;
        let mut names = NameNumbers::new(series.column(SlabinfoToolRow::CACHE));
        let (mut ticks, mut rows) = (Vec::new(), Vec::new());
        let read = tool_row_reader(series, input.page_size().ok());
        for row in rows_in_time_order(series) {
            let now = row_time(series, row);
            if ticks.last() != Some(&now) {
                ticks.push(now);
            }
            let Some(number) = names.number(row) else { continue };
            rows.extend(read(row).map(|found| NotebookToolRow {
                name: number,
                tick: ticks.len() - 1,
                ..found
            }));
        }
        Ok(NotebookFrame { weights: tick_weights(&ticks), names: names.into_names(), ticks, rows })
    }

    /// Every row that says a percentage.
    fn all_rows(&self) -> &[NotebookToolRow] {
        &self.rows
    }

    /// The rows that the notebook keeps.
    fn kept_rows(&self) -> impl Iterator<Item = (&NotebookToolRow, f64)> {
        let kept = self.rows.iter().filter(|row| row.percent <= MOST_PERCENT);
        kept.filter_map(|row| Some((row, row.kb?)))
    }

    /// Why any mean over these rows is not ours.
    fn mean_differences(&self) -> Vec<NotebookDifference> {
        let count =
            |requested: &dyn Fn(&&NotebookToolRow) -> bool| self.rows.iter().filter(requested).count();
        let above = count(&|row| row.percent > MOST_PERCENT);
        let other = count(&|row| row.kb.is_none());
        let dropped = (above > 0).then_some(NotebookDifference::AboveHundredDropped { rows: above });
        let stopped = (other > 0).then_some(NotebookDifference::OtherUnits { rows: other });
        dropped.into_iter().chain(stopped).chain([NotebookDifference::FlooredPercentages]).collect()
    }

    /// Why a weight is not bytes.
    fn space_differences(&self) -> Vec<NotebookDifference> {
        let rows = self.kept_rows().filter(|(row, _)| row.is_mega).count();
        let mega = (rows > 0).then_some(NotebookDifference::DecimalMegaTimes1024 { rows });
        [NotebookDifference::TruncatedSpace].into_iter().chain(mega).collect()
    }
}

fn tool_row_reader<'a>(
    series: &'a Series,
    page_size: Option<u64>,
) -> impl Fn(usize) -> Option<NotebookToolRow> + 'a {
    let (percent, space) =
        (series.column(SlabinfoToolRow::EFFICIENCY_PERCENT), series.column(SlabinfoToolRow::SPACE));
    let (objects, size) =
        (series.column(SlabinfoToolRow::OBJECTS), series.column(SlabinfoToolRow::OBJECT_SIZE));
    let (slabs, cpu) = (series.column(SlabinfoToolRow::SLABS), series.column(SlabinfoToolRow::CPU));
    let order = series.column(SlabinfoToolRow::ORDER);
    move |row| {
        let exact = || {
            let all = slabs.count(row)?.checked_add(cpu.count(row)?)?;
            let order = u32::try_from(order.count(row)?).ok().filter(|order| *order < 32)?;
            let bytes = page_size?.checked_mul(1 << order)?;
            let used = u128::from(objects.count(row)?) * u128::from(size.count(row)?);
            Some(ExactRatio::new(used, u128::from(all) * u128::from(bytes)))
        };
        let text = space.get(row).unwrap_or_default();
        Some(NotebookToolRow {
            name: 0,
            tick: 0,
            percent: percent.get(row)?,
            kb: parse_kilobytes(text),
            is_mega: text.ends_with('M'),
            exact: exact(),
        })
    }
}

/// The notebook's `normalize_space`: all but the last letter as a number, times 1024 behind M.
fn parse_kilobytes(text: &str) -> Option<f64> {
    let (number, scale) = match (text.strip_suffix('K'), text.strip_suffix('M')) {
        (Some(number), _) => (number, 1.0),
        (_, Some(number)) => (number, 1024.0),
        _ => return None,
    };
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && number.len() <= 15;
    number.parse::<f64>().ok().filter(|_| is_plain).map(|number| number * scale)
}

/// The caches with the lowest mean %Ef.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotebookTable {
    /// Lowest %Ef first; ties by name.
    pub rows: Vec<NotebookRow>,
    /// Why its columns are not ours.
    #[serde(skip)]
    pub reasons: Vec<NotebookDifference>,
}

impl NotebookTable {
    /// The first `top` rows in that order; the notebook's own order is that of [`CacheOrder::Unweighted`]. Rows of which the figure is
    /// not known come last.
    #[must_use]
    pub fn sort_and_truncate(mut self, order: CacheOrder, top: usize) -> Self {
        let wasted = |row: &NotebookRow| {
            let efficiency = row.overall.and_then(ExactRatio::value)?;
            Some(row.slab_bytes? * (1.0 - efficiency))
        };
        let first = |row: &NotebookRow| match order {
            CacheOrder::Waste => wasted(row).map(|bytes| -bytes),
            CacheOrder::Efficiency => row.overall.and_then(ExactRatio::value),
            CacheOrder::Unweighted => Some(row.percent_efficient),
            CacheOrder::Bytes => row.slab_bytes.map(|bytes| -bytes),
            CacheOrder::Name => Some(0.0),
        };
        let key = |row: &NotebookRow| first(row).unwrap_or(f64::INFINITY);
        self.rows.sort_by(|a, b| key(a).total_cmp(&key(b)).then_with(|| a.name.cmp(&b.name)));
        self.rows.truncate(top);
        self
    }
}

/// One cache (or merged group, under the name of its directory).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotebookRow {
    /// As the tool printed it.
    pub name: String,
    /// The notebook's: mean of the printed %Ef over the ticks at which it was kept; per cent.
    pub percent_efficient: f64,
    /// The notebook's: mean of Space, in its kB.
    pub space_normalized_in_kb: f64,
    /// Rows in these means.
    pub rows: usize,
    /// Ours: sum objects*object_size*dt / sum S*dt over all its rows; null where the page size is unknown.
    pub overall: Option<ExactRatio>,
    /// Ours: S on average over the run's time, bytes; null where the page size is unknown.
    pub slab_bytes: Option<f64>,
}

/// Makes the table, with the `lowest` first rows of it (the notebook shows 30).
///
/// # Errors
/// No `slabinfo-tool` rows.
pub fn notebook_table(input: &SlabInput, lowest: usize) -> Result<NotebookTable, SlabError> {
    let frame = NotebookFrame::read(input)?;
    let mut sums = vec![NotebookRowSums::default(); frame.names.len()];
    for row in frame.all_rows() {
        let weight = frame.weights.get(row.tick).copied().unwrap_or_default();
        if let Some(sums) = sums.get_mut(row.name) {
            sums.add_exact(row.exact, weight);
        }
    }
    for (row, kb) in frame.kept_rows() {
        if let Some(sums) = sums.get_mut(row.name) {
            sums.rows += 1;
            sums.percent += row.percent as f64;
            sums.kb += kb;
        }
    }
    let time: u128 = frame.weights.iter().sum();
    let named = frame.names.iter().zip(&sums).filter(|(_, sums)| sums.rows > 0);
    let mut rows: Vec<NotebookRow> = named.map(|(name, sums)| sums.to_row(name, time)).collect();
    rows.sort_by(|a, b| {
        a.percent_efficient.total_cmp(&b.percent_efficient).then_with(|| a.name.cmp(&b.name))
    });
    let absent = sums.iter().filter(|sums| sums.all < frame.ticks.len()).count();
    let reasons = notebook_table_differences(&frame, &rows, absent);
    rows.truncate(lowest);
    Ok(NotebookTable { rows, reasons })
}

fn notebook_table_differences(
    frame: &NotebookFrame,
    rows: &[NotebookRow],
    absent: usize,
) -> Vec<NotebookDifference> {
    let merged = rows.iter().filter(|row| row.name.starts_with(':')).count();
    let mut reasons = frame.mean_differences();
    reasons.extend(frame.space_differences());
    reasons.push(NotebookDifference::TicksAlike);
    reasons.extend((absent > 0).then_some(NotebookDifference::AbsentTicks { caches: absent }));
    reasons.extend((merged > 0).then_some(NotebookDifference::MergedNames { names: merged }));
    reasons.push(NotebookDifference::TiesUnordered);
    reasons
}

/// Sums over the rows of one name.
#[derive(Clone, Default)]
struct NotebookRowSums {
    /// Rows, and those of them that the notebook keeps.
    all: usize,
    rows: usize,
    percent: f64,
    kb: f64,
    used: u128,
    bytes: u128,
    /// Rows without exact bytes.
    unknown: usize,
}

impl NotebookRowSums {
    fn add_exact(&mut self, exact: Option<ExactRatio>, weight: u128) {
        self.all += 1;
        let Some(exact) = exact else {
            self.unknown += 1;
            return;
        };
        self.used = self.used.saturating_add(saturating_product(exact.part, weight));
        self.bytes = self.bytes.saturating_add(saturating_product(exact.whole, weight));
    }

    fn to_row(&self, name: &str, time: u128) -> NotebookRow {
        let is_known = self.unknown == 0;
        NotebookRow {
            name: name.into(),
            percent_efficient: self.percent / self.rows as f64,
            space_normalized_in_kb: self.kb / self.rows as f64,
            rows: self.rows,
            overall: is_known.then(|| ExactRatio::new(self.used, self.bytes)),
            slab_bytes: is_known.then(|| self.bytes as f64 / time.max(1) as f64),
        }
    }
}

/// Mean efficiencies at every tick.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotebookTimeline {
    /// One a tick with rows that the notebook keeps.
    pub points: Vec<NotebookTickPoint>,
    /// Why its lines are not ours.
    #[serde(skip)]
    pub reasons: Vec<NotebookDifference>,
}

/// One tick.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NotebookTickPoint {
    /// CLOCK_MONOTONIC.
    pub at: Nanos,
    /// The notebook's "Average SLAB efficiency": mean of the printed %Ef; per cent.
    pub unweighted: f64,
    /// The notebook's "Weighted average": with Space in its kB as weights; per cent. Null where all weigh nothing.
    pub weighted: Option<f64>,
    /// Ours: sum objects*object_size / sum S over all rows of the tick; null where the page size is unknown.
    pub overall: Option<ExactRatio>,
}

/// %Ef of one cache.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotebookCacheTimeline {
    /// Its name, as the tool printed it.
    pub name: String,
    /// One a row that the notebook keeps.
    pub points: Vec<NotebookCachePoint>,
    /// Why its line is not ours.
    #[serde(skip)]
    pub reasons: Vec<NotebookDifference>,
}

/// One cache at one tick.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NotebookCachePoint {
    /// CLOCK_MONOTONIC.
    pub at: Nanos,
    /// As printed; per cent.
    pub percent_efficient: i64,
    /// Ours: objects*object_size / S; null where the page size is unknown.
    pub overall: Option<ExactRatio>,
}

/// Makes both timelines.
///
/// # Errors
/// No `slabinfo-tool` rows.
pub fn notebook_timeline(input: &SlabInput) -> Result<NotebookTimeline, SlabError> {
    let frame = NotebookFrame::read(input)?;
    let mut sums = vec![NotebookTickSums::default(); frame.ticks.len()];
    for row in frame.all_rows() {
        if let Some(sums) = sums.get_mut(row.tick) {
            sums.add_exact(row.exact);
        }
    }
    for (row, kb) in frame.kept_rows() {
        if let Some(sums) = sums.get_mut(row.tick) {
            sums.rows += 1;
            sums.percent += row.percent as f64;
            sums.weighted += row.percent as f64 * kb;
            sums.kb += kb;
        }
    }
    let kept = frame.ticks.iter().zip(&sums).filter(|(_, sums)| sums.rows > 0);
    let points = kept.map(|(at, sums)| sums.to_point(*at)).collect();
    let mut reasons = frame.mean_differences();
    reasons.push(NotebookDifference::CachesAlike);
    reasons.extend(frame.space_differences());
    Ok(NotebookTimeline { points, reasons })
}

/// Makes the line of one cache (the notebook shows `dentry`).
///
/// # Errors
/// No `slabinfo-tool` rows, no cache of that name among them.
pub fn notebook_cache(input: &SlabInput, name: &str) -> Result<NotebookCacheTimeline, SlabError> {
    let frame = NotebookFrame::read(input)?;
    let number = frame.names.iter().position(|known| known == name).ok_or_else(|| {
        let names = frame.names.iter().map(String::as_str);
        let near = perflab_model::problem::nearest_name(name, names).map(Into::into);
        SlabError::UnknownCache { name: name.into(), near: near.into_iter().collect() }
    })?;
    let point = |(row, _): (&NotebookToolRow, f64)| NotebookCachePoint {
        at: frame.ticks.get(row.tick).copied().unwrap_or_default(),
        percent_efficient: row.percent,
        overall: row.exact,
    };
    let points = frame.kept_rows().filter(|(row, _)| row.name == number).map(point).collect();
    Ok(NotebookCacheTimeline { name: name.into(), points, reasons: frame.mean_differences() })
}

/// Sums over the rows of one tick.
#[derive(Clone, Default)]
struct NotebookTickSums {
    rows: usize,
    percent: f64,
    weighted: f64,
    kb: f64,
    used: u128,
    bytes: u128,
    unknown: usize,
}

impl NotebookTickSums {
    fn add_exact(&mut self, exact: Option<ExactRatio>) {
        let Some(exact) = exact else {
            self.unknown += 1;
            return;
        };
        self.used = self.used.saturating_add(exact.part);
        self.bytes = self.bytes.saturating_add(exact.whole);
    }

    fn to_point(&self, at: Nanos) -> NotebookTickPoint {
        NotebookTickPoint {
            at,
            unweighted: self.percent / self.rows as f64,
            weighted: (self.kb > 0.0).then(|| self.weighted / self.kb),
            overall: (self.unknown == 0).then(|| ExactRatio::new(self.used, self.bytes)),
        }
    }
}

/// Last tick of `slabinfo` minus the first, in minutes ("Test took: 3.15 minutes"); nothing without rows.
#[must_use]
pub fn notebook_minutes(input: &SlabInput) -> Option<f64> {
    let ticks = &input.slabinfo?.ticks;
    let (first, last) = (ticks.iter().min()?, ticks.iter().max()?);
    Some(last.since(*first).seconds() / 60.0)
}

/// One reason; those with a number say how much it concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotebookDifference {
    /// Rows above 100 % are left out.
    AboveHundredDropped {
        /// How many.
        rows: usize,
    },
    /// The tool's percentages are whole numbers, cut, not rounded.
    FlooredPercentages,
    /// Space has one digit behind the point, cut, not rounded.
    TruncatedSpace,
    /// Space in M (10^6 bytes) is multiplied by 1024 to K (10^3 bytes).
    DecimalMegaTimes1024 {
        /// Rows in M.
        rows: usize,
    },
    /// Each cache counts the same, whatever its size.
    CachesAlike,
    /// Each tick counts the same, whatever the time between.
    TicksAlike,
    /// The mean of a cache leaves out the ticks at which it was not there.
    AbsentTicks {
        /// Caches that this concerns.
        caches: usize,
    },
    /// Names of merged groups (`:a-0000104`) stay names.
    MergedNames {
        /// How many.
        names: usize,
    },
    /// Rows of equal %Ef have no order.
    TiesUnordered,
    /// Slots are counted as if all were in use, so that it is one number a cache for all time.
    CapacityAsUse,
    /// The padded size is taken for the object's.
    PaddedSize,
    /// A page is taken to have 4,096 bytes.
    PageSizeAssumed {
        /// What it has.
        page_size: Option<u64>,
    },
    /// A cache without a known order gets order 0.
    OrderAssumed {
        /// Rows that this concerns.
        rows: usize,
    },
    /// Caches without slabs are 0 / 0 and vanish.
    EmptyDropped {
        /// Rows that this concerns.
        rows: usize,
    },
    /// The notebook stops at a Space that is not in K or M.
    OtherUnits {
        /// Rows that this concerns; they are left out here.
        rows: usize,
    },
}

impl NotebookDifference {
    /// A short name for it, in JSON.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            NotebookDifference::AboveHundredDropped { .. } => "above-hundred-dropped",
            NotebookDifference::FlooredPercentages => "floored-percentages",
            NotebookDifference::TruncatedSpace => "truncated-space",
            NotebookDifference::DecimalMegaTimes1024 { .. } => "decimal-mega-times-1024",
            NotebookDifference::CachesAlike => "caches-alike",
            NotebookDifference::TicksAlike => "ticks-alike",
            NotebookDifference::AbsentTicks { .. } => "absent-ticks",
            NotebookDifference::MergedNames { .. } => "merged-names",
            NotebookDifference::TiesUnordered => "ties-unordered",
            NotebookDifference::CapacityAsUse => "capacity-as-use",
            NotebookDifference::PaddedSize => "padded-size",
            NotebookDifference::PageSizeAssumed { .. } => "page-size-assumed",
            NotebookDifference::OrderAssumed { .. } => "order-assumed",
            NotebookDifference::EmptyDropped { .. } => "empty-dropped",
            NotebookDifference::OtherUnits { .. } => "other-units",
        }
    }
}

/// Values counted in equal bins; each is given with how often it is there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NumpyHistogram {
    /// One more than counts: the limits of the bins.
    pub edges: Vec<f64>,
    /// Values in [edge, next edge), in the last bin up to its upper edge.
    pub counts: Vec<usize>,
    /// Values below the first edge, in no bin.
    pub below: usize,
    /// Values above the last edge, in no bin.
    pub above: usize,
}

impl NumpyHistogram {
    /// From the least to the greatest of the values; around a single value, half a unit on either side; of no value,
    /// from 0 to 1 (numpy.histogram, numpy.histogram_bin_edges).
    #[must_use]
    pub fn from_values(values: &[(f64, usize)], bins: usize) -> Self {
        let count = bins.max(1);
        let least = values.iter().map(|(value, _)| *value).fold(f64::INFINITY, f64::min);
        let greatest = values.iter().map(|(value, _)| *value).fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = match (values.is_empty(), least == greatest) {
            (true, _) => (0.0, 1.0),
            (_, true) => (least - 0.5, greatest + 0.5),
            _ => (least, greatest),
        };
        let edge = |number: usize| match number == count {
            true => high,
            false => number as f64 * ((high - low) / count as f64) + low,
        };
        NumpyHistogram::count_values((0..=count).map(edge).collect(), values)
    }

    /// Other values in the same bins; those outside are counted apart.
    #[must_use]
    pub fn with_same_bins(&self, values: &[(f64, usize)]) -> Self {
        NumpyHistogram::count_values(self.edges.clone(), values)
    }

    fn count_values(edges: Vec<f64>, values: &[(f64, usize)]) -> Self {
        let counts = vec![0; edges.len().saturating_sub(1)];
        let mut found = NumpyHistogram { edges, counts, below: 0, above: 0 };
        let last = found.counts.len().saturating_sub(1);
        for (value, times) in values {
            let after = found.edges.partition_point(|edge| edge <= value);
            let is_top = found.edges.last() == Some(value);
            let number = if is_top { Some(last) } else { after.checked_sub(1) };
            match number.map(|number| found.counts.get_mut(number)) {
                Some(Some(count)) => *count += times,
                Some(None) => found.above += times,
                None => found.below += times,
            }
        }
        found
    }
}

/// The notebook's bins.
const PROC_HISTOGRAM_BINS: usize = 100;

/// The notebook's page.
const PAGE: f64 = 4096.0;

/// num_objs * objsize * 100 / (num_slabs * 4096 * 2^order) of all rows, in bins.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotebookProcHistogram {
    /// The notebook's.
    pub notebook: NumpyHistogram,
    /// Ours in the same bins: active_objs * objsize * 100 / S, with the row's own pages; rows without slabs have none.
    /// Null where the page size is unknown.
    pub ours: Option<NumpyHistogram>,
    /// Rows read.
    pub rows: usize,
    /// Rows in the notebook's bins.
    pub counted: usize,
    /// Caches whose number was not the same at every tick with slabs; the notebook's is the packing, so none.
    pub moving: usize,
    /// Why they differ.
    #[serde(skip)]
    pub reasons: Vec<NotebookDifference>,
}

/// Makes the histogram.
///
/// # Errors
/// No `slabinfo` rows.
pub fn notebook_proc_histogram(input: &SlabInput) -> Result<NotebookProcHistogram, SlabError> {
    let hint = "import a log of /proc/slabinfo";
    let none = SlabError::NoRows { monitor: "slabinfo", hint };
    let spans = input.slabinfo.filter(|spans| spans.row_count() > 0).ok_or(none)?;
    let page_size = input.page_size().ok();
    let found = ProcEfficiencies::read(spans, &CacheOrders::from_series(input.caches), page_size);
    let notebook = NumpyHistogram::from_values(&found.notebook, PROC_HISTOGRAM_BINS);
    let ours = page_size.map(|_| notebook.with_same_bins(&found.ours));
    let (rows, counted) = (spans.row_count(), found.notebook.iter().map(|(_, times)| times).sum());
    Ok(NotebookProcHistogram {
        notebook,
        ours,
        rows,
        counted,
        moving: found.moving,
        reasons: proc_histogram_differences(page_size, &found),
    })
}

fn proc_histogram_differences(page_size: Option<u64>, found: &ProcEfficiencies) -> Vec<NotebookDifference> {
    let mut reasons = vec![NotebookDifference::CapacityAsUse, NotebookDifference::PaddedSize];
    reasons.extend((found.empty > 0).then_some(NotebookDifference::EmptyDropped { rows: found.empty }));
    reasons.extend((page_size != Some(4096)).then_some(NotebookDifference::PageSizeAssumed { page_size }));
    reasons.extend((found.assumed > 0).then_some(NotebookDifference::OrderAssumed { rows: found.assumed }));
    reasons.push(NotebookDifference::CachesAlike);
    reasons
}

/// The orders that the notebook looks up by name; 0 where a name is missing, as there.
struct CacheOrders<'a>(Option<HashMap<&'a str, u64>>);

impl<'a> CacheOrders<'a> {
    fn from_series(caches: Option<&'a Series>) -> Self {
        let read = |series: &'a Series| {
            let (name, order) = (series.column(SlabCacheRow::CACHE), series.column(SlabCacheRow::ORDER));
            let pair = |row| Some((name.get(row)?, order.count(row)?));
            (0..series.at.len()).filter_map(pair).collect()
        };
        CacheOrders(non_empty(caches).map(read))
    }

    /// The order of a cache, if it is in the list. Nothing at all without any list: then the row's own pages count.
    fn order_of_cache(&self, name: &str) -> Option<Option<i32>> {
        let known = self.0.as_ref()?;
        Some(known.get(name).and_then(|order| i32::try_from(*order).ok()))
    }
}

/// What was seen of a cache.
struct ObservedCacheValue {
    /// As [`CacheOrders::order_of_cache`].
    order: Option<Option<i32>>,
    /// The first number that it had.
    value: Option<f64>,
    /// Whether it had another one since.
    is_moving: bool,
}

/// Both numbers of every row that has them, each with the number of its ticks.
#[derive(Default)]
struct ProcEfficiencies {
    notebook: Vec<(f64, usize)>,
    ours: Vec<(f64, usize)>,
    /// Rows of 0 / 0.
    empty: usize,
    /// Rows with an assumed order.
    assumed: usize,
    /// Caches whose number changed.
    moving: usize,
}

impl ProcEfficiencies {
    fn read(spans: &RowRuns, orders: &CacheOrders, page_size: Option<u64>) -> Self {
        let series = &spans.series;
        let name = series.column(SlabinfoRow::CACHE);
        let (active, total) = (series.column(SlabinfoRow::ACTIVE_OBJS), series.column(SlabinfoRow::NUM_OBJS));
        let (size, slabs) = (series.column(SlabinfoRow::OBJSIZE), series.column(SlabinfoRow::NUM_SLABS));
        let pages = series.column(SlabinfoRow::PAGESPERSLAB);
        let (mut found, mut names) = (ProcEfficiencies::default(), NameNumbers::new(name));
        let mut caches: Vec<ObservedCacheValue> = Vec::new();
        for row in 0..series.at.len() {
            let fields = || Some((name.get(row)?, total.count(row)?, size.count(row)?, slabs.count(row)?));
            let Some((name, total, size, slabs)) = fields() else { continue };
            let times = spans.ticks_of_row(row).len();
            let own_pages = pages.count(row).unwrap_or(0);
            let Some(number) = names.number(row) else { continue };
            if number == caches.len() {
                caches.push(ObservedCacheValue {
                    order: orders.order_of_cache(name),
                    value: None,
                    is_moving: false,
                });
            }
            let Some(cache) = caches.get_mut(number) else { continue };
            let pages = cache.order.map_or(own_pages as f64, |order| 2_f64.powi(order.unwrap_or(0)));
            found.assumed += times * usize::from(cache.order == Some(None));
            let value = (total as f64 * size as f64 * 100.0) / (slabs as f64 * (PAGE * pages));
            if !value.is_finite() {
                found.empty += times;
                continue;
            }
            found.notebook.push((value, times));
            cache.is_moving |= *cache.value.get_or_insert(value) != value;
            let bytes = slabs as f64 * own_pages as f64 * page_size.unwrap_or(0) as f64;
            let used = active.count(row).unwrap_or(0) as f64 * size as f64;
            found.ours.extend((bytes > 0.0).then(|| (used * 100.0 / bytes, times)));
        }
        found.moving = caches.iter().filter(|cache| cache.is_moving).count();
        found
    }
}

/// The notebook's bins.
const TOOL_HISTOGRAM_BINS: usize = 60;

/// %Ef of all rows, in bins.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotebookToolHistogram {
    /// The notebook's: printed percentages of the rows that it keeps.
    pub notebook: NumpyHistogram,
    /// Ours in the same bins: exact percentages of all rows that lie within them; null where the page size is unknown.
    pub ours: Option<NumpyHistogram>,
    /// Why they differ.
    #[serde(skip)]
    pub reasons: Vec<NotebookDifference>,
}

/// Makes the histogram.
///
/// # Errors
/// No `slabinfo-tool` rows.
pub fn notebook_tool_histogram(input: &SlabInput) -> Result<NotebookToolHistogram, SlabError> {
    let frame = NotebookFrame::read(input)?;
    let printed: Vec<_> = frame.kept_rows().map(|(row, _)| (row.percent as f64, 1)).collect();
    let exact = |row: &NotebookToolRow| row.exact.map(|ratio| (ratio.percent().unwrap_or(100.0), 1));
    let exact: Option<Vec<_>> = frame.all_rows().iter().map(exact).collect();
    let notebook = NumpyHistogram::from_values(&printed, TOOL_HISTOGRAM_BINS);
    let ours = exact.map(|exact| notebook.with_same_bins(&exact));
    let reasons = frame.mean_differences().into_iter().chain([NotebookDifference::CachesAlike]).collect();
    Ok(NotebookToolHistogram { notebook, ours, reasons })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bin_is_closed_and_a_single_value_gets_room() {
        let found = NumpyHistogram::from_values(&[0.0, 1.0, 2.0, 3.0, 4.0].map(|value| (value, 1)), 4);
        assert_eq!((found.edges.len(), found.counts), (5, vec![1, 1, 1, 2]));
        let found = NumpyHistogram::from_values(&[(7.0, 2)], 2);
        assert_eq!((found.edges, found.counts), (vec![6.5, 7.0, 7.5], vec![0, 2]));
        assert_eq!(NumpyHistogram::from_values(&[], 2).counts, [0, 0]);
    }

    #[test]
    fn what_is_outside_is_counted_apart() {
        let found = NumpyHistogram::from_values(&[(0.0, 1), (10.0, 1)], 5)
            .with_same_bins(&[-1.0, 0.0, 2.0, 10.0, 11.0].map(|value| (value, 1)));
        assert_eq!((found.counts, found.below, found.above), (vec![1, 1, 0, 0, 1], 1, 1));
    }
}
