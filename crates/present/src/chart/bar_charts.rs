//! Sizes of named things as horizontal bars, of parts or with an interval, and histograms.
//!
//! Rows and edges of bins are the caller's choice.

use perflab_model::quantity::format_digits;

use crate::chart::axes::{ChartAxis, ChartFrame};
use crate::chart::palette::{PALETTE, RgbColour, name_colours, series_colour};
use crate::chart::scene::{
    MarkInk, Scene, SceneMark, TEXT, TITLE, TextAnchor, faint_text, line_mark, rect_mark, text_mark,
    title_text,
};
use crate::chart::typeface;

use crate::chart::axis_unit::AxisUnit;

/// One thing.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartBar {
    /// Its name.
    pub name: String,
    /// Its parts, in the order of [`BarChart::parts`]. One part may be negative, several must not.
    pub parts: Vec<f64>,
    /// The ends of an interval of the whole.
    pub interval: Option<(f64, f64)>,
}

/// Named things by size.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BarChart {
    /// What it shows.
    pub title: String,
    /// One line below the title.
    pub note: String,
    /// The unit of the sizes.
    pub unit: AxisUnit,
    /// The names of the parts; one or none needs no legend.
    pub parts: Vec<String>,
    /// From the top.
    pub bars: Vec<ChartBar>,
}

const WIDTH: f64 = 900.0;

const ROW: f64 = 24.0;

const NAMES: f64 = 210.0;

const VALUES: f64 = 110.0;

impl BarChart {
    /// Lays the figure out.
    #[must_use]
    pub fn render(&self) -> Scene {
        let top = if self.parts.len() > 1 { 92.0 } else { 66.0 };
        let bottom = top + ROW * self.bars.len().max(1) as f64;
        let mut marks = vec![
            title_text(16.0, 26.0, typeface::shorten_to_width(&self.title, TITLE, WIDTH - 32.0)),
            faint_text(
                16.0,
                46.0,
                TextAnchor::Start,
                typeface::shorten_to_width(&self.note, TEXT, WIDTH - 32.0),
            ),
        ];
        let x = self.value_axis();
        for (place, label) in x.ticks() {
            marks.push(line_mark((place, top), (place, bottom), MarkInk::Grid, false));
            marks.push(faint_text(place, bottom + 18.0, TextAnchor::Middle, label));
        }
        marks.push(faint_text(NAMES - 40.0, bottom + 18.0, TextAnchor::End, x.name.as_str()));
        marks.extend(self.legend_marks());
        for (index, bar) in self.bars.iter().enumerate() {
            marks.extend(self.bar_marks(bar, &x, top + ROW * (index as f64 + 0.5)));
        }
        let description = format!("{}. {}", self.title, self.note);
        Scene { width: WIDTH, height: bottom + 34.0, description, marks }
    }

    fn value_axis(&self) -> ChartAxis {
        let ends = |bar: &ChartBar| {
            let whole: f64 = bar.parts.iter().sum();
            let (low, high) = bar.interval.unwrap_or((whole, whole));
            [whole, low, high]
        };
        let (low, high) = self
            .bars
            .iter()
            .flat_map(ends)
            .fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        ChartAxis::with_rounded_ends(&self.unit, (low, high), (NAMES, WIDTH - VALUES), 6)
    }

    fn legend_marks(&self) -> Vec<SceneMark> {
        let mut marks = Vec::new();
        let mut x = NAMES;
        for (index, name) in self.parts.iter().enumerate().filter(|_| self.parts.len() > 1) {
            marks.push(rect_mark((x, 61.0), (x + 11.0, 72.0), MarkInk::Own(self.part_colour(index)), ""));
            marks.push(text_mark(x + 17.0, 71.0, TextAnchor::Start, name.as_str()));
            x += 17.0 + typeface::text_width(name, TEXT) + 20.0;
        }
        marks
    }

    /// The colour of a part: its name's, where it has one.
    fn part_colour(&self, index: usize) -> RgbColour {
        let names: Vec<&str> = self.parts.iter().map(String::as_str).collect();
        name_colours(&names).get(index).copied().unwrap_or_else(|| series_colour(index))
    }

