//! Curves over two axes: lines, steps and dots, each with the band that holds it.
//!
//! Curves of one group have its colour: a fitted law is dashed beside what was measured. What lies beyond an axis is cut off, not
//! moved to its end.

use crate::chart::axes::{AxisBand, ChartAxis, ChartFrame};
use crate::chart::axis_unit::AxisUnit;
use crate::chart::look::{AxisLook, ChartLook};
use crate::chart::palette::{RgbColour, name_colours, series_colour};
use crate::chart::scene::{MarkInk, Scene, SceneMark, ScenePoint, TextAnchor, faint_text, rect_mark};
use crate::chart::thinning::keep_pixel_extremes;

/// A place of a curve, with the ends of its band where it has one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// Along the horizontal axis.
    pub x: f64,
    /// Along the vertical axis.
    pub y: f64,
    /// Lower and upper end of what holds it.
    pub band: Option<(f64, f64)>,
}

/// What joins the places of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CurveShape {
    /// straight lines
    Line,
    /// straight lines, and a square at each place
    Marked,
    /// steps: a value holds up to the next place
    Steps,
    /// steps, and the area below them
    FilledSteps,
    /// broken lines: no measurement, but what follows from some
    Dashed,
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Index of its group: its colour and name.
    pub group: usize,
    /// How it is drawn.
    pub shape: CurveShape,
    /// Its places, ascending in `x`, in parts with a gap between one and the next.
    pub parts: Vec<Vec<CurvePoint>>,
}

/// Curves over two axes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CurveChart {
    /// What it shows.
    pub title: String,
    /// What explains it; broken into lines.
    pub note: String,
    /// What the horizontal axis is.
    pub x_title: String,
    /// Its unit.
    pub x_unit: AxisUnit,
    /// What the vertical axis is; its unit alone where empty.
    pub y_title: String,
    /// Its unit.
    pub y_unit: AxisUnit,
    /// Whether the vertical axis begins at 0 where nothing else is said and it is not logarithmic.
    pub from_zero: bool,
    /// The curves, later ones above earlier ones.
    pub curves: Vec<Curve>,
    /// Names of the groups.
    pub groups: Vec<String>,
    /// Named ranges of the horizontal axis.
    pub bands: Vec<AxisBand>,
    /// What is asked of it.
    pub look: ChartLook,
}

impl CurveChart {
    /// Lays the figure out.
    #[must_use]
    pub fn render(&self) -> Scene {
        let names: Vec<&str> = self.groups.iter().map(String::as_str).collect();
        let colours = name_colours(&names);
        let legend: Vec<(RgbColour, &str)> = colours.iter().copied().zip(names).collect();
        let mut frame = ChartFrame::fitting(&self.title, &self.note, &legend, &self.look);
        // Names of ranges have the line above the axes to themselves.
        let has_bands = !self.bands.is_empty();
        if has_bands {
            frame.make_room_above(BAND_NAMES);
        }
        let Some((x, y)) = self.axes(&mut frame) else {
            frame.add_empty_note();
            return frame.into_scene();
        };
        let y_name = axis_title(&self.y_title, &y.name);
        if has_bands {
            let above = frame.top - 10.0 - BAND_NAMES;
            frame.marks.push(faint_text(4.0, above, TextAnchor::Start, y_name.as_str()));
        }
        let y = y.with_name(if has_bands { String::new() } else { y_name });
        frame.add_axes(&x, &y, &axis_title(&self.x_title, &x.name));
        frame.add_bands(&x, &self.bands);
        let colour =
            |curve: &Curve| colours.get(curve.group).copied().unwrap_or_else(|| series_colour(curve.group));
        for curve in &self.curves {
            for part in &curve.parts {
                let areas = self.band_area(curve, part, colour(curve), (&x, &y));
                frame.marks.extend(areas);
            }
        }
        for curve in &self.curves {
            let name = self.groups.get(curve.group).map_or("", String::as_str);
            for part in &curve.parts {
                let marks = part_marks(curve.shape, part, (colour(curve), name), (&x, &y), &frame);
                frame.marks.extend(marks);
            }
        }
        frame.into_scene()
    }

