//! Owns how the spread of efficiencies is shown. It refuses to hide what has none: it is a row of its own.

use perflab_analyze::slab::Histogram;
use perflab_analyze::slab::histogram::Bin;

use super::cells;
use crate::chart::{self, Scene, Unit};
use crate::table::{Cell, Column, Grid};

/// Letters of the longest bar.
const BAR: f64 = 30.0;

/// One row a bin that has rows; then torn rows above 100 %, and caches without slabs.
#[must_use]
pub fn grid(histogram: &Histogram) -> Grid {
    let mut grid = Grid::new([
        Column::right("from"),
        Column::right("to"),
        Column::right("rows"),
        Column::right("slab"),
        Column::left("share of slab"),
    ]);
    let most = histogram.bins.iter().map(|bin| bin.bytes).fold(0.0, f64::max);
    for bin in histogram.bins.iter().chain([&histogram.above]).filter(|bin| bin.rows > 0) {
        grid.add([
            percent(bin.low),
            bin.high.map_or_else(Cell::missing, percent),
            bin.rows.into(),
            cells::mean_bytes(bin.bytes),
            bar(bin, histogram, most),
        ]);
    }
    if histogram.empty_rows > 0 {
        let none = Cell::shown("no slabs", serde_json::Value::Null);
        grid.add([none, Cell::missing(), histogram.empty_rows.into(), cells::bytes(0), Cell::missing()]);
    }
    grid
}

fn percent(value: f64) -> Cell {
    Cell::shown(format!("{value:.1} %"), value / 100.0)
}

fn bar(bin: &Bin, histogram: &Histogram, most: f64) -> Cell {
    let all: f64 = histogram.bins.iter().map(|bin| bin.bytes).sum::<f64>() + histogram.above.bytes;
    let letters = (bin.bytes / most.max(1.0) * BAR).round() as usize;
    let share = bin.bytes / all.max(1.0);
    Cell::shown(format!("{} {:.1} %", "█".repeat(letters), share * 100.0), share)
}

/// How many slab bytes have which efficiency.
#[must_use]
pub fn figure(histogram: &Histogram, mean: Option<f64>) -> Scene {
    let edges = histogram.bins.iter().map(|bin| bin.low / 100.0).chain([1.0]).collect();
    let left_out = histogram.above.rows;
    chart::Histogram {
        title: "Slab memory by efficiency".into(),
        note: format!(
            "mean slab bytes of the caches whose efficiency lies there; {} rows without slabs, {left_out} above 100 % \
             (torn) not drawn",
            histogram.empty_rows
        ),
        unit: Unit::Share,
        name: "efficiency [%]".into(),
        heights: Unit::Bytes,
        edges,
        counts: histogram.bins.iter().map(|bin| bin.bytes).collect(),
        pointers: mean.map(|mean| ("all caches".to_owned(), mean)).into_iter().collect(),
    }
    .scene()
}

/// How many rows have which efficiency, each row alike: what the notebook's histogram shows.
#[must_use]
pub fn rows_figure(histogram: &Histogram) -> Scene {
    chart::Histogram {
        title: "Rows by efficiency".into(),
        note: "rows: one a cache a tick, a small cache as much as a large one".into(),
        unit: Unit::Share,
        name: "efficiency [%]".into(),
        heights: Unit::Plain("rows".into()),
        edges: histogram.bins.iter().map(|bin| bin.low / 100.0).chain([1.0]).collect(),
        counts: histogram.bins.iter().map(|bin| bin.rows as f64).collect(),
        pointers: Vec::new(),
    }
    .scene()
}
