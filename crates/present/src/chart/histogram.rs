//! Owns the histogram: how often values fall between edges. It refuses to choose the edges: analysis did.

use super::axis::Axis;
use super::canvas::{rect, rule, text};
use super::colour::PALETTE;
use super::frame::Frame;
use super::number::{Unit, significant};
use super::scene::{Anchor, Ink, Scene};

/// Bars between edges.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histogram {
    /// What it shows.
    pub title: String,
    /// One line below the title.
    pub note: String,
    /// The unit of the edges.
    pub unit: Unit,
    /// What the horizontal axis is.
    pub name: String,
    /// The unit of the heights.
    pub heights: Unit,
    /// One more than there are bars, ascending.
    pub edges: Vec<f64>,
    /// The height of each bar.
    pub counts: Vec<f64>,
    /// Values to point at, by name: a mean.
    pub pointers: Vec<(String, f64)>,
}

impl Histogram {
    /// Lays the figure out.
    #[must_use]
    pub fn scene(&self) -> Scene {
        let mut frame = Frame::new(&self.title, &self.note, false);
        let (Some(first), Some(last)) = (self.edges.first(), self.edges.last()) else {
            frame.empty();
            return frame.scene();
        };
        let highest = self.counts.iter().copied().fold(0.0, f64::max);
        let x = Axis::exact(&self.unit, (*first, *last), frame.across(), 10);
        let y = Axis::rounded(&self.heights, (0.0, highest), frame.up(), 6);
        frame.axes(&x, &y, &self.name);
        for (edges, count) in self.edges.windows(2).zip(&self.counts).filter(|(_, count)| **count > 0.0) {
            let [from, to] = edges else { continue };
            let shown = self.unit.shown(*to);
            let title = format!(
                "{} to {} {}: {}",
                significant(from / shown.divisor),
                significant(to / shown.divisor),
                shown.name,
                self.heights.text(*count)
            );
            let inset = if x.place(*to) - x.place(*from) > 3.0 { 0.5 } else { 0.0 };
            let corner = (x.place(*from) + inset, y.place(0.0));
            let opposite = (x.place(*to) - inset, y.place(*count));
            frame.marks.push(rect(corner, opposite, Ink::Own(first_colour()), title));
        }
        self.point(&mut frame, &x);
        frame.scene()
    }

    fn point(&self, frame: &mut Frame, x: &Axis) {
        for (index, (name, value)) in self.pointers.iter().enumerate() {
            let place = x.place(*value);
            let height = frame.top + 8.0 + 18.0 * index as f64;
            frame.marks.push(rule((place, frame.top), (place, frame.bottom), Ink::Text, true));
            let left = place > (frame.left + frame.right) / 2.0;
            let (anchor, shift) = if left { (Anchor::End, -6.0) } else { (Anchor::Start, 6.0) };
            let label = format!("{name} {}", self.unit.text(*value));
            frame.marks.push(text(place + shift, height, anchor, label));
        }
    }
}

fn first_colour() -> super::Rgb {
    PALETTE.first().copied().unwrap_or(super::OTHERS)
}