    fn bar_marks(&self, bar: &ChartBar, x: &ChartAxis, y: f64) -> Vec<SceneMark> {
        let name = typeface::shorten_to_width(&bar.name, TEXT, NAMES - 28.0);
        let mut marks = vec![text_mark(NAMES - 12.0, y + 4.0, TextAnchor::End, name)];
        let mut from = 0.0;
        for (index, part) in bar.parts.iter().enumerate().filter(|(_, part)| **part != 0.0) {
            let to = from + part;
            let title = match self.parts.get(index) {
                Some(kind) => format!("{}, {kind}: {}", bar.name, self.unit.format_value(*part)),
                None => format!("{}: {}", bar.name, self.unit.format_value(*part)),
            };
            let corners = ((x.pixel_of(from), y - 8.0), (x.pixel_of(to), y + 8.0));
            marks.push(rect_mark(corners.0, corners.1, MarkInk::Own(self.part_colour(index)), title));
            from = to;
        }
        if let Some((low, high)) = bar.interval {
            marks.push(line_mark((x.pixel_of(low), y), (x.pixel_of(high), y), MarkInk::Text, false));
            for end in [low, high] {
                marks.push(line_mark(
                    (x.pixel_of(end), y - 5.0),
                    (x.pixel_of(end), y + 5.0),
                    MarkInk::Text,
                    false,
                ));
            }
        }
        let whole: f64 = bar.parts.iter().sum();
        marks.push(faint_text(
            WIDTH - VALUES + 12.0,
            y + 4.0,
            TextAnchor::Start,
            self.unit.format_value(whole),
        ));
        marks
    }
}

/// Bars between edges.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HistogramChart {
    /// What it shows.
    pub title: String,
    /// One line below the title.
    pub note: String,
    /// The unit of the edges.
    pub unit: AxisUnit,
    /// What the horizontal axis is.
    pub x_title: String,
    /// The unit of the heights.
    pub height_unit: AxisUnit,
    /// One more than there are bars, ascending.
    pub edges: Vec<f64>,
    /// The height of each bar.
    pub counts: Vec<f64>,
    /// Values to point at, by name: a mean.
    pub pointers: Vec<(String, f64)>,
}

impl HistogramChart {
    /// Lays the figure out.
    #[must_use]
    pub fn render(&self) -> Scene {
        let mut frame = ChartFrame::new(&self.title, &self.note, false);
        let (Some(first), Some(last)) = (self.edges.first(), self.edges.last()) else {
            frame.add_empty_note();
            return frame.into_scene();
        };
        let highest = self.counts.iter().copied().fold(0.0, f64::max);
        let x = ChartAxis::with_exact_ends(&self.unit, (*first, *last), frame.horizontal_pixels(), 10);
        let y = ChartAxis::with_rounded_ends(&self.height_unit, (0.0, highest), frame.vertical_pixels(), 6);
        frame.add_axes(&x, &y, &self.x_title);
        for (edges, count) in self.edges.windows(2).zip(&self.counts).filter(|(_, count)| **count > 0.0) {
            let [from, to] = edges else { continue };
            let shown = self.unit.scale_for(*to);
            let title = format!(
                "{} to {} {}: {}",
                format_digits(from / shown.divisor),
                format_digits(to / shown.divisor),
                shown.name,
                self.height_unit.format_value(*count)
            );
            let inset = if x.pixel_of(*to) - x.pixel_of(*from) > 3.0 { 0.5 } else { 0.0 };
            let corner = (x.pixel_of(*from) + inset, y.pixel_of(0.0));
            let opposite = (x.pixel_of(*to) - inset, y.pixel_of(*count));
            frame.marks.push(rect_mark(corner, opposite, MarkInk::Own(first_colour()), title));
        }
        self.mark_mean(&mut frame, &x);
        frame.into_scene()
    }

    fn mark_mean(&self, frame: &mut ChartFrame, x: &ChartAxis) {
        for (index, (name, value)) in self.pointers.iter().enumerate() {
            let place = x.pixel_of(*value);
            let height = frame.top + 8.0 + 18.0 * index as f64;
            frame.marks.push(line_mark((place, frame.top), (place, frame.bottom), MarkInk::Text, true));
            let left = place > (frame.left + frame.right) / 2.0;
            let (anchor, shift) = if left { (TextAnchor::End, -6.0) } else { (TextAnchor::Start, 6.0) };
            let label = format!("{name} {}", self.unit.format_value(*value));
            frame.marks.push(text_mark(place + shift, height, anchor, label));
        }
    }
}

fn first_colour() -> crate::chart::palette::RgbColour {
    PALETTE.first().copied().unwrap_or(crate::chart::palette::OTHERS_COLOUR)
}
