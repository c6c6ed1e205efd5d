//! Every operation as a dot, time over the program's size; linear and logarithmic time scales.
//!
//! There is the picture of the slab-list study, with the times of chosen spans beside those of operations, and ours, in
//! which each outlier has the colour of its cause. The logarithmic scale goes through a table, since it is asked for
//! millions of times.

use indexmap::IndexSet;
use perflab_analyze::operations::{OperationClock, OperationReport, OutlierExplanation};
use perflab_model::named::Named;
use perflab_model::operation::{OperationColumns, SparseColumn};

use crate::chart::dot_grid::DotGrid;
use crate::chart::palette::{OTHERS_COLOUR, RgbColour, name_colours};
use crate::chart::scene::{MarkInk, Scene, SceneMark, ScenePoint, TextAnchor};

/// What to draw.
#[derive(Debug, Clone, Default)]
pub struct OperationSceneOptions {
    /// The title.
    pub title: String,
    /// How times are spread.
    pub scale_kind: ScaleKind,
    /// Spans whose own times are drawn too, one set of dots for each list.
    pub drawn_spans: Vec<Vec<String>>,
    /// The number that is the horizontal axis; the operation's position, where left out or not recorded by each.
    pub x_number: Option<String>,
    /// Give each outlier the colour of its cause.
    pub colour_by_cause: bool,
    /// The lowest and the highest time of the axis, in nanoseconds; what the dots need where left out. For two pictures
    /// on the same axes.
    pub time_range: Option<(i64, i64)>,
}

/// Scene units: two pixels each, 2160 x 1920 in all.
const WIDTH: f64 = 1080.0;

const HEIGHT: f64 = 960.0;

const LEFT: f64 = 74.0;

const RIGHT: f64 = 1064.0;

const TOP: f64 = 84.0;

const BOTTOM: f64 = 904.0;

/// How much wider than ours the letters of a page's own typeface may be.
const WIDEST: f64 = 1.2;

/// Pixels of the image for each scene unit.
const SCALE: f64 = 2.0;

/// Edge of an outlier's mark, in scene units.
const MARK: f64 = 2.5;

/// Outliers that are vectors; beyond, the longest are, and the others stay dots.
pub(crate) const MOST_MARKS: usize = 20_000;

/// Of those, the ones that say what they are to a pointer.
const MOST_TITLES: usize = 2_000;

const BODY: RgbColour = RgbColour(0x8f, 0x1d, 0x1d);

/// The picture of a trace.
#[must_use]
pub fn operation_scene(
    operations: &OperationColumns,
    report: &OperationReport,
    options: &OperationSceneOptions,
) -> Scene {
    let drawing = OperationDrawing::new(operations, report, options);
    let mut marks = drawing.frame_marks();
    marks.push(drawing.operation_dots());
    marks.extend(drawing.outlier_marks());
    let description = format!(
        "{}: {} operations, the longest {}",
        options.title,
        report.operations,
        time_text(report.longest as f64)
    );
    Scene { width: WIDTH, height: HEIGHT, description, marks }
}

/// The least and the greatest time that a picture of these traces needs.
#[must_use]
pub fn common_time_range(reports: &[&OperationReport]) -> (i64, i64) {
    let low = reports.iter().map(|report| report.shortest).min().unwrap_or(1);
    let high = reports.iter().map(|report| report.longest).max().unwrap_or(1);
    (low, high)
}

struct OperationDrawing<'a> {
    operations: &'a OperationColumns,
    report: &'a OperationReport,
    options: &'a OperationSceneOptions,
    scale: TimeScale,
    axis: Option<&'a SparseColumn>,
    last: i64,
    columns: PixelColumns,
    colours: CauseColours,
}

impl<'a> OperationDrawing<'a> {
    fn new(
        operations: &'a OperationColumns,
        report: &'a OperationReport,
        requested: &'a OperationSceneOptions,
    ) -> Self {
        let (low, high) = requested.time_range.unwrap_or_else(|| common_time_range(&[report]));
        let scale = TimeScale::new(
            requested.scale_kind,
            low as f64 * 0.8,
            high as f64 * 1.05,
            pixel_count(BOTTOM - TOP),
        );
        let named = requested.x_number.as_deref().and_then(|name| operations.number_values(name));
        let axis = named.filter(|numbers| numbers.len() == operations.len());
        let last = axis
            .map_or(operations.len() as i64, |axis| axis.iter().map(|(_, value)| value).max().unwrap_or(1));
        let last = last.max(1);
        let columns = PixelColumns::new(last as u64, pixel_count(RIGHT - LEFT) as u64 - 1);
        let colours = CauseColours::new(report, &requested.drawn_spans);
        OperationDrawing { operations, report, options: requested, scale, axis, last, columns, colours }
    }

