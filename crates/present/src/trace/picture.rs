//! Every operation as a dot: time over the program's size. Owns the picture of the slab-list study, with the times of
//! chosen spans beside those of operations, and ours, in which each outlier has the colour of its cause.

use perflab_analyze::trace::{Clock, Report, Verdict};
use perflab_model::trace::{Operations, Sparse};

use super::scale::{Scale, Spread};
use crate::chart::{Anchor, Ink, Mark, OTHERS, PALETTE, Pixels, Point, Rgb, Scene};

/// What to draw.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    /// The title.
    pub title: String,
    /// How times are spread.
    pub spread: Spread,
    /// Spans whose own times are drawn too, one set of dots for each list.
    pub with: Vec<Vec<String>>,
    /// The number that is the horizontal axis; how manieth operation it is, where left out or not told by each.
    pub over: Option<String>,
    /// Give each outlier the colour of its cause.
    pub causes: bool,
    /// The lowest and the highest time of the axis, in nanoseconds; what the dots need where left out. For two pictures
    /// on the same axes.
    pub range: Option<(i64, i64)>,
}

/// Scene units: two pixels each, 2160 x 1920 in all.
const WIDTH: f64 = 1080.0;
const HEIGHT: f64 = 960.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 1064.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 904.0;
/// How much wider than ours the letters of a page's own typeface may be.
const WIDEST: f64 = 1.2;
/// Pixels of the image for each scene unit.
const SCALE: f64 = 2.0;
/// Edge of an outlier's mark, in scene units.
const MARK: f64 = 2.5;
/// Outliers that are vectors; beyond, the longest are, and the others stay dots.
pub(super) const MOST_MARKS: usize = 20_000;
/// Of those, the ones that say what they are to a pointer.
const MOST_TITLES: usize = 2_000;

const BODY: Rgb = Rgb(0x8f, 0x1d, 0x1d);

/// The picture of a trace.
#[must_use]
pub fn picture(operations: &Operations, report: &Report, wanted: &Picture) -> Scene {
    let drawing = Drawing::new(operations, report, wanted);
    let mut marks = drawing.frame();
    marks.push(drawing.dots());
    marks.extend(drawing.outliers());
    let description = format!(
        "{}: {} operations, the longest {}",
        wanted.title,
        report.operations,
        time(report.longest as f64)
    );
    Scene { width: WIDTH, height: HEIGHT, description, marks }
}

/// The least and the greatest time that a picture of these traces needs.
#[must_use]
pub fn range(reports: &[&Report]) -> (i64, i64) {
    let low = reports.iter().map(|report| report.shortest).min().unwrap_or(1);
    let high = reports.iter().map(|report| report.longest).max().unwrap_or(1);
    (low, high)
}

struct Drawing<'a> {
    operations: &'a Operations,
    report: &'a Report,
    wanted: &'a Picture,
    scale: Scale,
    axis: Option<&'a Sparse>,
    last: i64,
    columns: Columns,
}

impl<'a> Drawing<'a> {
    fn new(operations: &'a Operations, report: &'a Report, wanted: &'a Picture) -> Self {
        let (low, high) = wanted.range.unwrap_or_else(|| range(&[report]));
        let scale = Scale::new(wanted.spread, low as f64 * 0.8, high as f64 * 1.05, pixels(BOTTOM - TOP));
        let named = wanted.over.as_deref().and_then(|name| operations.number(name));
        let axis = named.filter(|numbers| numbers.len() == operations.len());
        let last = axis
            .map_or(operations.len() as i64, |axis| axis.iter().map(|(_, value)| value).max().unwrap_or(1));
        let last = last.max(1);
        let columns = Columns::new(last as u64, pixels(RIGHT - LEFT) as u64 - 1);
        Drawing { operations, report, wanted, scale, axis, last, columns }
    }

