//! The static flame graph: one SVG that needs no script. A pointer is told a box's name and shares by its title.
//!
//! Boxes narrower than [`NARROW`] are left out with what stands on them; they stay in the widths of their callers, and
//! the foot of the picture says how many they are.

use std::fmt::Write;

use perflab_analyze::flame::Joined;
use perflab_model::profile::Parts;

use super::page::Categories;
use super::{account, hue};
use crate::chart::svg::{escaped, number};
use crate::chart::{Rgb, fitted};

/// Pixels from row to row.
const ROW: f64 = 18.0;
/// Pixels around the boxes.
const MARGIN: f64 = 12.0;
/// Pixels above them.
const HEAD: f64 = 62.0;
/// Pixels of letters.
const LETTERS: f64 = 12.0;
/// Pixels of the narrowest box.
pub const NARROW: f64 = 0.4;

/// What of a side is drawn, and how.
#[derive(Debug, Clone, Copy)]
pub struct FlameSvg<'a> {
    /// Its heading.
    pub title: &'a str,
    /// Where the samples come from.
    pub source: &'a str,
    /// The tree; its first side is drawn.
    pub joined: &'a Joined<'a>,
    /// What colours mean.
    pub categories: &'a Categories,
    /// Pixels from left to right.
    pub width: f64,
    /// Callers on top.
    pub icicle: bool,
}

/// The picture. One of a run without samples says so.
#[must_use]
pub fn svg(wanted: &FlameSvg<'_>) -> String {
    let laid = Laid::new(wanted);
    let rows = laid.boxes.iter().map(|one| one.depth + 1).max().unwrap_or(0) as f64;
    let height = HEAD + rows * ROW + 58.0;
    let mut out = String::new();
    head(&mut out, wanted, &laid, height);
    for one in &laid.boxes {
        let row = if wanted.icicle { one.depth as f64 } else { rows - 1.0 - one.depth as f64 };
        draw(&mut out, wanted, &laid, one, HEAD + row * ROW);
    }
    foot(&mut out, wanted, &laid, HEAD + rows * ROW + 22.0);
    out.push_str("</svg>\n");
    out
}

/// A box to draw.
struct Placed {
    node: u32,
    left: f64,
    width: f64,
    depth: usize,
}

/// Everything in its place.
struct Laid {
    boxes: Vec<Placed>,
    own: Vec<u64>,
    totals: Vec<u64>,
    parts: Parts,
    left_out: usize,
}

impl Laid {
    fn new(wanted: &FlameSvg<'_>) -> Self {
        let joined = wanted.joined;
        let side = joined.sides.first();
        let own: Vec<u64> = side
            .map(|side| side.own(joined.nodes.len()).iter().map(|own| own.samples).collect())
            .unwrap_or_default();
        let totals = joined.totals(&own);
        let parts = side.map(perflab_analyze::flame::JoinedSide::parts).unwrap_or_default();
        let mut laid = Laid { boxes: Vec::new(), own, totals, parts, left_out: 0 };
        let all = laid.total(0);
        if all > 0 {
            let scale = (wanted.width - 2.0 * MARGIN) / all as f64;
            laid.place(joined, &callees(joined), scale);
        }
        laid
    }

    fn total(&self, node: u32) -> u64 {
        self.totals.get(node as usize).copied().unwrap_or(0)
    }

    /// From the outermost box inwards; a box that is too narrow takes what stands on it along.
    fn place(&mut self, joined: &Joined<'_>, callees: &[Vec<u32>], scale: f64) {
        let mut open = vec![(0_u32, MARGIN, 0_usize)];
        while let Some((node, left, depth)) = open.pop() {
            let width = self.total(node) as f64 * scale;
            if width < NARROW {
                self.left_out += usize::from(width > 0.0);
                continue;
            }
            self.boxes.push(Placed { node, left, width, depth });
            let mut at = left;
            for callee in callees.get(node as usize).into_iter().flatten() {
                open.push((*callee, at, depth + 1));
                at += self.total(*callee) as f64 * scale;
            }
        }
        self.boxes.sort_by(|a, b| a.depth.cmp(&b.depth).then(a.left.total_cmp(&b.left)));
        debug_assert!(self.boxes.len() <= joined.nodes.len());
    }
}

/// Callees of each node, in the order of their names.
fn callees(joined: &Joined<'_>) -> Vec<Vec<u32>> {
    let mut callees = vec![Vec::new(); joined.nodes.len()];
    for (at, node) in (0_u32..).zip(&joined.nodes) {
        if let Some(under) = node.parent.and_then(|parent| callees.get_mut(parent as usize)) {
            under.push(at);
        }
    }
    callees.iter_mut().for_each(|nodes| nodes.sort_by_key(|node| name(joined, *node)));
    callees
}

