//! Owns PNG: the scene drawn by a small software rasteriser, strip by strip, since what memory costs most is its first touch.
//! It refuses another ground than white: a picture in a mail has no theme.

use tiny_skia::{Color, Pixmap};

use super::font;
use super::image::{PixelFormat, RasterImage};
use super::scene::Scene;
use super::shape::RasterShape;

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
pub(super) fn scene_to_png(scene: &Scene) -> Result<Vec<u8>, ChartError> {
    let (width, height) = pixel_size(scene);
    let (bytes, colours) = rasterise_strips(scene, STRIP)?.finish();
    encode_png(width, height, &bytes, colours)
}

/// Width and height in pixels.
fn pixel_size(scene: &Scene) -> (usize, usize) {
    let side = |length: f64| (length * f64::from(SCALE)).ceil().clamp(0.0, 20_000.0) as usize;
    (side(scene.width), side(scene.height))
}

/// The scene drawn in strips of at most so many rows.
fn rasterise_strips(scene: &Scene, most: usize) -> Result<RasterImage, ChartError> {
    let (width, height) = pixel_size(scene);
    let mut strip = Pixmap::new(width as u32, most.min(height) as u32)
        .ok_or(ChartError::Size { width: scene.width, height: scene.height })?;
    let face = font::embedded_face();
    let shapes: Vec<_> =
        scene.marks.iter().filter_map(|mark| RasterShape::from_mark(mark, SCALE, face.as_ref())).collect();
    let mut image = RasterImage::new(width * height);
    let mut rows = 0..0;
    while rows.end < height {
        rows = rows.end..strip_end(rows.end, (rows.end + most).min(height), &shapes);
        strip.fill(Color::WHITE);
        shapes.iter().for_each(|shape| shape.fill_rows(&mut strip, &rows));
        image.push_pixels(strip.data().get(..rows.len() * width * 4).unwrap_or_default());
    }
    Ok(image)
}

/// Where the strip that begins at `top` ends: above letters that it would cut, whose edges would be rounded anew there.
fn strip_end(top: usize, mut end: usize, shapes: &[RasterShape]) -> usize {
    let letters: Vec<_> = shapes
        .iter()
        .filter(|shape| matches!(shape, RasterShape::Letters(..)))
        .map(RasterShape::row_range)
        .collect();
    let cut = |end| letters.iter().find(|rows| rows.contains(&end) && (top + 1..end).contains(&rows.start));
    while let Some(cut) = cut(end) {
        end = cut.start;
    }
    end
}

/// The file of an image.
pub(super) fn encode_png(
    width: usize,
    height: usize,
    bytes: &[u8],
    colours: PixelFormat,
) -> Result<Vec<u8>, ChartError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_color(png::ColorType::Rgb);
    // A third of the time that the default takes, for a file a little larger.
    encoder.set_compression(png::Compression::Fast);
    if let PixelFormat::Few { palette, first_is_clear } = colours {
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
    use crate::chart::{DotGrid, MarkInk, RgbColour, SceneMark, ScenePoint, TextAnchor};

    /// Dots, marks of whole pixels and of parts, rules and letters, at all heights.
    fn mixed_scene() -> Scene {
        let mut pixels = DotGrid::new(300, 500, &[RgbColour(0x8f, 0x1d, 0x1d), RgbColour(0, 0x72, 0xb2)]);
        (0..3_000).for_each(|at| pixels.add_dot(at / 10, at * at % 977 / 2, (at % 2) as u8));
        let dots = SceneMark::Dots { at: ScenePoint { x: 20.0, y: 10.5 }, scale: 2.0, pixels };
        let others = (0..30).flat_map(|at| {
            let place = ScenePoint { x: 30.0 + f64::from(at), y: f64::from(at) * 9.3 };
            let (title, ink) = (String::new(), MarkInk::Own(RgbColour(at as u8, 200, 9)));
            let points =
                [(0.0, place.y.floor()), (200.0, place.y.floor())].map(|(x, y)| ScenePoint { x, y }).to_vec();
            [
                SceneMark::Rect {
                    at: ScenePoint { x: place.x, y: place.y.round() },
                    width: 2.5,
                    height: 2.5,
                    ink,
                    title: title.clone(),
                },
                SceneMark::Rect {
                    at: place,
                    width: 3.1,
                    height: 2.5,
                    ink: MarkInk::Grid,
                    title: title.clone(),
                },
                SceneMark::Line { points, ink: MarkInk::Faint, width: 1.0, dashed: at % 2 == 0, title },
                SceneMark::Text {
                    at: place,
                    anchor: TextAnchor::Middle,
                    size: 12.0,
                    ink: MarkInk::Faint,
                    text: format!("{at} ns"),
                },
            ]
        });
        let marks = std::iter::once(dots).chain(others).collect();
        Scene { width: 200.0, height: 271.5, description: String::new(), marks }
    }

    #[test]
    fn a_picture_in_strips_is_the_one_in_one_piece() {
        let whole = rasterise_strips(&mixed_scene(), usize::MAX).unwrap().finish();
        assert!(
            matches!(whole.1, PixelFormat::Few { .. })
                && whole.0.iter().filter(|index| **index > 0).count() > 10_000
        );
        for most in [64, 100, STRIP] {
            assert!(rasterise_strips(&mixed_scene(), most).unwrap().finish() == whole, "strips of {most}");
        }
    }
}
