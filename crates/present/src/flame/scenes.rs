//! The static flame graph: one SVG that needs no script; a box's title has its name and shares.
//!
//! Boxes narrower than [`NARROW`] are left out with what stands on them, and rows above the last one that has a box of
//! [`NARROWEST_TOP`]; both stay in the widths of their callers, and the foot of the picture says how many they are.

use std::fmt::Write;

use perflab_analyze::flame::JoinedProfiles;
use perflab_model::profile::SampleCounts;

use crate::chart::palette::{self, RgbColour};
use crate::chart::svg::{escape_xml, format_coordinate};
use crate::chart::typeface::{shorten_to_width, text_width};
use crate::flame::grids::sample_account;
use crate::flame::viewer::FlameCategories;
use perflab_model::quantity::format_share;

/// Pixels from row to row.
pub(crate) const ROW: f64 = 18.0;

/// Pixels around the boxes.
pub(crate) const MARGIN: f64 = 12.0;

/// Pixels above them.
pub(crate) const HEAD: f64 = 62.0;

/// Pixels of letters.
pub(crate) const LETTERS: f64 = 12.0;

/// Pixels of the narrowest box.
pub const NARROW: f64 = 0.4;

/// Pixels of the widest box of the uppermost row at least.
pub(crate) const NARROWEST_TOP: f64 = 4.0;

/// How much wider letters are where the viewer of the picture has no Roboto.
pub(crate) const WIDER_LETTERS: f64 = 1.2;

/// What of a side is drawn, and how.
#[derive(Debug, Clone, Copy)]
pub struct FlameGraph<'a> {
    /// Its heading.
    pub title: &'a str,
    /// Where the samples come from.
    pub source: &'a str,
    /// The tree; its first side is drawn.
    pub joined: &'a JoinedProfiles<'a>,
    /// What colours mean.
    pub categories: &'a FlameCategories,
    /// Pixels from left to right.
    pub width: f64,
    /// Callers on top.
    pub icicle: bool,
}

/// The picture. One of a run without samples says so.
#[must_use]
pub fn flame_graph_svg(requested: &FlameGraph<'_>) -> String {
    let laid = FlameLayout::of_side(requested.joined, 0, (MARGIN, requested.width - 2.0 * MARGIN));
    let rows = laid.rows();
    let mut body = String::new();
    for one in &laid.boxes {
        let row = if requested.icicle { one.depth as f64 } else { rows - 1.0 - one.depth as f64 };
        draw_side_box(&mut body, requested, &laid, one, HEAD + row * ROW);
    }
    let y = write_legend(&mut body, requested, &laid, HEAD + rows * ROW + 22.0);
    write_foot(&mut body, laid.left_out, y + 22.0);
    let mut out = String::new();
    write_graph_head(&mut out, requested, &laid, y + 36.0);
    out.push_str(&body);
    out.push_str("</svg>\n");
    out
}

/// A box to draw.
pub(crate) struct FlameBox {
    pub(crate) node: u32,
    pub(crate) left: f64,
    pub(crate) width: f64,
    pub(crate) depth: usize,
}

/// Everything in its place.
pub(crate) struct FlameLayout {
    pub(crate) boxes: Vec<FlameBox>,
    pub(crate) own: Vec<u64>,
    pub(crate) totals: Vec<u64>,
    pub(crate) parts: SampleCounts,
    pub(crate) left_out: usize,
}

impl FlameLayout {
    /// The boxes of a side, from `left` on, in a width.
    pub(crate) fn of_side(joined: &JoinedProfiles<'_>, side: usize, area: (f64, f64)) -> Self {
        let side = joined.sides.get(side);
        let own: Vec<u64> = side
            .map(|side| side.own_amounts(joined.nodes.len()).iter().map(|own| own.samples).collect())
            .unwrap_or_default();
        let parts = side.map(perflab_analyze::flame::JoinedSide::sample_parts).unwrap_or_default();
        FlameLayout { parts, ..FlameLayout::of_own(joined, own, area) }
    }

    /// The boxes of what ends in each node.
    pub(crate) fn of_own(joined: &JoinedProfiles<'_>, own: Vec<u64>, (left, width): (f64, f64)) -> Self {
        let totals = joined.totals_from_own(&own);
        let parts = SampleCounts::default();
        let mut laid = FlameLayout { boxes: Vec::new(), own, totals, parts, left_out: 0 };
        let all = laid.node_total(0);
        if all > 0 {
            laid.add_boxes(joined, &sorted_callees(joined), left, width / all as f64);
        }
        laid.cut_thin_towers();
        laid
    }

