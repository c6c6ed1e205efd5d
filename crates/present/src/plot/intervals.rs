//! The changes of a comparison with their intervals, a row each: its verdicts as a picture.

use perflab_analyze::{Comparison, VerdictRow};

use crate::chart::interval_chart::{IntervalChart, IntervalRow};
use crate::chart::palette::{OTHERS_COLOUR, RgbColour};
use crate::chart::scene::Scene;
use crate::comparison::interval_axis::{ChangeSpan, IntervalAxis};
use crate::comparison::row_text::{RowText, comparison_headline, verdict_words};
use crate::plot::panel::PlotLook;

/// Most rows, where no height is asked for.
const MOST_ROWS: usize = 60;

/// The rows that decide, or those of the metrics that were chosen. The axis follows from the changes, or goes from the low to the high end
/// that is asked for (fractions of the baseline).
#[must_use]
pub fn intervals_scene(comparison: &Comparison, look: &PlotLook) -> Scene {
    let rows = comparison.deciding_rows();
    let shown = if look.height.is_none() { MOST_ROWS.min(rows.len()) } else { rows.len() };
    let left_out = match rows.len() - shown {
        0 => String::new(),
        more => format!("; {more} further rows are left out"),
    };
    let rows = rows.get(..shown).unwrap_or_default();
    let spans: Vec<ChangeSpan> = rows.iter().filter_map(|row| ChangeSpan::from_row(row)).collect();
    let axis = match (look.x.low, look.x.high) {
        (None, None) => IntervalAxis::spanning(&spans),
        (low, high) => {
            let ends = spans.iter().flat_map(|span| <[f64; 2]>::from(span.ends()));
            let (least, most) =
                ends.fold((0.0_f64, 0.0_f64), |(low, high), end| (low.min(end), high.max(end)));
            IntervalAxis::between(low.unwrap_or(least), high.unwrap_or(most))
        }
    };
    let many = comparison.candidates.len() > 1;
    IntervalChart {
        title: look.title.clone().unwrap_or_else(|| comparison_headline(comparison)),
        note: format!(
            "change of the metric with its {} interval; grey: the margin, in which a change does not matter; blue is better, orange worse{}{left_out}",
            look.confidence_text(),
            axis.scale_note()
        ),
        x_title: format!("change against {}", comparison.baseline),
        ticks: axis.ticks().into_iter().map(|tick| (tick.share, tick.text)).collect(),
        zero: Some(axis.share(0.0)),
        rows: rows.iter().map(|row| interval_row(row, many, &axis)).collect(),
        width: look.width(),
        height: look.height,
    }
    .render()
}

fn interval_row(row: &VerdictRow, many: bool, axis: &IntervalAxis) -> IntervalRow {
    let words = RowText::from_row(row);
    let span = ChangeSpan::from_row(row);
    IntervalRow {
        group: row.subject.clone(),
        name: if many { format!("{}, {}", row.metric, row.candidate_name) } else { row.metric.clone() },
        text: format!("{}  {}", words.change, verdict_words(row)),
        place: span.map(|span| axis.share(span.point)),
        interval: span.and_then(|span| span.limits).map(|(low, high)| (axis.share(low), axis.share(high))),
        margin: span.map(|span| (axis.share(-span.margin), axis.share(span.margin))),
        colour: verdict_colour(row),
    }
}

/// Blue for better, orange for worse, purple for a change without a direction, grey else: Okabe and Ito.
fn verdict_colour(row: &VerdictRow) -> RgbColour {
    match row.verdict_word() {
        "better" => RgbColour(0x00, 0x72, 0xb2),
        "worse" => RgbColour(0xd5, 0x5e, 0x00),
        "changed" | "differs" => RgbColour(0xcc, 0x79, 0xa7),
        _ => OTHERS_COLOUR,
    }
}
