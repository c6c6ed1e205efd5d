//! What all pictures of metrics share: one panel a metric and case, below one another, with a heading.

use perflab_analyze::{MetricLines, RepetitionLevel, SampleLine};
use perflab_model::Direction;

use crate::chart::axis_unit::AxisUnit;
use crate::chart::look::{AxisLook, ChartLook};
use crate::chart::panels::stack_panels;
use crate::chart::scene::Scene;
use crate::method_text::percent_of_level;

/// As many panels are one picture.
pub const MOST_PANELS: usize = 12;

/// What is asked of a picture; what is not said follows from what it shows.
#[derive(Debug, Clone, PartialEq)]
pub struct PlotLook {
    /// The title.
    pub title: Option<String>,
    /// Pixels.
    pub width: Option<f64>,
    /// Pixels of the whole picture.
    pub height: Option<f64>,
    /// The horizontal axis, in the unit of its values.
    pub x: AxisLook,
    /// The vertical axis, in the unit of its values.
    pub y: AxisLook,
    /// Confidence of intervals and bands.
    pub confidence: f64,
}

impl Default for PlotLook {
    fn default() -> Self {
        let (x, y) = (AxisLook::default(), AxisLook::default());
        PlotLook { title: None, width: None, height: None, x, y, confidence: 0.95 }
    }
}

/// Pixels, where no width is asked for.
const WIDTH: f64 = 900.0;

/// Pixels of the title above several panels.
const TITLE_ROOM: f64 = 30.0;

impl PlotLook {
    /// Pixels of the picture.
    pub(crate) fn width(&self) -> f64 {
        self.width.unwrap_or(WIDTH)
    }

    /// What is asked of one panel of several that share the height; `own` is what it needs where none is asked for.
    pub(crate) fn panel(&self, panels: usize, own: f64) -> ChartLook {
        let title = if panels > 1 && self.title.is_some() { TITLE_ROOM } else { 0.0 };
        let height = self.height.map_or(own, |whole| (whole - title) / panels.max(1) as f64);
        ChartLook { width: self.width(), height, x: self.x, y: self.y }
    }

    /// `95 %`
    pub(crate) fn confidence_text(&self) -> String {
        format!("{} %", percent_of_level(self.confidence))
    }
}

/// One panel each of the first metrics; the title that is asked for is that of the only panel, or stands above all.
pub(crate) fn stack_metrics(
    metrics: &[MetricLines],
    look: &PlotLook,
    panel: impl Fn(&MetricLines, String, usize) -> Scene,
) -> Scene {
    let shown = metrics.get(..MOST_PANELS.min(metrics.len())).unwrap_or_default();
    if let [only] = shown {
        let title = look.title.clone().unwrap_or_else(|| metric_heading(only));
        return panel(only, title, 1);
    }
    let panels = shown.iter().map(|metric| panel(metric, metric_heading(metric), shown.len())).collect();
    stack_panels(look.title.as_deref(), panels)
}

/// `sweep threads=2, time`
fn metric_heading(metric: &MetricLines) -> String {
    format!("{}, {}", metric.subject, metric.metric)
}

/// `lower is better`; nothing where neither is.
pub(crate) fn direction_text(direction: Direction) -> &'static str {
    match direction {
        Direction::Higher => "; higher is better",
        Direction::Lower => "; lower is better",
        Direction::Neither => "",
    }
}

/// The unit of an axis of values.
pub(crate) fn value_unit(unit: &perflab_model::Unit) -> AxisUnit {
    match &*unit.0 {
        "bytes" | "B" => AxisUnit::Bytes,
        name => AxisUnit::Plain(name.to_owned()),
    }
}

/// What intervals of the lines are over: `iterations`, `boots`; both where lines differ.
pub(crate) fn repetition_nouns(lines: &[SampleLine]) -> String {
    let levels =
        [RepetitionLevel::Machine, RepetitionLevel::Boot, RepetitionLevel::Run, RepetitionLevel::Iteration];
    let has = |level: &RepetitionLevel| lines.iter().any(|line| line.repetition_level() == *level);
    levels.into_iter().filter(has).map(RepetitionLevel::noun).collect::<Vec<_>>().join(" or ")
}

/// `, n = 20` of one size, `, n = 12 to 20` of several.
pub(crate) fn counts_text(lines: &[SampleLine]) -> String {
    let counts = || lines.iter().map(|line| line.points.len());
    match (counts().min(), counts().max()) {
        (Some(least), Some(most)) if least == most => format!("n = {most}"),
        (Some(least), Some(most)) => format!("n = {least} to {most}"),
        _ => String::new(),
    }
}

/// `; 3 values have no place on the axis`: those beyond a range, or not above zero on a logarithmic axis. Nothing where all have.
pub(crate) fn left_out_text(lines: &[SampleLine], axis: &AxisLook) -> String {
    let values = || lines.iter().flat_map(|line| &line.points).map(|point| point.value);
    let not_positive = values().filter(|value| axis.logarithmic && *value <= 0.0).count();
    let hidden = values().filter(|value| !axis.shows(*value)).count() - not_positive;
    let mut text = String::new();
    if hidden > 0 {
        text += &format!("; {hidden} of {} values are beyond the range", values().count());
    }
    if not_positive > 0 {
        text += &format!(
            "; {not_positive} of {} values are not above zero and have no place on a logarithmic axis",
            values().count()
        );
    }
    text
}
