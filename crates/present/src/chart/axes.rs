//! What every chart over two axes has: scales, ticks, grid, title, legend, and bands with the names of phases.
//!
//! Ticks are 1, 2 or 5 times a power of ten, as few as fit. There are no logarithmic scales: bytes that add up need a
//! zero.

use crate::chart::axis_unit::AxisUnit;
use crate::chart::palette::RgbColour;
use crate::chart::scene::{
    MarkInk, Scene, SceneMark, TEXT, TextAnchor, faint_text, line_mark, rect_mark, text_mark, title_text,
};
use crate::chart::typeface;

/// A range of the horizontal axis that has a name: a phase of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct AxisBand {
    /// where it begins
    pub from: f64,
    /// where it ends
    pub to: f64,
    /// `iteration 0`
    pub name: String,
}

const WIDTH: f64 = 900.0;

const HEIGHT: f64 = 440.0;

const LEFT: f64 = 64.0;

const TOP: f64 = 76.0;

const BOTTOM: f64 = 48.0;

const LEGEND: f64 = 190.0;

/// The place between the axes, and the marks so far.
#[derive(Debug)]
pub(crate) struct ChartFrame {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    pub(crate) marks: Vec<SceneMark>,
    description: String,
}

impl ChartFrame {
    /// A frame with its title and, below it, one line that explains; room for a legend where there is one.
    pub(crate) fn new(heading: &str, note: &str, legend: bool) -> Self {
        let right = WIDTH - if legend { LEGEND } else { 24.0 };
        let heading_text = typeface::shorten_to_width(heading, crate::chart::scene::TITLE, WIDTH - 32.0);
        let marks = vec![
            title_text(16.0, 26.0, heading_text),
            faint_text(16.0, 46.0, TextAnchor::Start, typeface::shorten_to_width(note, TEXT, WIDTH - 32.0)),
        ];
        let description = format!("{heading}. {note}").trim_end().to_owned();
        ChartFrame { left: LEFT, right, top: TOP, bottom: HEIGHT - BOTTOM, marks, description }
    }

    /// Pixels of the horizontal axis.
    pub(crate) fn horizontal_pixels(&self) -> (f64, f64) {
        (self.left, self.right)
    }

    /// Pixels of the vertical axis, its low end first.
    pub(crate) fn vertical_pixels(&self) -> (f64, f64) {
        (self.bottom, self.top)
    }

    /// Grid and ticks of both axes; drawn before the data, so that it lies below.
    pub(crate) fn add_axes(&mut self, x: &ChartAxis, y: &ChartAxis, x_name: &str) {
        for (place, label) in y.ticks() {
            self.marks.push(line_mark((self.left, place), (self.right, place), MarkInk::Grid, false));
            self.marks.push(faint_text(self.left - 8.0, place + 4.0, TextAnchor::End, label));
        }
        for (place, label) in x.ticks() {
            self.marks.push(line_mark(
                (place, self.bottom),
                (place, self.bottom + 4.0),
                MarkInk::Faint,
                false,
            ));
            self.marks.push(faint_text(place, self.bottom + 18.0, TextAnchor::Middle, label));
        }
        self.marks.push(line_mark(
            (self.left, self.bottom),
            (self.right, self.bottom),
            MarkInk::Faint,
            false,
        ));
        // A short unit stands above its numbers; a long one would begin beyond the edge.
        let fits = typeface::text_width(&y.name, TEXT) < self.left - 12.0;
        let (place, anchor) =
            if fits { (self.left - 8.0, TextAnchor::End) } else { (4.0, TextAnchor::Start) };
        self.marks.push(faint_text(place, self.top - 10.0, anchor, y.name.as_str()));
        let middle = (self.left + self.right) / 2.0;
        self.marks.push(faint_text(middle, self.bottom + 38.0, TextAnchor::Middle, x_name));
    }

    /// Phases: a dashed line at each beginning, its name above where there is room.
    pub(crate) fn add_bands(&mut self, x: &ChartAxis, spans: &[AxisBand]) {
        for span in spans {
            let (from, to) = (x.pixel_of(span.from), x.pixel_of(span.to));
            self.marks.push(line_mark((from, self.top), (from, self.bottom), MarkInk::Faint, true));
            let name = typeface::shorten_to_width(&span.name, TEXT, to - from - 8.0);
            if name.chars().count() > 2 {
                self.marks.push(faint_text(from + 4.0, self.top - 10.0, TextAnchor::Start, name));
            }
        }
        if let Some(last) = spans.last() {
            let to = x.pixel_of(last.to);
            self.marks.push(line_mark((to, self.top), (to, self.bottom), MarkInk::Faint, true));
        }
    }

