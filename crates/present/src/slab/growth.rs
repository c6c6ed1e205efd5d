//! Owns how growth is shown. It refuses the word leak: a slope is what it is.

use perflab_analyze::slab::SlabGrowth;
use perflab_analyze::slab::growth::{CacheGrowth, GrowthSlope};
use perflab_model::Nanos;

use super::cells;
use super::show::GridWidth;
use crate::chart::{AxisUnit, BarChart, ChartBar, Scene};
use crate::table::{Grid, GridCell, GridColumn};

/// Titles, and whether eighty columns have room.
const COLUMNS: [(&str, bool); 10] = [
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
    let columns = COLUMNS.iter().filter(|(_, narrow)| kept(*narrow)).map(|(title, _)| match *title {
        "cache" | "other names" => GridColumn::left(title),
        title => GridColumn::right(title),
    });
    let mut grid = Grid::new(columns);
    let begun = growth.baseline.from;
    let all = growth.contributors.iter().map(|grown| growth_cells(&grown.name, grown, begun));
    for row in std::iter::once(growth_cells("all caches", &growth.total, begun)).chain(all) {
        let cells = COLUMNS.iter().zip(row).filter(|((_, narrow), _)| kept(*narrow));
        grid.add_row(cells.map(|(_, cell)| cell).collect::<Vec<_>>());
    }
    grid
}

fn growth_cells(name: &str, grown: &CacheGrowth, begun: Nanos) -> Vec<GridCell> {
    let at = grown.peak_at.since(begun).seconds();
    let peak = grown.peak_bytes;
    vec![
        name.into(),
        cells::mean_bytes_cell(grown.baseline_bytes),
        cells::bytes_cell(u128::from(peak)),
        GridCell::with_text(format!("{at:.1} s"), at),
        cells::mean_bytes_cell(grown.peak_growth),
        cells::mean_bytes_cell(grown.end_bytes),
        cells::mean_bytes_cell(grown.retained),
        growth_rate_cell(grown.slope.map(|slope| slope.bytes_per_second)),
        slope_interval_cell(grown.slope),
        cells::other_names_cell(&grown.members, name),
    ]
}

fn growth_rate_cell(value: Option<f64>) -> GridCell {
    value.map_or_else(GridCell::missing, |value| {
        GridCell::with_text(format!("{}/s", cells::mean_bytes_cell(value).text()), value)
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
