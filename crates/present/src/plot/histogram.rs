//! How many values of a metric lie where.

use perflab_analyze::{BinRule, MetricLines, sample_histogram};

use crate::chart::axis_unit::AxisUnit;
use crate::chart::curve_chart::{Curve, CurveChart, CurvePoint, CurveShape};
use crate::chart::scene::Scene;
use crate::plot::panel::{PlotLook, counts_text, direction_text, left_out_text, stack_metrics, value_unit};

/// Pixels of a panel, where no height is asked for.
const HEIGHT: f64 = 360.0;

/// Histograms of the metrics, one panel each. The lines of a panel share their bins; heights are shares of a line's values, so that
/// lines of different size can be told apart. On a logarithmic axis, bins are of equal ratio.
#[must_use]
pub fn histogram_scene(metrics: &[MetricLines], rule: BinRule, look: &PlotLook) -> Scene {
    stack_metrics(metrics, look, |metric, title, panels| {
        let found = sample_histogram(&metric.lines, rule, look.x.logarithmic, |value| look.x.shows(value));
        let curves = found.shares.iter().enumerate();
        let bins = found.edges.len().saturating_sub(1);
        CurveChart {
            title,
            note: format!(
                "share of a line's values in each of {bins} bins ({}), as wide as {} has it for the narrowest line{}{}",
                counts_text(&metric.lines),
                rule_name(rule),
                direction_text(metric.direction),
                left_out_text(&metric.lines, &look.x)
            ),
            x_title: metric.metric.clone(),
            x_unit: value_unit(&metric.unit),
            y_title: "share of values".into(),
            y_unit: AxisUnit::Share,
            from_zero: true,
            curves: curves.map(|(group, shares)| histogram_curve(group, &found.edges, shares)).collect(),
            groups: metric.lines.iter().map(|line| line.name.clone()).collect(),
            look: look.panel(panels, HEIGHT),
            ..CurveChart::default()
        }
        .render()
    })
}

fn rule_name(rule: BinRule) -> &'static str {
    match rule {
        BinRule::FreedmanDiaconis => "the rule of Freedman and Diaconis",
        BinRule::Scott => "Scott's rule",
    }
}

/// From the ground up, over the bins, and down again.
fn histogram_curve(group: usize, edges: &[f64], shares: &[f64]) -> Curve {
    let place = |x: f64, y: f64| CurvePoint { x, y, band: None };
    let ground = |edge: Option<&f64>| edge.map(|edge| place(*edge, 0.0));
    let heights = edges.iter().zip(shares).map(|(edge, share)| place(*edge, *share));
    let points = ground(edges.first()).into_iter().chain(heights).chain(ground(edges.last()));
    Curve { group, shape: CurveShape::FilledSteps, parts: vec![points.collect()] }
}
