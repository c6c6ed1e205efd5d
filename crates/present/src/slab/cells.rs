//! Owns the cells that all slab tables share. It refuses rounding in what programs read.

use perflab_analyze::slab::{Alignment, Ratio};
use perflab_model::Bytes;

use crate::table::Cell;

/// A size in bytes.
pub(super) fn bytes(value: u128) -> Cell {
    let value = u64::try_from(value).unwrap_or(u64::MAX);
    Cell::shown(Bytes(value).to_string(), value)
}

/// A mean of bytes; whole bytes are enough for anybody.
pub(super) fn mean_bytes(value: f64) -> Cell {
    signed_bytes(value.round() as i128)
}

/// A difference of bytes.
pub(super) fn signed_bytes(value: i128) -> Cell {
    let size = u64::try_from(value.unsigned_abs()).unwrap_or(u64::MAX);
    let sign = if value < 0 { "-" } else { "" };
    Cell::shown(format!("{sign}{}", Bytes(size)), i64::try_from(value).unwrap_or(i64::MAX))
}

/// A share: `93.51 %` for people, 0.9351 for programs.
pub(super) fn share(value: Option<f64>) -> Cell {
    value.map_or_else(Cell::missing, |value| Cell::shown(format!("{:.2} %", value * 100.0), value))
}

/// An exact ratio as a share.
pub(super) fn ratio(ratio: Ratio) -> Cell {
    share(ratio.value())
}

/// The efficiency; where not every object size is known, padding counts as use, so it is an upper bound and says so.
pub(super) fn efficiency(overall: Ratio, alignment: Alignment) -> Cell {
    let sign = if matches!(alignment, Alignment::Whole { .. }) { "" } else { "≤ " };
    overall
        .value()
        .map_or_else(Cell::missing, |value| Cell::shown(format!("{sign}{:.2} %", value * 100.0), value))
}

/// How much of the padded bytes was asked for, as far as it is known.
pub(super) fn alignment(alignment: Alignment) -> Option<f64> {
    match alignment {
        Alignment::Whole { ratio } | Alignment::Partly { ratio, .. } => ratio.value(),
        Alignment::Not => None,
    }
}

/// Names beside the first, shortened for people.
pub(super) fn others(members: &[String], own: &str) -> Cell {
    let others: Vec<&str> = members.iter().map(String::as_str).filter(|name| *name != own).collect();
    let shown = match others.as_slice() {
        [] => return Cell::missing(),
        [first] => (*first).to_owned(),
        [first, second] => format!("{first}, {second}"),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    };
    Cell::shown(shown, others.join(","))
}
