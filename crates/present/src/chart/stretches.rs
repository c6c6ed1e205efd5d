//! Owns stretches of a scale that something happened to at a time: reads of a disk over its places. It refuses to draw one
//! pixel twice in one colour, so that a picture of a million reads is no larger than its paper.

use std::collections::BTreeSet;

use super::axis::Axis;
use super::canvas::rect;
use super::colour::{OTHERS, Rgb};
use super::frame::Frame;
use super::number::Unit;
use super::scene::{Ink, Mark, Scene};

/// One stretch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// When.
    pub x: f64,
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Index of its group: its colour.
    pub group: usize,
}

/// Stretches over time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stretches {
    /// What it shows.
    pub title: String,
    /// One line below the title.
    pub note: String,
    /// The unit of the places.
    pub unit: Unit,
    /// What the horizontal axis counts.
    pub across: String,
    /// The stretches; later ones lie over earlier ones.
    pub stretches: Vec<Stretch>,
    /// Names and colours of the groups, in the order of their indexes.
    pub groups: Vec<(String, Rgb)>,
}

/// Pixels of a moment, and at least of a stretch.
const DOT: f64 = 2.0;

impl Stretches {
    /// Lays the figure out.
    #[must_use]
    pub fn scene(&self) -> Scene {
        let mut frame = Frame::new(&self.title, &self.note, true);
        let Some((x, y)) = self.axes(&frame) else {
            frame.empty();
            return frame.scene();
        };
        frame.axes(&x, &y, &self.across);
        frame.marks.extend(self.marks(&x, &y));
        frame.legend(self.groups.iter().map(|(name, colour)| (*colour, name.as_str())));
        frame.scene()
    }

    fn axes(&self, frame: &Frame) -> Option<(Axis, Axis)> {
        let ends = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
        let empty = (f64::INFINITY, f64::NEG_INFINITY);
        let (_, last) = self.stretches.iter().map(|stretch| stretch.x).fold(empty, ends);
        let places = self.stretches.iter().flat_map(|stretch| [stretch.from, stretch.to]);
        let (low, high) = places.fold(empty, ends);
        if low > high {
            return None;
        }
        let x = Axis::exact(&Unit::Plain("s".into()), (0.0, last * 1.02), frame.across(), 8);
        Some((x, Axis::rounded(&self.unit, (low, high), frame.up(), 6)))
    }

    /// A rectangle for each dot of the paper that a group covers.
    fn marks(&self, x: &Axis, y: &Axis) -> Vec<Mark> {
        let mut drawn = BTreeSet::new();
        let mut marks = Vec::new();
        for stretch in &self.stretches {
            let (left, low, high) = (x.place(stretch.x), y.place(stretch.from), y.place(stretch.to));
            let top = high.min(low - DOT);
            let whole = |pixels: f64| (pixels / DOT).round() as i64;
            if drawn.insert((whole(left), whole(low), whole(top), stretch.group)) {
                let colour = self.groups.get(stretch.group).map_or(OTHERS, |(_, colour)| *colour);
                marks.push(rect((left, low), (left + DOT, top), Ink::Own(colour), ""));
            }
        }
        marks
    }
}
