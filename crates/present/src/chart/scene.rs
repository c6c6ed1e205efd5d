//! Owns what a figure is once it is laid out: marks at places. It refuses scales and data: those are spent by now.

use super::colour::Rgb;
use super::pixels::Pixels;
use super::png::{self, ChartError};
use super::svg;

/// What a figure lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// A file of its own: dark text on a white ground, so that it reads in a dark viewer too.
    Paper,
    /// Inside a page: no ground, and text in the page's own colour.
    Inline,
}

/// A place, in pixels from the upper left corner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Down.
    pub y: f64,
}

/// The colour of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// that of text
    Text,
    /// that of text which explains
    Faint,
    /// that of grid lines
    Grid,
    /// its own
    Own(Rgb),
    /// its own, half transparent
    Pale(Rgb),
}

/// Which point of a text stands at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// its first letter
    Start,
    /// its middle
    Middle,
    /// its end
    End,
}

/// One mark.
#[derive(Debug, Clone, PartialEq)]
pub enum Mark {
    /// A filled rectangle.
    Rect {
        /// upper left corner
        at: Point,
        /// pixels
        width: f64,
        /// pixels
        height: f64,
        /// its colour
        ink: Ink,
        /// what a pointer is told
        title: String,
    },
    /// A filled polygon.
    Area {
        /// its corners
        points: Vec<Point>,
        /// its colour
        ink: Ink,
        /// what a pointer is told
        title: String,
    },
    /// A line through points.
    Line {
        /// its points
        points: Vec<Point>,
        /// its colour
        ink: Ink,
        /// pixels
        width: f64,
        /// broken into dashes
        dashed: bool,
        /// what a pointer is told
        title: String,
    },
    /// Very many dots, as an image.
    Dots {
        /// upper left corner
        at: Point,
        /// pixels of the grid for each of the scene's
        scale: f64,
        /// the grid
        pixels: Pixels,
    },
    /// A text on one line.
    Text {
        /// where its base line begins, is centred or ends
        at: Point,
        /// which of the three
        anchor: Anchor,
        /// pixels from base line to base line
        size: f64,
        /// its colour
        ink: Ink,
        /// the text
        text: String,
    },
}

/// A figure, laid out.
#[derive(Debug, Clone, PartialEq)]
pub struct Scene {
    /// Pixels.
    pub width: f64,
    /// Pixels.
    pub height: f64,
    /// What the figure shows, for people who cannot see it.
    pub description: String,
    /// Back to front.
    pub marks: Vec<Mark>,
}

impl Scene {
    /// The figure as SVG, without script and without style attributes.
    #[must_use]
    pub fn svg(&self, surface: Surface) -> String {
        svg::text(self, surface)
    }

    /// The figure as PNG on white, two pixels for each of the scene's.
    ///
    /// # Errors
    ///
    /// A figure too large or too small for an image.
    pub fn png(&self) -> Result<Vec<u8>, ChartError> {
        png::bytes(self)
    }
}
