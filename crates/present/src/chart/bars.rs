//! Owns horizontal bars: named things by size, each of parts or with an interval. It refuses more than its rows:
//! callers choose which.

use super::axis::ChartAxis;
use super::canvas::{TEXT, TITLE, faint_text, line_mark, rect_mark, text_mark, title_text};
use super::colour::series_colour;
use super::font;
use super::number::AxisUnit;
use super::scene::{MarkInk, Scene, SceneMark, TextAnchor};

/// One thing.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartBar {
    /// Its name.
    pub name: String,
    /// Its parts, in the order of [`BarChart::estimate_and_interval`]. One part may be negative, several may not.
    pub parts: Vec<f64>,
    /// The ends of an interval of the whole.
    pub interval: Option<(f64, f64)>,
}

/// Named things by size.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BarChart {
    /// What it shows.
    pub title: String,
    /// One line below the title.
    pub note: String,
    /// The unit of the sizes.
    pub unit: AxisUnit,
    /// The names of the parts; one or none needs no legend.
    pub parts: Vec<String>,
    /// From the top.
    pub bars: Vec<ChartBar>,
}

const WIDTH: f64 = 900.0;
const ROW: f64 = 24.0;
const NAMES: f64 = 210.0;
const VALUES: f64 = 110.0;

impl BarChart {
    /// Lays the figure out.
    #[must_use]
    pub fn render(&self) -> Scene {
        let top = if self.parts.len() > 1 { 92.0 } else { 66.0 };
        let bottom = top + ROW * self.bars.len().max(1) as f64;
        let mut marks = vec![
            title_text(16.0, 26.0, font::shorten_to_width(&self.title, TITLE, WIDTH - 32.0)),
            faint_text(16.0, 46.0, TextAnchor::Start, font::shorten_to_width(&self.note, TEXT, WIDTH - 32.0)),
        ];
        let x = self.value_axis();
        for (place, label) in x.ticks() {
            marks.push(line_mark((place, top), (place, bottom), MarkInk::Grid, false));
            marks.push(faint_text(place, bottom + 18.0, TextAnchor::Middle, label));
        }
        marks.push(faint_text(NAMES - 40.0, bottom + 18.0, TextAnchor::End, x.name.as_str()));
        marks.extend(self.legend_marks());
        for (index, bar) in self.bars.iter().enumerate() {
            marks.extend(self.bar_marks(bar, &x, top + ROW * (index as f64 + 0.5)));
        }
        let description = format!("{}. {}", self.title, self.note);
        Scene { width: WIDTH, height: bottom + 34.0, description, marks }
    }

    fn value_axis(&self) -> ChartAxis {
        let ends = |bar: &ChartBar| {
            let whole: f64 = bar.parts.iter().sum();
            let (low, high) = bar.interval.unwrap_or((whole, whole));
            [whole, low, high]
        };
        let (low, high) = self
            .bars
            .iter()
            .flat_map(ends)
            .fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        ChartAxis::with_rounded_ends(&self.unit, (low, high), (NAMES, WIDTH - VALUES), 6)
    }

    fn legend_marks(&self) -> Vec<SceneMark> {
        let mut marks = Vec::new();
        let mut x = NAMES;
        for (index, name) in self.parts.iter().enumerate().filter(|_| self.parts.len() > 1) {
            marks.push(rect_mark((x, 61.0), (x + 11.0, 72.0), MarkInk::Own(series_colour(index)), ""));
            marks.push(text_mark(x + 17.0, 71.0, TextAnchor::Start, name.as_str()));
            x += 17.0 + font::text_width(name, TEXT) + 20.0;
        }
        marks
    }

    fn bar_marks(&self, bar: &ChartBar, x: &ChartAxis, y: f64) -> Vec<SceneMark> {
        let name = font::shorten_to_width(&bar.name, TEXT, NAMES - 28.0);
        let mut marks = vec![text_mark(NAMES - 12.0, y + 4.0, TextAnchor::End, name)];
        let mut from = 0.0;
        for (index, part) in bar.parts.iter().enumerate().filter(|(_, part)| **part != 0.0) {
            let to = from + part;
            let title = match self.parts.get(index) {
                Some(kind) => format!("{}, {kind}: {}", bar.name, self.unit.format_value(*part)),
                None => format!("{}: {}", bar.name, self.unit.format_value(*part)),
            };
            let corners = ((x.pixel_of(from), y - 8.0), (x.pixel_of(to), y + 8.0));
            marks.push(rect_mark(corners.0, corners.1, MarkInk::Own(series_colour(index)), title));
            from = to;
        }
        if let Some((low, high)) = bar.interval {
            marks.push(line_mark((x.pixel_of(low), y), (x.pixel_of(high), y), MarkInk::Text, false));
            for end in [low, high] {
                marks.push(line_mark(
                    (x.pixel_of(end), y - 5.0),
                    (x.pixel_of(end), y + 5.0),
                    MarkInk::Text,
                    false,
                ));
            }
        }
        let whole: f64 = bar.parts.iter().sum();
        marks.push(faint_text(
            WIDTH - VALUES + 12.0,
            y + 4.0,
            TextAnchor::Start,
            self.unit.format_value(whole),
        ));
        marks
    }
}
