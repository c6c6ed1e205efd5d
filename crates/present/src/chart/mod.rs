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

pub use bars::{Bar, Bars};
pub use colour::{OTHERS, PALETTE, Rgb};
pub use dots::{Dot, Dots, Level, Range};
pub(crate) use font::{fitted, width as text_width};
pub use frame::Span;
pub use histogram::Histogram;
pub use lines::{Line, Lines};
pub use number::Unit;
pub use pixels::Pixels;
pub use png::ChartError;
pub use scene::{Anchor, Ink, Mark, Point, Scene, Surface};
pub use stacked::{Layer, Stacked};
pub use stretches::{Stretch, Stretches};
