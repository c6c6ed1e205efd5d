//! Single values in order, each with its interval and the level of each range; and extents of a scale over time, such
//! as reads over a disk.
//!
//! Dots are not joined: what lies between two of them was not measured. No pixel is drawn twice in one colour, so that
//! a picture of a million reads is no larger than its paper.

use std::collections::BTreeSet;

use crate::chart::axes::{AxisBand, ChartAxis, ChartFrame};
use crate::chart::axis_unit::AxisUnit;
use crate::chart::palette::{OTHERS_COLOUR, RgbColour, name_colours, series_colour};
use crate::chart::scene::{
    MarkInk, Scene, SceneMark, ScenePoint, TextAnchor, faint_text, line_mark, rect_mark,
};

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartDot {
    /// Its place on the horizontal axis.
    pub x: f64,
    /// Its value.
    pub y: f64,
    /// Lower and upper end of its interval, where it has one.
    pub interval: Option<(f64, f64)>,
    /// Index of its group: its colour.
    pub group: usize,
    /// What a pointer shows.
    pub name: String,
}

/// A level that holds over a range.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelLine {
    /// where it begins
    pub from: f64,
    /// where it ends
    pub to: f64,
    /// the level
    pub value: f64,
}

/// What lies between two values at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeLine {
    /// the place
    pub x: f64,
    /// the least
    pub low: f64,
    /// the most
    pub high: f64,
}

/// Values in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DotChart {
    /// What it shows.
    pub title: String,
    /// One line below the title.
    pub note: String,
    /// The unit of the values.
    pub unit: AxisUnit,
    /// What the horizontal axis counts.
    pub x_title: String,
    /// What stands at 0, 1, 2, … of the horizontal axis; the numbers where empty.
    pub x_labels: Vec<String>,
    /// The values.
    pub dots: Vec<ChartDot>,
    /// The levels.
    pub levels: Vec<LevelLine>,
    /// Rules behind the values, from the least to the most of a place.
    pub ranges: Vec<RangeLine>,
    /// Named ranges.
    pub bands: Vec<AxisBand>,
    /// Names of the groups, in the order of their indexes; no legend where empty.
    pub groups: Vec<String>,
}

impl DotChart {
    /// Lays the figure out.
    #[must_use]
    pub fn render(&self) -> Scene {
        let mut frame = ChartFrame::new(&self.title, &self.note, !self.groups.is_empty());
        let Some((x, y)) = self.axes(&frame) else {
            frame.add_empty_note();
            return frame.into_scene();
        };
        frame.add_axes(&x, &y, &self.x_title);
        frame.add_bands(&x, &self.bands);
        for level in &self.levels {
            let height = y.pixel_of(level.value);
            let points =
                [level.from, level.to].map(|at| ScenePoint { x: x.pixel_of(at), y: height }).to_vec();
            let title = String::new();
            frame.marks.push(SceneMark::Line {
                points,
                ink: MarkInk::Faint,
                width: 2.0,
                dashed: false,
                title,
            });
        }
        for range in &self.ranges {
            let at = x.pixel_of(range.x);
            frame.marks.push(line_mark(
                (at, y.pixel_of(range.low)),
                (at, y.pixel_of(range.high)),
                MarkInk::Faint,
                false,
            ));
        }
        let names: Vec<&str> = self.groups.iter().map(String::as_str).collect();
        let colours = name_colours(&names);
        for dot in &self.dots {
            let colour = colours.get(dot.group).copied().unwrap_or_else(|| series_colour(dot.group));
            frame.marks.extend(dot_marks(dot, colour, &x, &y));
        }
        frame.add_legend(colours.into_iter().zip(names));
        if self.dots.iter().all(|dot| dot.interval.is_none()) && self.groups.is_empty() {
            let (right, top) = (frame.right, frame.top);
            frame.marks.push(faint_text(
                right,
                top - 10.0,
                TextAnchor::End,
                "no intervals: too few values a run",
            ));
        }
        frame.into_scene()
    }

    fn axes(&self, frame: &ChartFrame) -> Option<(ChartAxis, ChartAxis)> {
        let ends = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
        let empty = (f64::INFINITY, f64::NEG_INFINITY);
        let places =
            self.dots.iter().map(|dot| dot.x).chain(self.bands.iter().flat_map(|span| [span.from, span.to]));
        let (first, last) = places.filter(|place| place.is_finite()).fold(empty, ends);
        let limits = |dot: &ChartDot| dot.interval.map_or([dot.y; 3], |(low, high)| [low, dot.y, high]);
        let (low, high) = self.dots.iter().flat_map(limits).fold(empty, ends);
        if low > high {
            return None;
        }
        let room = 0.02 * (last - first).max(1.0);
        // A label takes more room than a number.
        let requested = if self.x_labels.is_empty() { 10 } else { 7 };
        let x = ChartAxis::for_counts((first - room, last + room), frame.horizontal_pixels(), requested)
            .with_labels(self.x_labels.clone());
        Some((x, ChartAxis::with_rounded_ends(&self.unit, (low, high), frame.vertical_pixels(), 6)))
    }
}

/// The interval as a thin rule, the value as a small square.
fn dot_marks(dot: &ChartDot, colour: RgbColour, x: &ChartAxis, y: &ChartAxis) -> Vec<SceneMark> {
    const HALF: f64 = 3.0;
    let (at, value) = (x.pixel_of(dot.x), y.pixel_of(dot.y));
    let bar = dot.interval.map(|(low, high)| {
        line_mark((at, y.pixel_of(low)), (at, y.pixel_of(high)), MarkInk::Pale(colour), false)
    });
    let square = crate::chart::scene::rect_mark(
        (at - HALF, value - HALF),
        (at + HALF, value + HALF),
        MarkInk::Own(colour),
        &*dot.name,
    );
    bar.into_iter().chain([square]).collect()
}

/// One extent.
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

/// Extents over time.
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
    /// The extents; later ones lie over earlier ones.
    pub extents: Vec<ChartExtent>,
    /// Names and colours of the groups, in the order of their indexes.
    pub groups: Vec<(String, RgbColour)>,
}

/// Pixels of a moment, and at least of an extent.
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
        let (_, last) = self.extents.iter().map(|extent| extent.x).fold(empty, ends);
        let places = self.extents.iter().flat_map(|extent| [extent.from, extent.to]);
        let (low, high) = places.fold(empty, ends);
        if low > high {
            return None;
        }
        let x =
            ChartAxis::with_exact_ends(&AxisUnit::Number, (0.0, last * 1.02), frame.horizontal_pixels(), 8);
        Some((x, ChartAxis::with_rounded_ends(&self.unit, (low, high), frame.vertical_pixels(), 6)))
    }

    /// A rectangle for each dot of the paper that a group covers.
    fn extent_marks(&self, x: &ChartAxis, y: &ChartAxis) -> Vec<SceneMark> {
        let mut drawn = BTreeSet::new();
        let mut marks = Vec::new();
        for extent in &self.extents {
            let (left, low, high) = (x.pixel_of(extent.x), y.pixel_of(extent.from), y.pixel_of(extent.to));
            let top = high.min(low - DOT);
            let whole = |pixels: f64| (pixels / DOT).round() as i64;
            if drawn.insert((whole(left), whole(low), whole(top), extent.group)) {
                let colour = self.groups.get(extent.group).map_or(OTHERS_COLOUR, |(_, colour)| *colour);
                marks.push(rect_mark((left, low), (left + DOT, top), MarkInk::Own(colour), ""));
            }
        }
        marks
    }
}
