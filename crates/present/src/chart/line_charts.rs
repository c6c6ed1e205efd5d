//! Quantities over time: lines, which break where a value is missing, and stacked areas, which have no negative parts.

use crate::chart::axes::{AxisBand, ChartAxis, ChartFrame};
use crate::chart::axis_unit::AxisUnit;
use crate::chart::palette::{RgbColour, name_colours};
use crate::chart::scene::{MarkInk, Scene, SceneMark, ScenePoint};
use crate::chart::thinning::keep_pixel_extremes;

/// One quantity over time.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartLine {
    /// Its name in the legend.
    pub name: String,
    /// One value a time; `None` breaks the line.
    pub values: Vec<Option<f64>>,
    /// A lower end of each value, where it is only known within an interval: shaded.
    pub low: Option<Vec<Option<f64>>>,
    /// Broken into dashes: somebody else's number beside ours.
    pub dashed: bool,
}

impl ChartLine {
    /// A solid line.
    pub fn new(name: impl Into<String>, values: Vec<Option<f64>>) -> Self {
        ChartLine { name: name.into(), values, low: None, dashed: false }
    }
}

/// Quantities of one unit over time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LineChart {
    /// What it shows.
    pub title: String,
    /// One line below the title.
    pub note: String,
    /// The unit of the values.
    pub unit: AxisUnit,
    /// Whether the vertical axis begins at 0, as it must where sizes are compared.
    pub from_zero: bool,
    /// Seconds, ascending.
    pub times: Vec<f64>,
    /// The quantities.
    pub lines: Vec<ChartLine>,
    /// Named ranges of time.
    pub bands: Vec<AxisBand>,
}

impl LineChart {
    /// Lays the figure out.
    #[must_use]
    pub fn render(&self) -> Scene {
        let mut frame = ChartFrame::new(&self.title, &self.note, true);
        let Some((x, y)) = self.axes(&frame) else {
            frame.add_empty_note();
            return frame.into_scene();
        };
        frame.add_axes(&x, &y, "seconds");
        frame.add_bands(&x, &self.bands);
        let names: Vec<&str> = self.lines.iter().map(|line| line.name.as_str()).collect();
        let colours = name_colours(&names);
        for (line, colour) in self.lines.iter().zip(&colours) {
            frame.marks.extend(self.interval_marks(line, *colour, &x, &y));
            frame.marks.extend(self.line_marks(line, *colour, &x, &y));
        }
        frame.add_legend(colours.into_iter().zip(names));
        frame.into_scene()
    }

    fn axes(&self, frame: &ChartFrame) -> Option<(ChartAxis, ChartAxis)> {
        let (first, last) = (self.times.first()?, self.times.last()?);
        let lows = self.lines.iter().filter_map(|line| line.low.as_ref()).flatten();
        let values = self.lines.iter().flat_map(|line| &line.values).chain(lows);
        let ends = |(low, high): (f64, f64), value: &f64| (low.min(*value), high.max(*value));
        let (low, high) = values.flatten().fold((f64::INFINITY, f64::NEG_INFINITY), ends);
        if low > high {
            return None;
        }
        let low = if self.from_zero { low.min(0.0) } else { low };
        let x = ChartAxis::with_exact_ends(&AxisUnit::Number, (*first, *last), frame.horizontal_pixels(), 8);
        Some((x, ChartAxis::with_rounded_ends(&self.unit, (low, high), frame.vertical_pixels(), 6)))
    }

    /// The line, one mark for each segment without a gap.
    fn line_marks(
        &self,
        line: &ChartLine,
        colour: RgbColour,
        x: &ChartAxis,
        y: &ChartAxis,
    ) -> Vec<SceneMark> {
        let mark = |points| SceneMark::Line {
            points,
            ink: MarkInk::Own(colour),
            width: 1.8,
            dashed: line.dashed,
            title: line.name.clone(),
        };
        let pieces = self.unbroken_points(&line.values, x, y);
        pieces.into_iter().filter(|points| points.len() > 1).map(mark).collect()
    }

