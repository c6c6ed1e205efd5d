//! Estimates with their intervals, a row each, on one axis: a forest plot.
//!
//! A group of rows has a heading. What a row means stands beside it as a word; its colour says the same again.

use crate::chart::palette::RgbColour;
use crate::chart::scene::{
    MarkInk, Scene, SceneMark, TEXT, TITLE, TextAnchor, faint_text, line_mark, rect_mark, text_mark,
    title_text,
};
use crate::chart::typeface;

/// One estimate. Places are shares of the axis: 0 is its left end, 1 its right one.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalRow {
    /// The heading of its group: printed where it differs from that of the row before.
    pub group: String,
    /// Its name.
    pub name: String,
    /// What stands on the right: the numbers and what they mean.
    pub text: String,
    /// The estimate; none where there is none.
    pub place: Option<f64>,
    /// The ends of its interval.
    pub interval: Option<(f64, f64)>,
    /// What does not matter, around none: its ends.
    pub margin: Option<(f64, f64)>,
    /// Its colour.
    pub colour: RgbColour,
}

/// Estimates on one axis.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IntervalChart {
    /// What it shows.
    pub title: String,
    /// What explains it; broken into lines.
    pub note: String,
    /// What the axis is.
    pub x_title: String,
    /// Place and text of each tick.
    pub ticks: Vec<(f64, String)>,
    /// Where "no change" is.
    pub zero: Option<f64>,
    /// From the top.
    pub rows: Vec<IntervalRow>,
    /// Pixels.
    pub width: f64,
    /// Pixels; what the rows need where absent. What does not fit is counted below.
    pub height: Option<f64>,
}

/// Pixels of a row with its text beside it.
const ROW: f64 = 22.0;

/// Below this width a row has two lines: its texts, then its interval.
const NARROW: f64 = 700.0;

/// Pixels of the axis and what stands below it.
const BELOW: f64 = 48.0;

/// Where the parts of a chart lie.
struct Columns {
    /// where names end
    names: f64,
    /// the axis
    axis: (f64, f64),
    /// pixels of a row
    row: f64,
    stacked: bool,
}

impl IntervalChart {
    /// Lays the figure out.
    #[must_use]
    pub fn render(&self) -> Scene {
        let room = self.width - 32.0;
        let mut marks = vec![title_text(16.0, 26.0, typeface::shorten_to_width(&self.title, TITLE, room))];
        let mut top = 28.0;
        for line in typeface::break_into_lines(&self.note, TEXT, room) {
            top += 18.0;
            marks.push(faint_text(16.0, top, TextAnchor::Start, line));
        }
        top += 16.0;
        let columns = self.columns();
        let (shown, left_out) = self.rows_that_fit(top, &columns);
        let mut y = top;
        let mut lines = Vec::new();
        let mut group = "";
        for row in shown {
            if row.group != group {
                group = &row.group;
                y += ROW;
                let text = typeface::shorten_to_width(group, TEXT, room);
                lines.push(text_mark(16.0, y - 5.0, TextAnchor::Start, text));
            }
            lines.extend(self.row_marks(row, y, &columns));
            y += columns.row;
        }
        if self.rows.is_empty() {
            lines.push(faint_text(self.width / 2.0, y + ROW, TextAnchor::Middle, "no data"));
            y += 2.0 * ROW;
        }
        marks.extend(self.axis_marks(top, y, &columns));
        marks.extend(lines);
        if left_out > 0 {
            let rows = if left_out == 1 { "row does" } else { "rows do" };
            let text = format!("{left_out} further {rows} not fit");
            y += 16.0;
            marks.push(faint_text(16.0, y + BELOW - 12.0, TextAnchor::Start, text));
        }
        let height = self.height.map_or(y + BELOW, |height| height.max(y + BELOW));
        let description = format!("{}. {}", self.title, self.note);
        Scene { width: self.width, height, description, marks }
    }

    fn columns(&self) -> Columns {
        let widest = |text: fn(&IntervalRow) -> &str| {
            self.rows.iter().map(|row| typeface::text_width(text(row), TEXT)).fold(0.0, f64::max)
        };
        if self.width < NARROW {
            let axis = (24.0, self.width - 24.0);
            return Columns { names: self.width - 16.0, axis, row: 2.0 * ROW - 4.0, stacked: true };
        }
        let names = (widest(|row| &row.name) + 44.0).min(self.width * 0.28);
        let texts = (widest(|row| &row.text) + 28.0).min(self.width * 0.40);
        Columns { names, axis: (names + 14.0, self.width - texts), row: ROW, stacked: false }
    }

