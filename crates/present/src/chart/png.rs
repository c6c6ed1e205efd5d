//! Owns PNG: the scene drawn by a small software rasteriser. It refuses another ground than white: a picture in a
//! mail has no theme.

use tiny_skia::{Color, FillRule, LineJoin, Paint, PathBuilder, Pixmap, Rect, Stroke, StrokeDash, Transform};
use ttf_parser::Face;

use super::font;
use super::pixels::Pixels;
use super::scene::{Anchor, Ink, Mark, Point, Scene};

/// Pixels of the image for each of the scene's: sharp on dense screens and in print.
const SCALE: f32 = 2.0;

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
    let side = |length: f64| (length * f64::from(SCALE)).ceil().clamp(0.0, 20_000.0) as u32;
    let mut pixmap = Pixmap::new(side(scene.width), side(scene.height))
        .ok_or(ChartError::Size { width: scene.width, height: scene.height })?;
    pixmap.fill(Color::WHITE);
    let face = font::face();
    for mark in &scene.marks {
        draw(&mut pixmap, mark, face.as_ref());
    }
    // All is opaque: three of four bytes, without a check for each.
    let mut rgb = vec![0; pixmap.data().len() / 4 * 3];
    for (to, pixel) in rgb.chunks_exact_mut(3).zip(pixmap.data().chunks_exact(4)) {
        to.copy_from_slice(pixel.split_at(3).0);
    }
    encode(pixmap.width(), pixmap.height(), &rgb, None)
}

/// The file of an image: three bytes a pixel, or with a palette (and its transparencies) one.
pub(super) fn encode(
    width: u32,
    height: u32,
    data: &[u8],
    palette: Option<(Vec<u8>, Vec<u8>)>,
) -> Result<Vec<u8>, ChartError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_color(png::ColorType::Rgb);
    // A third of the time that the default takes, for a file a little larger.
    encoder.set_compression(png::Compression::Fast);
    if let Some((colours, transparencies)) = palette {
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_palette(colours);
        encoder.set_trns(transparencies);
    }
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(data));
    written.map_err(|error| ChartError::Encode(error.to_string()))?;
    Ok(file)
}

/// Copies a grid of dots onto the image, pixel by pixel.
fn dots(pixmap: &mut Pixmap, at: Point, grid: &Pixels) {
    let (left, top) =
        ((at.x * f64::from(SCALE)).round() as usize, (at.y * f64::from(SCALE)).round() as usize);
    let (width, height) = (pixmap.width() as usize, pixmap.height() as usize);
    let shades = grid.shades();
    let inks: Vec<_> = shades
        .iter()
        .map(|ink| tiny_skia::ColorU8::from_rgba(ink.0, ink.1, ink.2, 255).premultiply())
        .collect();
    let indices = grid.indices();
    let lines = indices.chunks_exact(grid.width().max(1)).take(height.saturating_sub(top));
    for (row, line) in lines.enumerate() {
        let first = (top + row) * width + left;
        let room = width.saturating_sub(left);
        let Some(target) = pixmap.pixels_mut().get_mut(first..first + room.min(line.len())) else { return };
        for (pixel, index) in target.iter_mut().zip(line).filter(|(_, index)| **index > 0) {
            if let Some(ink) = inks.get(usize::from(*index) - 1) {
                *pixel = *ink;
            }
        }
    }
}

fn draw(pixmap: &mut Pixmap, mark: &Mark, face: Option<&Face<'_>>) {
    let scale = Transform::from_scale(SCALE, SCALE);
    match mark {
        Mark::Rect { at, width, height, ink, .. } => {
            let rect = Rect::from_xywh(at.x as f32, at.y as f32, *width as f32, *height as f32);
            if let Some(rect) = rect {
                pixmap.fill_rect(rect, &paint(*ink), scale, None);
            }
        }
        Mark::Dots { at, pixels, .. } => dots(pixmap, *at, pixels),
        Mark::Area { points, ink, .. } => {
            if let Some(path) = path(points, true) {
                pixmap.fill_path(&path, &paint(*ink), FillRule::Winding, scale, None);
            }
        }
        Mark::Line { points, ink, width, dashed, .. } => {
            if let Some(path) = path(points, false) {
                pixmap.stroke_path(&path, &paint(*ink), &stroke(*width, *dashed), scale, None);
            }
        }
        Mark::Text { at, anchor, size, ink, text } => {
            let shift = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => font::width(text, *size) / 2.0,
                Anchor::End => font::width(text, *size),
            };
            let place = scale.pre_translate((at.x - shift) as f32, at.y as f32);
            if let Some(path) = face.and_then(|face| font::outline(face, text, *size as f32)) {
                pixmap.fill_path(&path, &paint(*ink), FillRule::Winding, place, None);
            }
        }
    }
}

fn path(points: &[Point], closed: bool) -> Option<tiny_skia::Path> {
    let mut builder = PathBuilder::new();
    let (first, rest) = points.split_first()?;
    builder.move_to(first.x as f32, first.y as f32);
    for point in rest {
        builder.line_to(point.x as f32, point.y as f32);
    }
    if closed {
        builder.close();
    }
    builder.finish()
}

fn stroke(width: f64, dashed: bool) -> Stroke {
    let dash = if dashed { StrokeDash::new(vec![4.0, 3.0], 0.0) } else { None };
    Stroke { width: width as f32, line_join: LineJoin::Round, dash, ..Stroke::default() }
}

fn paint(ink: Ink) -> Paint<'static> {
    let (colour, opacity) = match ink {
        Ink::Text => (super::Rgb(0x1b, 0x1b, 0x1b), 255),
        Ink::Faint => (super::Rgb(0x1b, 0x1b, 0x1b), 173),
        Ink::Grid => (super::Rgb(0x1b, 0x1b, 0x1b), 38),
        Ink::Own(colour) => (colour, 255),
        Ink::Pale(colour) => (colour, 115),
    };
    let mut paint = Paint::default();
    paint.set_color_rgba8(colour.0, colour.1, colour.2, opacity);
    paint.anti_alias = true;
    paint
}
