//! Owns stretches of a scale that something happened to at a time: reads of a disk over its places. It refuses to draw one
//! pixel twice in one colour, so that a picture of a million reads is no larger than its paper.

use std::collections::BTreeSet;

use super::axis::ChartAxis;
use super::canvas::rect_mark;
use super::colour::{OTHERS_COLOUR, RgbColour};
use super::frame::ChartFrame;
use super::number::AxisUnit;
use super::scene::{MarkInk, Scene, SceneMark};

/// One stretch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChartExtent {
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
pub struct ExtentChart {
    /// What it shows.
    pub title: String,
    /// One line below the title.
    pub note: String,
    /// The unit of the places.
    pub unit: AxisUnit,
    /// What the horizontal axis counts.
    pub x_title: String,
    /// The stretches; later ones lie over earlier ones.
    pub extents: Vec<ChartExtent>,
    /// Names and colours of the groups, in the order of their indexes.
    pub groups: Vec<(String, RgbColour)>,
}

/// Pixels of a moment, and at least of a stretch.
const DOT: f64 = 2.0;

impl ExtentChart {
    /// Lays the figure out.
    #[must_use]
    pub fn render(&self) -> Scene {
        let mut frame = ChartFrame::new(&self.title, &self.note, true);
        let Some((x, y)) = self.axes(&frame) else {
            frame.add_empty_note();
            return frame.into_scene();
        };
        frame.add_axes(&x, &y, &self.x_title);
        frame.marks.extend(self.extent_marks(&x, &y));
        frame.add_legend(self.groups.iter().map(|(name, colour)| (*colour, name.as_str())));
        frame.into_scene()
    }

    fn axes(&self, frame: &ChartFrame) -> Option<(ChartAxis, ChartAxis)> {
        let ends = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
        let empty = (f64::INFINITY, f64::NEG_INFINITY);
        let (_, last) = self.extents.iter().map(|stretch| stretch.x).fold(empty, ends);
        let places = self.extents.iter().flat_map(|stretch| [stretch.from, stretch.to]);
        let (low, high) = places.fold(empty, ends);
        if low > high {
            return None;
        }
        let x = ChartAxis::with_exact_ends(
            &AxisUnit::Plain("s".into()),
            (0.0, last * 1.02),
            frame.horizontal_pixels(),
            8,
        );
        Some((x, ChartAxis::with_rounded_ends(&self.unit, (low, high), frame.vertical_pixels(), 6)))
    }

    /// A rectangle for each dot of the paper that a group covers.
    fn extent_marks(&self, x: &ChartAxis, y: &ChartAxis) -> Vec<SceneMark> {
        let mut drawn = BTreeSet::new();
        let mut marks = Vec::new();
        for stretch in &self.extents {
            let (left, low, high) = (x.pixel_of(stretch.x), y.pixel_of(stretch.from), y.pixel_of(stretch.to));
            let top = high.min(low - DOT);
            let whole = |pixels: f64| (pixels / DOT).round() as i64;
            if drawn.insert((whole(left), whole(low), whole(top), stretch.group)) {
                let colour = self.groups.get(stretch.group).map_or(OTHERS_COLOUR, |(_, colour)| *colour);
                marks.push(rect_mark((left, low), (left + DOT, top), MarkInk::Own(colour), ""));
            }
        }
        marks
    }
}