    fn frame_marks(&self) -> Vec<SceneMark> {
        let mut marks = vec![label_mark(16.0, 26.0, 16.0, TextAnchor::Start, self.options.title.clone())];
        let clock =
            if self.report.clock == OperationClock::OnCpu { "time on the CPU" } else { "time on the wall" };
        let over = if self.axis.is_some() {
            self.options.x_number.clone().unwrap_or_default()
        } else {
            "operation".into()
        };
        marks.push(label_mark(
            LEFT,
            TOP - 10.0,
            12.0,
            TextAnchor::Start,
            format!("{clock}, `{}`", self.report.operation),
        ));
        marks.push(label_mark((LEFT + RIGHT) / 2.0, BOTTOM + 42.0, 12.0, TextAnchor::Middle, over));
        for (value, row) in self.scale.ticks() {
            let y = TOP + row as f64 / SCALE;
            marks.push(rule_mark((LEFT, y), (RIGHT, y)));
            marks.push(label_mark(LEFT - 8.0, y + 4.0, 12.0, TextAnchor::End, time_text(value)));
        }
        let step = crate::chart::axes::nice_step(self.last as f64, 8);
        for value in (0..100).map(|n| f64::from(n) * step).take_while(|value| *value <= self.last as f64) {
            let x = LEFT + self.value_column(value as i64) as f64 / SCALE;
            marks.push(rule_mark((x, BOTTOM), (x, BOTTOM + 5.0)));
            marks.push(label_mark(x, BOTTOM + 20.0, 12.0, TextAnchor::Middle, format!("{value}")));
        }
        marks.push(rule_mark((LEFT, BOTTOM), (RIGHT, BOTTOM)));
        marks.extend(self.legend_marks());
        marks
    }

    /// Names beside their colours in one line below the title, with how many dots each has.
    fn legend_marks(&self) -> Vec<SceneMark> {
        let mut entries = vec![(BODY, format!("{} ({})", self.report.operation, self.report.operations))];
        for (index, names) in self.options.drawn_spans.iter().enumerate() {
            let dots: usize = self.chosen_spans(names).map(|span| span.len()).sum();
            entries.push((self.colours.span_colour(index), format!("{} ({dots})", names.join(" + "))));
        }
        if self.options.colour_by_cause {
            let named = self.report.causes.iter().enumerate().filter(|(_, cause)| cause.share.outliers > 0);
            entries.extend(named.map(|(index, cause)| {
                (
                    self.colours.cause_colour(OutlierExplanation::Cause(index)),
                    format!("{} ({})", cause.name, cause.share.outliers),
                )
            }));
            entries.push((
                OTHERS_COLOUR,
                format!("unexplained ({})", self.report.unexplained.outliers + self.report.mixed.outliers),
            ));
        }
        let mut marks = Vec::new();
        let mut x = 16.0;
        for (colour, name) in entries {
            let width = 22.0 + WIDEST * crate::chart::typeface::text_width(&name, 12.0);
            marks.push(SceneMark::Rect {
                at: ScenePoint { x, y: 42.0 },
                width: 10.0,
                height: 10.0,
                ink: MarkInk::Own(colour),
                title: String::new(),
            });
            marks.push(label_mark(x + 15.0, 51.0, 12.0, TextAnchor::Start, name));
            x += width + 14.0;
        }
        marks
    }