    fn frame(&self) -> Vec<Mark> {
        let mut marks = vec![label(16.0, 26.0, 16.0, Anchor::Start, self.wanted.title.clone())];
        let clock = if self.report.clock == Clock::OnCpu { "time on the CPU" } else { "time on the wall" };
        let over = if self.axis.is_some() {
            self.wanted.over.clone().unwrap_or_default()
        } else {
            "operation".into()
        };
        marks.push(label(
            LEFT,
            TOP - 10.0,
            12.0,
            Anchor::Start,
            format!("{clock}, `{}`", self.report.operation),
        ));
        marks.push(label((LEFT + RIGHT) / 2.0, BOTTOM + 42.0, 12.0, Anchor::Middle, over));
        for (value, row) in self.scale.ticks() {
            let y = TOP + row as f64 / SCALE;
            marks.push(rule((LEFT, y), (RIGHT, y)));
            marks.push(label(LEFT - 8.0, y + 4.0, 12.0, Anchor::End, time(value)));
        }
        let step = crate::chart::ticks::step(self.last as f64, 8);
        for value in (0..100).map(|n| f64::from(n) * step).take_while(|value| *value <= self.last as f64) {
            let x = LEFT + self.across(value as i64) as f64 / SCALE;
            marks.push(rule((x, BOTTOM), (x, BOTTOM + 5.0)));
            marks.push(label(x, BOTTOM + 20.0, 12.0, Anchor::Middle, format!("{value}")));
        }
        marks.push(rule((LEFT, BOTTOM), (RIGHT, BOTTOM)));
        marks.extend(self.legend());
        marks
    }

    /// Names beside their colours in one line below the title, with how many dots each has.
    fn legend(&self) -> Vec<Mark> {
        let mut entries = vec![(BODY, format!("{} ({})", self.report.operation, self.report.operations))];
        for (index, names) in self.wanted.with.iter().enumerate() {
            let dots: usize = self.spans(names).map(|span| span.len()).sum();
            entries.push((series(index), format!("{} ({dots})", names.join(" + "))));
        }
        if self.wanted.causes {
            let named = self.report.causes.iter().enumerate().filter(|(_, cause)| cause.share.outliers > 0);
            entries.extend(
                named.map(|(index, cause)| {
                    (series(index), format!("{} ({})", cause.name, cause.share.outliers))
                }),
            );
            entries.push((
                OTHERS,
                format!("unexplained ({})", self.report.unexplained.outliers + self.report.mixed.outliers),
            ));
        }
        let mut marks = Vec::new();
        let mut x = 16.0;
        for (colour, name) in entries {
            let width = 22.0 + WIDEST * crate::chart::font::width(&name, 12.0);
            marks.push(Mark::Rect {
                at: Point { x, y: 42.0 },
                width: 10.0,
                height: 10.0,
                ink: Ink::Own(colour),
                title: String::new(),
            });
            marks.push(label(x + 15.0, 51.0, 12.0, Anchor::Start, name));
            x += width + 14.0;
        }
        marks
    }

