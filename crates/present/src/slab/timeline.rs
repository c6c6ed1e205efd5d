//! Owns the table and the pictures over time. It refuses to thin what programs read: only people get fewer rows.

use perflab_analyze::slab::timeline::Point;
use perflab_analyze::slab::{Phase, Ratio, Timeline};
use perflab_model::Nanos;

use super::cells;
use crate::chart::{Layer, Line, Lines, Scene, Span, Stacked, Unit};
use crate::table::{Cell, Column, Grid};

/// One row a tick; where `most` is given, that many rows spread evenly over time, the last among them.
#[must_use]
pub fn grid(timeline: &Timeline, most: Option<usize>) -> Grid {
    let titles =
        ["time", "slab", "used", "tail", "align", "free", "efficiency", "at least", "unweighted", "flagged"];
    let mut grid = Grid::new(titles.map(Column::right).into_iter().chain([Column::left("phase")]));
    let begun = begin(timeline);
    for point in thinned(&timeline.points, most) {
        let (usage, waste) = (point.usage, point.usage.waste());
        let seconds = point.at.since(begun).seconds();
        grid.add([
            Cell::shown(format!("{seconds:.1} s"), seconds),
            cells::bytes(usage.slab_bytes),
            cells::bytes(usage.used_bytes),
            cells::signed_bytes(waste.tail),
            waste.align.map_or_else(Cell::missing, cells::signed_bytes),
            cells::signed_bytes(waste.free),
            cells::efficiency(usage.overall(), usage.alignment()),
            cells::share(usage.overall_at_least().and_then(Ratio::value)),
            cells::share(point.unweighted),
            point.flagged.into(),
            phase_at(&timeline.phases, point.at).map(|phase| phase.name.as_str()).into(),
        ]);
    }
    grid
}

fn begin(timeline: &Timeline) -> Nanos {
    timeline.points.first().map(|point| point.at).unwrap_or_default()
}

fn phase_at(phases: &[Phase], at: Nanos) -> Option<&Phase> {
    phases.iter().find(|phase| phase.start <= at && at < phase.end)
}

/// That many of the points, spread evenly, the last among them; all without a limit.
pub(super) fn thinned<T>(points: &[T], most: Option<usize>) -> Vec<&T> {
    let last = points.len().saturating_sub(1);
    match most {
        Some(most) if most > 1 && points.len() > most => {
            (0..most).filter_map(|row| points.get(row * last / (most - 1))).collect()
        }
        _ => points.iter().collect(),
    }
}

fn seconds(points: &[Point], begun: Nanos) -> Vec<f64> {
    points.iter().map(|point| point.at.since(begun).seconds()).collect()
}

/// Phases as named stretches of the time axis.
pub(super) fn spans(phases: &[Phase], begun: Nanos) -> Vec<Span> {
    let span = |phase: &Phase| Span {
        from: phase.start.since(begun).seconds(),
        to: phase.end.since(begun).seconds(),
        name: phase.name.clone(),
    };
    phases.iter().map(span).collect()
}

/// "all caches", or the cache with the names that share its slabs.
fn subject(timeline: &Timeline) -> String {
    match &timeline.cache {
        None => "all caches".into(),
        Some(name) if timeline.members.len() < 2 => name.clone(),
        Some(name) => format!("{name} (shared by {})", timeline.members.join(", ")),
    }
}

/// Waste over time, stacked by kind.
#[must_use]
pub fn waste_figure(timeline: &Timeline) -> Scene {
    let begun = begin(timeline);
    let part = |value: fn(&Point) -> i128| -> Vec<f64> {
        timeline.points.iter().map(|point| value(point).max(0) as f64).collect()
    };
    Stacked {
        title: format!("Slab memory that holds no object: {}", subject(timeline)),
        note: "by kind; the three add up to slab bytes minus objects in use".into(),
        unit: Unit::Bytes,
        times: seconds(&timeline.points, begun),
        layers: vec![
            Layer::new("tail of slabs", part(|point| point.usage.waste().tail)),
            Layer::new("alignment", part(|point| point.usage.waste().align.unwrap_or(0))),
            Layer::new("free objects", part(|point| point.usage.waste().free)),
        ],
        spans: spans(&timeline.phases, begun),
    }
    .scene()
}

/// One of the notebook's two means over time, of our rows: each cache alike, or weighted by its slab bytes.
#[must_use]
pub fn mean_figure(timeline: &Timeline, weighted: bool) -> Scene {
    let value = |point: &Point| if weighted { point.usage.overall().value() } else { point.unweighted };
    let (title, name) = match weighted {
        true => ("Average slab efficiency weighted by space", "overall, exact"),
        false => ("Average slab efficiency", "mean of caches"),
    };
    let note = match weighted {
        true => "objects in use over slab bytes, a ratio of sums",
        false => "mean of the caches' efficiencies, each cache alike: no memory quantity",
    };
    Lines {
        title: format!("{title}: {}", subject(timeline)),
        note: note.into(),
        unit: Unit::Share,
        from_zero: false,
        times: seconds(&timeline.points, begin(timeline)),
        lines: vec![Line::new(name, timeline.points.iter().map(value).collect())],
        spans: spans(&timeline.phases, begin(timeline)),
    }
    .scene()
}

/// Efficiency and its factors over time; below the efficiency, the shade down to what it is at least.
#[must_use]
pub fn efficiency_figure(timeline: &Timeline) -> Scene {
    let begun = begin(timeline);
    let line = |name: &str, value: &dyn Fn(&Point) -> Option<f64>| {
        Line::new(name, timeline.points.iter().map(value).collect())
    };
    let low =
        timeline.points.iter().map(|point| point.usage.overall_at_least().and_then(Ratio::value)).collect();
    let overall = line("overall, exact", &|point| point.usage.overall().value());
    let unweighted = line("mean of caches", &|point| point.unweighted);
    Lines {
        title: format!("Slab efficiency: {}", subject(timeline)),
        note: "objects in use over slab bytes; the shade: down to where all objects kept at CPUs were free"
            .into(),
        unit: Unit::Share,
        from_zero: false,
        times: seconds(&timeline.points, begun),
        lines: vec![
            Line { low: Some(low), ..overall },
            line("packing", &|point| point.usage.packing().value()),
            line("alignment", &|point| cells::alignment(point.usage.alignment())),
            line("occupancy", &|point| point.usage.occupancy().value()),
            Line { dashed: true, ..unweighted },
        ],
        spans: spans(&timeline.phases, begun),
    }
    .scene()
}
