//! Tables of caches, growth, histogram, time, comparison, other layouts.
//!
//! Programs read unrounded numbers. A slope is not called a leak, a row without efficiency is shown as one, and another
//! layout is no advice: a higher order saves bytes and costs allocations.

use perflab_analyze::Verdict;
use perflab_analyze::slab::cache_table::EfficiencyBin;
use perflab_analyze::slab::growth::{CacheGrowth, GrowthSlope};
use perflab_analyze::slab::usage::MeanUsage;
use perflab_analyze::slab::{
    AlignmentRatio, BytesChange, CacheChange, CacheOrder, CacheRow, CacheTable, EfficiencyHistogram,
    ExactRatio, LayoutWhatIf, SlabComparison, SlabGrowth, UsageIntegral,
};
use perflab_model::{Bytes, Nanos};

use crate::chart::axis_unit::AxisUnit;
use crate::chart::bar_charts::{self, BarChart, ChartBar};
use crate::chart::scene::Scene;
use crate::grid::{Grid, GridCell, GridColumn};
use perflab_model::quantity::format_share;

/// How much room the table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridWidth {
    /// every column
    Wide,
    /// what matters most, for eighty columns
    Narrow,
}

/// A column: its title, the notebook's and the kernel tool's name for it, and whether eighty columns have room.
struct SlabColumn {
    title: &'static str,
    notebook_name: &'static str,
    narrow: bool,
}

const fn slab_column(title: &'static str, theirs: &'static str, narrow: bool) -> SlabColumn {
    SlabColumn { title, notebook_name: theirs, narrow }
}

const CACHE_COLUMNS: &[SlabColumn] = &[
    slab_column("cache", "name (Name)", true),
    slab_column("slab", "space_normalized_in_kb (Space)", true),
    slab_column("wasted", "none (Loss)", true),
    slab_column("tail", "none (Lpadd, of all slabs)", false),
    slab_column("align", "none (Lalig, of all slots)", false),
    slab_column("free", "none (in neither of Loss's parts)", false),
    slab_column("efficiency", "percent_efficient (%Ef), a whole number there", true),
    slab_column("at least", "none", false),
    slab_column("unweighted", "mean of percent_efficient over ticks", true),
    slab_column("packing", "ef", false),
    slab_column("alignment", "none", false),
    slab_column("occupancy", "active_vs_num, of objects", false),
    slab_column("object", "object_size (Objsize)", false),
    slab_column("per slab", "o_s (O/S)", false),
    slab_column("peak", "none", true),
    slab_column("other names", "none (slabinfo -a)", false),
];

/// Each column's title, with what the notebook calls it and, in brackets, the kernel's slabinfo tool.
pub fn notebook_column_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    CACHE_COLUMNS.iter().map(|column| (column.title, column.notebook_name))
}

/// Totals, then the first `top` caches in that order. Everything is a mean over the run's time but the peak.
#[must_use]
pub fn cache_grid(show: &CacheTable, order: CacheOrder, top: usize, width: GridWidth) -> Grid {
    let kept = |column: &&SlabColumn| width == GridWidth::Wide || column.narrow;
    let columns = CACHE_COLUMNS.iter().filter(kept).map(|column| match column.title {
        "cache" | "other names" => GridColumn::left(column.title),
        title => GridColumn::right(title),
    });
    let mut grid = Grid::new(columns);
    let mut add = |cells: Vec<GridCell>| {
        let cells = CACHE_COLUMNS.iter().zip(cells).filter(|(column, _)| kept(column));
        grid.add_row(cells.map(|(_, cell)| cell).collect::<Vec<_>>());
    };
    add(total_cells(&format!("all {} caches", show.caches.len()), &show.total, show.unweighted));
    let kinds = [
        ("reclaimable", &show.reclaimable),
        ("unreclaimable", &show.unreclaimable),
        ("of unknown kind", &show.unknown),
    ];
    for (name, sum) in kinds.into_iter().filter(|(_, sum)| sum.usage.slab_bytes > 0) {
        add(total_cells(name, sum, None));
    }
    show.sorted_rows(order).into_iter().take(top).for_each(|line| add(cache_cells(line)));
    grid
}

fn total_cells(name: &str, sum: &UsageIntegral, unweighted: Option<f64>) -> Vec<GridCell> {
    let mut cells = vec![GridCell::from(name)];
    cells.extend(integral_cells(sum, unweighted));
    cells
}