    fn spans(&self, names: &[String]) -> impl Iterator<Item = &'a Sparse> {
        let names = names.to_vec();
        self.operations.spans.iter().filter(move |span| names.contains(&span.name)).map(|span| &span.time)
    }

    /// Every operation, and every chosen span, as dots.
    fn dots(&self) -> Mark {
        let inks: Vec<Rgb> = std::iter::once(BODY).chain((0..self.wanted.with.len()).map(series)).collect();
        let mut grid = Pixels::new(pixels(RIGHT - LEFT), pixels(BOTTOM - TOP), &inks);
        grid.draw(self.report.dots().len(), |part, grid| {
            for (row, time) in self.report.dots().skip(part.start).take(part.len()) {
                grid.dot(self.column(row), self.scale.row(time), 0);
            }
        });
        for (index, names) in self.wanted.with.iter().enumerate() {
            for span in self.spans(names) {
                for (row, time) in span.iter() {
                    grid.dot(self.column(row), self.scale.row(time), index as u8 + 1);
                }
            }
        }
        Mark::Dots { at: Point { x: LEFT, y: TOP }, scale: SCALE, pixels: grid }
    }

    /// The outliers above the dots, so that none is hidden by anything but another one.
    fn outliers(&self) -> Vec<Mark> {
        let mut longest: Vec<_> = self.report.outliers.iter().collect();
        longest.sort_by_key(|outlier| outlier.time);
        let skipped = longest.len().saturating_sub(MOST_MARKS);
        let untitled = longest.len().saturating_sub(MOST_TITLES);
        let mark = |(at, outlier): (usize, &&perflab_analyze::trace::Outlier)| {
            let ink = match outlier.verdict {
                _ if !self.wanted.causes => BODY,
                verdict => colour(verdict),
            };
            let x = LEFT + self.column(outlier.row) as f64 / SCALE;
            let y = TOP + self.scale.row(outlier.time) as f64 / SCALE;
            let title = || {
                format!(
                    "operation {}: {}, {}",
                    outlier.row,
                    time(outlier.time as f64),
                    self.report.name(outlier)
                )
            };
            Mark::Rect {
                at: Point { x: x - MARK / 2.0 + 0.25, y: y - MARK / 2.0 + 0.25 },
                width: MARK,
                height: MARK,
                ink: Ink::Own(ink),
                title: if at >= untitled { title() } else { String::new() },
            }
        };
        longest.iter().enumerate().skip(skipped).map(mark).collect()
    }

    fn column(&self, row: u32) -> usize {
        let value = match self.axis {
            Some(axis) => axis.at(row as usize).unwrap_or(0),
            None => i64::from(row),
        };
        self.across(value)
    }

    #[inline]
    fn across(&self, value: i64) -> usize {
        self.columns.of(value.max(0) as u64)
    }
}

/// From values to columns of pixels: `value * most / last`, without a division where that is exact.
struct Columns {
    last: u64,
    most: u64,
    /// `most / last`, rounded up, in fractions of 2^64; none where values are too large for it to be exact
    slope: Option<u128>,
}

impl Columns {
    fn new(last: u64, most: u64) -> Self {
        // Rounding up makes a product too large by less than value / 2^64, which must stay below 1 / last.
        let slope = (last < 1 << 31).then(|| ((u128::from(most) << 64) / u128::from(last)) + 1);
        Columns { last, most, slope }
    }

    #[inline]
    fn of(&self, value: u64) -> usize {
        match self.slope {
            Some(slope) if value <= self.last => ((u128::from(value) * slope) >> 64) as usize,
            _ => ((u128::from(value) * u128::from(self.most)) / u128::from(self.last)) as usize,
        }
    }
}

/// The colour of an outlier's cause, everywhere.
pub(super) fn colour(verdict: Verdict) -> Rgb {
    match verdict {
        Verdict::Cause(index) => series(index),
        Verdict::Mixed | Verdict::Unexplained => OTHERS,
    }
}

fn series(index: usize) -> Rgb {
    PALETTE.get(index).copied().unwrap_or(OTHERS)
}

fn pixels(units: f64) -> usize {
    (units * SCALE).round() as usize
}

/// A time with its unit, as axes show it.
fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let text = format!("{value:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

fn label(x: f64, y: f64, size: f64, anchor: Anchor, text: String) -> Mark {
    Mark::Text {
        at: Point { x, y },
        anchor,
        size,
        ink: if size > 14.0 { Ink::Text } else { Ink::Faint },
        text,
    }
}

fn rule(from: (f64, f64), to: (f64, f64)) -> Mark {
    let points = [from, to].map(|(x, y)| Point { x, y }).to_vec();
    Mark::Line { points, ink: Ink::Grid, width: 1.0, dashed: false, title: String::new() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Columns;

    proptest! {
        #[test]
        fn columns_are_those_of_a_division(last in 1_u64..1 << 40, part in 0_u64..1 << 40, most in 1_u64..4000) {
            let value = part % (last + 1);
            let wanted = u128::from(value) * u128::from(most) / u128::from(last);
            prop_assert_eq!(Columns::new(last, most).of(value) as u128, wanted);
            prop_assert_eq!(Columns::new(last, most).of(last) as u64, most);
        }
    }
}