    /// Leaves out rows without a box that anybody would see: single stacks are often several times as deep as all others.
    fn cut_thin_towers(&mut self) {
        let seen = self.boxes.iter().filter(|one| one.width >= NARROWEST_TOP).map(|one| one.depth).max();
        let all = self.boxes.len();
        self.boxes.retain(|one| seen.is_some_and(|deepest| one.depth <= deepest));
        self.left_out += all - self.boxes.len();
    }

    /// Rows of boxes.
    pub(crate) fn rows(&self) -> f64 {
        self.boxes.iter().map(|one| one.depth + 1).max().unwrap_or(0) as f64
    }

    pub(crate) fn node_total(&self, node: u32) -> u64 {
        self.totals.get(node as usize).copied().unwrap_or(0)
    }

    /// From the outermost box inwards; a box that is too narrow takes what stands on it along.
    fn add_boxes(&mut self, joined: &JoinedProfiles<'_>, callees: &[Vec<u32>], from: f64, scale: f64) {
        let mut open = vec![(0_u32, from, 0_usize)];
        while let Some((node, left, depth)) = open.pop() {
            let width = self.node_total(node) as f64 * scale;
            if width < NARROW {
                self.left_out += usize::from(width > 0.0);
                continue;
            }
            self.boxes.push(FlameBox { node, left, width, depth });
            let mut at = left;
            for callee in callees.get(node as usize).into_iter().flatten() {
                open.push((*callee, at, depth + 1));
                at += self.node_total(*callee) as f64 * scale;
            }
        }
        self.boxes.sort_by(|a, b| a.depth.cmp(&b.depth).then(a.left.total_cmp(&b.left)));
        debug_assert!(self.boxes.len() <= joined.nodes.len());
    }
}

/// Callees of each node, in the order of their names.
fn sorted_callees(joined: &JoinedProfiles<'_>) -> Vec<Vec<u32>> {
    let mut callees = vec![Vec::new(); joined.nodes.len()];
    for (at, node) in (0_u32..).zip(&joined.nodes) {
        if let Some(under) = node.parent.and_then(|parent| callees.get_mut(parent as usize)) {
            under.push(at);
        }
    }
    callees.iter_mut().for_each(|nodes| nodes.sort_by_key(|node| function_name(joined, *node)));
    callees
}

pub(crate) fn function_name<'a>(joined: &'a JoinedProfiles<'_>, node: u32) -> &'a str {
    let function =
        joined.nodes.get(node as usize).and_then(|node| joined.functions.get(node.function as usize));
    function.map_or("", |function| function.name.as_str())
}

fn share_text(part: u64, all: u64) -> String {
    format_share(part as f64 / all.max(1) as f64)
}

/// Writing to a `String` cannot fail, so results are dropped here and below.
fn write_graph_head(out: &mut String, requested: &FlameGraph<'_>, laid: &FlameLayout, height: f64) {
    let (width, height) = (format_coordinate(requested.width), format_coordinate(height));
    let title = escape_xml(requested.title);
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-label=\"Flame graph of {title}\" font-family=\"Roboto, system-ui, sans-serif\" \
         font-size=\"{LETTERS}\" fill=\"#1c1a17\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"26\" font-size=\"17\">{title}</text>"
    );
    let account = format!("{}, from {}", sample_account(&laid.parts), requested.source);
    let account = if laid.boxes.is_empty() { "no samples".into() } else { account };
    let room = requested.width - 2.0 * MARGIN;
    let _ = writeln!(
        out,
        "<text x=\"{MARGIN}\" y=\"46\" fill-opacity=\"0.68\">{}</text>",
        escape_xml(&shorten_to_width(&account, LETTERS, room))
    );
}

fn draw_side_box(out: &mut String, requested: &FlameGraph<'_>, laid: &FlameLayout, one: &FlameBox, top: f64) {
    let name = function_name(requested.joined, one.node);
    let account = side_account(laid, one.node, name);
    draw_box(out, one, top, (name, &account), box_fill(requested.categories, one.node, name));
}

