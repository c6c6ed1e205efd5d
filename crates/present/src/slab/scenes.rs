//! Charts of slab bytes, waste and efficiency over time, and their table.
//!
//! Only people get thinned rows. There are at most as many layers as colours.

use perflab_analyze::slab::timeline::UsagePoint;
use perflab_analyze::slab::{CacheStack, ExactRatio, IterationSpan, UsageTimeline};
use perflab_model::Nanos;

use crate::chart::axes::AxisBand;
use crate::chart::axis_unit::AxisUnit;
use crate::chart::line_charts::{ChartLayer, ChartLine, LineChart, StackedChart};
use crate::chart::palette::name_colours;
use crate::chart::scene::Scene;
use crate::grid::{Grid, GridCell, GridColumn};
use crate::slab::grids;

/// One row a tick; where `most` is given, that many rows spread evenly over time, the last among them.
#[must_use]
pub fn timeline_grid(timeline: &UsageTimeline, most: Option<usize>) -> Grid {
    let titles =
        ["time", "slab", "used", "tail", "align", "free", "efficiency", "at least", "unweighted", "flagged"];
    let mut grid = Grid::new(titles.map(GridColumn::right).into_iter().chain([GridColumn::left("phase")]));
    let begun = timeline_start(timeline);
    for point in pick_evenly(&timeline.points, most) {
        let (usage, waste) = (point.usage, point.usage.waste());
        let seconds = point.at.since(begun).seconds();
        grid.add_row([
            GridCell::with_text(format!("{seconds:.1} s"), seconds),
            grids::bytes_cell(usage.slab_bytes),
            grids::bytes_cell(usage.used_bytes),
            grids::signed_bytes_cell(waste.tail),
            waste.align.map_or_else(GridCell::missing, grids::signed_bytes_cell),
            grids::signed_bytes_cell(waste.free),
            grids::efficiency_cell(usage.overall(), usage.alignment()),
            grids::share_cell(usage.overall_at_least().and_then(ExactRatio::value)),
            grids::share_cell(point.unweighted),
            point.flagged.into(),
            phase_at(&timeline.phases, point.at).map(|phase| phase.name.as_str()).into(),
        ]);
    }
    grid
}

fn timeline_start(timeline: &UsageTimeline) -> Nanos {
    timeline.points.first().map(|point| point.at).unwrap_or_default()
}

fn phase_at(phases: &[IterationSpan], at: Nanos) -> Option<&IterationSpan> {
    phases.iter().find(|phase| phase.start <= at && at < phase.end)
}

/// That many of the points, spread evenly, the last among them; all without a limit.
pub(crate) fn pick_evenly<T>(points: &[T], most: Option<usize>) -> Vec<&T> {
    let last = points.len().saturating_sub(1);
    match most {
        Some(most) if most > 1 && points.len() > most => {
            (0..most).filter_map(|row| points.get(row * last / (most - 1))).collect()
        }
        _ => points.iter().collect(),
    }
}

fn elapsed_seconds(points: &[UsagePoint], begun: Nanos) -> Vec<f64> {
    points.iter().map(|point| point.at.since(begun).seconds()).collect()
}

/// Phases as named ranges of the time axis.
fn phase_bands(phases: &[IterationSpan], begun: Nanos) -> Vec<AxisBand> {
    let span = |phase: &IterationSpan| AxisBand {
        from: phase.start.since(begun).seconds(),
        to: phase.end.since(begun).seconds(),
        name: phase.name.clone(),
    };
    phases.iter().map(span).collect()
}

/// "all caches", or the cache with the names that share its slabs.
fn timeline_subject(timeline: &UsageTimeline) -> String {
    match &timeline.cache {
        None => "all caches".into(),
        Some(name) if timeline.members.len() < 2 => name.clone(),
        Some(name) => format!("{name} (shared by {})", timeline.members.join(", ")),
    }
}

/// Waste over time, stacked by kind.
#[must_use]
pub fn waste_timeline_chart(timeline: &UsageTimeline) -> Scene {
    let begun = timeline_start(timeline);
    let part = |value: fn(&UsagePoint) -> i128| -> Vec<f64> {
        timeline.points.iter().map(|point| value(point).max(0) as f64).collect()
    };
    StackedChart {
        title: format!("Slab memory that holds no object: {}", timeline_subject(timeline)),
        note: "by kind; the three add up to slab bytes minus objects in use".into(),
        unit: AxisUnit::Bytes,
        times: elapsed_seconds(&timeline.points, begun),
        layers: vec![
            ChartLayer::new("tail of slabs", part(|point| point.usage.waste().tail)),
            ChartLayer::new("alignment", part(|point| point.usage.waste().align.unwrap_or(0))),
            ChartLayer::new("free objects", part(|point| point.usage.waste().free)),
        ],
        bands: phase_bands(&timeline.phases, begun),
    }
    .render()
}

/// Efficiency and its factors over time; below the efficiency, the shade down to what it is at least.
#[must_use]
pub fn efficiency_timeline_chart(timeline: &UsageTimeline) -> Scene {
    let begun = timeline_start(timeline);
    let line = |name: &str, value: &dyn Fn(&UsagePoint) -> Option<f64>| {
        ChartLine::new(name, timeline.points.iter().map(value).collect())
    };
    let low = timeline
        .points
        .iter()
        .map(|point| point.usage.overall_at_least().and_then(ExactRatio::value))
        .collect();
    let overall = line("overall, exact", &|point| point.usage.overall().value());
    let unweighted = line("mean of caches", &|point| point.unweighted);
    LineChart {
        title: format!("Slab efficiency: {}", timeline_subject(timeline)),
        note: "objects in use over slab bytes; the shade: down to where all objects kept at CPUs were free"
            .into(),
        unit: AxisUnit::Share,
        from_zero: false,
        times: elapsed_seconds(&timeline.points, begun),
        lines: vec![
            ChartLine { low: Some(low), ..overall },
            line("packing", &|point| point.usage.packing().value()),
            line("alignment", &|point| grids::alignment_share(point.usage.alignment())),
            line("occupancy", &|point| point.usage.occupancy().value()),
            ChartLine { dashed: true, ..unweighted },
        ],
        bands: phase_bands(&timeline.phases, begun),
    }
    .render()
}

/// Slab bytes, stacked: the others at the bottom, the largest cache above them.
#[must_use]
pub fn slab_bytes_chart(stack: &CacheStack) -> Scene {
    let begun = stack.at.first().copied().unwrap_or(Nanos(0));
    let names: Vec<&str> = stack.layers.iter().map(|layer| layer.name.as_str()).collect();
    let layers = stack.layers.iter().zip(name_colours(&names)).map(|(layer, colour)| ChartLayer {
        name: layer.name.clone(),
        values: layer.bytes.iter().map(|bytes| *bytes as f64).collect(),
        colour: Some(colour),
    });
    let others = ChartLayer::others("others", stack.others.iter().map(|bytes| *bytes as f64).collect());
    StackedChart {
        title: "Slab memory by cache".into(),
        note: "bytes of slabs, full or not; the caches with the largest peaks, and all others together"
            .into(),
        unit: AxisUnit::Bytes,
        times: stack.at.iter().map(|at| at.since(begun).seconds()).collect(),
        layers: std::iter::once(others).chain(layers).collect(),
        bands: phase_bands(&stack.phases, begun),
    }
    .render()
}
