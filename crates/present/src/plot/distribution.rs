//! The empirical distribution of a metric, with its band.

use perflab_analyze::{MetricLines, SampleLine};

use crate::chart::axis_unit::AxisUnit;
use crate::chart::curve_chart::{Curve, CurveChart, CurvePoint, CurveShape, data_ends};
use crate::chart::scene::Scene;
use crate::plot::panel::{
    PlotLook, counts_text, direction_text, left_out_text, repetition_nouns, stack_metrics, value_unit,
};

/// Pixels of a panel, where no height is asked for.
const HEIGHT: f64 = 380.0;

/// Distributions of the metrics, one panel each: which share of the values is up to a value.
#[must_use]
pub fn distribution_scene(metrics: &[MetricLines], look: &PlotLook) -> Scene {
    stack_metrics(metrics, look, |metric, title, panels| {
        let mut chart = look.panel(panels, HEIGHT);
        chart.y.low = chart.y.low.or((!chart.y.logarithmic).then_some(0.0));
        chart.y.high = chart.y.high.or(Some(1.0));
        let curves = metric.lines.iter().enumerate();
        let values = metric.lines.iter().flat_map(|line| &line.points).map(|point| point.value);
        let ends = data_ends(values, &look.x).unwrap_or_default();
        CurveChart {
            title,
            note: format!(
                "share of the values up to a value ({}); band: holds the whole distribution at {} (Dvoretzky, Kiefer and Wolfowitz) over {}{}{}",
                counts_text(&metric.lines),
                look.confidence_text(),
                repetition_nouns(&metric.lines),
                direction_text(metric.direction),
                left_out_text(&metric.lines, &look.x)
            ),
            x_title: metric.metric.clone(),
            x_unit: value_unit(&metric.unit),
            y_title: "share of values".into(),
            y_unit: AxisUnit::Share,
            curves: curves.filter_map(|(group, line)| distribution_curve(group, line, ends, look)).collect(),
            groups: metric.lines.iter().map(|line| line.name.clone()).collect(),
            look: chart,
            ..CurveChart::default()
        }
        .render()
    })
}

/// The steps of a line over the whole axis: 0 before its least value, all of them behind its largest.
fn distribution_curve(group: usize, line: &SampleLine, ends: (f64, f64), look: &PlotLook) -> Option<Curve> {
    let found = line.distribution(look.confidence).ok()?;
    let point = |x: f64, share: f64| CurvePoint {
        x,
        y: share,
        band: Some(((share - found.reach).max(0.0), (share + found.reach).min(1.0))),
    };
    let least = found.steps.first()?.value;
    let before = [ends.0.min(least), least].map(|value| point(value, 0.0));
    let steps = found.steps.iter().map(|step| point(step.value, step.share));
    let behind = Some(ends.1).filter(|end| found.steps.iter().all(|step| step.value < *end));
    let points = before.into_iter().chain(steps).chain(behind.map(|end| point(end, 1.0)));
    let points: Vec<CurvePoint> = points.collect();
    Some(Curve { group, shape: CurveShape::Steps, parts: vec![points] })
}
