//! Every value of a metric, a row a line, with its median.

use perflab_analyze::{MetricLines, SampleLine};

use crate::chart::scene::Scene;
use crate::chart::strip_chart::{StripChart, StripRow};
use crate::plot::panel::{
    PlotLook, counts_text, direction_text, left_out_text, repetition_nouns, stack_metrics, value_unit,
};

/// Pixels above and below the rows of a panel.
const AROUND: f64 = 150.0;

/// Pixels of a row, where no height is asked for.
const ROW: f64 = 56.0;

/// Strips of the metrics, one panel each.
#[must_use]
pub fn strip_scene(metrics: &[MetricLines], look: &PlotLook) -> Scene {
    stack_metrics(metrics, look, |metric, title, panels| {
        let own = AROUND + ROW * metric.lines.len() as f64;
        let lowest = AROUND + StripChart::LEAST_ROW * metric.lines.len() as f64;
        let mut chart = look.panel(panels, own);
        chart.height = chart.height.max(lowest);
        StripChart {
            title,
            note: strip_note(metric, look),
            x_title: metric.metric.clone(),
            unit: value_unit(&metric.unit),
            rows: metric.lines.iter().map(|line| strip_row(line, look)).collect(),
            look: chart,
        }
        .render()
    })
}

fn strip_row(line: &SampleLine, look: &PlotLook) -> StripRow {
    let middle = line.median(look.confidence).ok();
    let middle = middle.map(|found| (found.value, found.interval.map(|ends| (ends.low, ends.high))));
    StripRow { name: line.name.clone(), values: line.values(), middle }
}

fn strip_note(metric: &MetricLines, look: &PlotLook) -> String {
    let has_interval =
        |line: &SampleLine| line.median(look.confidence).is_ok_and(|found| found.interval.is_some());
    let nouns = repetition_nouns(&metric.lines);
    let interval = match metric.lines.iter().any(has_interval) {
        true => format!("with its {} interval over {nouns}", look.confidence_text()),
        false => format!("without an interval: too few {nouns}"),
    };
    format!(
        "square: one iteration ({}), the first on top; rule: median, {interval}{}{}",
        counts_text(&metric.lines),
        direction_text(metric.direction),
        left_out_text(&metric.lines, &look.x)
    )
}
