//! Owns how the notebook's figures stand beside ours: theirs under their own names and with six decimals, so that
//! they can be checked digit by digit. It refuses to draw one without the other.

use perflab_analyze::slab::Ratio;
use perflab_analyze::slab::notebook::{Bins, NotebookCache, NotebookTable, NotebookTimeline};
use perflab_model::Nanos;

use super::cells;
use crate::chart::{self, Bar, Bars, Line, Lines, Scene, Unit};
use crate::table::{Cell, Column, Grid};

/// Six decimals, as the notebook prints.
fn six(value: f64) -> Cell {
    Cell::shown(format!("{value:.6}"), value)
}

/// Ours, in per cent, as the notebook counts.
fn ours(ratio: Option<Ratio>) -> Cell {
    ratio.and_then(Ratio::percent).map_or_else(Cell::missing, six)
}

fn columns<const N: usize>(left: &str, right: [&str; N]) -> Vec<Column> {
    [Column::left(left)].into_iter().chain(right.map(Column::right)).collect()
}

/// The notebook's table of least efficient caches; the columns before each bar are its own.
#[must_use]
pub fn table_grid(table: &NotebookTable) -> Grid {
    let titles = ["percent_efficient", "ours: overall %", "space_normalized_in_kb", "ours: slab", "rows"];
    let mut grid = Grid::new(columns("name", titles));
    for row in &table.rows {
        grid.add([
            row.name.as_str().into(),
            six(row.percent_efficient),
            ours(row.overall),
            six(row.space_normalized_in_kb),
            row.slab_bytes.map_or_else(Cell::missing, cells::mean_bytes),
            row.rows.into(),
        ]);
    }
    grid
}

/// The same as bars.
#[must_use]
pub fn table_figure(table: &NotebookTable) -> Scene {
    let bar = |row: &perflab_analyze::slab::notebook::TableRow| Bar {
        name: row.name.clone(),
        parts: vec![row.percent_efficient / 100.0],
        interval: row.overall.and_then(Ratio::value).map(|exact| (exact, exact)),
    };
    Bars {
        title: "The notebook's table: least efficient caches".into(),
        note: "bar: mean of the printed percentages; mark: exact ratio of sums".into(),
        unit: Unit::Share,
        parts: Vec::new(),
        bars: table.rows.iter().map(bar).collect(),
    }
    .scene()
}

/// Its two means over time, and ours.
#[must_use]
pub fn timeline_grid(timeline: &NotebookTimeline, most: Option<usize>) -> Grid {
    let titles = ["Average SLAB efficiency", "Weighted average", "ours: overall %"];
    let mut grid = Grid::new(columns("time", titles));
    let begun = timeline.points.first().map(|point| point.at).unwrap_or_default();
    for point in super::timeline::thinned(&timeline.points, most) {
        let weighted = point.weighted.map_or_else(Cell::missing, six);
        grid.add([time(point.at, begun), six(point.unweighted), weighted, ours(point.overall)]);
    }
    grid
}

/// One cache over time, as printed, and ours.
#[must_use]
pub fn cache_grid(cache: &NotebookCache, most: Option<usize>) -> Grid {
    let mut grid = Grid::new(columns("time", ["percent_efficient", "ours: overall %"]));
    let begun = cache.points.first().map(|point| point.at).unwrap_or_default();
    for point in super::timeline::thinned(&cache.points, most) {
        grid.add([time(point.at, begun), six(point.percent_efficient as f64), ours(point.overall)]);
    }
    grid
}

fn time(at: Nanos, begun: Nanos) -> Cell {
    let seconds = at.since(begun).seconds();
    Cell::shown(format!("{seconds:.1} s"), seconds)
}

fn lines(title: String, at: Vec<Nanos>, lines: Vec<Line>) -> Scene {
    let begun = at.first().copied().unwrap_or_default();
    Lines {
        title,
        note: "dashed: the notebook's; solid: exact ratios of sums".into(),
        unit: Unit::Share,
        from_zero: false,
        times: at.iter().map(|at| at.since(begun).seconds()).collect(),
        lines,
        spans: Vec::new(),
    }
    .scene()
}

fn theirs(name: &str, percent: impl Iterator<Item = Option<f64>>) -> Line {
    let values = percent.map(|percent| percent.map(|percent| percent / 100.0)).collect();
    Line { dashed: true, ..Line::new(name, values) }
}

/// Its two means over time, and ours.
#[must_use]
pub fn timeline_figure(timeline: &NotebookTimeline) -> Scene {
    let points = &timeline.points;
    let exact = points.iter().map(|point| point.overall.and_then(Ratio::value)).collect();
    lines(
        "Slab efficiency over time: the notebook's means and ours".into(),
        points.iter().map(|point| point.at).collect(),
        vec![
            Line::new("overall, exact", exact),
            theirs("weighted average", points.iter().map(|point| point.weighted)),
            theirs("average of caches", points.iter().map(|point| Some(point.unweighted))),
        ],
    )
}

/// One of its two means over time, and ours: each cache alike, or weighted by space.
#[must_use]
pub fn mean_figure(timeline: &NotebookTimeline, weighted: bool) -> Scene {
    let points = &timeline.points;
    let exact = points.iter().map(|point| point.overall.and_then(Ratio::value)).collect();
    let (title, printed) = match weighted {
        true => (
            "Average slab efficiency weighted by space: the notebook's and ours",
            theirs("weighted average", points.iter().map(|point| point.weighted)),
        ),
        false => (
            "Average slab efficiency: the notebook's and ours",
            theirs("average of caches", points.iter().map(|point| Some(point.unweighted))),
        ),
    };
    let times = points.iter().map(|point| point.at).collect();
    lines(title.into(), times, vec![Line::new("overall, exact", exact), printed])
}

/// One cache over time, as printed, and ours.
#[must_use]
pub fn cache_figure(cache: &NotebookCache) -> Scene {
    let points = &cache.points;
    let exact = points.iter().map(|point| point.overall.and_then(Ratio::value)).collect();
    lines(
        format!("Efficiency of {}: as printed and exact", cache.name),
        points.iter().map(|point| point.at).collect(),
        vec![
            Line::new("overall, exact", exact),
            theirs("percent_efficient", points.iter().map(|point| Some(point.percent_efficient as f64))),
        ],
    )
}

/// One of its histograms, with ours in the same bins; bins that are empty in both are left out.
#[must_use]
pub fn histogram_grid(notebook: &Bins, exact: Option<&Bins>) -> Grid {
    let mut grid = Grid::new(["from", "to", "notebook", "ours"].map(Column::right));
    for (index, (edges, count)) in notebook.edges.windows(2).zip(&notebook.counts).enumerate() {
        let [from, to] = edges else { continue };
        let exact = exact.and_then(|exact| exact.counts.get(index)).copied();
        if *count > 0 || exact.unwrap_or(0) > 0 {
            grid.add([six(*from), six(*to), (*count).into(), exact.into()]);
        }
    }
    grid
}

/// The notebook's histogram as it drew it.
#[must_use]
pub fn histogram_figure(notebook: &Bins, what: &str) -> Scene {
    chart::Histogram {
        title: format!("The notebook's histogram of {what}"),
        note: "rows: one a cache a tick, each alike".into(),
        unit: Unit::Share,
        name: "efficiency [%]".into(),
        heights: Unit::Plain("rows".into()),
        edges: notebook.edges.iter().map(|edge| edge / 100.0).collect(),
        counts: notebook.counts.iter().map(|count| *count as f64).collect(),
        pointers: Vec::new(),
    }
    .scene()
}
