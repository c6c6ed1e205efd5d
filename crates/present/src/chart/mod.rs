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

pub(crate) mod axes;
pub(crate) mod bar_charts;
pub(crate) mod dot_charts;
pub(crate) mod dot_grid;
pub(crate) mod line_charts;
pub(crate) mod palette;
pub(crate) mod png;
pub(crate) mod scene;
pub(crate) mod svg;
#[cfg(test)]
mod tests;
pub(crate) mod thinning;
pub(crate) mod typeface;

pub use crate::number::chart::AxisUnit;
pub use axes::AxisBand;
pub use bar_charts::{BarChart, ChartBar, HistogramChart};
pub use dot_charts::{ChartDot, ChartExtent, DotChart, ExtentChart, LevelLine, RangeLine};
pub use dot_grid::DotGrid;
pub use line_charts::{ChartLayer, ChartLine, LineChart, StackedChart};
pub use palette::{OTHERS_COLOUR, PALETTE, RgbColour};
pub use png::ChartError;
pub use scene::{MarkInk, Scene, SceneMark, ScenePoint, SceneSurface, TextAnchor};