    fn chosen_spans(&self, names: &[String]) -> impl Iterator<Item = &'a SparseColumn> {
        let names = names.to_vec();
        self.operations.spans.iter().filter(move |span| names.contains(&span.name)).map(|span| &span.time)
    }

    /// Every operation, and every chosen span, as dots.
    fn operation_dots(&self) -> SceneMark {
        let inks: Vec<RgbColour> = std::iter::once(BODY).chain(self.colours.spans.iter().copied()).collect();
        let mut grid = DotGrid::new(pixel_count(RIGHT - LEFT), pixel_count(BOTTOM - TOP), &inks);
        grid.draw_parallel(self.report.operation_times().len(), |part, grid| {
            for (row, time) in self.report.operation_times().skip(part.start).take(part.len()) {
                grid.add_dot(self.row_column(row), self.scale.row(time), 0);
            }
        });
        for (index, names) in self.options.drawn_spans.iter().enumerate() {
            for span in self.chosen_spans(names) {
                for (row, time) in span.iter() {
                    grid.add_dot(self.row_column(row), self.scale.row(time), index as u8 + 1);
                }
            }
        }
        SceneMark::Dots { at: ScenePoint { x: LEFT, y: TOP }, scale: SCALE, pixels: grid }
    }

    /// The outliers above the dots, so that none is hidden by anything but another one.
    fn outlier_marks(&self) -> Vec<SceneMark> {
        let mut longest: Vec<_> = self.report.outliers.iter().collect();
        longest.sort_by_key(|outlier| outlier.time);
        let skipped = longest.len().saturating_sub(MOST_MARKS);
        let untitled = longest.len().saturating_sub(MOST_TITLES);
        let mark = |(at, outlier): (usize, &&perflab_analyze::operations::OutlierOperation)| {
            let ink = match outlier.verdict {
                _ if !self.options.colour_by_cause => BODY,
                verdict => self.colours.cause_colour(verdict),
            };
            let x = LEFT + self.row_column(outlier.row) as f64 / SCALE;
            let y = TOP + self.scale.row(outlier.time) as f64 / SCALE;
            let title = || {
                format!(
                    "operation {}: {}, {}",
                    outlier.row,
                    time_text(outlier.time as f64),
                    self.report.outlier_cause(outlier)
                )
            };
            SceneMark::Rect {
                at: ScenePoint { x: x - MARK / 2.0 + 0.25, y: y - MARK / 2.0 + 0.25 },
                width: MARK,
                height: MARK,
                ink: MarkInk::Own(ink),
                title: if at >= untitled { title() } else { String::new() },
            }
        };
        longest.iter().enumerate().skip(skipped).map(mark).collect()
    }

    fn row_column(&self, row: u32) -> usize {
        let value = match self.axis {
            Some(axis) => axis.nth_value(row as usize).unwrap_or(0),
            None => i64::from(row),
        };
        self.value_column(value)
    }

    #[inline]
    fn value_column(&self, value: i64) -> usize {
        self.columns.column_of(value.max(0) as u64)
    }
}

/// From values to columns of pixels: `value * most / last`, without a division where that is exact.
struct PixelColumns {
    last: u64,
    most: u64,
    /// `most / last`, rounded up, in fractions of 2^64; none where values are too large for it to be exact
    slope: Option<u128>,
}

impl PixelColumns {
    fn new(last: u64, most: u64) -> Self {
        // Rounding up makes a product too large by less than value / 2^64, which must stay below 1 / last.
        let slope = (last < 1 << 31).then(|| ((u128::from(most) << 64) / u128::from(last)) + 1);
        PixelColumns { last, most, slope }
    }

    #[inline]
    fn column_of(&self, value: u64) -> usize {
        match self.slope {
            Some(slope) if value <= self.last => ((u128::from(value) * slope) >> 64) as usize,
            _ => ((u128::from(value) * u128::from(self.most)) / u128::from(self.last)) as usize,
        }
    }
}

/// The colours of a trace's causes and spans: each belongs to its name.
pub(crate) struct CauseColours {
    /// By the index of the cause.
    causes: Vec<RgbColour>,
    /// Of the spans that are drawn, by their index.
    spans: Vec<RgbColour>,
}

impl CauseColours {
    /// The colours of a report's causes, and of groups of spans beside them: a group has that of its first span.
    pub(crate) fn new(report: &OperationReport, drawn_spans: &[Vec<String>]) -> Self {
        let causes = || report.causes.iter().map(|cause| cause.name.as_str());
        let spans = || drawn_spans.iter().map(|names| names.first().map_or("", String::as_str));
        let names: IndexSet<&str> = causes().chain(spans()).collect();
        let colours = name_colours(&names.iter().copied().collect::<Vec<_>>());
        let colour = |name: &str| {
            let at = names.get_index_of(name);
            at.and_then(|at| colours.get(at)).copied().unwrap_or(OTHERS_COLOUR)
        };
        CauseColours { causes: causes().map(colour).collect(), spans: spans().map(colour).collect() }
    }

    /// The colour of an outlier's cause.
    pub(crate) fn cause_colour(&self, verdict: OutlierExplanation) -> RgbColour {
        match verdict {
            OutlierExplanation::Cause(index) => self.causes.get(index).copied().unwrap_or(OTHERS_COLOUR),
            OutlierExplanation::Mixed | OutlierExplanation::Unexplained => OTHERS_COLOUR,
        }
    }

    fn span_colour(&self, index: usize) -> RgbColour {
        self.spans.get(index).copied().unwrap_or(OTHERS_COLOUR)
    }
}

fn pixel_count(units: f64) -> usize {
    (units * SCALE).round() as usize
}

/// A time with its unit, as axes show it.
fn time_text(ns: f64) -> String {
    perflab_model::quantity::format_quantity(ns, "ns").replace('\u{a0}', " ")
}

fn label_mark(x: f64, y: f64, size: f64, anchor: TextAnchor, text: String) -> SceneMark {
    SceneMark::Text {
        at: ScenePoint { x, y },
        anchor,
        size,
        ink: if size > 14.0 { MarkInk::Text } else { MarkInk::Faint },
        text,
    }
}

