//! Figures of the notebook of 2019 beside ours, for `--method notebook` only.
//!
//! Its figures are under their own names and with six decimals, so that they can be checked digit by digit; neither is
//! drawn without the other.

use perflab_analyze::slab::ExactRatio;
use perflab_analyze::slab::notebook::{
    NotebookCacheTimeline, NotebookDifference, NotebookTable, NotebookTimeline, NumpyHistogram,
};
use perflab_model::Nanos;
use serde::Serialize;

use crate::chart::{self, AxisUnit, BarChart, ChartBar, ChartLine, LineChart, Scene};
use crate::grid::{Grid, GridCell, GridColumn};
use crate::slab::grids;

/// Six decimals, as the notebook prints.
fn six_decimals_cell(value: f64) -> GridCell {
    GridCell::with_text(format!("{value:.6}"), value)
}

/// Ours, in per cent, as the notebook counts.
fn own_percent_cell(ratio: Option<ExactRatio>) -> GridCell {
    ratio.and_then(ExactRatio::percent).map_or_else(GridCell::missing, six_decimals_cell)
}

fn notebook_columns<const N: usize>(left: &str, right: [&str; N]) -> Vec<GridColumn> {
    [GridColumn::left(left)].into_iter().chain(right.map(GridColumn::right)).collect()
}

/// The notebook's table of least efficient caches; the columns before each bar are its own.
#[must_use]
pub fn notebook_table_grid(table: &NotebookTable) -> Grid {
    let titles = ["percent_efficient", "ours: overall %", "space_normalized_in_kb", "ours: slab", "rows"];
    let mut grid = Grid::new(notebook_columns("name", titles));
    for row in &table.rows {
        grid.add_row([
            row.name.as_str().into(),
            six_decimals_cell(row.percent_efficient),
            own_percent_cell(row.overall),
            six_decimals_cell(row.space_normalized_in_kb),
            row.slab_bytes.map_or_else(GridCell::missing, grids::mean_bytes_cell),
            row.rows.into(),
        ]);
    }
    grid
}

/// The same as bars.
#[must_use]
pub fn notebook_table_chart(table: &NotebookTable) -> Scene {
    let bar = |row: &perflab_analyze::slab::notebook::NotebookRow| ChartBar {
        name: row.name.clone(),
        parts: vec![row.percent_efficient / 100.0],
        interval: row.overall.and_then(ExactRatio::value).map(|exact| (exact, exact)),
    };
    BarChart {
        title: "The notebook's table: least efficient caches".into(),
        note: "bar: mean of the printed percentages; mark: exact ratio of sums".into(),
        unit: AxisUnit::Share,
        parts: Vec::new(),
        bars: table.rows.iter().map(bar).collect(),
    }
    .render()
}

/// Its two means over time, and ours.
#[must_use]
pub fn notebook_timeline_grid(timeline: &NotebookTimeline, most: Option<usize>) -> Grid {
    let titles = ["Average SLAB efficiency", "Weighted average", "ours: overall %"];
    let mut grid = Grid::new(notebook_columns("time", titles));
    let begun = timeline.points.first().map(|point| point.at).unwrap_or_default();
    for point in crate::slab::scenes::pick_evenly(&timeline.points, most) {
        let weighted = point.weighted.map_or_else(GridCell::missing, six_decimals_cell);
        grid.add_row([
            elapsed_cell(point.at, begun),
            six_decimals_cell(point.unweighted),
            weighted,
            own_percent_cell(point.overall),
        ]);
    }
    grid
}

/// One cache over time, as printed, and ours.
#[must_use]
pub fn notebook_cache_grid(cache: &NotebookCacheTimeline, most: Option<usize>) -> Grid {
    let mut grid = Grid::new(notebook_columns("time", ["percent_efficient", "ours: overall %"]));
    let begun = cache.points.first().map(|point| point.at).unwrap_or_default();
    for point in crate::slab::scenes::pick_evenly(&cache.points, most) {
        grid.add_row([
            elapsed_cell(point.at, begun),
            six_decimals_cell(point.percent_efficient as f64),
            own_percent_cell(point.overall),
        ]);
    }
    grid
}

fn elapsed_cell(at: Nanos, begun: Nanos) -> GridCell {
    let seconds = at.since(begun).seconds();
    GridCell::with_text(format!("{seconds:.1} s"), seconds)
}