fn name<'a>(joined: &'a Joined<'_>, node: u32) -> &'a str {
    let function =
        joined.nodes.get(node as usize).and_then(|node| joined.functions.get(node.function as usize));
    function.map_or("", |function| function.name.as_str())
}

fn percent(part: u64, all: u64) -> String {
    format!("{:.2} %", 100.0 * part as f64 / all.max(1) as f64)
}

/// Writing to a `String` cannot fail, so results are dropped here and below.
fn head(out: &mut String, wanted: &FlameSvg<'_>, laid: &Laid, height: f64) {
    let (width, height) = (number(wanted.width), number(height));
    let title = escaped(wanted.title);
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-label=\"Flame graph of {title}\" font-family=\"Roboto, system-ui, sans-serif\" \
         font-size=\"{LETTERS}\" fill=\"#1c1a17\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"26\" font-size=\"17\">{title}</text>"
    );
    let told = format!("{}, from {}", account(&laid.parts), wanted.source);
    let told = if laid.boxes.is_empty() { "no samples".into() } else { told };
    let room = wanted.width - 2.0 * MARGIN;
    let _ = writeln!(
        out,
        "<text x=\"{MARGIN}\" y=\"46\" fill-opacity=\"0.68\">{}</text>",
        escaped(&fitted(&told, LETTERS, room))
    );
}

fn draw(out: &mut String, wanted: &FlameSvg<'_>, laid: &Laid, one: &Placed, top: f64) {
    let name = name(wanted.joined, one.node);
    let (samples, all) = (laid.total(one.node), laid.total(0));
    let own = laid.own.get(one.node as usize).copied().unwrap_or(0);
    let word = if samples == 1 { "sample" } else { "samples" };
    let told = format!("{name}: {samples} {word}, {}, self {}", percent(samples, all), percent(own, all));
    let gap = if one.width > 3.0 { 1.0 } else { 0.0 };
    let _ = write!(
        out,
        "<g><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"1.5\" fill=\"{}\"/>",
        escaped(&told),
        number(one.left),
        number(top),
        number(one.width - gap),
        number(ROW - 1.0),
        fill(wanted.categories, one.node, name).hex()
    );
    let text = if one.width > 24.0 { fitted(name, LETTERS, one.width - 7.0) } else { String::new() };
    if text.chars().count() > 2 {
        let (x, y) = (number(one.left + 3.5), number(top + 12.9));
        let _ = write!(out, "<text x=\"{x}\" y=\"{y}\">{}</text>", escaped(&text));
    }
    out.push_str("</g>\n");
}

fn fill(categories: &Categories, node: u32, name: &str) -> Rgb {
    let category = categories.of.get(node as usize).and_then(|at| categories.names.get(*at as usize));
    hue::colour(category.map_or("unknown", |category| &category.hue), name)
}

/// The legend: where samples end, by category.
fn foot(out: &mut String, wanted: &FlameSvg<'_>, laid: &Laid, y: f64) {
    let mut sums = vec![0_u64; wanted.categories.names.len()];
    for (own, category) in laid.own.iter().zip(&wanted.categories.of) {
        if let Some(sum) = sums.get_mut(*category as usize) {
            *sum = own.saturating_add(*sum);
        }
    }
    let mut x = MARGIN;
    for (category, sum) in wanted.categories.names.iter().zip(sums).filter(|(_, sum)| *sum > 0) {
        let text = format!("{} {}", category.name, percent(sum, laid.total(0)));
        let colour = hue::colour(&category.hue, &category.name).hex();
        let _ = writeln!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"11\" height=\"11\" rx=\"2\" fill=\"{colour}\"/><text x=\"{}\" y=\"{}\">{}</text>",
            number(x),
            number(y - 9.5),
            number(x + 16.0),
            number(y),
            escaped(&text)
        );
        x += 34.0 + crate::chart::text_width(&text, LETTERS);
    }
    let note = match laid.left_out {
        0 => "Widths and percentages are shares of all samples that were kept.".to_owned(),
        many => format!(
            "Shares of all samples that were kept. {many} boxes narrower than {NARROW} pixels are not drawn."
        ),
    };
    let y = number(y + 22.0);
    let _ = writeln!(out, "<text x=\"{MARGIN}\" y=\"{y}\" fill-opacity=\"0.68\">{note}</text>");
}
