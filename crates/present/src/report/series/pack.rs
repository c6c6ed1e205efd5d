//! Columns of numbers as short JSON: differences, and repeats counted.

use crate::report::data::{PackedColumn, PackedItem};

/// Integers as they are.
pub(super) fn pack_integers(values: impl Iterator<Item = Option<i64>>) -> PackedColumn {
    PackedColumn { scale: 1.0, items: packed_items(values) }
}

/// Floats, as integers with as many decimals as they have, at most six significant ones of the largest.
pub(super) fn pack_floats(values: &[Option<f64>]) -> PackedColumn {
    let scale = decimal_scale(values);
    let whole = |value: &Option<f64>| value.filter(|n| n.is_finite()).map(|n| (n * scale).round() as i64);
    PackedColumn { scale, items: packed_items(values.iter().map(whole)) }
}

fn decimal_scale(values: &[Option<f64>]) -> f64 {
    let present = || values.iter().flatten().filter(|n| n.is_finite());
    let largest = present().fold(0.0_f64, |largest, n| largest.max(n.abs()));
    let exact = |scale: &f64| present().all(|n| ((n * scale).round() / scale - n).abs() <= largest * 1e-6);
    let mut scales = (0..=9).map(|decimals| 10_f64.powi(decimals));
    scales.clone().find(exact).or_else(|| scales.next_back()).unwrap_or(1.0)
}

fn packed_items(values: impl Iterator<Item = Option<i64>>) -> Vec<PackedItem> {
    let (mut items, mut before) = (Vec::new(), 0_i64);
    let mut begun = false;
    for value in values {
        let Some(value) = value else {
            items.push(PackedItem::Missing(()));
            begun = false;
            continue;
        };
        match items.last_mut() {
            Some(PackedItem::Repeat([times])) if value == before && begun => *times += 1,
            Some(PackedItem::Step(_)) if value == before && begun => items.push(PackedItem::Repeat([1])),
            _ => items.push(PackedItem::Step(value.wrapping_sub(before))),
        }
        (before, begun) = (value, true);
    }
    items
}