/// A box's title: its name, samples and shares.
pub(crate) fn side_account(laid: &FlameLayout, node: u32, name: &str) -> String {
    let (samples, all) = (laid.node_total(node), laid.node_total(0));
    let own = laid.own.get(node as usize).copied().unwrap_or(0);
    let word = if samples == 1 { "sample" } else { "samples" };
    format!("{name}: {samples} {word}, {}, self {}", share_text(samples, all), share_text(own, all))
}

/// A box with its name, as far as that fits, and its title.
pub(crate) fn draw_box(
    out: &mut String,
    one: &FlameBox,
    top: f64,
    (name, account): (&str, &str),
    fill: RgbColour,
) {
    let gap = if one.width > 3.0 { 1.0 } else { 0.0 };
    let _ = write!(
        out,
        "<g><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"1.5\" fill=\"{}\"/>",
        escape_xml(account),
        format_coordinate(one.left),
        format_coordinate(top),
        format_coordinate(one.width - gap),
        format_coordinate(ROW - 1.0),
        fill.hex()
    );
    let text =
        if one.width > 24.0 { shorten_to_width(name, LETTERS, one.width - 7.0) } else { String::new() };
    if text.chars().count() > 2 {
        let (x, y) = (format_coordinate(one.left + 3.5), format_coordinate(top + 12.9));
        let _ = write!(out, "<text x=\"{x}\" y=\"{y}\">{}</text>", escape_xml(&text));
    }
    out.push_str("</g>\n");
}

pub(crate) fn box_fill(categories: &FlameCategories, node: u32, name: &str) -> RgbColour {
    let category =
        categories.by_node.get(node as usize).and_then(|at| categories.categories.get(*at as usize));
    palette::box_colour(category.map_or("unknown", |category| &category.hue), name)
}

/// The legend: where samples end, by category, in as many lines as it takes; gives where it ends.
fn write_legend(out: &mut String, requested: &FlameGraph<'_>, laid: &FlameLayout, first: f64) -> f64 {
    let categories = requested.categories;
    let mut sums = vec![0_u64; categories.categories.len()];
    for (own, category) in laid.own.iter().zip(&categories.by_node) {
        if let Some(sum) = sums.get_mut(*category as usize) {
            *sum = own.saturating_add(*sum);
        }
    }
    let (mut x, mut y) = (MARGIN, first);
    for (category, sum) in categories.categories.iter().zip(sums).filter(|(_, sum)| *sum > 0) {
        let text = format!("{} {}", category.name, share_text(sum, laid.node_total(0)));
        if is_beyond_right_edge(&text, x, requested.width) {
            (x, y) = (MARGIN, y + 20.0);
        }
        let colour = palette::box_colour(&category.hue, &category.name).hex();
        x = add_legend_entry(out, &colour, &text, (x, y));
    }
    y
}

/// Whether a legend's entry at `x` ends beyond the margin; the first of a line stays on it.
pub(crate) fn is_beyond_right_edge(text: &str, x: f64, width: f64) -> bool {
    x > MARGIN && x + 16.0 + WIDER_LETTERS * text_width(text, LETTERS) > width - MARGIN
}

/// An entry of a legend; gives where the next one begins.
pub(crate) fn add_legend_entry(out: &mut String, colour: &str, text: &str, (x, y): (f64, f64)) -> f64 {
    write_legend_entry(out, colour, text, (x, y));
    x + 34.0 + WIDER_LETTERS * text_width(text, LETTERS)
}

/// A coloured square and what it means.
fn write_legend_entry(out: &mut String, colour: &str, text: &str, (x, y): (f64, f64)) {
    let _ = writeln!(
        out,
        "<rect x=\"{}\" y=\"{}\" width=\"11\" height=\"11\" rx=\"2\" fill=\"{colour}\"/><text x=\"{}\" y=\"{}\">{}</text>",
        format_coordinate(x),
        format_coordinate(y - 9.5),
        format_coordinate(x + 16.0),
        format_coordinate(y),
        escape_xml(text)
    );
}

/// What widths are, and what is too narrow to be drawn.
fn write_foot(out: &mut String, left_out: usize, y: f64) {
    let note = match left_out {
        0 => "Widths and percentages are shares of all samples that were kept.".to_owned(),
        many => format!(
            "Shares of all samples that were kept. {many} boxes are not drawn: they are narrower than {NARROW} pixels, or higher than \
             any of {NARROWEST_TOP} pixels."
        ),
    };
    let y = format_coordinate(y);
    let _ = writeln!(out, "<text x=\"{MARGIN}\" y=\"{y}\" fill-opacity=\"0.68\">{note}</text>");
}
