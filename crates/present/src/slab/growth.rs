//! Owns how growth is shown. It refuses the word leak: a slope is what it is.

use perflab_analyze::slab::Growth;
use perflab_analyze::slab::growth::{Grown, Slope};
use perflab_model::Nanos;

use super::cells;
use super::show::Width;
use crate::chart::{Bar, Bars, Scene, Unit};
use crate::table::{Cell, Column, Grid};

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
pub fn grid(growth: &Growth, width: Width) -> Grid {
    let kept = |narrow: bool| width == Width::Wide || narrow;
    let columns = COLUMNS.iter().filter(|(_, narrow)| kept(*narrow)).map(|(title, _)| match *title {
        "cache" | "other names" => Column::left(title),
        title => Column::right(title),
    });
    let mut grid = Grid::new(columns);
    let begun = growth.baseline.from;
    let all = growth.contributors.iter().map(|grown| row(&grown.name, grown, begun));
    for row in std::iter::once(row("all caches", &growth.total, begun)).chain(all) {
        let cells = COLUMNS.iter().zip(row).filter(|((_, narrow), _)| kept(*narrow));
        grid.add(cells.map(|(_, cell)| cell).collect::<Vec<_>>());
    }
    grid
}

fn row(name: &str, grown: &Grown, begun: Nanos) -> Vec<Cell> {
    let at = grown.peak_at.since(begun).seconds();
    let peak = grown.peak_bytes;
    vec![
        name.into(),
        cells::mean_bytes(grown.baseline_bytes),
        cells::bytes(u128::from(peak)),
        Cell::shown(format!("{at:.1} s"), at),
        cells::mean_bytes(grown.peak_growth),
        cells::mean_bytes(grown.end_bytes),
        cells::mean_bytes(grown.retained),
        rate(grown.slope.map(|slope| slope.bytes_per_second)),
        interval(grown.slope),
        cells::others(&grown.members, name),
    ]
}

fn rate(value: Option<f64>) -> Cell {
    value.map_or_else(Cell::missing, |value| {
        Cell::shown(format!("{}/s", cells::mean_bytes(value).text()), value)
    })
}

fn interval(slope: Option<Slope>) -> Cell {
    let ends = slope.and_then(|slope| slope.low.zip(slope.high));
    ends.map_or_else(Cell::missing, |(low, high)| {
        let text = format!("{} … {}", rate(Some(low)).text(), rate(Some(high)).text());
        Cell::shown(text, vec![low, high])
    })
}

/// What each cache grew by until its peak, and what of it stayed.
#[must_use]
pub fn figure(growth: &Growth) -> Scene {
    let bar = |grown: &Grown| {
        let kept = grown.retained.clamp(0.0, grown.peak_growth.max(0.0));
        let given_back = (grown.peak_growth - kept).max(0.0);
        Bar { name: grown.name.clone(), parts: vec![kept, given_back], interval: None }
    };
    Bars {
        title: "Growth of slab memory by cache".into(),
        note: "from the median before the workload to the peak; what was still there at the end, and what was not".into(),
        unit: Unit::Bytes,
        parts: ["retained", "given back"].map(String::from).to_vec(),
        bars: growth.contributors.iter().filter(|grown| grown.peak_growth > 0.0).map(bar).collect(),
    }
    .scene()
}
