//! Owns what every figure over two axes has: title, grid, ticks, the names of phases, the legend. It refuses data.

use super::axis::Axis;
use super::canvas::{TEXT, faint, rect, rule, text, title};
use super::colour::Rgb;
use super::font;
use super::scene::{Anchor, Ink, Mark, Scene};

/// A stretch of the horizontal axis that has a name: a phase of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
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
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) marks: Vec<Mark>,
    description: String,
}

impl Frame {
    /// A frame with its title and, below it, one line that explains; room for a legend where there is one.
    pub(super) fn new(heading: &str, note: &str, legend: bool) -> Self {
        let right = WIDTH - if legend { LEGEND } else { 24.0 };
        let heading_text = font::fitted(heading, super::canvas::TITLE, WIDTH - 32.0);
        let marks = vec![
            title(16.0, 26.0, heading_text),
            faint(16.0, 46.0, Anchor::Start, font::fitted(note, TEXT, WIDTH - 32.0)),
        ];
        let description = format!("{heading}. {note}").trim_end().to_owned();
        Frame { left: LEFT, right, top: TOP, bottom: HEIGHT - BOTTOM, marks, description }
    }

    /// Pixels of the horizontal axis.
    pub(super) fn across(&self) -> (f64, f64) {
        (self.left, self.right)
    }

    /// Pixels of the vertical axis, its low end first.
    pub(super) fn up(&self) -> (f64, f64) {
        (self.bottom, self.top)
    }

    /// Grid and ticks of both axes; drawn before the data, so that it lies below.
    pub(super) fn axes(&mut self, x: &Axis, y: &Axis, x_name: &str) {
        for (place, label) in y.ticks() {
            self.marks.push(rule((self.left, place), (self.right, place), Ink::Grid, false));
            self.marks.push(faint(self.left - 8.0, place + 4.0, Anchor::End, label));
        }
        for (place, label) in x.ticks() {
            self.marks.push(rule((place, self.bottom), (place, self.bottom + 4.0), Ink::Faint, false));
            self.marks.push(faint(place, self.bottom + 18.0, Anchor::Middle, label));
        }
        self.marks.push(rule((self.left, self.bottom), (self.right, self.bottom), Ink::Faint, false));
        // A short unit stands above its numbers; a long one would begin beyond the edge.
        let fits = font::width(&y.name, TEXT) < self.left - 12.0;
        let (place, anchor) = if fits { (self.left - 8.0, Anchor::End) } else { (4.0, Anchor::Start) };
        self.marks.push(faint(place, self.top - 10.0, anchor, y.name.as_str()));
        let middle = (self.left + self.right) / 2.0;
        self.marks.push(faint(middle, self.bottom + 38.0, Anchor::Middle, x_name));
    }

    /// Phases: a dashed line at each beginning, its name above where there is room.
    pub(super) fn spans(&mut self, x: &Axis, spans: &[Span]) {
        for span in spans {
            let (from, to) = (x.place(span.from), x.place(span.to));
            self.marks.push(rule((from, self.top), (from, self.bottom), Ink::Faint, true));
            let name = font::fitted(&span.name, TEXT, to - from - 8.0);
            if name.chars().count() > 2 {
                self.marks.push(faint(from + 4.0, self.top - 10.0, Anchor::Start, name));
            }
        }
        if let Some(last) = spans.last() {
            let to = x.place(last.to);
            self.marks.push(rule((to, self.top), (to, self.bottom), Ink::Faint, true));
        }
    }

    /// Names beside their colours, from the top.
    pub(super) fn legend<'a>(&mut self, entries: impl Iterator<Item = (Rgb, &'a str)>) {
        let x = self.right + 18.0;
        for (index, (colour, name)) in entries.enumerate() {
            let y = self.top + 8.0 + 20.0 * index as f64;
            if y > self.bottom {
                break;
            }
            self.marks.push(rect((x, y - 9.0), (x + 11.0, y + 2.0), Ink::Own(colour), ""));
            self.marks.push(text(x + 18.0, y, Anchor::Start, font::fitted(name, TEXT, LEGEND - 44.0)));
        }
    }

    /// Says in the middle that there is nothing to draw.
    pub(super) fn empty(&mut self) {
        let (x, y) = ((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0);
        self.marks.push(faint(x, y, Anchor::Middle, "no data"));
    }

    /// The figure.
    pub(super) fn scene(self) -> Scene {
        Scene { width: WIDTH, height: HEIGHT, description: self.description, marks: self.marks }
    }
}