fn percent_chart(title: String, at: Vec<Nanos>, lines: Vec<ChartLine>) -> Scene {
    let begun = at.first().copied().unwrap_or_default();
    LineChart {
        title,
        note: "dashed: the notebook's; solid: exact ratios of sums".into(),
        unit: AxisUnit::Share,
        from_zero: false,
        times: at.iter().map(|at| at.since(begun).seconds()).collect(),
        lines,
        bands: Vec::new(),
    }
    .render()
}

fn notebook_line(name: &str, percent: impl Iterator<Item = Option<f64>>) -> ChartLine {
    let values = percent.map(|percent| percent.map(|percent| percent / 100.0)).collect();
    ChartLine { dashed: true, ..ChartLine::new(name, values) }
}

/// Its two means over time, and ours.
#[must_use]
pub fn notebook_timeline_chart(timeline: &NotebookTimeline) -> Scene {
    let points = &timeline.points;
    let exact = points.iter().map(|point| point.overall.and_then(ExactRatio::value)).collect();
    percent_chart(
        "Slab efficiency over time: the notebook's means and ours".into(),
        points.iter().map(|point| point.at).collect(),
        vec![
            ChartLine::new("overall, exact", exact),
            notebook_line("weighted average", points.iter().map(|point| point.weighted)),
            notebook_line("average of caches", points.iter().map(|point| Some(point.unweighted))),
        ],
    )
}

/// One cache over time, as printed, and ours.
#[must_use]
pub fn notebook_cache_chart(cache: &NotebookCacheTimeline) -> Scene {
    let points = &cache.points;
    let exact = points.iter().map(|point| point.overall.and_then(ExactRatio::value)).collect();
    percent_chart(
        format!("Efficiency of {}: as printed and exact", cache.name),
        points.iter().map(|point| point.at).collect(),
        vec![
            ChartLine::new("overall, exact", exact),
            notebook_line(
                "percent_efficient",
                points.iter().map(|point| Some(point.percent_efficient as f64)),
            ),
        ],
    )
}

/// One of its histograms, with ours in the same bins; bins that are empty in both are left out.
#[must_use]
pub fn notebook_histogram_grid(notebook: &NumpyHistogram, exact: Option<&NumpyHistogram>) -> Grid {
    let mut grid = Grid::new(["from", "to", "notebook", "ours"].map(GridColumn::right));
    for (index, (edges, count)) in notebook.edges.windows(2).zip(&notebook.counts).enumerate() {
        let [from, to] = edges else { continue };
        let exact = exact.and_then(|exact| exact.counts.get(index)).copied();
        if *count > 0 || exact.unwrap_or(0) > 0 {
            grid.add_row([six_decimals_cell(*from), six_decimals_cell(*to), (*count).into(), exact.into()]);
        }
    }
    grid
}

/// The notebook's histogram as it drew it.
#[must_use]
pub fn notebook_histogram_chart(notebook: &NumpyHistogram, what: &str) -> Scene {
    chart::HistogramChart {
        title: format!("The notebook's histogram of {what}"),
        note: "rows: one a cache a tick, each alike".into(),
        unit: AxisUnit::Share,
        x_title: "efficiency [%]".into(),
        height_unit: AxisUnit::Plain("rows".into()),
        edges: notebook.edges.iter().map(|edge| edge / 100.0).collect(),
        counts: notebook.counts.iter().map(|count| *count as f64).collect(),
        pointers: Vec::new(),
    }
    .render()
}