fn rule_mark(from: (f64, f64), to: (f64, f64)) -> SceneMark {
    let points = [from, to].map(|(x, y)| ScenePoint { x, y }).to_vec();
    SceneMark::Line { points, ink: MarkInk::Grid, width: 1.0, dashed: false, title: String::new() }
}

/// How times are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScaleKind {
    /// as they are
    Linear,
    /// by their logarithm: what is small is seen too
    #[default]
    Log,
}

impl Named for ScaleKind {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (ScaleKind::Log, "log", "by their logarithm: what is small is seen too"),
        (ScaleKind::Linear, "linear", "as they are"),
    ];
}

/// Bits of the mantissa that the table looks at: 0.2 % of the value, a quarter of a pixel.
const FINE: u32 = 8;

/// From nanoseconds to rows of pixels, 0 at the top.
#[derive(Debug, Clone)]
pub struct TimeScale {
    kind: ScaleKind,
    low: f64,
    high: f64,
    height: usize,
    table: Vec<u16>,
}

impl TimeScale {
    /// From `low` (which a linear one takes for zero) to `high` nanoseconds over `height` rows.
    #[must_use]
    pub fn new(spread: ScaleKind, low: f64, high: f64, height: usize) -> Self {
        let (low, high) = match spread {
            ScaleKind::Linear => (0.0, high.max(1.0)),
            ScaleKind::Log => (low.max(1.0), high.max(low.max(1.0) * 10.0)),
        };
        let mut scale = TimeScale { kind: spread, low, high, height, table: Vec::new() };
        if spread == ScaleKind::Log {
            let value = |key: usize| {
                let (power, part) = (key >> FINE, key & ((1 << FINE) - 1));
                (power as f64).exp2() * (1.0 + (part as f64 + 0.5) / f64::from(1 << FINE))
            };
            scale.table = (0..64 << FINE).map(|key| scale.exact_row(value(key)) as u16).collect();
        }
        scale
    }

    /// The row of a value, worked out.
    fn exact_row(&self, value: f64) -> usize {
        let part = match self.kind {
            ScaleKind::Linear => value / self.high,
            ScaleKind::Log => (value.max(1.0) / self.low).ln() / (self.high / self.low).ln(),
        };
        let last = self.height.saturating_sub(1) as f64;
        ((1.0 - part.clamp(0.0, 1.0)) * last).round() as usize
    }

    /// The row of a value in nanoseconds.
    #[inline]
    #[must_use]
    pub fn row(&self, ns: i64) -> usize {
        if self.kind == ScaleKind::Linear {
            return self.exact_row(ns as f64);
        }
        let ns = ns.max(1) as u64;
        let power = ns.ilog2();
        let part =
            if power >= FINE { ns >> (power - FINE) } else { ns << (FINE - power) } & ((1 << FINE) - 1);
        let key = (power as usize) << FINE | part as usize;
        self.table.get(key).copied().map_or(0, usize::from)
    }

    /// Value in nanoseconds and row of every tick.
    #[must_use]
    pub fn ticks(&self) -> Vec<(f64, usize)> {
        let values: Vec<f64> = match self.kind {
            ScaleKind::Linear => {
                let step = crate::chart::axes::nice_step(self.high, 8);
                (0..100).map(|n| f64::from(n) * step).take_while(|value| *value <= self.high).collect()
            }
            ScaleKind::Log => {
                let first = self.low.log10().ceil() as i32;
                (first..first + 20)
                    .map(|power| 10_f64.powi(power))
                    .take_while(|value| *value <= self.high)
                    .collect()
            }
        };
        values.into_iter().map(|value| (value, self.exact_row(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::PixelColumns;
    use super::*;

    proptest! {
        #[test]
        fn columns_are_those_of_a_division(last in 1_u64..1 << 40, part in 0_u64..1 << 40, most in 1_u64..4000) {
            let value = part % (last + 1);
            let requested = u128::from(value) * u128::from(most) / u128::from(last);
            prop_assert_eq!(PixelColumns::new(last, most).column_of(value) as u128, requested);
            prop_assert_eq!(PixelColumns::new(last, most).column_of(last) as u64, most);
        }
    }

    #[test]
    fn the_table_is_within_a_pixel_of_the_logarithm() {
        let scale = TimeScale::new(ScaleKind::Log, 50.0, 5e6, 1800);
        for ns in (1..5_000_000).step_by(997).chain([50, 51, 4_999_999]) {
            let (table, exact) = (scale.row(ns), scale.exact_row(ns as f64));
            assert!(table.abs_diff(exact) <= 1, "{ns}: {table} {exact}");
        }
        assert_eq!((scale.row(5_000_000), scale.row(1)), (0, 1799));
    }
}
