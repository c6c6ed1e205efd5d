//! Owns the stacked area: parts of a sum over time. It refuses negative parts, which a stack cannot show.

use super::axis::Axis;
use super::colour::{Rgb, nth};
use super::frame::{Frame, Span};
use super::number::Unit;
use super::scene::{Ink, Mark, Point, Scene};
use super::thin::thin;

/// One part of the sum.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Its name in the legend.
    pub name: String,
    /// One value a time; a layer that does not exist yet is 0.
    pub values: Vec<f64>,
    /// Its colour; by its index where `None`.
    pub colour: Option<Rgb>,
}

impl Layer {
    /// A layer in the palette's next colour.
    pub fn new(name: impl Into<String>, values: Vec<f64>) -> Self {
        Layer { name: name.into(), values, colour: None }
    }

    /// What the named layers leave over, in grey.
    pub fn others(name: impl Into<String>, values: Vec<f64>) -> Self {
        Layer { name: name.into(), values, colour: Some(super::OTHERS) }
    }
}

/// Parts of a sum over time, the first layer at the bottom.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stacked {
    /// What it shows.
    pub title: String,
    /// One line below the title.
    pub note: String,
    /// The unit of the values.
    pub unit: Unit,
    /// Seconds, ascending.
    pub times: Vec<f64>,
    /// From the bottom.
    pub layers: Vec<Layer>,
    /// Named stretches of time.
    pub spans: Vec<Span>,
}

impl Stacked {
    /// Lays the figure out.
    #[must_use]
    pub fn scene(&self) -> Scene {
        let mut frame = Frame::new(&self.title, &self.note, true);
        let Some((x, y)) = self.axes(&frame) else {
            frame.empty();
            return frame.scene();
        };
        let mut below = vec![0.0; self.times.len()];
        let mut areas = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            let above = self.summed(&below, layer);
            areas.push(self.area(layer, colour(layer, index), (&below, &above), (&x, &y)));
            below = above;
        }
        frame.axes(&x, &y, "seconds");
        frame.marks.extend(areas);
        frame.spans(&x, &self.spans);
        let named = self.layers.iter().enumerate().rev();
        frame.legend(named.map(|(index, layer)| (colour(layer, index), layer.name.as_str())));
        frame.scene()
    }

    fn axes(&self, frame: &Frame) -> Option<(Axis, Axis)> {
        let (first, last) = (self.times.first()?, self.times.last()?);
        let zero = vec![0.0; self.times.len()];
        let top = self.layers.iter().fold(zero, |sum, layer| self.summed(&sum, layer));
        let highest = top.into_iter().fold(0.0, f64::max);
        let seconds = Unit::Plain("s".into());
        let x = Axis::exact(&seconds, (*first, *last), frame.across(), 8);
        Some((x, Axis::rounded(&self.unit, (0.0, highest), frame.up(), 6)))
    }

    fn summed(&self, below: &[f64], layer: &Layer) -> Vec<f64> {
        let values = layer.values.iter().copied().chain(std::iter::repeat(0.0));
        below.iter().zip(values).map(|(below, value)| below + value.max(0.0)).collect()
    }

    fn area(
        &self,
        layer: &Layer,
        colour: Rgb,
        (below, above): (&[f64], &[f64]),
        (x, y): (&Axis, &Axis),
    ) -> Mark {
        let place = |(at, value): (&f64, &f64)| Point { x: x.place(*at), y: y.place(*value) };
        let upper = thin(&self.times.iter().zip(above).map(place).collect::<Vec<_>>());
        let lower = thin(&self.times.iter().zip(below).map(place).collect::<Vec<_>>());
        let largest = layer.values.iter().copied().fold(0.0, f64::max);
        let title = format!("{}: up to {}", layer.name, self.unit.text(largest));
        Mark::Area {
            points: upper.into_iter().chain(lower.into_iter().rev()).collect(),
            ink: Ink::Own(colour),
            title,
        }
    }
}

fn colour(layer: &Layer, index: usize) -> Rgb {
    layer.colour.unwrap_or_else(|| nth(index))
}
