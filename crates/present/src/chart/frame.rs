//! Owns what every figure over two axes has: title, grid, ticks, the names of phases, the legend. It refuses data.

use super::axis::ChartAxis;
use super::canvas::{TEXT, faint_text, line_mark, rect_mark, text_mark, title_text};
use super::colour::RgbColour;
use super::font;
use super::scene::{MarkInk, Scene, SceneMark, TextAnchor};

/// A stretch of the horizontal axis that has a name: a phase of the run.
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
pub(super) struct ChartFrame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) marks: Vec<SceneMark>,
    description: String,
}

impl ChartFrame {
    /// A frame with its title and, below it, one line that explains; room for a legend where there is one.
    pub(super) fn new(heading: &str, note: &str, legend: bool) -> Self {
        let right = WIDTH - if legend { LEGEND } else { 24.0 };
        let heading_text = font::shorten_to_width(heading, super::canvas::TITLE, WIDTH - 32.0);
        let marks = vec![
            title_text(16.0, 26.0, heading_text),
            faint_text(16.0, 46.0, TextAnchor::Start, font::shorten_to_width(note, TEXT, WIDTH - 32.0)),
        ];
        let description = format!("{heading}. {note}").trim_end().to_owned();
        ChartFrame { left: LEFT, right, top: TOP, bottom: HEIGHT - BOTTOM, marks, description }
    }

    /// Pixels of the horizontal axis.
    pub(super) fn horizontal_pixels(&self) -> (f64, f64) {
        (self.left, self.right)
    }

    /// Pixels of the vertical axis, its low end first.
    pub(super) fn vertical_pixels(&self) -> (f64, f64) {
        (self.bottom, self.top)
    }

    /// Grid and ticks of both axes; drawn before the data, so that it lies below.
    pub(super) fn add_axes(&mut self, x: &ChartAxis, y: &ChartAxis, x_name: &str) {
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
        let fits = font::text_width(&y.name, TEXT) < self.left - 12.0;
        let (place, anchor) =
            if fits { (self.left - 8.0, TextAnchor::End) } else { (4.0, TextAnchor::Start) };
        self.marks.push(faint_text(place, self.top - 10.0, anchor, y.name.as_str()));
        let middle = (self.left + self.right) / 2.0;
        self.marks.push(faint_text(middle, self.bottom + 38.0, TextAnchor::Middle, x_name));
    }

    /// Phases: a dashed line at each beginning, its name above where there is room.
    pub(super) fn add_bands(&mut self, x: &ChartAxis, spans: &[AxisBand]) {
        for span in spans {
            let (from, to) = (x.pixel_of(span.from), x.pixel_of(span.to));
            self.marks.push(line_mark((from, self.top), (from, self.bottom), MarkInk::Faint, true));
            let name = font::shorten_to_width(&span.name, TEXT, to - from - 8.0);
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
    pub(super) fn add_legend<'a>(&mut self, entries: impl Iterator<Item = (RgbColour, &'a str)>) {
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
                font::shorten_to_width(name, TEXT, LEGEND - 44.0),
            ));
        }
    }

    /// Says in the middle that there is nothing to draw.
    pub(super) fn add_empty_note(&mut self) {
        let (x, y) = ((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0);
        self.marks.push(faint_text(x, y, TextAnchor::Middle, "no data"));
    }

    /// The figure.
    pub(super) fn into_scene(self) -> Scene {
        Scene { width: WIDTH, height: HEIGHT, description: self.description, marks: self.marks }
    }
}
