//! Owns single values in order, each with its interval, and the level of each stretch. It refuses to join dots: what lies
//! between two of them was not measured.

use super::axis::Axis;
use super::canvas::{faint, rule};
use super::colour::nth;
use super::frame::{Frame, Span};
use super::number::Unit;
use super::scene::{Anchor, Ink, Mark, Point, Scene};

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub struct Dot {
    /// Its place on the horizontal axis.
    pub x: f64,
    /// Its value.
    pub y: f64,
    /// Lower and upper end of its interval, where it has one.
    pub interval: Option<(f64, f64)>,
    /// Index of its group: its colour.
    pub group: usize,
    /// What a pointer is told.
    pub name: String,
}

/// A level that holds over a stretch.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// where it begins
    pub from: f64,
    /// where it ends
    pub to: f64,
    /// the level
    pub value: f64,
}

/// What lies between two values at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    /// the place
    pub at: f64,
    /// the least
    pub low: f64,
    /// the most
    pub high: f64,
}

/// Values in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dots {
    /// What it shows.
    pub title: String,
    /// One line below the title.
    pub note: String,
    /// The unit of the values.
    pub unit: Unit,
    /// What the horizontal axis counts.
    pub across: String,
    /// The values.
    pub dots: Vec<Dot>,
    /// The levels.
    pub levels: Vec<Level>,
    /// Rules behind the values, from the least to the most of a place.
    pub ranges: Vec<Range>,
    /// Named stretches.
    pub spans: Vec<Span>,
    /// Names of the groups, in the order of their indexes; no legend where empty.
    pub groups: Vec<String>,
}

impl Dots {
    /// Lays the figure out.
    #[must_use]
    pub fn scene(&self) -> Scene {
        let mut frame = Frame::new(&self.title, &self.note, !self.groups.is_empty());
        let Some((x, y)) = self.axes(&frame) else {
            frame.empty();
            return frame.scene();
        };
        frame.axes(&x, &y, &self.across);
        frame.spans(&x, &self.spans);
        for level in &self.levels {
            let height = y.place(level.value);
            let points = [level.from, level.to].map(|at| Point { x: x.place(at), y: height }).to_vec();
            let title = String::new();
            frame.marks.push(Mark::Line { points, ink: Ink::Faint, width: 2.0, dashed: false, title });
        }
        for range in &self.ranges {
            let at = x.place(range.at);
            frame.marks.push(rule((at, y.place(range.low)), (at, y.place(range.high)), Ink::Faint, false));
        }
        for dot in &self.dots {
            frame.marks.extend(marks(dot, &x, &y));
        }
        frame.legend(self.groups.iter().enumerate().map(|(index, name)| (nth(index), name.as_str())));
        if self.dots.iter().all(|dot| dot.interval.is_none()) && self.groups.is_empty() {
            let (right, top) = (frame.right, frame.top);
            frame.marks.push(faint(right, top - 10.0, Anchor::End, "no intervals: too few values a run"));
        }
        frame.scene()
    }

    fn axes(&self, frame: &Frame) -> Option<(Axis, Axis)> {
        let ends = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
        let empty = (f64::INFINITY, f64::NEG_INFINITY);
        let places =
            self.dots.iter().map(|dot| dot.x).chain(self.spans.iter().flat_map(|span| [span.from, span.to]));
        let (first, last) = places.fold(empty, ends);
        let limits = |dot: &Dot| dot.interval.map_or([dot.y; 3], |(low, high)| [low, dot.y, high]);
        let (low, high) = self.dots.iter().flat_map(limits).fold(empty, ends);
        if low > high {
            return None;
        }
        let room = 0.02 * (last - first).max(1.0);
        let x = Axis::counting((first - room, last + room), frame.across(), 10);
        Some((x, Axis::rounded(&self.unit, (low, high), frame.up(), 6)))
    }
}

/// The interval as a thin rule, the value as a small square.
fn marks(dot: &Dot, x: &Axis, y: &Axis) -> Vec<Mark> {
    const HALF: f64 = 3.0;
    let colour = nth(dot.group);
    let (at, value) = (x.place(dot.x), y.place(dot.y));
    let bar = dot
        .interval
        .map(|(low, high)| rule((at, y.place(low)), (at, y.place(high)), Ink::Pale(colour), false));
    let square = super::canvas::rect(
        (at - HALF, value - HALF),
        (at + HALF, value + HALF),
        Ink::Own(colour),
        &*dot.name,
    );
    bar.into_iter().chain([square]).collect()
}
