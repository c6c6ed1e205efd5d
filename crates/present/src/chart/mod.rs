//! Static figures: time lines, curves with bands, strips of values, intervals, stacked areas, histograms and bars, as SVG and as PNG.
//!
//! A figure is laid out once, into a [`Scene`] of rectangles, lines and texts, and both formats draw that scene, so
//! they cannot differ. Colours are those that colour-blind people tell apart (Okabe and Ito). Charts do not know what
//! they show; interaction is the front end's, and callers write the bytes to files.
//!
//! ```
//! use perflab_present::chart::{AxisUnit, ChartLayer, SceneSurface, StackedChart};
//! let figure = StackedChart {
//!     title: "Slab memory".into(),
//!     unit: AxisUnit::Bytes,
//!     times: vec![0.0, 1.0, 2.0],
//!     layers: vec![ChartLayer::new("dentry", vec![4096.0, 8192.0, 8192.0])],
//!     ..StackedChart::default()
//! };
//! let svg = figure.render().to_svg(SceneSurface::Paper);
//! assert!(svg.starts_with("<svg "));
//! ```

pub(crate) mod axes;
pub(crate) mod axis_unit;
pub(crate) mod bar_charts;
pub(crate) mod curve_chart;
pub(crate) mod dot_charts;
pub(crate) mod dot_grid;
pub(crate) mod heat_chart;
pub(crate) mod interval_chart;
pub(crate) mod line_charts;
pub(crate) mod look;
pub(crate) mod palette;
pub(crate) mod panels;
pub(crate) mod png;
pub(crate) mod scene;
pub(crate) mod strip_chart;
pub(crate) mod svg;
#[cfg(test)]
mod tests;
pub(crate) mod thinning;
pub(crate) mod typeface;

pub use crate::chart::axis_unit::AxisUnit;
pub use axes::AxisBand;
pub use bar_charts::{BarChart, ChartBar, HistogramChart};
pub use curve_chart::{Curve, CurveChart, CurvePoint, CurveShape};
pub use dot_charts::{ChartDot, ChartExtent, DotChart, ExtentChart, LevelLine, RangeLine};
pub use dot_grid::DotGrid;
pub use heat_chart::HeatChart;
pub use interval_chart::{IntervalChart, IntervalRow};
pub use line_charts::{ChartLayer, ChartLine, LineChart, StackedChart};
pub use look::{AxisLook, ChartLook};
pub use palette::{OTHERS_COLOUR, PALETTE, RgbColour};
pub use panels::stack_panels;
pub use png::ChartError;
pub use scene::{MarkInk, Scene, SceneMark, ScenePoint, SceneSurface, TextAnchor};
pub use strip_chart::{StripChart, StripRow};
pub use thinning::{bucket_size, find_extremes};
