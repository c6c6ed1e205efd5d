//! Owns the stacked area: parts of a sum over time. It refuses negative parts, which a stack cannot show.

use super::axis::ChartAxis;
use super::colour::{RgbColour, series_colour};
use super::frame::{AxisBand, ChartFrame};
use super::number::AxisUnit;
use super::scene::{MarkInk, Scene, SceneMark, ScenePoint};
use super::thin::keep_pixel_extremes;

/// One part of the sum.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartLayer {
    /// Its name in the legend.
    pub name: String,
    /// One value a time; a layer that does not exist yet is 0.
    pub values: Vec<f64>,
    /// Its colour; by its index where `None`.
    pub colour: Option<RgbColour>,
}

impl ChartLayer {
    /// A layer in the palette's next colour.
    pub fn new(name: impl Into<String>, values: Vec<f64>) -> Self {
        ChartLayer { name: name.into(), values, colour: None }
    }

    /// What the named layers leave over, in grey.
    pub fn others(name: impl Into<String>, values: Vec<f64>) -> Self {
        ChartLayer { name: name.into(), values, colour: Some(super::OTHERS_COLOUR) }
    }
}

/// Parts of a sum over time, the first layer at the bottom.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StackedChart {
    /// What it shows.
    pub title: String,
    /// One line below the title.
    pub note: String,
    /// The unit of the values.
    pub unit: AxisUnit,
    /// Seconds, ascending.
    pub times: Vec<f64>,
    /// From the bottom.
    pub layers: Vec<ChartLayer>,
    /// Named stretches of time.
    pub bands: Vec<AxisBand>,
}

impl StackedChart {
    /// Lays the figure out.
    #[must_use]
    pub fn render(&self) -> Scene {
        let mut frame = ChartFrame::new(&self.title, &self.note, true);
        let Some((x, y)) = self.axes(&frame) else {
            frame.add_empty_note();
            return frame.into_scene();
        };
        let mut below = vec![0.0; self.times.len()];
        let mut areas = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            let above = self.sum_layer(&below, layer);
            areas.push(self.layer_area(layer, layer_colour(layer, index), (&below, &above), (&x, &y)));
            below = above;
        }
        frame.add_axes(&x, &y, "seconds");
        frame.marks.extend(areas);
        frame.add_bands(&x, &self.bands);
        let named = self.layers.iter().enumerate().rev();
        frame.add_legend(named.map(|(index, layer)| (layer_colour(layer, index), layer.name.as_str())));
        frame.into_scene()
    }

    fn axes(&self, frame: &ChartFrame) -> Option<(ChartAxis, ChartAxis)> {
        let (first, last) = (self.times.first()?, self.times.last()?);
        let zero = vec![0.0; self.times.len()];
        let top = self.layers.iter().fold(zero, |sum, layer| self.sum_layer(&sum, layer));
        let highest = top.into_iter().fold(0.0, f64::max);
        let seconds = AxisUnit::Plain("s".into());
        let x = ChartAxis::with_exact_ends(&seconds, (*first, *last), frame.horizontal_pixels(), 8);
        Some((x, ChartAxis::with_rounded_ends(&self.unit, (0.0, highest), frame.vertical_pixels(), 6)))
    }

    fn sum_layer(&self, below: &[f64], layer: &ChartLayer) -> Vec<f64> {
        let values = layer.values.iter().copied().chain(std::iter::repeat(0.0));
        below.iter().zip(values).map(|(below, value)| below + value.max(0.0)).collect()
    }

    fn layer_area(
        &self,
        layer: &ChartLayer,
        colour: RgbColour,
        (below, above): (&[f64], &[f64]),
        (x, y): (&ChartAxis, &ChartAxis),
    ) -> SceneMark {
        let place = |(at, value): (&f64, &f64)| ScenePoint { x: x.pixel_of(*at), y: y.pixel_of(*value) };
        let upper = keep_pixel_extremes(&self.times.iter().zip(above).map(place).collect::<Vec<_>>());
        let lower = keep_pixel_extremes(&self.times.iter().zip(below).map(place).collect::<Vec<_>>());
        let largest = layer.values.iter().copied().fold(0.0, f64::max);
        let title = format!("{}: up to {}", layer.name, self.unit.format_value(largest));
        SceneMark::Area {
            points: upper.into_iter().chain(lower.into_iter().rev()).collect(),
            ink: MarkInk::Own(colour),
            title,
        }
    }
}

fn layer_colour(layer: &ChartLayer, index: usize) -> RgbColour {
    layer.colour.unwrap_or_else(|| series_colour(index))
}
