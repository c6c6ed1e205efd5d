//! A scene rasterised as PNG, on white: a picture in a mail has no theme.
//!
//! A small software rasteriser draws strip by strip, since what memory costs most is its first touch. A mark is laid
//! out once and filled in each strip that it reaches. An image takes one byte per pixel where it has few colours, as
//! pictures of dots, lines and letters have, else three; no colour is approximated.

use std::ops::Range;

use perflab_model::error_class::{Classify, ErrorClass};
use tiny_skia::{
    Color, ColorU8, FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, PremultipliedColorU8, Rect, Stroke,
    StrokeDash, Transform,
};
use ttf_parser::Face;

use super::scene::Scene;
use crate::chart::dot_grid::{DotGrid, OccupiedCells};
use crate::chart::palette::RgbColour;
use crate::chart::scene::{MarkInk, SceneMark, ScenePoint, TextAnchor};
use crate::chart::typeface;

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

impl Classify for ChartError {
    fn class(&self) -> ErrorClass {
        match self {
            ChartError::Size { .. } | ChartError::Encode(_) => ErrorClass::Unexpected,
        }
    }
}

impl Scene {
    /// The figure as PNG on white, two pixels for each of the scene's.
    ///
    /// # Errors
    ///
    /// A figure too large or too small for an image.
    pub fn to_png(&self) -> Result<Vec<u8>, ChartError> {
        scene_to_png(self)
    }
}

impl DotGrid {
    /// The grid as a PNG with a palette, transparent where nothing is: what an SVG embeds.
    pub(crate) fn to_png(&self) -> Result<Vec<u8>, ChartError> {
        let mut palette = vec![255, 255, 255];
        palette.extend(self.shade_colours().iter().flat_map(|shade| [shade.0, shade.1, shade.2]));
        let mut indices = vec![0; self.width() * self.height()];
        self.for_each_shade(&self.occupied_cells(), 0..self.height(), |column, row, shade| {
            if let Some(index) = indices.get_mut(row * self.width() + column) {
                *index = shade as u8 + 1;
            }
        });
        encode_png(self.width(), self.height(), &indices, PixelFormat::Few { palette, first_is_clear: true })
    }
}

