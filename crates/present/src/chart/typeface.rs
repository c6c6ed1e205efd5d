//! The one embedded typeface: a subset of Roboto Regular (Apache-2.0, Google Inc., 2015), its widths and outlines.
//!
//! A picture is the same on a machine without fonts. There is no shaping: kernel names are Latin letters.

use tiny_skia::{Path, PathBuilder, Transform};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// Made by `pyftsubset Roboto-Regular.ttf` with ASCII and a few signs.
const ROBOTO: &[u8] = include_bytes!("font/roboto-subset.ttf");

/// The typeface, read; `None` only where the embedded file were damaged, which a test excludes.
pub(crate) fn embedded_face() -> Option<Face<'static>> {
    Face::parse(ROBOTO, 0).ok()
}

/// The width of a text of that size, in pixels.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let Some(face) = embedded_face() else { return text.chars().count() as f64 * size * 0.55 };
    let units: f64 = text
        .chars()
        .map(|letter| f64::from(glyph_advance(&face, glyph_or_question_mark(&face, letter))))
        .sum();
    units * size / f64::from(face.units_per_em())
}

/// The longest beginning of a text that fits, with an ellipsis where something is left out.
pub(crate) fn shorten_to_width(text: &str, size: f64, room: f64) -> String {
    if text_width(text, size) <= room {
        return text.to_owned();
    }
    let letters: Vec<char> = text.chars().collect();
    let shortened = |kept: usize| letters.iter().take(kept).chain(['…'].iter()).collect::<String>();
    let fits = |kept: &usize| text_width(&shortened(*kept), size) <= room;
    // As many as fit: each letter more is wider.
    let lengths: Vec<usize> = (0..letters.len()).collect();
    let fitting = lengths.partition_point(fits);
    fitting.checked_sub(1).map(shortened).unwrap_or_default()
}

/// The names, each shortened so that it fits: at its end, or in the middle where others would look the same.
pub(crate) fn shorten_apart(names: &[&str], size: f64, room: f64) -> Vec<String> {
    let short: Vec<String> = names.iter().map(|name| shorten_to_width(name, size, room)).collect();
    let is_alone = |at: usize| {
        short.iter().zip(names).enumerate().all(|(other, (text, name))| {
            other == at || Some(text) != short.get(at) || Some(name) == names.get(at)
        })
    };
    let apart = |(at, name): (usize, &&str)| match is_alone(at) {
        true => short.get(at).cloned().unwrap_or_default(),
        false => shorten_in_middle(name, size, room),
    };
    names.iter().enumerate().map(apart).collect()
}

/// As much of both ends of a text as fits, with an ellipsis between them.
fn shorten_in_middle(text: &str, size: f64, room: f64) -> String {
    let letters: Vec<char> = text.chars().collect();
    let shortened = |kept: usize| {
        let head = letters.iter().take(kept / 2);
        let tail = letters.iter().skip(letters.len().saturating_sub(kept.div_ceil(2)));
        head.chain(['…'].iter()).chain(tail).collect::<String>()
    };
    let fits = |kept: &usize| text_width(&shortened(*kept), size) <= room;
    let longest = (0..letters.len()).rev().find(fits);
    longest.map(shortened).unwrap_or_default()
}

/// How much of the room a text may take where an SVG viewer without Roboto draws it in its own typeface: DejaVu Sans, the widest
/// that is common, takes 1.19 times as much.
pub(crate) const FALLBACK_SHARE: f64 = 0.84;

/// A text in lines that fit, in a wider typeface too, broken between words; a word that does not fit is shortened.
pub(crate) fn break_into_lines(text: &str, size: f64, room: f64) -> Vec<String> {
    let room = room * FALLBACK_SHARE;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let longer = lines.last().map(|line| format!("{line} {word}"));
        match (longer.filter(|longer| text_width(longer, size) <= room), lines.last_mut()) {
            (Some(longer), Some(line)) => *line = longer,
            _ => lines.push(shorten_to_width(word, size, room)),
        }
    }
    lines
}

/// The outline of a text whose base line begins at the origin.
pub(crate) fn text_outline(face: &Face<'_>, text: &str, size: f32) -> Option<Path> {
    let scale = size / f32::from(face.units_per_em());
    let mut all = PathBuilder::new();
    let mut at = 0.0;
    for letter in text.chars() {
        let glyph = glyph_or_question_mark(face, letter);
        let mut pen = GlyphPath(PathBuilder::new());
        face.outline_glyph(glyph, &mut pen);
        let place = Transform::from_row(scale, 0.0, 0.0, -scale, at, 0.0);
        if let Some(path) = pen.0.finish().and_then(|path| path.transform(place)) {
            all.push_path(&path);
        }
        at += f32::from(glyph_advance(face, glyph)) * scale;
    }
    all.finish()
}

/// A letter that the subset lacks becomes a question mark.
fn glyph_or_question_mark(face: &Face<'_>, letter: char) -> GlyphId {
    face.glyph_index(letter).or_else(|| face.glyph_index('?')).unwrap_or_default()
}

fn glyph_advance(face: &Face<'_>, glyph: GlyphId) -> u16 {
    face.glyph_hor_advance(glyph).unwrap_or(0)
}

/// Draws what the typeface says.
struct GlyphPath(PathBuilder);

impl OutlineBuilder for GlyphPath {
    fn move_to(&mut self, x: f32, y: f32) {
        self.0.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.0.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.0.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.0.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_begin_alike_stay_apart() {
        let long = "a-label-that-is-rather-long-";
        let names = [format!("{long}one"), format!("{long}two"), "short".to_owned()];
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let short = shorten_apart(&names, 12.0, 100.0);
        assert!(short[0].ends_with("one") && short[1].ends_with("two") && short[2] == "short", "{short:?}");
        assert!(short.iter().all(|name| text_width(name, 12.0) <= 100.0), "{short:?}");
        let alone = shorten_apart(&names[1..], 12.0, 100.0);
        assert!(alone[0].ends_with('…'), "{alone:?}");
    }

    #[test]
    fn as_many_letters_are_kept_as_fit() {
        let text = "iWiWiWiWiWiW".repeat(400);
        for room in [12.0, 50.0, 333.0] {
            let shortened = shorten_to_width(&text, 14.0, room);
            let kept = shortened.chars().count() - 1;
            let longer: String = text.chars().take(kept + 1).chain(['…']).collect();
            assert!(text_width(&shortened, 14.0) <= room && text_width(&longer, 14.0) > room, "{shortened}");
        }
        assert_eq!(shorten_to_width("short", 14.0, 1000.0), "short");
        assert_eq!(shorten_to_width("short", 14.0, 1.0), "");
    }
}
