//! Values over two axes as colours: a heat map with its scale.
//!
//! The scale goes from light to dark blue in steps of equal lightness, which people with any colour vision read in the same order, also
//! in print without colours. A cell without a value is left white with a dot.

use crate::chart::axes::{ChartAxis, ChartFrame};
use crate::chart::axis_unit::AxisUnit;
use crate::chart::curve_chart::{axis_title, data_ends};
use crate::chart::look::{AxisLook, ChartLook};
use crate::chart::palette::{RgbColour, sequential_colour};
use crate::chart::scene::{
    MarkInk, Scene, SceneMark, ScenePoint, TEXT, TextAnchor, faint_text, rect_mark, text_mark,
};
use crate::chart::typeface;

/// Values as colours.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeatChart {
    /// What it shows.
    pub title: String,
    /// What explains it; broken into lines.
    pub note: String,
    /// What the horizontal axis is.
    pub x_title: String,
    /// What rows are; nothing where their names say so.
    pub y_title: String,
    /// Names of the columns; where there are none, they take `across` together.
    pub columns: Vec<String>,
    /// The end of the horizontal axis, and its unit.
    pub across: (f64, AxisUnit),
    /// Names of the rows, from the top.
    pub rows: Vec<String>,
    /// One list a row, one value a column.
    pub values: Vec<Vec<Option<f64>>>,
    /// The unit of the values.
    pub unit: AxisUnit,
    /// Which values the scale spans, and whether it is logarithmic; values beyond its ends have their colours.
    pub scale: AxisLook,
    /// What is asked of it; its axes say nothing here.
    pub look: ChartLook,
}

/// Pixels of the scale and its labels, to the right of the cells.
const SCALE: f64 = 96.0;

impl HeatChart {
    /// Pixels that a row needs.
    pub(crate) const LEAST_ROW: f64 = 14.0;

    /// Lays the figure out.
    #[must_use]
    pub fn render(&self) -> Scene {
        let mut frame = ChartFrame::fitting(&self.title, &self.note, &[], &self.look);
        frame.top -= if self.y_title.is_empty() { 14.0 } else { 4.0 };
        let Some(ends) = data_ends(self.values.iter().flatten().flatten().copied(), &self.scale) else {
            frame.add_empty_note();
            return frame.into_scene();
        };
        let widest = self.rows.iter().map(|row| typeface::text_width(row, TEXT)).fold(0.0, f64::max);
        frame.left = (widest + 28.0).clamp(28.0, self.look.width * 0.35);
        frame.right = (self.look.width - SCALE).max(frame.left + 40.0);
        let scale = ChartAxis::for_look(&self.unit, &self.scale, ends, (0.0, 1.0), 5);
        if !self.y_title.is_empty() {
            frame.marks.push(faint_text(
                frame.left - 10.0,
                frame.top - 6.0,
                TextAnchor::End,
                self.y_title.as_str(),
            ));
        }
        let cells = self.cell_marks(&scale, &frame);
        frame.marks.extend(cells);
        let names = self.row_names(&frame);
        frame.marks.extend(names);
        if self.columns.is_empty() {
            let (end, unit) = &self.across;
            let look = AxisLook { low: Some(0.0), high: Some(*end), logarithmic: false };
            let x = ChartAxis::for_look(
                unit,
                &look,
                (0.0, *end),
                frame.horizontal_pixels(),
                frame.ticks_across(),
            );
            frame.add_value_axis(&x, &axis_title(&self.x_title, &x.name));
        } else {
            let names = self.column_names(&frame);
            frame.marks.extend(names);
        }
        let legend = self.scale_marks(&scale, &frame);
        frame.marks.extend(legend);
        frame.into_scene()
    }

    fn cell_size(&self, frame: &ChartFrame) -> (f64, f64) {
        let columns = self.values.iter().map(Vec::len).max().unwrap_or(1).max(1);
        let rows = self.values.len().max(1);
        ((frame.right - frame.left) / columns as f64, (frame.bottom - frame.top) / rows as f64)
    }