fn cache_cells(line: &CacheRow) -> Vec<GridCell> {
    let mut cells = vec![GridCell::from(line.name.as_str())];
    cells.extend(integral_cells(&line.mean, line.unweighted));
    cells.push(line.object_size.into());
    cells.push(line.objs_per_slab.into());
    cells.push(bytes_cell(line.peak_bytes));
    cells.push(other_names_cell(&line.members, &line.name));
    cells
}

/// The columns from `slab` to `occupancy`.
fn integral_cells(integral: &UsageIntegral, unweighted: Option<f64>) -> Vec<GridCell> {
    let mean = MeanUsage::from(*integral);
    vec![
        mean_bytes_cell(mean.slab_bytes),
        mean_bytes_cell(integral.wasted_bytes()),
        mean_bytes_cell(mean.tail_bytes),
        mean.align_bytes.map_or_else(GridCell::missing, mean_bytes_cell),
        mean_bytes_cell(mean.free_bytes),
        efficiency_cell(mean.overall, mean.alignment),
        share_cell(mean.overall_at_least.and_then(perflab_analyze::slab::ExactRatio::value)),
        share_cell(unweighted),
        ratio_cell(mean.packing),
        share_cell(alignment_share(mean.alignment)),
        ratio_cell(mean.occupancy),
    ]
}

/// Waste by kind of the first `top` caches.
#[must_use]
pub fn waste_chart(show: &CacheTable, order: CacheOrder, top: usize) -> Scene {
    let mean = MeanUsage::from(show.total);
    let overall = mean.overall.value().map(format_share).unwrap_or_default();
    let bar = |line: &&CacheRow| {
        let mean = MeanUsage::from(line.mean);
        // A torn row can make a part negative; a stack of parts cannot show that.
        let parts = [mean.tail_bytes, mean.align_bytes.unwrap_or(0.0), mean.free_bytes];
        ChartBar { name: line.name.clone(), parts: parts.map(|part| part.max(0.0)).to_vec(), interval: None }
    };
    BarChart {
        title: "Slab memory that holds no object, by cache".into(),
        note: format!("mean over the run; all caches together: {overall} of slab bytes hold objects"),
        unit: AxisUnit::Bytes,
        parts: ["tail of slabs", "alignment", "free objects"].map(String::from).to_vec(),
        bars: show.sorted_rows(order).iter().take(top).map(bar).collect(),
    }
    .render()
}

/// A size in bytes.
pub(crate) fn bytes_cell(value: u128) -> GridCell {
    let value = u64::try_from(value).unwrap_or(u64::MAX);
    GridCell::with_text(Bytes(value).to_string(), value)
}

/// A mean of bytes; whole bytes are enough for anybody.
pub(crate) fn mean_bytes_cell(value: f64) -> GridCell {
    signed_bytes_cell(value.round() as i128)
}

/// A difference of bytes.
pub(crate) fn signed_bytes_cell(value: i128) -> GridCell {
    let size = u64::try_from(value.unsigned_abs()).unwrap_or(u64::MAX);
    let sign = if value < 0 { "-" } else { "" };
    GridCell::with_text(format!("{sign}{}", Bytes(size)), i64::try_from(value).unwrap_or(i64::MAX))
}

/// A share: `93.51 %` for people, 0.9351 for programs.
pub(crate) fn share_cell(value: Option<f64>) -> GridCell {
    value.map_or_else(GridCell::missing, |value| GridCell::with_text(format_share(value), value))
}

/// An exact ratio as a share.
fn ratio_cell(ratio: ExactRatio) -> GridCell {
    share_cell(ratio.value())
}

/// The efficiency; where not every object size is known, padding counts as use, so it is an upper bound and says so.
pub(crate) fn efficiency_cell(overall: ExactRatio, alignment: AlignmentRatio) -> GridCell {
    let sign = if matches!(alignment, AlignmentRatio::Whole { .. }) { "" } else { "≤ " };
    overall.value().map_or_else(GridCell::missing, |value| {
        GridCell::with_text(format!("{sign}{}", format_share(value)), value)
    })
}

/// How much of the padded bytes was asked for, as far as it is known.
pub(crate) fn alignment_share(alignment: AlignmentRatio) -> Option<f64> {
    match alignment {
        AlignmentRatio::Whole { ratio } | AlignmentRatio::Partly { ratio, .. } => ratio.value(),
        AlignmentRatio::Not => None,
    }
}

