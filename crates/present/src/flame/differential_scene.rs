//! Two flame graphs in one static SVG: on top both over one tree, coloured by what differs; below, each side by itself.

use std::collections::HashMap;
use std::fmt::Write;

use perflab_analyze::flame::{JoinedProfiles, ProfileChanges, ShareDifference, profile_changes};
use perflab_model::quantity::{format_share, format_signed};

use crate::chart::palette;
use crate::chart::svg::{escape_xml, format_coordinate};
use crate::chart::typeface::shorten_to_width;
use crate::flame::grids::sample_account;
use crate::flame::scenes::{
    FlameBox, FlameLayout, HEAD, LETTERS, MARGIN, NARROW, NARROWEST_TOP, ROW, WIDER_LETTERS,
    add_legend_entry, box_fill, draw_box, function_name, is_beyond_right_edge, side_account,
};
use crate::flame::viewer::{FlameCategories, basis_text};

/// Pixels between panels, for the headings of the lower ones.
const HEADING: f64 = 58.0;

/// Pixels between the two sides.
const GUTTER: f64 = 24.0;

/// Parts of a share in the widths of the differential graph: shares of both sides become whole numbers.
const WIDTH_PARTS: f64 = 1e12;

/// Two sides of a joined tree, and how they are drawn.
#[derive(Debug, Clone, Copy)]
pub struct DifferentialGraph<'a> {
    /// What is compared.
    pub title: &'a str,
    /// The names of both sides.
    pub names: [&'a str; 2],
    /// The tree; its first two sides are drawn.
    pub joined: &'a JoinedProfiles<'a>,
    /// What colours mean in the lower graphs.
    pub categories: &'a FlameCategories,
    /// Pixels from left to right.
    pub width: f64,
}

/// The picture.
#[must_use]
pub fn differential_flame_svg(requested: &DifferentialGraph<'_>) -> String {
    let joined = requested.joined;
    let room = requested.width - 2.0 * MARGIN;
    let half = (room - GUTTER) / 2.0;
    let lefts = [MARGIN, MARGIN + half + GUTTER];
    let sides = [0, 1].map(|side| FlameLayout::of_side(joined, side, (lefts[side], half)));
    let both = FlameLayout::of_own(joined, mean_shares(&sides), (MARGIN, room));
    let changes = profile_changes(joined, 0, 1);
    let found: HashMap<u32, &ShareDifference> =
        changes.iter().flat_map(|changes| &changes.nodes).map(|change| (change.of, change)).collect();

    let middle = HEAD + 22.0 + both.rows() * ROW;
    let lower = middle + HEADING;
    let rows = sides[0].rows().max(sides[1].rows());
    let mut body = String::new();
    write_change_legend(&mut body, requested.names, HEAD + 4.0);
    for one in &both.boxes {
        let top = HEAD + 22.0 + (both.rows() - 1.0 - one.depth as f64) * ROW;
        draw_changed_box(&mut body, requested, &sides, found.get(&one.node).copied(), one, top);
    }
    for (side, left) in lefts.into_iter().enumerate() {
        let (laid, name) = (&sides[side], requested.names[side]);
        write_heading(&mut body, (name, &sample_account(&laid.parts)), (left, middle + 26.0), half);
        for one in &laid.boxes {
            let name = function_name(joined, one.node);
            let top = lower + (rows - 1.0 - one.depth as f64) * ROW;
            let fill = box_fill(requested.categories, one.node, name);
            draw_box(&mut body, one, top, (name, &side_account(laid, one.node, name)), fill);
        }
    }
    let legend = lower + rows * ROW + 22.0;
    let end = write_category_legend(&mut body, requested, &sides, legend);
    let left_out = both.left_out + sides[0].left_out + sides[1].left_out;
    let foot = format!(
        "Widths and percentages are shares of all samples that were kept. {left_out} boxes are not drawn: they are narrower than \
         {NARROW} pixels, or higher than any of {NARROWEST_TOP} pixels."
    );
    let y = format_coordinate(end + 24.0);
    let _ = writeln!(body, "<text x=\"{MARGIN}\" y=\"{y}\" fill-opacity=\"0.68\">{foot}</text>");
    let mut out = String::new();
    write_differential_head(&mut out, requested, changes.as_ref(), end + 38.0);
    out.push_str(&body);
    out.push_str("</svg>\n");
    out
}

/// What ends in each node: the mean of both sides' shares, as parts of a whole.
fn mean_shares(sides: &[FlameLayout; 2]) -> Vec<u64> {
    let part = |side: &FlameLayout, node: usize| {
        let own = side.own.get(node).copied().unwrap_or(0);
        own as f64 / side.node_total(0).max(1) as f64
    };
    let mean = |node| (WIDTH_PARTS * (part(&sides[0], node) + part(&sides[1], node)) / 2.0).round() as u64;
    (0..sides[0].own.len().max(sides[1].own.len())).map(mean).collect()
}