/// Why the notebook's figure differs from ours.
#[must_use]
pub fn describe_notebook_difference(difference: &NotebookDifference) -> String {
    match difference {
            NotebookDifference::FlooredPercentages => {
                "the tool cuts %Ef to a whole number, so a mean of it is low by up to 1 point; ours divides bytes by bytes".into()
            }
            NotebookDifference::TruncatedSpace => {
                "Space is cut to one digit behind the point, so weights are low by up to 100 kB".into()
            }
            NotebookDifference::CachesAlike => {
                "every cache counts the same: one of 16 kB as much as one of 260 MB, which says nothing about memory".into()
            }
            NotebookDifference::TicksAlike => {
                "every tick counts the same; ours counts the time that it stands for".into()
            }
            NotebookDifference::TiesUnordered => {
                "rows of the same %Ef stand in no defined order (an unstable sort); ours are ordered by name".into()
            }
            NotebookDifference::CapacityAsUse => {
                "num_objs counts slots, used or free: the result is one constant a cache (the packing) and cannot move with the load".into()
            }
            NotebookDifference::PaddedSize => {
                "objsize is the padded size of a slot, so that what alignment costs is counted as use".into()
            }
            NotebookDifference::AboveHundredDropped { rows } => format!(
                "{rows} rows above 100 % are left out; they were torn (files of one cache read at different times), and as torn rows below 100 % stay, the mean is not cured"
            ),
            NotebookDifference::DecimalMegaTimes1024 { rows } => format!(
                "{rows} rows have Space in M, which is 1,000 K; times 1,024 they weigh 2.4 % too much"
            ),
            NotebookDifference::AbsentTicks { caches } => format!(
                "{caches} caches have no row at some ticks; the mean leaves these ticks out, ours counts 0 bytes"
            ),
            NotebookDifference::MergedNames { names } => format!(
                "{names} rows are groups of merged caches under the name of their directory; the members are not named"
            ),
            NotebookDifference::OrderAssumed { rows } => format!(
                "{rows} rows of caches without a known order get order 0; pagesperslab says the truth in each row"
            ),
            NotebookDifference::EmptyDropped { rows } => {
                format!("{rows} rows of caches without slabs are 0 / 0 and vanish without a word")
            }
            NotebookDifference::OtherUnits { rows } => format!(
                "{rows} rows have a Space that is neither in K nor in M: there the notebook stops; here they are left out"
            ),
            NotebookDifference::PageSizeAssumed { page_size } => {
                let here = page_size.map_or("unknown".into(), |bytes| bytes.to_string());
                format!("a page is taken to have 4,096 bytes; here it is {here}")
            }
    }
}

/// A figure of the notebook as JSON, with the reasons for which it differs from ours in words.
#[derive(Debug, Serialize)]
pub struct NotebookDocument<'a, T> {
    #[serde(flatten)]
    figure: &'a T,
    reasons: Vec<NotebookReason>,
}

#[derive(Debug, Serialize)]
struct NotebookReason {
    code: &'static str,
    words: String,
}

impl<'a, T> NotebookDocument<'a, T> {
    /// A figure and its differences.
    #[must_use]
    pub fn new(figure: &'a T, differences: &[NotebookDifference]) -> Self {
        let reason = |difference: &NotebookDifference| NotebookReason {
            code: difference.code(),
            words: describe_notebook_difference(difference),
        };
        NotebookDocument { figure, reasons: differences.iter().map(reason).collect() }
    }
}

/// One column: what we call it, and what the notebook does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NotebookColumn {
    /// In our tables and JSON.
    pub ours: &'static str,
    /// In the notebook's frames.
    pub notebook: &'static str,
    /// What sets them apart; empty where they are the same number.
    pub difference: &'static str,
}

const fn same_column(ours: &'static str, notebook: &'static str) -> NotebookColumn {
    NotebookColumn { ours, notebook, difference: "" }
}

const fn different_column(
    ours: &'static str,
    notebook: &'static str,
    difference: &'static str,
) -> NotebookColumn {
    NotebookColumn { ours, notebook, difference }
}

/// Every column that both have.
pub const NOTEBOOK_COLUMNS: &[NotebookColumn] = &[
    same_column("cache", "name"),
    same_column("at", "time"),
    different_column("overall", "percent_efficient", "a whole number, cut"),
    different_column("slab_bytes", "space_normalized_in_kb", "decimal K; M times 1,024; one digit"),
    different_column("slab_bytes", "space", "text as printed"),
    same_column("objects", "objects"),
    same_column("object_size", "object_size"),
    different_column(
        "slabs, partial, cpu_slabs",
        "slabs_part_cpu",
        "one text; its slabs are those not held by CPUs",
    ),
    same_column("objs_per_slab", "o_s"),
    same_column("order", "o"),
    different_column("partial / slabs", "percent_free", "share of slabs that are partial, not free space"),
    same_column("flags", "flags"),
    same_column("active_objs", "active_objs"),
    same_column("num_objs", "num_objs"),
    different_column("slab_size", "objsize", "the padded size of a slot"),
    same_column("objs_per_slab", "objperslab"),
    same_column("pages_per_slab", "pagesperslab"),
    same_column("slabs", "num_slabs"),
    different_column("occupancy", "active_vs_num", "objects, not bytes"),
    different_column("packing", "ef", "called efficiency there; one constant a cache"),
];
