//! Owns what a mark is in pixels: laid out once, filled in each strip of the image that it reaches. It refuses files.

use std::ops::Range;

use tiny_skia::{
    ColorU8, FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, PremultipliedColorU8, Rect, Stroke,
    StrokeDash, Transform,
};
use ttf_parser::Face;

use super::colour::RgbColour;
use super::font;
use super::pixels::{DotGrid, OccupiedCells};
use super::scene::{MarkInk, SceneMark, ScenePoint, TextAnchor};

/// A mark in pixels.
pub(super) enum RasterShape<'a> {
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
    pub(super) fn from_mark(mark: &'a SceneMark, scale: f32, face: Option<&Face<'_>>) -> Option<Self> {
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
                    TextAnchor::Middle => font::text_width(text, *size) / 2.0,
                    TextAnchor::End => font::text_width(text, *size),
                };
                let place = pixels.pre_translate((at.x - shift) as f32, at.y as f32);
                let letters = font::text_outline(face?, text, *size as f32)?;
                return Some(RasterShape::Letters(letters.transform(place)?, *ink));
            }
        };
        Some(RasterShape::Outline(path.transform(pixels)?, *ink))
    }

    /// The rows that it reaches over.
    pub(super) fn row_range(&self) -> Range<usize> {
        match self {
            RasterShape::Outline(path, _) | RasterShape::Letters(path, _) => {
                path.bounds().top() as usize..path.bounds().bottom().ceil() as usize
            }
            RasterShape::Block([_, top, _, bottom], _) => *top..*bottom,
            RasterShape::Dots(grid, _, [_, top]) => *top..top + grid.height(),
        }
    }

    /// Fills what lies between these rows, which are the strip's.
    pub(super) fn fill_rows(&self, strip: &mut Pixmap, rows: &Range<usize>) {
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
    };
    let mut paint = Paint::default();
    paint.set_color_rgba8(colour.0, colour.1, colour.2, opacity);
    paint.anti_alias = true;
    paint
}
