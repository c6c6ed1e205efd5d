//! Every value of some samples, a row each: in order of time from top to bottom, with the middle and its interval.

use std::collections::BTreeSet;

use crate::chart::axes::{ChartAxis, ChartFrame};
use crate::chart::axis_unit::AxisUnit;
use crate::chart::curve_chart::{axis_title, data_ends};
use crate::chart::look::{AxisLook, ChartLook};
use crate::chart::palette::{RgbColour, name_colours};
use crate::chart::scene::{MarkInk, Scene, SceneMark, TEXT, TextAnchor, line_mark, rect_mark, text_mark};
use crate::chart::typeface;

/// One sample.
#[derive(Debug, Clone, PartialEq)]
pub struct StripRow {
    /// Its name.
    pub name: String,
    /// Its values in order of time.
    pub values: Vec<f64>,
    /// Its middle, and the ends of an interval of it.
    pub middle: Option<(f64, Option<(f64, f64)>)>,
}

/// Samples, a row each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StripChart {
    /// What it shows.
    pub title: String,
    /// What explains it; broken into lines.
    pub note: String,
    /// What the values are.
    pub x_title: String,
    /// Their unit.
    pub unit: AxisUnit,
    /// From the top.
    pub rows: Vec<StripRow>,
    /// What is asked of it; its vertical axis says nothing here.
    pub look: ChartLook,
}

/// An axis that ends a little beyond the values, where nothing else is said.
fn with_room(look: &AxisLook, (low, high): (f64, f64)) -> AxisLook {
    const ROOM: f64 = 0.04;
    let (below, above) = match look.logarithmic && low > 0.0 {
        true => (low / (high / low).powf(ROOM), high * (high / low).powf(ROOM)),
        false => (low - (high - low) * ROOM, high + (high - low) * ROOM),
    };
    if low == high {
        return *look;
    }
    AxisLook { low: look.low.or(Some(below)), high: look.high.or(Some(above)), ..*look }
}

/// Pixels of a value.
const DOT: f64 = 5.0;

impl StripChart {
    /// Pixels that a row needs.
    pub(crate) const LEAST_ROW: f64 = 24.0;

    /// Lays the figure out.
    #[must_use]
    pub fn render(&self) -> Scene {
        let mut frame = ChartFrame::fitting(&self.title, &self.note, &[], &self.look);
        frame.top -= 14.0;
        let values = self.rows.iter().flat_map(|row| {
            let (middle, ends) = row.middle.unwrap_or((f64::NAN, None));
            let ends = ends.map_or([middle; 2], |(low, high)| [low, high]);
            row.values.iter().copied().chain(ends)
        });
        let Some(ends) = data_ends(values, &self.look.x) else {
            frame.add_empty_note();
            return frame.into_scene();
        };
        let widest = self.rows.iter().map(|row| typeface::text_width(&row.name, TEXT)).fold(0.0, f64::max);
        frame.left = (widest + 28.0).clamp(28.0, self.look.width * 0.35);
        let x = ChartAxis::for_look(
            &self.unit,
            &with_room(&self.look.x, ends),
            ends,
            frame.horizontal_pixels(),
            frame.ticks_across(),
        );
        frame.add_value_axis(&x, &axis_title(&self.x_title, &x.name));
        let names: Vec<&str> = self.rows.iter().map(|row| row.name.as_str()).collect();
        let height = (frame.bottom - frame.top) / self.rows.len().max(1) as f64;
        for (at, (row, colour)) in self.rows.iter().zip(name_colours(&names)).enumerate() {
            let top = frame.top + height * at as f64;
            let marks = self.row_marks(row, colour, &x, (top, height, frame.left));
            frame.marks.extend(marks);
        }
        frame.into_scene()
    }

    fn row_marks(
        &self,
        row: &StripRow,
        colour: RgbColour,
        x: &ChartAxis,
        (top, height, left): (f64, f64, f64),
    ) -> Vec<SceneMark> {
        let centre = top + height / 2.0;
        let name = typeface::shorten_to_width(&row.name, TEXT, left - 24.0);
        let mut marks = vec![text_mark(left - 10.0, centre + 4.0, TextAnchor::End, name)];
        let room = (height * 0.7 - DOT).max(0.0);
        let step = if row.values.len() > 1 { room / (row.values.len() - 1) as f64 } else { 0.0 };
        let first = if row.values.len() > 1 { centre - room / 2.0 } else { centre };
        let mut drawn = BTreeSet::new();
        for (order, value) in row.values.iter().enumerate().filter(|(_, value)| self.look.x.shows(**value)) {
            let (across, down) = (x.pixel_of(*value), first + step * order as f64);
            // What would be drawn on the same pixels is drawn once.
            if drawn.insert(((across * 2.0) as i64, (down * 2.0) as i64)) {
                let corner = (across - DOT / 2.0, down - DOT / 2.0);
                let title = format!("{}: {}", row.name, self.unit.format_value(*value));
                marks.push(rect_mark(corner, (corner.0 + DOT, corner.1 + DOT), MarkInk::Pale(colour), title));
            }
        }
        if let Some((middle, interval)) = row.middle.filter(|(middle, _)| self.look.x.shows(*middle)) {
            let half = height * 0.42;
            let at = x.pixel_of(middle);
            if let Some((low, high)) = interval {
                let (low, high) = (x.pixel_of(low), x.pixel_of(high));
                marks.push(line_mark((low, centre), (high, centre), MarkInk::Text, false));
                for end in [low, high] {
                    marks.push(line_mark((end, centre - 5.0), (end, centre + 5.0), MarkInk::Text, false));
                }
            }
            let title = format!("{}: {}", row.name, self.unit.format_value(middle));
            marks.push(rect_mark((at - 1.0, centre - half), (at + 1.0, centre + half), MarkInk::Text, title));
        }
        marks
    }
}