    /// The axes around all that has a place; none where nothing has.
    fn axes(&self, frame: &mut ChartFrame) -> Option<(ChartAxis, ChartAxis)> {
        let points = || self.curves.iter().flat_map(|curve| &curve.parts).flatten();
        let shown = || points().filter(|point| self.look.x.shows(point.x));
        let across = data_ends(points().map(|point| point.x), &self.look.x)?;
        let heights = shown().flat_map(|point| {
            let (low, high) = point.band.unwrap_or((point.y, point.y));
            [low, point.y, high]
        });
        let (least, most) = data_ends(heights, &self.look.y)?;
        let least = if self.from_zero && !self.look.y.logarithmic { least.min(0.0) } else { least };
        let up = frame.vertical_pixels();
        let y = ChartAxis::for_look(&self.y_unit, &self.look.y, (least, most), up, frame.ticks_up());
        frame.make_room_for_labels(&y);
        let x_look = exact_ends(&self.look.x, across);
        let x = ChartAxis::for_look(
            &self.x_unit,
            &x_look,
            across,
            frame.horizontal_pixels(),
            frame.ticks_across(),
        );
        Some((x, y))
    }

    /// The band of a part, where all its places have one.
    fn band_area(
        &self,
        curve: &Curve,
        part: &[CurvePoint],
        colour: RgbColour,
        (x, y): (&ChartAxis, &ChartAxis),
    ) -> Option<SceneMark> {
        let is_stepped = matches!(curve.shape, CurveShape::Steps | CurveShape::FilledSteps);
        let edge = |end: fn((f64, f64)) -> f64| -> Option<Vec<ScenePoint>> {
            let places = part
                .iter()
                .map(|point| Some(ScenePoint { x: x.pixel_of(point.x), y: y.pixel_of(end(point.band?)) }));
            let places = places.collect::<Option<Vec<_>>>()?;
            Some(if is_stepped { stepped(&places) } else { places })
        };
        let (lower, upper) = (edge(|band| band.0)?, edge(|band| band.1)?);
        let name = self.groups.get(curve.group).map_or("", String::as_str);
        let points: Vec<ScenePoint> = upper.into_iter().chain(lower.into_iter().rev()).collect();
        (part.len() > 1).then(|| SceneMark::Area {
            points,
            ink: MarkInk::Wash(colour),
            title: format!("{name}: band"),
        })
    }
}

/// Pixels of the names of ranges.
const BAND_NAMES: f64 = 16.0;

/// `time [ms]`: what an axis is, with its unit.
pub(crate) fn axis_title(title: &str, unit: &str) -> String {
    match (title, unit) {
        (title, "") => title.to_owned(),
        ("", unit) => unit.to_owned(),
        (title, unit) => format!("{title} [{unit}]"),
    }
}

/// The least and the largest of what has a place on an axis; none where nothing has.
pub(crate) fn data_ends(values: impl Iterator<Item = f64>, look: &AxisLook) -> Option<(f64, f64)> {
    let ends = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
    let (low, high) =
        values.filter(|value| look.shows(*value)).fold((f64::INFINITY, f64::NEG_INFINITY), ends);
    (low <= high).then_some((low, high))
}

/// An axis that ends where its data do; where they are all one value, around it.
fn exact_ends(look: &AxisLook, (low, high): (f64, f64)) -> AxisLook {
    if low == high {
        return *look;
    }
    AxisLook { low: look.low.or(Some(low)), high: look.high.or(Some(high)), ..*look }
}

