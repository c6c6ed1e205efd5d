//! Owns the cells that all slab tables share. It refuses rounding in what programs read.

use perflab_analyze::slab::{AlignmentRatio, ExactRatio};
use perflab_model::Bytes;

use crate::table::GridCell;

/// A size in bytes.
pub(super) fn bytes_cell(value: u128) -> GridCell {
    let value = u64::try_from(value).unwrap_or(u64::MAX);
    GridCell::with_text(Bytes(value).to_string(), value)
}

/// A mean of bytes; whole bytes are enough for anybody.
pub(super) fn mean_bytes_cell(value: f64) -> GridCell {
    signed_bytes_cell(value.round() as i128)
}

/// A difference of bytes.
pub(super) fn signed_bytes_cell(value: i128) -> GridCell {
    let size = u64::try_from(value.unsigned_abs()).unwrap_or(u64::MAX);
    let sign = if value < 0 { "-" } else { "" };
    GridCell::with_text(format!("{sign}{}", Bytes(size)), i64::try_from(value).unwrap_or(i64::MAX))
}

/// A share: `93.51 %` for people, 0.9351 for programs.
pub(super) fn share_cell(value: Option<f64>) -> GridCell {
    value
        .map_or_else(GridCell::missing, |value| GridCell::with_text(format!("{:.2} %", value * 100.0), value))
}

/// An exact ratio as a share.
pub(super) fn ratio_cell(ratio: ExactRatio) -> GridCell {
    share_cell(ratio.value())
}

/// The efficiency; where not every object size is known, padding counts as use, so it is an upper bound and says so.
pub(super) fn efficiency_cell(overall: ExactRatio, alignment: AlignmentRatio) -> GridCell {
    let sign = if matches!(alignment, AlignmentRatio::Whole { .. }) { "" } else { "≤ " };
    overall.value().map_or_else(GridCell::missing, |value| {
        GridCell::with_text(format!("{sign}{:.2} %", value * 100.0), value)
    })
}

/// How much of the padded bytes was asked for, as far as it is known.
pub(super) fn alignment_share(alignment: AlignmentRatio) -> Option<f64> {
    match alignment {
        AlignmentRatio::Whole { ratio } | AlignmentRatio::Partly { ratio, .. } => ratio.value(),
        AlignmentRatio::Not => None,
    }
}

/// Names beside the first, shortened for people.
pub(super) fn other_names_cell(members: &[String], own: &str) -> GridCell {
    let others: Vec<&str> = members.iter().map(String::as_str).filter(|name| *name != own).collect();
    let shown = match others.as_slice() {
        [] => return GridCell::missing(),
        [first] => (*first).to_owned(),
        [first, second] => format!("{first}, {second}"),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    };
    GridCell::with_text(shown, others.join(","))
}
