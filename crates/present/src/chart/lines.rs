//! Owns lines over time. It refuses to bridge what is missing: a line breaks there.

use super::axis::Axis;
use super::colour::{Rgb, nth};
use super::frame::{Frame, Span};
use super::number::Unit;
use super::scene::{Ink, Mark, Point, Scene};
use super::thin::thin;

/// One quantity over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// One value a time; `None` breaks the line.
    pub values: Vec<Option<f64>>,
    /// A lower end of each value, where it is only known within an interval: shaded.
    pub low: Option<Vec<Option<f64>>>,
    /// Broken into dashes: somebody else's number beside ours.
    pub dashed: bool,
}

impl Line {
    /// A solid line.
    pub fn new(name: impl Into<String>, values: Vec<Option<f64>>) -> Self {
        Line { name: name.into(), values, low: None, dashed: false }
    }
}

/// Quantities of one unit over time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lines {
    /// What it shows.
    pub title: String,
    /// One line below the title.
    pub note: String,
    /// The unit of the values.
    pub unit: Unit,
    /// Whether the vertical axis begins at 0, as it must where sizes are compared.
    pub from_zero: bool,
    /// Seconds, ascending.
    pub times: Vec<f64>,
    /// The quantities.
    pub lines: Vec<Line>,
    /// Named stretches of time.
    pub spans: Vec<Span>,
}

impl Lines {
    /// Lays the figure out.
    #[must_use]
    pub fn scene(&self) -> Scene {
        let mut frame = Frame::new(&self.title, &self.note, true);
        let Some((x, y)) = self.axes(&frame) else {
            frame.empty();
            return frame.scene();
        };
        frame.axes(&x, &y, "seconds");
        frame.spans(&x, &self.spans);
        for (index, line) in self.lines.iter().enumerate() {
            frame.marks.extend(self.interval(line, nth(index), &x, &y));
            frame.marks.extend(self.pieces(line, nth(index), &x, &y));
        }
        frame.legend(self.lines.iter().enumerate().map(|(index, line)| (nth(index), line.name.as_str())));
        frame.scene()
    }

    fn axes(&self, frame: &Frame) -> Option<(Axis, Axis)> {
        let (first, last) = (self.times.first()?, self.times.last()?);
        let lows = self.lines.iter().filter_map(|line| line.low.as_ref()).flatten();
        let values = self.lines.iter().flat_map(|line| &line.values).chain(lows);
        let ends = |(low, high): (f64, f64), value: &f64| (low.min(*value), high.max(*value));
        let (low, high) = values.flatten().fold((f64::INFINITY, f64::NEG_INFINITY), ends);
        if low > high {
            return None;
        }
        let low = if self.from_zero { low.min(0.0) } else { low };
        let x = Axis::exact(&Unit::Plain("s".into()), (*first, *last), frame.across(), 8);
        Some((x, Axis::rounded(&self.unit, (low, high), frame.up(), 6)))
    }

    /// The line, one mark for each stretch without a hole.
    fn pieces(&self, line: &Line, colour: Rgb, x: &Axis, y: &Axis) -> Vec<Mark> {
        let mark = |points| Mark::Line {
            points,
            ink: Ink::Own(colour),
            width: 1.8,
            dashed: line.dashed,
            title: line.name.clone(),
        };
        let pieces = self.stretches(&line.values, x, y);
        pieces.into_iter().filter(|points| points.len() > 1).map(mark).collect()
    }

    /// The shade between low ends and values, one mark for each stretch where both are known.
    fn interval(&self, line: &Line, colour: Rgb, x: &Axis, y: &Axis) -> Vec<Mark> {
        let Some(low) = &line.low else { return Vec::new() };
        let both = |(value, low): (&Option<f64>, &Option<f64>)| value.zip(*low);
        let known: Vec<Option<(f64, f64)>> = line.values.iter().zip(low).map(both).collect();
        let upper: Vec<Option<f64>> = known.iter().map(|one| one.map(|(value, _)| value)).collect();
        let lower: Vec<Option<f64>> = known.iter().map(|one| one.map(|(_, low)| low)).collect();
        let pairs = self.stretches(&upper, x, y).into_iter().zip(self.stretches(&lower, x, y));
        let mark = |(upper, lower): (Vec<Point>, Vec<Point>)| Mark::Area {
            points: upper.into_iter().chain(lower.into_iter().rev()).collect(),
            ink: Ink::Pale(colour),
            title: format!("{}: interval", line.name),
        };
        pairs.filter(|(upper, _)| upper.len() > 1).map(mark).collect()
    }

    /// The places of values, apart where one is missing.
    fn stretches(&self, values: &[Option<f64>], x: &Axis, y: &Axis) -> Vec<Vec<Point>> {
        let mut stretches = vec![Vec::new()];
        for (at, value) in self.times.iter().zip(values) {
            match (value, stretches.last_mut()) {
                (Some(value), Some(stretch)) => stretch.push(Point { x: x.place(*at), y: y.place(*value) }),
                _ => stretches.push(Vec::new()),
            }
        }
        stretches.into_iter().map(|stretch| thin(&stretch)).collect()
    }
}