    /// As many rows as the height has room for, and how many are left out.
    fn rows_that_fit(&self, top: f64, columns: &Columns) -> (&[IntervalRow], usize) {
        let room = self.height.map_or(f64::INFINITY, |height| height - BELOW - 16.0 - top);
        let (mut used, mut group, mut count) = (0.0, "", 0);
        for row in &self.rows {
            used += columns.row + if row.group == group { 0.0 } else { ROW };
            group = &row.group;
            if used > room && count > 0 {
                break;
            }
            count += 1;
        }
        (self.rows.get(..count).unwrap_or_default(), self.rows.len() - count)
    }

    fn axis_marks(&self, top: f64, bottom: f64, columns: &Columns) -> Vec<SceneMark> {
        let at = |share: f64| columns.axis.0 + share * (columns.axis.1 - columns.axis.0);
        let mut marks = Vec::new();
        let mut reached = f64::NEG_INFINITY;
        for (share, label) in &self.ticks {
            let place = at(*share);
            // Where texts stand above intervals, rules would cross them.
            let from = if columns.stacked { bottom } else { top };
            marks.push(line_mark((place, from), (place, bottom + 4.0), MarkInk::Grid, false));
            let half = typeface::text_width(label, TEXT) / 2.0;
            if place - half > reached + 6.0 && place + half < self.width {
                marks.push(faint_text(place, bottom + 16.0, TextAnchor::Middle, label.as_str()));
                reached = place + half;
            }
        }
        if let Some(zero) = self.zero.filter(|_| !columns.stacked) {
            marks.push(line_mark((at(zero), top), (at(zero), bottom), MarkInk::Faint, false));
        }
        let middle = f64::midpoint(columns.axis.0, columns.axis.1);
        marks.push(faint_text(middle, bottom + 34.0, TextAnchor::Middle, self.x_title.as_str()));
        marks
    }

    fn row_marks(&self, row: &IntervalRow, y: f64, columns: &Columns) -> Vec<SceneMark> {
        let at = |share: f64| columns.axis.0 + share.clamp(0.0, 1.0) * (columns.axis.1 - columns.axis.0);
        let mut marks = Vec::new();
        let middle = if columns.stacked {
            let text = typeface::shorten_to_width(&row.text, TEXT, self.width * 0.66);
            let left = self.width - 56.0 - typeface::text_width(&text, TEXT);
            let name = typeface::shorten_to_width(&row.name, TEXT, left);
            marks.push(text_mark(28.0, y + 13.0, TextAnchor::Start, name));
            marks.push(faint_text(self.width - 16.0, y + 13.0, TextAnchor::End, text));
            y + 26.0
        } else {
            let name = typeface::shorten_to_width(&row.name, TEXT, columns.names - 32.0);
            marks.push(text_mark(columns.names, y + 15.0, TextAnchor::End, name));
            let left = columns.axis.1 + 14.0;
            let text = typeface::shorten_to_width(&row.text, TEXT, self.width - left - 8.0);
            marks.push(text_mark(left, y + 15.0, TextAnchor::Start, text));
            y + ROW / 2.0
        };
        if let Some((low, high)) = row.margin {
            let (low, high) = (at(low), at(high));
            marks.push(rect_mark(
                (low, middle - 8.0),
                (high, middle + 8.0),
                MarkInk::Grid,
                "does not matter",
            ));
        }
        if let Some(zero) = self.zero.filter(|_| columns.stacked) {
            marks.push(line_mark(
                (at(zero), middle - 11.0),
                (at(zero), middle + 11.0),
                MarkInk::Faint,
                false,
            ));
        }
        if let Some((low, high)) = row.interval {
            let points =
                [low, high].map(|end| crate::chart::scene::ScenePoint { x: at(end), y: middle }).to_vec();
            let ink = MarkInk::Own(row.colour);
            marks.push(SceneMark::Line { points, ink, width: 2.4, dashed: false, title: row.text.clone() });
            for end in [low, high] {
                marks.push(line_mark((at(end), middle - 5.0), (at(end), middle + 5.0), ink, false));
            }
        }
        if let Some(place) = row.place {
            const HALF: f64 = 4.0;
            let corners = ((at(place) - HALF, middle - HALF), (at(place) + HALF, middle + HALF));
            marks.push(rect_mark(corners.0, corners.1, MarkInk::Own(row.colour), row.text.as_str()));
        }
        marks
    }
}
