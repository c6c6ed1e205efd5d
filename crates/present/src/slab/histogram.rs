//! Owns how the spread of efficiencies is shown. It refuses to hide what has none: it is a row of its own.

use perflab_analyze::slab::EfficiencyHistogram;
use perflab_analyze::slab::histogram::EfficiencyBin;

use super::cells;
use crate::chart::{self, AxisUnit, Scene};
use crate::table::{Grid, GridCell, GridColumn};

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
            cells::mean_bytes_cell(bin.bytes),
            bin_bar_cell(bin, histogram, most),
        ]);
    }
    if histogram.empty_rows > 0 {
        let none = GridCell::with_text("no slabs", serde_json::Value::Null);
        grid.add_row([
            none,
            GridCell::missing(),
            histogram.empty_rows.into(),
            cells::bytes_cell(0),
            GridCell::missing(),
        ]);
    }
    grid
}

fn histogram_percent_cell(value: f64) -> GridCell {
    GridCell::with_text(format!("{value:.1} %"), value / 100.0)
}

fn bin_bar_cell(bin: &EfficiencyBin, histogram: &EfficiencyHistogram, most: f64) -> GridCell {
    let all: f64 = histogram.bins.iter().map(|bin| bin.bytes).sum::<f64>() + histogram.above.bytes;
    let letters = (bin.bytes / most.max(1.0) * BAR).round() as usize;
    let share = bin.bytes / all.max(1.0);
    GridCell::with_text(format!("{} {:.1} %", "█".repeat(letters), share * 100.0), share)
}

/// How many slab bytes have which efficiency.
#[must_use]
pub fn efficiency_histogram_chart(histogram: &EfficiencyHistogram, mean: Option<f64>) -> Scene {
    let edges = histogram.bins.iter().map(|bin| bin.low / 100.0).chain([1.0]).collect();
    let left_out = histogram.above.rows;
    chart::HistogramChart {
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

/// How many rows have which efficiency, each row alike: what the notebook's histogram shows.
#[must_use]
pub fn row_histogram_chart(histogram: &EfficiencyHistogram) -> Scene {
    chart::HistogramChart {
        title: "Rows by efficiency".into(),
        note: "rows: one a cache a tick, a small cache as much as a large one".into(),
        unit: AxisUnit::Share,
        x_title: "efficiency [%]".into(),
        height_unit: AxisUnit::Plain("rows".into()),
        edges: histogram.bins.iter().map(|bin| bin.low / 100.0).chain([1.0]).collect(),
        counts: histogram.bins.iter().map(|bin| bin.rows as f64).collect(),
        pointers: Vec::new(),
    }
    .render()
}
