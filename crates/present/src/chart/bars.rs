//! Owns horizontal bars: named things by size, each of parts or with an interval. It refuses more than its rows:
//! callers choose which.

use super::axis::Axis;
use super::canvas::{TEXT, TITLE, faint, rect, rule, text, title};
use super::colour::nth;
use super::font;
use super::number::Unit;
use super::scene::{Anchor, Ink, Mark, Scene};

/// One thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// Its parts, in the order of [`Bars::parts`]. One part may be negative, several may not.
    pub parts: Vec<f64>,
    /// The ends of an interval of the whole.
    pub interval: Option<(f64, f64)>,
}

/// Named things by size.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bars {
    /// What it shows.
    pub title: String,
    /// One line below the title.
    pub note: String,
    /// The unit of the sizes.
    pub unit: Unit,
    /// The names of the parts; one or none needs no legend.
    pub parts: Vec<String>,
    /// From the top.
    pub bars: Vec<Bar>,
}

const WIDTH: f64 = 900.0;
const ROW: f64 = 24.0;
const NAMES: f64 = 210.0;
const VALUES: f64 = 110.0;

impl Bars {
    /// Lays the figure out.
    #[must_use]
    pub fn scene(&self) -> Scene {
        let top = if self.parts.len() > 1 { 92.0 } else { 66.0 };
        let bottom = top + ROW * self.bars.len().max(1) as f64;
        let mut marks = vec![
            title(16.0, 26.0, font::fitted(&self.title, TITLE, WIDTH - 32.0)),
            faint(16.0, 46.0, Anchor::Start, font::fitted(&self.note, TEXT, WIDTH - 32.0)),
        ];
        let x = self.axis();
        for (place, label) in x.ticks() {
            marks.push(rule((place, top), (place, bottom), Ink::Grid, false));
            marks.push(faint(place, bottom + 18.0, Anchor::Middle, label));
        }
        marks.push(faint(NAMES - 40.0, bottom + 18.0, Anchor::End, x.name.as_str()));
        marks.extend(self.legend());
        for (index, bar) in self.bars.iter().enumerate() {
            marks.extend(self.row(bar, &x, top + ROW * (index as f64 + 0.5)));
        }
        let description = format!("{}. {}", self.title, self.note);
        Scene { width: WIDTH, height: bottom + 34.0, description, marks }
    }

    fn axis(&self) -> Axis {
        let ends = |bar: &Bar| {
            let whole: f64 = bar.parts.iter().sum();
            let (low, high) = bar.interval.unwrap_or((whole, whole));
            [whole, low, high]
        };
        let (low, high) = self
            .bars
            .iter()
            .flat_map(ends)
            .fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        Axis::rounded(&self.unit, (low, high), (NAMES, WIDTH - VALUES), 6)
    }

    fn legend(&self) -> Vec<Mark> {
        let mut marks = Vec::new();
        let mut x = NAMES;
        for (index, name) in self.parts.iter().enumerate().filter(|_| self.parts.len() > 1) {
            marks.push(rect((x, 61.0), (x + 11.0, 72.0), Ink::Own(nth(index)), ""));
            marks.push(text(x + 17.0, 71.0, Anchor::Start, name.as_str()));
            x += 17.0 + font::width(name, TEXT) + 20.0;
        }
        marks
    }

    fn row(&self, bar: &Bar, x: &Axis, y: f64) -> Vec<Mark> {
        let name = font::fitted(&bar.name, TEXT, NAMES - 28.0);
        let mut marks = vec![text(NAMES - 12.0, y + 4.0, Anchor::End, name)];
        let mut from = 0.0;
        for (index, part) in bar.parts.iter().enumerate().filter(|(_, part)| **part != 0.0) {
            let to = from + part;
            let title = match self.parts.get(index) {
                Some(kind) => format!("{}, {kind}: {}", bar.name, self.unit.text(*part)),
                None => format!("{}: {}", bar.name, self.unit.text(*part)),
            };
            let corners = ((x.place(from), y - 8.0), (x.place(to), y + 8.0));
            marks.push(rect(corners.0, corners.1, Ink::Own(nth(index)), title));
            from = to;
        }
        if let Some((low, high)) = bar.interval {
            marks.push(rule((x.place(low), y), (x.place(high), y), Ink::Text, false));
            for end in [low, high] {
                marks.push(rule((x.place(end), y - 5.0), (x.place(end), y + 5.0), Ink::Text, false));
            }
        }
        let whole: f64 = bar.parts.iter().sum();
        marks.push(faint(WIDTH - VALUES + 12.0, y + 4.0, Anchor::Start, self.unit.text(whole)));
        marks
    }
}
