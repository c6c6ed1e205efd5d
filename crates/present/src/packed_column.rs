//! Columns of numbers as short text for a viewer.
//!
//! Integers are variable-length bytes (LEB128), then base64: a third of what JSON takes for a million samples, and no
//! parser of numbers has to read it. Other columns are short JSON: differences, and repeats counted.

use serde::Serialize;

/// A column of numbers, in integers divided by `scale`.
///
/// Each item is the difference from the number before (from 0 at first); `[n]` stands for the same number
/// `n` times more; `null` is a missing number, which leaves the number before as it was.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PackedColumn {
    /// What to divide by.
    pub scale: f64,
    /// The items.
    pub items: Vec<PackedItem>,
}

/// One item of a [`PackedColumn`] column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PackedItem {
    /// Difference from the number before.
    Step(i64),
    /// The same number so often.
    Repeat([u32; 1]),
    /// Missing.
    Missing(()),
}

/// Numbers from 0.
pub(crate) fn pack_unsigned(numbers: impl IntoIterator<Item = u64>) -> String {
    let mut bytes = Vec::new();
    for mut number in numbers {
        while number >= 0x80 {
            bytes.push((number as u8 & 0x7f) | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
    }
    encode_base64(&bytes)
}

/// Numbers of either sign: 0, -1, 1, -2, … become 0, 1, 2, 3, …
pub(crate) fn pack_signed(numbers: impl IntoIterator<Item = i64>) -> String {
    pack_unsigned(numbers.into_iter().map(|number| ((number << 1) ^ (number >> 63)) as u64))
}

/// Ascending numbers as steps from the one before.
pub(crate) fn pack_ascending(numbers: impl IntoIterator<Item = u64>) -> String {
    let mut last = 0;
    pack_unsigned(numbers.into_iter().map(|number| number - std::mem::replace(&mut last, number)))
}

/// Integers as they are.
pub(crate) fn pack_integers(values: impl Iterator<Item = Option<i64>>) -> PackedColumn {
    PackedColumn { scale: 1.0, items: packed_items(values) }
}

/// Floats, as integers with as many decimals as they have, at most six significant ones of the largest.
pub(crate) fn pack_floats(values: &[Option<f64>]) -> PackedColumn {
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

/// RFC 4648, section 4.
pub(crate) fn encode_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |group: u32, at: u32| {
        let sextet = (group >> (18 - 6 * at)) & 63;
        DIGITS.get(sextet as usize).map_or('=', |digit| char::from(*digit))
    };
    let four = |chunk: &[u8]| {
        let group =
            (0..3).fold(0, |group, at| (group << 8) | chunk.get(at).map_or(0, |byte| u32::from(*byte)));
        (0..4).map(|at| if at as usize > chunk.len() { '=' } else { digit(group, at) }).collect::<String>()
    };
    bytes.chunks(3).map(four).collect()
}

/// JSON that no HTML parser takes for the end of its element.
pub(crate) fn embed_json(data: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string(data)?.replace('<', "\\u003c"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_gives_the_vectors_of_rfc_4648() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ];
        for (plain, coded) in vectors {
            assert_eq!(encode_base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn columns_are_what_the_viewer_unpacks() {
        // The same texts as in web/test/flame.test.ts.
        assert_eq!(pack_unsigned([0, 1, 127, 128, 300, 1_000_000]), "AAF/gAGsAsCEPQ==");
        assert_eq!(pack_signed([0, -1, 1, -1_000_000]), "AAEC/4h6");
        assert_eq!(pack_ascending([3, 3, 200]), "AwDFAQ==");
    }
}