/// A side's inclusive share of a node.
fn node_share(side: &FlameLayout, node: u32) -> f64 {
    side.node_total(node) as f64 / side.node_total(0).max(1) as f64
}

fn draw_changed_box(
    out: &mut String,
    requested: &DifferentialGraph<'_>,
    sides: &[FlameLayout; 2],
    change: Option<&ShareDifference>,
    one: &FlameBox,
    top: f64,
) {
    let name = function_name(requested.joined, one.node);
    let [before, after] = [0, 1].map(|side| node_share(&sides[side], one.node));
    let shares = format!(
        "{name}: {} {}, {} {}",
        requested.names[0],
        format_share(before),
        requested.names[1],
        format_share(after)
    );
    let points = |value: f64| format_signed(100.0 * value, 2);
    let account = match change {
        None => format!("{shares}; not judged"),
        Some(change) => {
            let word = if change.is_change() { "more than noise" } else { "within the noise" };
            let (difference, low, high) =
                (points(change.difference), points(change.low), points(change.high));
            format!("{shares}; {difference} points [{low}, {high}], {word}")
        }
    };
    let changed = change.is_some_and(ShareDifference::is_change);
    draw_box(out, one, top, (name, &account), palette::difference_colour(changed, before, after));
}

/// Writing to a `String` cannot fail, so results are dropped here and below.
fn write_differential_head(
    out: &mut String,
    requested: &DifferentialGraph<'_>,
    changes: Option<&ProfileChanges>,
    height: f64,
) {
    let (width, height) = (format_coordinate(requested.width), format_coordinate(height));
    let title = escape_xml(requested.title);
    let basis = changes.map_or_else(|| "a side has no samples".into(), |changes| basis_text(changes.basis));
    let basis = shorten_to_width(&basis, LETTERS, (requested.width - 2.0 * MARGIN) / WIDER_LETTERS);
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-label=\"Differential flame graph of {title}\" font-family=\"Roboto, system-ui, sans-serif\" \
         font-size=\"{LETTERS}\" fill=\"#1c1a17\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"26\" font-size=\"17\">{title}</text>\n\
         <text x=\"{MARGIN}\" y=\"46\" fill-opacity=\"0.68\">{}</text>",
        escape_xml(&basis)
    );
}

/// What the colours of the upper graph mean.
fn write_change_legend(out: &mut String, [before, after]: [&str; 2], y: f64) {
    let entries = [
        (palette::difference_colour(true, 0.0, 1.0), format!("more in {after}")),
        (palette::difference_colour(true, 1.0, 0.0), format!("less in {after}")),
        (palette::difference_colour(false, 0.0, 0.0), "within the noise, or not judged".to_owned()),
    ];
    let mut x = MARGIN;
    for (colour, text) in entries {
        x = add_legend_entry(out, &colour.hex(), &text, (x, y));
    }
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" fill-opacity=\"0.68\">widths: mean share of {} and {}</text>",
        format_coordinate(x),
        format_coordinate(y),
        escape_xml(before),
        escape_xml(after)
    );
}

fn write_heading(out: &mut String, (name, account): (&str, &str), (x, y): (f64, f64), room: f64) {
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" font-size=\"15\">{}</text><text x=\"{}\" y=\"{}\" fill-opacity=\"0.68\">{}</text>",
        format_coordinate(x),
        format_coordinate(y),
        escape_xml(&shorten_to_width(name, 15.0, room)),
        format_coordinate(x),
        format_coordinate(y + 19.0),
        escape_xml(&shorten_to_width(account, LETTERS, room / WIDER_LETTERS))
    );
}

/// The categories of the lower graphs, each with its share on both sides; gives where it ends.
fn write_category_legend(
    out: &mut String,
    requested: &DifferentialGraph<'_>,
    sides: &[FlameLayout; 2],
    first: f64,
) -> f64 {
    let categories = &requested.categories.categories;
    let sums = [0, 1].map(|side: usize| {
        let mut sums = vec![0_u64; categories.len()];
        for (own, category) in sides[side].own.iter().zip(&requested.categories.by_node) {
            if let Some(sum) = sums.get_mut(*category as usize) {
                *sum = own.saturating_add(*sum);
            }
        }
        sums
    });
    let (mut x, mut y) = (MARGIN, first);
    for (at, category) in categories.iter().enumerate() {
        let [before, after] = [0, 1].map(|side: usize| sums[side].get(at).copied().unwrap_or(0));
        if before == 0 && after == 0 {
            continue;
        }
        let share =
            |side: usize, sum: u64| format_share(sum as f64 / sides[side].node_total(0).max(1) as f64);
        let text = format!("{} {} → {}", category.name, share(0, before), share(1, after));
        if is_beyond_right_edge(&text, x, requested.width) {
            (x, y) = (MARGIN, y + 20.0);
        }
        let colour = palette::box_colour(&category.hue, &category.name).hex();
        x = add_legend_entry(out, &colour, &text, (x, y));
    }
    y
}