/// Names beside the first, shortened for people.
fn other_names_cell(members: &[String], own: &str) -> GridCell {
    let others: Vec<&str> = members.iter().map(String::as_str).filter(|name| *name != own).collect();
    let shown = match others.as_slice() {
        [] => return GridCell::missing(),
        [first] => (*first).to_owned(),
        [first, second] => format!("{first}, {second}"),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    };
    GridCell::with_text(shown, others.join(","))
}

/// Titles, and whether eighty columns have room.
const GROWTH_COLUMNS: [(&str, bool); 10] = [
    ("cache", true),
    ("before", true),
    ("peak", true),
    ("peak at", false),
    ("grown to peak", true),
    ("after", true),
    ("retained", true),
    ("per second", true),
    ("interval", false),
    ("other names", false),
];

/// All caches together, then those that grew most; sizes are medians of the windows before and after.
#[must_use]
pub fn growth_grid(growth: &SlabGrowth, width: GridWidth) -> Grid {
    let kept = |narrow: bool| width == GridWidth::Wide || narrow;
    let columns = GROWTH_COLUMNS.iter().filter(|(_, narrow)| kept(*narrow)).map(|(title, _)| match *title {
        "cache" | "other names" => GridColumn::left(title),
        title => GridColumn::right(title),
    });
    let mut grid = Grid::new(columns);
    let begun = growth.baseline.from;
    let all = growth.contributors.iter().map(|grown| growth_cells(&grown.name, grown, begun));
    for row in std::iter::once(growth_cells("all caches", &growth.total, begun)).chain(all) {
        let cells = GROWTH_COLUMNS.iter().zip(row).filter(|((_, narrow), _)| kept(*narrow));
        grid.add_row(cells.map(|(_, cell)| cell).collect::<Vec<_>>());
    }
    grid
}

fn growth_cells(name: &str, grown: &CacheGrowth, begun: Nanos) -> Vec<GridCell> {
    let at = grown.peak_at.since(begun).seconds();
    let peak = grown.peak_bytes;
    vec![
        name.into(),
        mean_bytes_cell(grown.baseline_bytes),
        bytes_cell(u128::from(peak)),
        GridCell::with_text(format!("{at:.1} s"), at),
        mean_bytes_cell(grown.peak_growth),
        mean_bytes_cell(grown.end_bytes),
        mean_bytes_cell(grown.retained),
        growth_rate_cell(grown.slope.map(|slope| slope.bytes_per_second)),
        slope_interval_cell(grown.slope),
        other_names_cell(&grown.members, name),
    ]
}

fn growth_rate_cell(value: Option<f64>) -> GridCell {
    value.map_or_else(GridCell::missing, |value| {
        GridCell::with_text(format!("{}/s", mean_bytes_cell(value).text()), value)
    })
}

fn slope_interval_cell(slope: Option<GrowthSlope>) -> GridCell {
    let ends = slope.and_then(|slope| slope.low.zip(slope.high));
    ends.map_or_else(GridCell::missing, |(low, high)| {
        let text =
            format!("{} … {}", growth_rate_cell(Some(low)).text(), growth_rate_cell(Some(high)).text());
        GridCell::with_text(text, vec![low, high])
    })
}

/// What each cache grew by until its peak, and what of it stayed.
#[must_use]
pub fn growth_chart(growth: &SlabGrowth) -> Scene {
    let bar = |grown: &CacheGrowth| {
        let kept = grown.retained.clamp(0.0, grown.peak_growth.max(0.0));
        let given_back = (grown.peak_growth - kept).max(0.0);
        ChartBar { name: grown.name.clone(), parts: vec![kept, given_back], interval: None }
    };
    BarChart {
        title: "Growth of slab memory by cache".into(),
        note: "from the median before the workload to the peak; what was still there at the end, and what was not".into(),
        unit: AxisUnit::Bytes,
        parts: ["retained", "given back"].map(String::from).to_vec(),
        bars: growth.contributors.iter().filter(|grown| grown.peak_growth > 0.0).map(bar).collect(),
    }
    .render()
}

/// Letters of the longest bar.
const BAR: f64 = 30.0;

