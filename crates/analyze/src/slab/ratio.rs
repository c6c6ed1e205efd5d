//! Owns exact shares: two sums of integers, divided only when somebody reads them. It refuses rounding on the way.

use serde::ser::{Serialize, SerializeStruct, Serializer};

/// `part / whole`, both sums in the same unit (bytes, or bytes times nanoseconds where time was integrated).
///
/// In JSON `{"part": …, "whole": …, "value": …}`; `value` is null where `whole` is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ExactRatio {
    /// Numerator.
    pub part: u128,
    /// Denominator.
    pub whole: u128,
}

impl ExactRatio {
    /// `part / whole`.
    #[must_use]
    pub fn new(part: u128, whole: u128) -> Self {
        ExactRatio { part, whole }
    }

    /// As a fraction: 0.93 for 93 %. Nothing where the whole is zero: a cache without slabs has no efficiency.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        (self.whole > 0).then(|| nearest_float(self.part) / nearest_float(self.whole))
    }

    /// In per cent.
    #[must_use]
    pub fn percent(self) -> Option<f64> {
        Some(self.value()? * 100.0)
    }
}

/// The nearest float; of 64 bits, by the machine's own instruction.
fn nearest_float(value: u128) -> f64 {
    u64::try_from(value).map_or(value as f64, |value| value as f64)
}

impl Serialize for ExactRatio {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Ratio", 3)?;
        fields.serialize_field("part", &ExactInteger(self.part))?;
        fields.serialize_field("whole", &ExactInteger(self.whole))?;
        fields.serialize_field("value", &self.value())?;
        fields.end()
    }
}

/// An integer sum in JSON: a whole number up to 64 bits; beyond (only integrals over time), the nearest float.
struct ExactInteger(u128);

impl Serialize for ExactInteger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_unsigned(&self.0, serializer)
    }
}

/// See [`ExactInteger`].
pub(crate) fn serialize_unsigned<S: Serializer>(value: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    match u64::try_from(*value) {
        Ok(small) => serializer.serialize_u64(small),
        Err(_) => serializer.serialize_f64(*value as f64),
    }
}

/// See [`ExactInteger`].
pub(crate) fn serialize_signed<S: Serializer>(value: &i128, serializer: S) -> Result<S::Ok, S::Error> {
    match i64::try_from(*value) {
        Ok(small) => serializer.serialize_i64(small),
        Err(_) => serializer.serialize_f64(*value as f64),
    }
}

/// See [`ExactInteger`].
pub(crate) fn serialize_optional<S: Serializer>(
    value: &Option<i128>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serialize_signed(value, serializer),
        None => serializer.serialize_none(),
    }
}
