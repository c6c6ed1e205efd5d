//! Owns PNG: the scene drawn by a small software rasteriser, strip by strip, since what memory costs most is its first touch.
//! It refuses another ground than white: a picture in a mail has no theme.

use tiny_skia::{Color, Pixmap};

use super::font;
use super::image::{Colours, Image};
use super::scene::Scene;
use super::shape::Shape;

/// Pixels of the image for each of the scene's: sharp on dense screens and in print.
const SCALE: f32 = 2.0;
/// Rows of a strip at most.
const STRIP: usize = 128;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChartError {
    /// No image can have this size.
    #[error("cannot make an image of {width} x {height} pixels")]
    Size {
        /// pixels
        width: f64,
        /// pixels
        height: f64,
    },
    /// The encoder failed.
    #[error("cannot write the picture as PNG: {0}")]
    Encode(String),
}

/// The scene as a PNG file.
pub(super) fn bytes(scene: &Scene) -> Result<Vec<u8>, ChartError> {
    let (width, height) = size(scene);
    let (bytes, colours) = drawn(scene, STRIP)?.finish();
    encode(width, height, &bytes, colours)
}

/// Width and height in pixels.
fn size(scene: &Scene) -> (usize, usize) {
    let side = |length: f64| (length * f64::from(SCALE)).ceil().clamp(0.0, 20_000.0) as usize;
    (side(scene.width), side(scene.height))
}

/// The scene drawn in strips of at most so many rows.
fn drawn(scene: &Scene, most: usize) -> Result<Image, ChartError> {
    let (width, height) = size(scene);
    let mut strip = Pixmap::new(width as u32, most.min(height) as u32)
        .ok_or(ChartError::Size { width: scene.width, height: scene.height })?;
    let face = font::face();
    let shapes: Vec<_> =
        scene.marks.iter().filter_map(|mark| Shape::of(mark, SCALE, face.as_ref())).collect();
    let mut image = Image::new(width * height);
    let mut rows = 0..0;
    while rows.end < height {
        rows = rows.end..end(rows.end, (rows.end + most).min(height), &shapes);
        strip.fill(Color::WHITE);
        shapes.iter().for_each(|shape| shape.fill(&mut strip, &rows));
        image.extend(strip.data().get(..rows.len() * width * 4).unwrap_or_default());
    }
    Ok(image)
}

/// Where the strip that begins at `top` ends: above letters that it would cut, whose edges would be rounded anew there.
fn end(top: usize, mut end: usize, shapes: &[Shape]) -> usize {
    let letters: Vec<_> =
        shapes.iter().filter(|shape| matches!(shape, Shape::Letters(..))).map(Shape::rows).collect();
    let cut = |end| letters.iter().find(|rows| rows.contains(&end) && (top + 1..end).contains(&rows.start));
    while let Some(cut) = cut(end) {
        end = cut.start;
    }
    end
}

/// The file of an image.
pub(super) fn encode(
    width: usize,
    height: usize,
    bytes: &[u8],
    colours: Colours,
) -> Result<Vec<u8>, ChartError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_color(png::ColorType::Rgb);
    // A third of the time that the default takes, for a file a little larger.
    encoder.set_compression(png::Compression::Fast);
    if let Colours::Few { palette, first_is_clear } = colours {
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_palette(palette);
        if first_is_clear {
            encoder.set_trns(vec![0]);
        }
    }
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(bytes));
    written.map_err(|error| ChartError::Encode(error.to_string()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Anchor, Ink, Mark, Pixels, Point, Rgb};

    /// Dots, marks of whole pixels and of parts, rules and letters, at all heights.
    fn scene() -> Scene {
        let mut pixels = Pixels::new(300, 500, &[Rgb(0x8f, 0x1d, 0x1d), Rgb(0, 0x72, 0xb2)]);
        (0..3_000).for_each(|at| pixels.dot(at / 10, at * at % 977 / 2, (at % 2) as u8));
        let dots = Mark::Dots { at: Point { x: 20.0, y: 10.5 }, scale: 2.0, pixels };
        let others = (0..30).flat_map(|at| {
            let place = Point { x: 30.0 + f64::from(at), y: f64::from(at) * 9.3 };
            let (title, ink) = (String::new(), Ink::Own(Rgb(at as u8, 200, 9)));
            let points =
                [(0.0, place.y.floor()), (200.0, place.y.floor())].map(|(x, y)| Point { x, y }).to_vec();
            [
                Mark::Rect {
                    at: Point { x: place.x, y: place.y.round() },
                    width: 2.5,
                    height: 2.5,
                    ink,
                    title: title.clone(),
                },
                Mark::Rect { at: place, width: 3.1, height: 2.5, ink: Ink::Grid, title: title.clone() },
                Mark::Line { points, ink: Ink::Faint, width: 1.0, dashed: at % 2 == 0, title },
                Mark::Text {
                    at: place,
                    anchor: Anchor::Middle,
                    size: 12.0,
                    ink: Ink::Faint,
                    text: format!("{at} ns"),
                },
            ]
        });
        let marks = std::iter::once(dots).chain(others).collect();
        Scene { width: 200.0, height: 271.5, description: String::new(), marks }
    }

    #[test]
    fn a_picture_in_strips_is_the_one_in_one_piece() {
        let whole = drawn(&scene(), usize::MAX).unwrap().finish();
        assert!(
            matches!(whole.1, Colours::Few { .. })
                && whole.0.iter().filter(|index| **index > 0).count() > 10_000
        );
        for most in [64, 100, STRIP] {
            assert!(drawn(&scene(), most).unwrap().finish() == whole, "strips of {most}");
        }
    }
}
