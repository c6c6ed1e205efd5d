//! A column of a monitor over time: runs or levels on one axis, each from its own start.

use perflab_analyze::{MonitorLine, MonitorLines};

use crate::chart::axes::AxisBand;
use crate::chart::axis_unit::AxisUnit;
use crate::chart::curve_chart::{Curve, CurveChart, CurvePoint, CurveShape};
use crate::chart::scene::Scene;
use crate::plot::panel::{PlotLook, value_unit};

/// Pixels, where no height is asked for.
const HEIGHT: f64 = 440.0;

/// More iterations are not marked: their names would have no room.
const MOST_MARKED: usize = 40;

/// The lines over the time since the start of each.
#[must_use]
pub fn timeline_scene(found: &MonitorLines, look: &PlotLook) -> Scene {
    let curves = found.lines.iter().enumerate();
    let bands =
        found.iterations.iter().take(if found.iterations.len() > MOST_MARKED { 0 } else { MOST_MARKED });
    let band = |span: &perflab_analyze::MarkedIteration| AxisBand {
        from: span.from,
        to: span.to,
        name: span.name.clone(),
    };
    CurveChart {
        title: look.title.clone().unwrap_or_else(|| format!("{}.{} over time", found.monitor, found.column)),
        note: timeline_note(found),
        x_title: "time since the start".into(),
        x_unit: AxisUnit::Plain("s".into()),
        y_title: found.column.clone(),
        y_unit: value_unit(&found.unit),
        from_zero: found.is_rate,
        curves: curves.map(|(group, line)| timeline_curve(group, line)).collect(),
        groups: found.lines.iter().map(|line| line.name.clone()).collect(),
        bands: bands.map(band).collect(),
        look: look.panel(1, HEIGHT),
    }
    .render()
}

fn timeline_curve(group: usize, line: &MonitorLine) -> Curve {
    let point = |point: &perflab_analyze::MonitorPoint| CurvePoint {
        x: point.seconds,
        y: point.value,
        band: point.spread,
    };
    let parts = line.parts.iter().map(|part| part.iter().map(point).collect()).collect();
    Curve { group, shape: CurveShape::Line, parts }
}

fn timeline_note(found: &MonitorLines) -> String {
    let is_middle =
        found.lines.iter().flat_map(|line| &line.parts).flatten().any(|point| point.spread.is_some());
    let what = if found.is_rate { "growth a second between readings" } else { "readings" };
    let lines = match is_middle {
        true => {
            "line: the median of a level's iterations, each from its own start; band: from the least to the most of them"
        }
        false if found.iterations.is_empty() => "one line a run, each from its first reading",
        false => "from the first reading of the run; dashed: where an iteration begins",
    };
    let left_out = match found.left_out {
        0 => String::new(),
        more => format!("; {more} rows that vary less are left out"),
    };
    format!("{what}; {lines}{left_out}")
}