/// The places of steps: each height up to the next place.
fn stepped(points: &[ScenePoint]) -> Vec<ScenePoint> {
    let corners = points.windows(2).flat_map(|pair| match pair {
        [one, next] => vec![*one, ScenePoint { x: next.x, y: one.y }],
        _ => Vec::new(),
    });
    corners.chain(points.last().copied()).collect()
}

fn part_marks(
    shape: CurveShape,
    part: &[CurvePoint],
    (colour, name): (RgbColour, &str),
    (x, y): (&ChartAxis, &ChartAxis),
    frame: &ChartFrame,
) -> Vec<SceneMark> {
    let place = |point: &CurvePoint| ScenePoint { x: x.open_pixel_of(point.x), y: y.open_pixel_of(point.y) };
    let mut points: Vec<ScenePoint> = part.iter().map(place).collect();
    let mut marks = Vec::new();
    if matches!(shape, CurveShape::Steps | CurveShape::FilledSteps) {
        points = stepped(&points);
    } else {
        points = keep_pixel_extremes(&points);
    }
    if shape == CurveShape::FilledSteps {
        let inside = |point: &ScenePoint| ScenePoint {
            x: point.x.clamp(frame.left, frame.right),
            y: point.y.clamp(frame.top, frame.bottom),
        };
        let ground = [points.last(), points.first()].into_iter().flatten();
        let ground =
            ground.map(|point| ScenePoint { x: point.x.clamp(frame.left, frame.right), y: frame.bottom });
        let area = points.iter().map(inside).chain(ground).collect();
        marks.push(SceneMark::Area { points: area, ink: MarkInk::Wash(colour), title: name.into() });
    }
    for points in cut_to_frame(&points, frame) {
        marks.push(SceneMark::Line {
            points,
            ink: MarkInk::Own(colour),
            width: 1.8,
            dashed: shape == CurveShape::Dashed,
            title: name.into(),
        });
    }
    let is_alone = part.len() == 1;
    if shape == CurveShape::Marked || is_alone {
        let inside = part.iter().map(place).filter(|point| frame.holds(point.x, point.y));
        const HALF: f64 = 3.0;
        marks.extend(inside.map(|at| {
            rect_mark((at.x - HALF, at.y - HALF), (at.x + HALF, at.y + HALF), MarkInk::Own(colour), name)
        }));
    }
    marks
}

/// The parts of a line that lie between the axes.
fn cut_to_frame(points: &[ScenePoint], frame: &ChartFrame) -> Vec<Vec<ScenePoint>> {
    let mut parts: Vec<Vec<ScenePoint>> = Vec::new();
    for pair in points.windows(2) {
        let [from, to] = pair else { continue };
        let Some((start, end)) = cut_segment(*from, *to, frame) else { continue };
        match parts.last_mut().filter(|part| part.last() == Some(&start)) {
            Some(part) => part.push(end),
            None => parts.push(vec![start, end]),
        }
    }
    parts
}

/// The part of a segment inside a frame. Source: Liang and Barsky, "A new concept and method for line clipping", ACM Transactions on
/// Graphics 3 (1984).
fn cut_segment(from: ScenePoint, to: ScenePoint, frame: &ChartFrame) -> Option<(ScenePoint, ScenePoint)> {
    let (along, down) = (to.x - from.x, to.y - from.y);
    let edges = [
        (-along, from.x - frame.left),
        (along, frame.right - from.x),
        (-down, from.y - frame.top),
        (down, frame.bottom - from.y),
    ];
    let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
    for (slope, room) in edges {
        // A rounded edge still belongs to the frame.
        let room = if room.abs() < 1e-6 { 0.0 } else { room };
        if slope == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if slope < 0.0 {
            enter = enter.max(room / slope);
        } else {
            leave = leave.min(room / slope);
        }
    }
    let at = |share: f64| match share {
        0.0 => from,
        1.0 => to,
        share => ScenePoint { x: from.x + share * along, y: from.y + share * down },
    };
    (enter <= leave).then(|| (at(enter), at(leave)))
}