/// The scene as a PNG file.
fn scene_to_png(scene: &Scene) -> Result<Vec<u8>, ChartError> {
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
    let face = typeface::embedded_face();
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
pub(crate) fn encode_png(
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

/// Colours that a byte tells apart.
const MOST: usize = 256;

/// Bits of a place in the table of colours, which is four times as long as it has entries.
const BITS: u32 = 10;

/// Bytes of a pixel.
const PIXEL: usize = 4;

/// So many pixels of ground are skipped at once.
const STRETCH: usize = 32;

const GROUND: [u8; STRETCH * PIXEL] = [255; STRETCH * PIXEL];

/// What the bytes of an image say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PixelFormat {
    /// three of them are a pixel's colour
    Many,
    /// each is one of these colours
    Few {
        /// three bytes each
        palette: Vec<u8>,
        /// whether the first one lets the ground through
        first_is_clear: bool,
    },
}

/// An image on white that grows from above.
struct RasterImage {
    bytes: Vec<u8>,
    /// none where the colours are too many
    palette: Option<ColourIndex>,
}

impl RasterImage {
    /// An empty one that will have so many pixels.
    pub(crate) fn new(pixels: usize) -> Self {
        RasterImage { bytes: Vec::with_capacity(pixels), palette: Some(ColourIndex::new()) }
    }

    /// Adds opaque pixels of four bytes each.
    fn push_pixels(&mut self, pixels: &[u8]) {
        let before = self.bytes.len();
        if let Some(palette) = &mut self.palette {
            if palette.push_indices(&mut self.bytes, pixels).is_some() {
                return;
            }
            let so_far = self.bytes.iter().take(before);
            self.bytes = so_far.flat_map(|index| palette.rgb_at(usize::from(*index))).collect();
            self.palette = None;
        }
        let (pixels, _) = pixels.as_chunks::<PIXEL>();
        self.bytes.extend(pixels.iter().flat_map(|[red, green, blue, _]| [red, green, blue]));
    }

    /// Its bytes, and what they say.
    pub(crate) fn finish(self) -> (Vec<u8>, PixelFormat) {
        let few = |palette: ColourIndex| PixelFormat::Few {
            palette: (0..palette.colours.len()).flat_map(|index| palette.rgb_at(index)).collect(),
            first_is_clear: false,
        };
        (self.bytes, self.palette.map_or(PixelFormat::Many, few))
    }
}

/// The colours seen so far, white first, each found by a table with open addresses.
struct ColourIndex {
    colours: Vec<u32>,
    /// one more than the index; 0 where nothing is
    table: [u16; 1 << BITS],
}

impl ColourIndex {
    fn new() -> Self {
        let mut palette = ColourIndex { colours: Vec::with_capacity(MOST), table: [0; 1 << BITS] };
        palette.index_of(u32::MAX);
        palette
    }

    /// Adds the index of each pixel; none where the colours are too many.
    fn push_indices(&mut self, indices: &mut Vec<u8>, pixels: &[u8]) -> Option<()> {
        let before = indices.len();
        indices.resize(before + pixels.len() / PIXEL, 0);
        let new = indices.get_mut(before..)?;
        for (to, from) in
            new.chunks_mut(STRETCH).zip(pixels.chunks(GROUND.len())).filter(|(_, from)| *from != GROUND)
        {
            for (index, pixel) in to.iter_mut().zip(from.as_chunks().0) {
                *index = self.index_of(u32::from_le_bytes(*pixel))?;
            }
        }
        Some(())
    }

    /// The colour's index: a new one where it was not seen, none where there is none left.
    #[inline]
    fn index_of(&mut self, colour: u32) -> Option<u8> {
        let mut at = colour.wrapping_mul(0x9e37_79b1) >> (u32::BITS - BITS);
        loop {
            let place = self.table.get_mut(at as usize)?;
            match usize::from(*place).checked_sub(1) {
                Some(index) if self.colours.get(index) == Some(&colour) => return Some(index as u8),
                Some(_) => at = (at + 1) % (1 << BITS),
                None if self.colours.len() == MOST => return None,
                None => {
                    self.colours.push(colour);
                    *place = self.colours.len() as u16;
                }
            }
        }
    }

    fn rgb_at(&self, index: usize) -> [u8; 3] {
        let [red, green, blue, _] = self.colours.get(index).copied().unwrap_or(u32::MAX).to_le_bytes();
        [red, green, blue]
    }
}

/// A mark in pixels.
enum RasterShape<'a> {
    /// an outline to be filled
    Outline(Path, MarkInk),
    /// outlines of letters
    Letters(Path, MarkInk),
    /// whole pixels, which need no blending: left, top, right, bottom
    Block([usize; 4], RgbColour),
    /// a grid of dots, where it is busy, its left and upper edge
    Dots(&'a DotGrid, OccupiedCells, [usize; 2]),
}

impl<'a> RasterShape<'a> {
    /// What a mark is where `scale` pixels are one of the scene's; none where it is nothing.
    fn from_mark(mark: &'a SceneMark, scale: f32, face: Option<&Face<'_>>) -> Option<Self> {
        let pixels = Transform::from_scale(scale, scale);
        let (path, ink) = match mark {
            SceneMark::Dots { at, pixels, .. } => {
                let place = [at.x, at.y].map(|edge| (edge * f64::from(scale)).round() as usize);
                return Some(RasterShape::Dots(pixels, pixels.occupied_cells(), place));
            }
            SceneMark::Rect { at, width, height, ink, .. } => {
                if let (MarkInk::Own(colour), Some(edges)) =
                    (ink, whole_pixel_rect(*at, *width, *height, scale))
                {
                    return Some(RasterShape::Block(edges, *colour));
                }
                let rect = Rect::from_xywh(at.x as f32, at.y as f32, *width as f32, *height as f32)?;
                (PathBuilder::from_rect(rect), ink)
            }
            SceneMark::Area { points, ink, .. } => (points_path(points, true)?, ink),
            SceneMark::Line { points, ink, width, dashed, .. } => {
                (line_outline(points, *width, *dashed, scale)?, ink)
            }
            SceneMark::Text { at, anchor, size, ink, text } => {
                let shift = match anchor {
                    TextAnchor::Start => 0.0,
                    TextAnchor::Middle => typeface::text_width(text, *size) / 2.0,
                    TextAnchor::End => typeface::text_width(text, *size),
                };
                let place = pixels.pre_translate((at.x - shift) as f32, at.y as f32);
                let letters = typeface::text_outline(face?, text, *size as f32)?;
                return Some(RasterShape::Letters(letters.transform(place)?, *ink));
            }
        };
        Some(RasterShape::Outline(path.transform(pixels)?, *ink))
    }

    /// The rows that it reaches over.
    fn row_range(&self) -> Range<usize> {
        match self {
            RasterShape::Outline(path, _) | RasterShape::Letters(path, _) => {
                path.bounds().top() as usize..path.bounds().bottom().ceil() as usize
            }
            RasterShape::Block([_, top, _, bottom], _) => *top..*bottom,
            RasterShape::Dots(grid, _, [_, top]) => *top..top + grid.height(),
        }
    }

    /// Fills what lies between these rows, which are the strip's.
    fn fill_rows(&self, strip: &mut Pixmap, rows: &Range<usize>) {
        match self {
            _ if self.row_range().start >= rows.end || self.row_range().end <= rows.start => {}
            RasterShape::Outline(path, ink) | RasterShape::Letters(path, ink) => {
                let up = Transform::from_translate(0.0, -(rows.start as f32));
                strip.fill_path(path, &ink_paint(*ink), FillRule::Winding, up, None);
            }
            RasterShape::Block([left, top, right, bottom], colour) => {
                let width = strip.width() as usize;
                let lines = strip.pixels_mut().chunks_exact_mut(width.max(1));
                let lines =
                    lines.take(bottom.saturating_sub(rows.start)).skip(top.saturating_sub(rows.start));
                for line in lines.filter_map(|line| line.get_mut(*left..(*right).min(width))) {
                    line.fill(opaque_colour(*colour));
                }
            }
            RasterShape::Dots(grid, busy, place) => copy_dots(strip, rows, (grid, busy), *place),
        }
    }
}

/// The pixels of a rectangle whose edges lie between them, as those of the thousands of outliers' marks do.
fn whole_pixel_rect(at: ScenePoint, width: f64, height: f64, scale: f32) -> Option<[usize; 4]> {
    let edges = [at.x, at.y, at.x + width, at.y + height].map(|edge| edge * f64::from(scale));
    edges.iter().all(|edge| edge.fract() == 0.0).then(|| edges.map(|edge| edge as usize))
}

/// Copies what lies between these rows, pixel by pixel.
fn copy_dots(
    strip: &mut Pixmap,
    rows: &Range<usize>,
    (grid, busy): (&DotGrid, &OccupiedCells),
    [left, top]: [usize; 2],
) {
    let inks: Vec<_> = grid.shade_colours().into_iter().map(opaque_colour).collect();
    let (width, first) = (strip.width() as usize, rows.start.saturating_sub(top));
    let above = (top + first).saturating_sub(rows.start) * width + left;
    let pixels = strip.pixels_mut();
    grid.for_each_shade(busy, first..rows.end.saturating_sub(top), |column, row, shade| {
        let place = above + (row - first) * width + column;
        if let (true, Some(pixel), Some(ink)) =
            (left + column < width, pixels.get_mut(place), inks.get(shade))
        {
            *pixel = *ink;
        }
    });
}

fn points_path(points: &[ScenePoint], closed: bool) -> Option<Path> {
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

/// The outline of a line; `scale` says how finely its joints are rounded.
fn line_outline(points: &[ScenePoint], width: f64, dashed: bool, scale: f32) -> Option<Path> {
    let stroke = Stroke { width: width as f32, line_join: LineJoin::Round, ..Stroke::default() };
    let mut path = points_path(points, false)?;
    if dashed {
        path = path.dash(&StrokeDash::new(vec![4.0, 3.0], 0.0)?, scale)?;
    }
    path.stroke(&stroke, scale)
}

fn opaque_colour(colour: RgbColour) -> PremultipliedColorU8 {
    ColorU8::from_rgba(colour.0, colour.1, colour.2, 255).premultiply()
}

fn ink_paint(ink: MarkInk) -> Paint<'static> {
    let (colour, opacity) = match ink {
        MarkInk::Text => (RgbColour(0x1b, 0x1b, 0x1b), 255),
        MarkInk::Faint => (RgbColour(0x1b, 0x1b, 0x1b), 173),
        MarkInk::Grid => (RgbColour(0x1b, 0x1b, 0x1b), 38),
        MarkInk::Own(colour) => (colour, 255),
        MarkInk::Pale(colour) => (colour, 115),
        MarkInk::Wash(colour) => (colour, 46),
    };
    let mut paint = Paint::default();
    paint.set_color_rgba8(colour.0, colour.1, colour.2, opacity);
    paint.anti_alias = true;
    paint
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    fn sample_image(colours: &[u32]) -> (Vec<u8>, PixelFormat) {
        let pixels: Vec<u8> =
            colours.iter().flat_map(|colour| (colour | 0xff00_0000).to_le_bytes()).collect();
        let mut image = RasterImage::new(colours.len());
        pixels.chunks(128 * PIXEL).for_each(|strip| image.push_pixels(strip));
        image.finish()
    }

    proptest! {
        #[test]
        fn every_pixel_keeps_its_colour(
            runs in proptest::collection::vec((0_u32..1 << 24, 1_usize..50, 0_usize..100), 0..400)
        ) {
            let run = |(colour, n, white)| [vec![colour; n], vec![0x00ff_ffff; white]].concat();
            let requested: Vec<u32> = runs.into_iter().flat_map(run).collect();
            let (bytes, colours) = sample_image(&requested);
            let drawn_pixels: Vec<&[u8]> = match &colours {
                PixelFormat::Many => bytes.chunks(3).collect(),
                PixelFormat::Few { palette, .. } => {
                    prop_assert_eq!(&palette[..3], &[255; 3]);
                    bytes.iter().map(|index| &palette[usize::from(*index) * 3..][..3]).collect()
                }
            };
            prop_assert_eq!(drawn_pixels.len(), requested.len());
            for (drawn_pixels, requested) in drawn_pixels.iter().zip(requested) {
                prop_assert_eq!(*drawn_pixels, &requested.to_le_bytes()[..3]);
            }
        }
    }

    #[test]
    fn the_257th_colour_is_one_too_many() {
        let colours = |n: u32| sample_image(&(0..n).map(|n| n * 65_537).collect::<Vec<_>>());
        // White is one, too.
        assert!(matches!(colours(255), (bytes, PixelFormat::Few { .. }) if bytes.len() == 255));
        assert!(matches!(colours(256), (bytes, PixelFormat::Many) if bytes.len() == 256 * 3));
    }
}
