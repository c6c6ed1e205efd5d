//! Owns the histogram: how often values fall between edges. It refuses to choose the edges: analysis did.

use super::axis::ChartAxis;
use super::canvas::{line_mark, rect_mark, text_mark};
use super::colour::PALETTE;
use super::frame::ChartFrame;
use super::number::{AxisUnit, format_significant};
use super::scene::{MarkInk, Scene, TextAnchor};

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
            let shown = self.unit.scaled_for(*to);
            let title = format!(
                "{} to {} {}: {}",
                format_significant(from / shown.divisor),
                format_significant(to / shown.divisor),
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

fn first_colour() -> super::RgbColour {
    PALETTE.first().copied().unwrap_or(super::OTHERS_COLOUR)
}