    fn cell_marks(&self, scale: &ChartAxis, frame: &ChartFrame) -> Vec<SceneMark> {
        let (width, height) = self.cell_size(frame);
        let has_names = !self.columns.is_empty();
        let gap = if has_names { 1.0 } else { 0.0 };
        let mut marks = Vec::new();
        for (row, values) in self.values.iter().enumerate() {
            let top = frame.top + height * row as f64;
            let name = self.rows.get(row).map_or("", String::as_str);
            for (column, value) in values.iter().enumerate() {
                let left = frame.left + width * column as f64;
                let Some(value) = value else {
                    let (x, y) = (left + width / 2.0, top + height / 2.0);
                    let dot =
                        rect_mark((x - 1.0, y - 1.0), (x + 1.0, y + 1.0), MarkInk::Faint, "not measured");
                    marks.extend(has_names.then_some(dot));
                    continue;
                };
                let share = scale.pixel_of(*value);
                let text = self.unit.format_value(*value);
                let corner = (left + gap, top + 0.5);
                let ink = MarkInk::Own(sequential_colour(share));
                marks.push(rect_mark(
                    corner,
                    (left + width, top + height - 0.5),
                    ink,
                    format!("{name}: {text}"),
                ));
                if has_names && height >= 16.0 && typeface::text_width(&text, TEXT) + 8.0 <= width {
                    let at = ScenePoint { x: left + width / 2.0, y: top + height / 2.0 + 4.0 };
                    let ink = if share > 0.55 {
                        MarkInk::Own(RgbColour(255, 255, 255))
                    } else {
                        MarkInk::Own(RgbColour(27, 27, 27))
                    };
                    marks.push(SceneMark::Text { at, anchor: TextAnchor::Middle, size: TEXT, ink, text });
                }
            }
        }
        marks
    }

    /// As many names as have room, evenly spaced.
    fn row_names(&self, frame: &ChartFrame) -> Vec<SceneMark> {
        let (_, height) = self.cell_size(frame);
        let stride = (Self::LEAST_ROW / height).ceil().max(1.0) as usize;
        let name = |(at, name): (usize, &String)| {
            let text = typeface::shorten_to_width(name, TEXT, frame.left - 20.0);
            let y = frame.top + height * (at as f64 + 0.5) + 4.0;
            text_mark(frame.left - 10.0, y, TextAnchor::End, text)
        };
        self.rows.iter().enumerate().step_by(stride).map(name).collect()
    }

    fn column_names(&self, frame: &ChartFrame) -> Vec<SceneMark> {
        let (width, _) = self.cell_size(frame);
        let widest = self.columns.iter().map(|name| typeface::text_width(name, TEXT)).fold(0.0, f64::max);
        let stride = ((widest + 8.0).min(90.0) / width).ceil().max(1.0) as usize;
        let name = |(at, name): (usize, &String)| {
            let text = typeface::shorten_to_width(name, TEXT, width * stride as f64 - 4.0);
            let x = frame.left + width * (at as f64 + 0.5);
            text_mark(x, frame.bottom + 16.0, TextAnchor::Middle, text)
        };
        let names = self.columns.iter().enumerate().step_by(stride).map(name);
        let middle = f64::midpoint(frame.left, frame.right);
        names
            .chain([faint_text(middle, frame.bottom + 36.0, TextAnchor::Middle, self.x_title.as_str())])
            .collect()
    }

    /// The colours from the least, at the bottom, to the most.
    fn scale_marks(&self, scale: &ChartAxis, frame: &ChartFrame) -> Vec<SceneMark> {
        const STEPS: usize = 32;
        let (left, height) = (frame.right + 16.0, (frame.bottom - frame.top).min(220.0));
        let bottom = frame.top + height;
        let at = |share: f64| bottom - share * height;
        let step = |step: usize| {
            let (from, to) = (step as f64 / STEPS as f64, (step + 1) as f64 / STEPS as f64);
            let ink = MarkInk::Own(sequential_colour(f64::midpoint(from, to)));
            rect_mark((left, at(from)), (left + 12.0, at(to) - 0.3), ink, "")
        };
        let mut marks: Vec<SceneMark> = (0..STEPS).map(step).collect();
        let mut reached = f64::INFINITY;
        for (share, label) in scale.ticks() {
            let y = at(share) + 4.0;
            if y < reached - 14.0 {
                let text = typeface::shorten_to_width(&label, TEXT, SCALE - 36.0);
                marks.push(faint_text(left + 18.0, y, TextAnchor::Start, text));
                reached = y;
            }
        }
        if !scale.name.is_empty() {
            let text = typeface::shorten_to_width(&scale.name, TEXT, SCALE - 20.0);
            marks.push(faint_text(left, bottom + 18.0, TextAnchor::Start, text));
        }
        marks
    }
}
