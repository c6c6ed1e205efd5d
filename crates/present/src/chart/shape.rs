//! Owns what a mark is in pixels: laid out once, filled in each strip of the image that it reaches. It refuses files.

use std::ops::Range;

use tiny_skia::{
    ColorU8, FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, PremultipliedColorU8, Rect, Stroke,
    StrokeDash, Transform,
};
use ttf_parser::Face;

use super::colour::Rgb;
use super::font;
use super::pixels::{Busy, Pixels};
use super::scene::{Anchor, Ink, Mark, Point};

/// A mark in pixels.
pub(super) enum Shape<'a> {
    /// an outline to be filled
    Outline(Path, Ink),
    /// outlines of letters
    Letters(Path, Ink),
    /// whole pixels, which need no blending: left, top, right, bottom
    Block([usize; 4], Rgb),
    /// a grid of dots, where it is busy, its left and upper edge
    Dots(&'a Pixels, Busy, [usize; 2]),
}

impl<'a> Shape<'a> {
    /// What a mark is where `scale` pixels are one of the scene's; none where it is nothing.
    pub(super) fn of(mark: &'a Mark, scale: f32, face: Option<&Face<'_>>) -> Option<Self> {
        let pixels = Transform::from_scale(scale, scale);
        let (path, ink) = match mark {
            Mark::Dots { at, pixels, .. } => {
                let place = [at.x, at.y].map(|edge| (edge * f64::from(scale)).round() as usize);
                return Some(Shape::Dots(pixels, pixels.busy(), place));
            }
            Mark::Rect { at, width, height, ink, .. } => {
                if let (Ink::Own(colour), Some(edges)) = (ink, whole(*at, *width, *height, scale)) {
                    return Some(Shape::Block(edges, *colour));
                }
                let rect = Rect::from_xywh(at.x as f32, at.y as f32, *width as f32, *height as f32)?;
                (PathBuilder::from_rect(rect), ink)
            }
            Mark::Area { points, ink, .. } => (path(points, true)?, ink),
            Mark::Line { points, ink, width, dashed, .. } => (line(points, *width, *dashed, scale)?, ink),
            Mark::Text { at, anchor, size, ink, text } => {
                let shift = match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => font::width(text, *size) / 2.0,
                    Anchor::End => font::width(text, *size),
                };
                let place = pixels.pre_translate((at.x - shift) as f32, at.y as f32);
                let letters = font::outline(face?, text, *size as f32)?;
                return Some(Shape::Letters(letters.transform(place)?, *ink));
            }
        };
        Some(Shape::Outline(path.transform(pixels)?, *ink))
    }

    /// The rows that it reaches over.
    pub(super) fn rows(&self) -> Range<usize> {
        match self {
            Shape::Outline(path, _) | Shape::Letters(path, _) => {
                path.bounds().top() as usize..path.bounds().bottom().ceil() as usize
            }
            Shape::Block([_, top, _, bottom], _) => *top..*bottom,
            Shape::Dots(grid, _, [_, top]) => *top..top + grid.height(),
        }
    }

    /// Fills what lies between these rows, which are the strip's.
    pub(super) fn fill(&self, strip: &mut Pixmap, rows: &Range<usize>) {
        match self {
            _ if self.rows().start >= rows.end || self.rows().end <= rows.start => {}
            Shape::Outline(path, ink) | Shape::Letters(path, ink) => {
                let up = Transform::from_translate(0.0, -(rows.start as f32));
                strip.fill_path(path, &paint(*ink), FillRule::Winding, up, None);
            }
            Shape::Block([left, top, right, bottom], colour) => {
                let width = strip.width() as usize;
                let lines = strip.pixels_mut().chunks_exact_mut(width.max(1));
                let lines =
                    lines.take(bottom.saturating_sub(rows.start)).skip(top.saturating_sub(rows.start));
                for line in lines.filter_map(|line| line.get_mut(*left..(*right).min(width))) {
                    line.fill(opaque(*colour));
                }
            }
            Shape::Dots(grid, busy, place) => dots(strip, rows, (grid, busy), *place),
        }
    }
}

/// The pixels of a rectangle whose edges lie between them, as those of the thousands of outliers' marks do.
fn whole(at: Point, width: f64, height: f64, scale: f32) -> Option<[usize; 4]> {
    let edges = [at.x, at.y, at.x + width, at.y + height].map(|edge| edge * f64::from(scale));
    edges.iter().all(|edge| edge.fract() == 0.0).then(|| edges.map(|edge| edge as usize))
}

/// Copies what lies between these rows, pixel by pixel.
fn dots(strip: &mut Pixmap, rows: &Range<usize>, (grid, busy): (&Pixels, &Busy), [left, top]: [usize; 2]) {
    let inks: Vec<_> = grid.shades().into_iter().map(opaque).collect();
    let (width, first) = (strip.width() as usize, rows.start.saturating_sub(top));
    let above = (top + first).saturating_sub(rows.start) * width + left;
    let pixels = strip.pixels_mut();
    grid.seen(busy, first..rows.end.saturating_sub(top), |column, row, shade| {
        let place = above + (row - first) * width + column;
        if let (true, Some(pixel), Some(ink)) =
            (left + column < width, pixels.get_mut(place), inks.get(shade))
        {
            *pixel = *ink;
        }
    });
}

fn path(points: &[Point], closed: bool) -> Option<Path> {
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
fn line(points: &[Point], width: f64, dashed: bool, scale: f32) -> Option<Path> {
    let stroke = Stroke { width: width as f32, line_join: LineJoin::Round, ..Stroke::default() };
    let mut path = path(points, false)?;
    if dashed {
        path = path.dash(&StrokeDash::new(vec![4.0, 3.0], 0.0)?, scale)?;
    }
    path.stroke(&stroke, scale)
}

fn opaque(colour: Rgb) -> PremultipliedColorU8 {
    ColorU8::from_rgba(colour.0, colour.1, colour.2, 255).premultiply()
}

fn paint(ink: Ink) -> Paint<'static> {
    let (colour, opacity) = match ink {
        Ink::Text => (Rgb(0x1b, 0x1b, 0x1b), 255),
        Ink::Faint => (Rgb(0x1b, 0x1b, 0x1b), 173),
        Ink::Grid => (Rgb(0x1b, 0x1b, 0x1b), 38),
        Ink::Own(colour) => (colour, 255),
        Ink::Pale(colour) => (colour, 115),
    };
    let mut paint = Paint::default();
    paint.set_color_rgba8(colour.0, colour.1, colour.2, opacity);
    paint.anti_alias = true;
    paint
}