    /// The shade between low ends and values, one mark for each segment where both are known.
    fn interval_marks(
        &self,
        line: &ChartLine,
        colour: RgbColour,
        x: &ChartAxis,
        y: &ChartAxis,
    ) -> Vec<SceneMark> {
        let Some(low) = &line.low else { return Vec::new() };
        let both = |(value, low): (&Option<f64>, &Option<f64>)| value.zip(*low);
        let known: Vec<Option<(f64, f64)>> = line.values.iter().zip(low).map(both).collect();
        let upper: Vec<Option<f64>> = known.iter().map(|one| one.map(|(value, _)| value)).collect();
        let lower: Vec<Option<f64>> = known.iter().map(|one| one.map(|(_, low)| low)).collect();
        let pairs = self.unbroken_points(&upper, x, y).into_iter().zip(self.unbroken_points(&lower, x, y));
        let mark = |(upper, lower): (Vec<ScenePoint>, Vec<ScenePoint>)| SceneMark::Area {
            points: upper.into_iter().chain(lower.into_iter().rev()).collect(),
            ink: MarkInk::Pale(colour),
            title: format!("{}: interval", line.name),
        };
        pairs.filter(|(upper, _)| upper.len() > 1).map(mark).collect()
    }

    /// The places of values, apart where one is missing.
    fn unbroken_points(&self, values: &[Option<f64>], x: &ChartAxis, y: &ChartAxis) -> Vec<Vec<ScenePoint>> {
        let mut segments = vec![Vec::new()];
        for (at, value) in self.times.iter().zip(values) {
            match (value, segments.last_mut()) {
                (Some(value), Some(segment)) => {
                    segment.push(ScenePoint { x: x.pixel_of(*at), y: y.pixel_of(*value) })
                }
                _ => segments.push(Vec::new()),
            }
        }
        segments.into_iter().map(|segment| keep_pixel_extremes(&segment)).collect()
    }
}

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
    /// A layer in the colour of its name.
    pub fn new(name: impl Into<String>, values: Vec<f64>) -> Self {
        ChartLayer { name: name.into(), values, colour: None }
    }

    /// What the named layers leave over, in grey.
    pub fn others(name: impl Into<String>, values: Vec<f64>) -> Self {
        ChartLayer { name: name.into(), values, colour: Some(crate::chart::palette::OTHERS_COLOUR) }
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
    /// Named ranges of time.
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
        let colours = layer_colours(&self.layers);
        for (layer, colour) in self.layers.iter().zip(&colours) {
            let above = self.sum_layer(&below, layer);
            areas.push(self.layer_area(layer, *colour, (&below, &above), (&x, &y)));
            below = above;
        }
        frame.add_axes(&x, &y, "seconds");
        frame.marks.extend(areas);
        frame.add_bands(&x, &self.bands);
        let named = self.layers.iter().zip(colours).rev();
        frame.add_legend(named.map(|(layer, colour)| (colour, layer.name.as_str())));
        frame.into_scene()
    }

    fn axes(&self, frame: &ChartFrame) -> Option<(ChartAxis, ChartAxis)> {
        let (first, last) = (self.times.first()?, self.times.last()?);
        let zero = vec![0.0; self.times.len()];
        let top = self.layers.iter().fold(zero, |sum, layer| self.sum_layer(&sum, layer));
        let highest = top.into_iter().fold(0.0, f64::max);
        let x = ChartAxis::with_exact_ends(&AxisUnit::Number, (*first, *last), frame.horizontal_pixels(), 8);
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

/// Their own colours, else those of their names.
fn layer_colours(layers: &[ChartLayer]) -> Vec<RgbColour> {
    let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
    let by_name = name_colours(&names).into_iter();
    layers.iter().zip(by_name).map(|(layer, by_name)| layer.colour.unwrap_or(by_name)).collect()
}