/// One row a bin that has rows; then torn rows above 100 %, and caches without slabs.
#[must_use]
pub fn efficiency_histogram_grid(histogram: &EfficiencyHistogram) -> Grid {
    let mut grid = Grid::new([
        GridColumn::right("from"),
        GridColumn::right("to"),
        GridColumn::right("rows"),
        GridColumn::right("slab"),
        GridColumn::left("share of slab"),
    ]);
    let most = histogram.bins.iter().map(|bin| bin.bytes).fold(0.0, f64::max);
    for bin in histogram.bins.iter().chain([&histogram.above]).filter(|bin| bin.rows > 0) {
        grid.add_row([
            histogram_percent_cell(bin.low),
            bin.high.map_or_else(GridCell::missing, histogram_percent_cell),
            bin.rows.into(),
            mean_bytes_cell(bin.bytes),
            bin_bar_cell(bin, histogram, most),
        ]);
    }
    if histogram.empty_rows > 0 {
        let none = GridCell::with_text("no slabs", serde_json::Value::Null);
        grid.add_row([
            none,
            GridCell::missing(),
            histogram.empty_rows.into(),
            bytes_cell(0),
            GridCell::missing(),
        ]);
    }
    grid
}

fn histogram_percent_cell(value: f64) -> GridCell {
    GridCell::with_text(format_share(value / 100.0), value / 100.0)
}

fn bin_bar_cell(bin: &EfficiencyBin, histogram: &EfficiencyHistogram, most: f64) -> GridCell {
    let all: f64 = histogram.bins.iter().map(|bin| bin.bytes).sum::<f64>() + histogram.above.bytes;
    let letters = (bin.bytes / most.max(1.0) * BAR).round() as usize;
    let share = bin.bytes / all.max(1.0);
    GridCell::with_text(format!("{} {}", "█".repeat(letters), format_share(share)), share)
}

/// How many slab bytes have which efficiency.
#[must_use]
pub fn efficiency_histogram_chart(histogram: &EfficiencyHistogram, mean: Option<f64>) -> Scene {
    let edges = histogram.bins.iter().map(|bin| bin.low / 100.0).chain([1.0]).collect();
    let left_out = histogram.above.rows;
    bar_charts::HistogramChart {
        title: "Slab memory by efficiency".into(),
        note: format!(
            "mean slab bytes of the caches whose efficiency lies there; {} rows without slabs, {left_out} above 100 % \
             (torn) not drawn",
            histogram.empty_rows
        ),
        unit: AxisUnit::Share,
        x_title: "efficiency [%]".into(),
        height_unit: AxisUnit::Bytes,
        edges,
        counts: histogram.bins.iter().map(|bin| bin.bytes).collect(),
        pointers: mean.map(|mean| ("all caches".to_owned(), mean)).into_iter().collect(),
    }
    .render()
}

/// One row a cache; those that did not change only where `all` is set.
#[must_use]
pub fn slab_comparison_grid(comparison: &SlabComparison, all: bool) -> Grid {
    let named = NamedColumns::from_comparison(comparison);
    let mut left = vec!["cache"];
    left.extend(named.cases.then_some("case"));
    left.extend(named.candidates.then_some("candidate"));
    let right = ["before", "after", "change", "interval", "peak", "end", "noise floor"];
    let mut columns: Vec<GridColumn> = left.into_iter().map(GridColumn::left).collect();
    columns.extend(right.map(GridColumn::right));
    columns.extend(["verdict", "other names"].map(GridColumn::left));
    let mut grid = Grid::new(columns);
    for (index, change) in comparison.caches.iter().enumerate() {
        if all || index == 0 || has_news(change) {
            grid.add_row(cache_change_cells(change, named));
        }
    }
    grid
}

/// What must be named in each row, because there are several.
#[derive(Debug, Clone, Copy)]
struct NamedColumns {
    cases: bool,
    candidates: bool,
}

impl NamedColumns {
    fn from_comparison(comparison: &SlabComparison) -> Self {
        let differ = |of: fn(&CacheChange) -> &str| {
            let first = comparison.caches.first().map(of);
            comparison.caches.iter().any(|change| Some(of(change)) != first)
        };
        NamedColumns {
            cases: differ(|change| &change.subject),
            candidates: differ(|change| &change.candidate_name),
        }
    }
}

/// Whether there is anything to say of a cache beyond "as before".
fn has_news(change: &CacheChange) -> bool {
    let moved = change.bytes.is_some_and(|bytes| bytes.value.abs() > change.floor);
    moved || matches!(change.verdict, Verdict::Better | Verdict::Worse | Verdict::Differs)
}