    /// Names beside their colours, from the top.
    pub(crate) fn add_legend<'a>(&mut self, entries: impl Iterator<Item = (RgbColour, &'a str)>) {
        let x = self.right + 18.0;
        for (index, (colour, name)) in entries.enumerate() {
            let y = self.top + 8.0 + 20.0 * index as f64;
            if y > self.bottom {
                break;
            }
            self.marks.push(rect_mark((x, y - 9.0), (x + 11.0, y + 2.0), MarkInk::Own(colour), ""));
            self.marks.push(text_mark(
                x + 18.0,
                y,
                TextAnchor::Start,
                typeface::shorten_to_width(name, TEXT, LEGEND - 44.0),
            ));
        }
    }

    /// Says in the middle that there is nothing to draw.
    pub(crate) fn add_empty_note(&mut self) {
        let (x, y) = ((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0);
        self.marks.push(faint_text(x, y, TextAnchor::Middle, "no data"));
    }

    /// The figure.
    pub(crate) fn into_scene(self) -> Scene {
        Scene { width: WIDTH, height: HEIGHT, description: self.description, marks: self.marks }
    }
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChartAxis {
    low: f64,
    high: f64,
    /// pixels of `low` and `high`
    from_pixel: f64,
    to_pixel: f64,
    step: f64,
    divisor: f64,
    /// the unit as shown
    pub(crate) name: String,
    /// what stands at 0, 1, 2, … in place of the number
    labels: Vec<String>,
}

impl ChartAxis {
    /// From `low` to `high`, widened to whole ticks, between two pixels, with about `requested` ticks.
    pub(crate) fn with_rounded_ends(
        unit: &AxisUnit,
        (low, high): (f64, f64),
        pixels: (f64, f64),
        requested: usize,
    ) -> Self {
        let mut axis = ChartAxis::with_exact_ends(unit, (low, high), pixels, requested);
        axis.low = (axis.low / axis.step + 1e-9).floor() * axis.step;
        axis.high = (axis.high / axis.step - 1e-9).ceil() * axis.step;
        axis
    }

    /// From `low` to `high` exactly.
    pub(crate) fn with_exact_ends(
        unit: &AxisUnit,
        (low, high): (f64, f64),
        pixels: (f64, f64),
        requested: usize,
    ) -> Self {
        let shown = unit.scale_for(low.abs().max(high.abs()));
        let (low, high) = (low / shown.divisor, high / shown.divisor);
        let high = if high > low { high } else { low + 1.0 };
        let step = nice_step(high - low, requested);
        ChartAxis {
            low,
            high,
            from_pixel: pixels.0,
            to_pixel: pixels.1,
            step,
            divisor: shown.divisor,
            name: shown.name,
            labels: Vec::new(),
        }
    }

    /// The same with texts at 0, 1, 2, … in place of the numbers.
    pub(crate) fn with_labels(self, labels: Vec<String>) -> Self {
        ChartAxis { labels, ..self }
    }

    /// Of things that are counted: no tick between two of them.
    pub(crate) fn for_counts(ends: (f64, f64), pixels: (f64, f64), requested: usize) -> Self {
        let axis = ChartAxis::with_exact_ends(&AxisUnit::Number, ends, pixels, requested);
        ChartAxis { step: axis.step.max(1.0), ..axis }
    }

    /// The pixel of a value; values beyond the ends stay at them.
    pub(crate) fn pixel_of(&self, value: f64) -> f64 {
        let part = (value / self.divisor - self.low) / (self.high - self.low);
        self.from_pixel + part.clamp(0.0, 1.0) * (self.to_pixel - self.from_pixel)
    }

    /// Pixel and text of every tick.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        let decimals = tick_decimals(self.step);
        let label = |value: f64| self.labels.get(value as usize).filter(|_| value >= 0.0);
        let text = |value: f64| {
            if !self.labels.is_empty() {
                return label(value).cloned().unwrap_or_default();
            }
            let text = format!("{value:.decimals$}");
            let zero = text.chars().all(|letter| matches!(letter, '-' | '0' | '.'));
            if zero { "0".to_owned() } else { text }
        };
        let multiples = tick_values(self.low, self.high, self.step);
        multiples.into_iter().map(|value| (self.pixel_of(value * self.divisor), text(value))).collect()
    }
}

/// The distance between ticks, where about `requested` of them cover `span`.
pub(crate) fn nice_step(span: f64, requested: usize) -> f64 {
    if span <= 0.0 || !span.is_finite() {
        return 1.0;
    }
    let rough = span / requested.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let nice = [1.0, 2.0, 5.0, 10.0].into_iter().find(|nice| nice * power >= rough * 0.999);
    nice.unwrap_or(10.0) * power
}

/// Every multiple of `step` from `low` to `high`.
pub(crate) fn tick_values(low: f64, high: f64, step: f64) -> Vec<f64> {
    let first = (low / step - 1e-9).ceil();
    let last = (high / step + 1e-9).floor();
    // A scale that would need more is a mistake of its caller; the figure stays readable.
    let count = (last - first + 1.0).clamp(0.0, 100.0) as usize;
    (0..count).map(|index| (first + index as f64) * step).collect()
}

/// As many decimals as tell neighbouring ticks apart.
fn tick_decimals(step: f64) -> usize {
    usize::try_from(-step.log10().floor() as i64).unwrap_or(0).min(9)
}
