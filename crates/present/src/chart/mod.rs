//! Static figures: time lines, stacked areas, histograms and bars, as SVG and as PNG.
//!
//! Owns how numbers become marks on paper: scales with nice ticks, colours that colour-blind people tell apart
//! (Okabe and Ito), legends, one typeface, and grids of very many dots. A figure is laid out once, into a [`Scene`] of rectangles, lines and
//! texts, and both formats draw that scene, so they cannot differ. It refuses to know what it shows (slab caches,
//! latencies), interaction (the report's front end has it) and files (callers write the bytes).
//!
//! ```
//! use perflab_present::chart::{Layer, Stacked, Surface, Unit};
//! let figure = Stacked {
//!     title: "Slab memory".into(),
//!     unit: Unit::Bytes,
//!     times: vec![0.0, 1.0, 2.0],
//!     layers: vec![Layer::new("dentry", vec![4096.0, 8192.0, 8192.0])],
//!     ..Stacked::default()
//! };
//! let svg = figure.scene().svg(Surface::Paper);
//! assert!(svg.starts_with("<svg "));
//! ```

mod axis;
mod bars;
mod canvas;
mod colour;
mod dots;
pub(crate) mod font;
mod frame;
mod histogram;
mod image;
mod lines;
mod number;
mod pixels;
mod png;
mod scene;
mod shape;
mod stacked;
mod stretches;
pub(crate) mod svg;
mod thin;
pub(crate) mod ticks;

#[cfg(test)]
mod tests;

pub use bars::{BarChart, ChartBar};
pub use colour::{OTHERS_COLOUR, PALETTE, RgbColour};
pub use dots::{ChartDot, DotChart, LevelLine, RangeLine};
pub(crate) use font::{shorten_to_width, text_width};
pub use frame::AxisBand;
pub use histogram::HistogramChart;
pub use lines::{ChartLine, LineChart};
pub use number::AxisUnit;
pub use pixels::DotGrid;
pub use png::ChartError;
pub use scene::{MarkInk, Scene, SceneMark, ScenePoint, SceneSurface, TextAnchor};
pub use stacked::{ChartLayer, StackedChart};
pub use stretches::{ChartExtent, ExtentChart};