fn cache_change_cells(change: &CacheChange, named: NamedColumns) -> Vec<GridCell> {
    let median = |row: &perflab_analyze::VerdictRow, after: bool| {
        let summary = if after { row.candidate.as_ref() } else { row.baseline.as_ref() };
        summary.map(|summary| summary.median)
    };
    let size = |value: Option<f64>| value.map_or_else(GridCell::missing, mean_bytes_cell);
    let difference = |row: &Option<perflab_analyze::VerdictRow>| {
        let row = row.as_ref()?;
        Some(median(row, true)? - median(row, false)?)
    };
    let mut cells = vec![GridCell::from(change.cache.as_str())];
    cells.extend(named.cases.then(|| change.subject.as_str().into()));
    cells.extend(named.candidates.then(|| change.candidate_name.as_str().into()));
    cells.extend([
        size(median(&change.mean, false)),
        size(median(&change.mean, true)),
        signed_cell(change.bytes.map(|bytes| bytes.value)),
        change_interval_cell(change.bytes),
        signed_cell(difference(&change.peak)),
        signed_cell(difference(&change.end)),
        mean_bytes_cell(change.floor),
        verdict_cell(change),
        other_names_cell(&change.members, &change.cache),
    ]);
    cells
}

/// A change: with its sign.
fn signed_cell(value: Option<f64>) -> GridCell {
    let Some(value) = value else { return GridCell::missing() };
    let cell = mean_bytes_cell(value);
    if value.round() > 0.0 { GridCell::with_text(format!("+{}", cell.text()), value.round()) } else { cell }
}

fn change_interval_cell(change: Option<BytesChange>) -> GridCell {
    let ends = change.and_then(|change| change.low.zip(change.high));
    ends.map_or_else(GridCell::missing, |(low, high)| {
        let text = format!("{} … {}", signed_cell(Some(low)).text(), signed_cell(Some(high)).text());
        GridCell::with_text(text, vec![low, high])
    })
}

/// More bytes are worse; what is within the noise floor is the same.
fn verdict_cell(change: &CacheChange) -> GridCell {
    let word = change.verdict.word();
    if change.within_floor {
        GridCell::with_text(format!("{word} (within the floor)"), word)
    } else {
        word.into()
    }
}

/// The largest changes in bytes, with their intervals.
#[must_use]
pub fn slab_change_chart(comparison: &SlabComparison, top: usize) -> Scene {
    let named = NamedColumns::from_comparison(comparison);
    let bar = |change: &CacheChange| {
        let bytes = change.bytes?;
        let interval = bytes.low.zip(bytes.high);
        let name = match named.candidates {
            true => format!("{} ({})", change.cache, change.candidate_name),
            false => change.cache.clone(),
        };
        (bytes.value != 0.0).then(|| ChartBar { name, parts: vec![bytes.value], interval })
    };
    let names = (comparison.mean.baseline.as_str(), comparison.mean.candidates.join(", "));
    BarChart {
        title: format!("Slab bytes: {} against {}", names.1, names.0),
        note: "change of the mean over time, with its interval; more is worse".into(),
        unit: AxisUnit::Bytes,
        parts: Vec::new(),
        bars: comparison.caches.iter().filter_map(bar).take(top).collect(),
    }
    .render()
}

/// A cache under another layout.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct WhatIfRow {
    /// The cache.
    pub cache: String,
    /// What would be.
    pub what_if: LayoutWhatIf,
}

impl WhatIfRow {
    /// Bytes saved; below 0 where it would take more.
    #[must_use]
    pub fn saved_bytes(&self) -> i128 {
        i128::from(self.what_if.bytes_now) - i128::from(self.what_if.bytes_then)
    }
}

/// One row a cache and layout.
#[must_use]
pub fn what_if_grid(rows: &[WhatIfRow]) -> Grid {
    let numbers = ["order", "object", "slot", "per slab", "slab", "saved", "if full, now", "if full, then"];
    let columns = [GridColumn::left("cache")].into_iter().chain(numbers.map(GridColumn::right));
    let mut grid = Grid::new(columns);
    for row in rows {
        let then = row.what_if.then;
        grid.add_row([
            row.cache.as_str().into(),
            then.order.into(),
            then.object_size.into(),
            then.slab_size.into(),
            then.objs_per_slab.into(),
            bytes_cell(u128::from(row.what_if.bytes_then)),
            signed_bytes_cell(row.saved_bytes()),
            bytes_cell(u128::from(row.what_if.packed_now)),
            bytes_cell(u128::from(row.what_if.packed_then)),
        ]);
    }
    grid
}
