//! Times, sizes, counts and ratios: [`Nanos`] and [`Bytes`], and the spellings that people use for them in studies
//! (`100ms`, `64MiB`).

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

/// Nanoseconds: a length of time, or a point on CLOCK_MONOTONIC of the target that recorded it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A text that is not a quantity of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wanted}")]
pub struct QuantityError {
    text: String,
    wanted: &'static str,
}

const TIME_UNITS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("m", 60e9),
    ("h", 3600e9),
];

const SIZE_UNITS: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1048576.0),
    ("GiB", 1073741824.0),
    ("TiB", 1099511627776.0),
    ("K", 1024.0),
    ("M", 1048576.0),
    ("G", 1073741824.0),
    ("T", 1099511627776.0),
];

impl Nanos {
    /// Reads `250us`, `1.5s`, `2min`; a bare number is refused, as its unit would be a guess.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let wanted = "a time: write a number with ns, us, ms, s, min or h, such as \"100ms\"";
        parse_with_unit(text, TIME_UNITS)
            .map(Nanos)
            .ok_or_else(|| QuantityError { text: text.into(), wanted })
    }

    /// Seconds, for arithmetic and for people.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time since `earlier`, zero where the clock did not advance.
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Bytes {
    /// Reads `64MiB`, `4k`-style sizes with a unit; decimal units are powers of 1000, `K M G T` of 1024.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let wanted = "a size: write a number with B, KiB, MiB, GiB, kB, MB or GB, such as \"64MiB\"";
        parse_with_unit(text, SIZE_UNITS)
            .map(Bytes)
            .ok_or_else(|| QuantityError { text: text.into(), wanted })
    }
}

fn parse_with_unit(text: &str, units: &[(&str, f64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit.trim())?.1;
    let amount = number.parse::<f64>().ok()? * factor;
    (amount < u64::MAX as f64).then_some(amount.round() as u64)
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Self {
        Duration::from_nanos(nanos.0)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 1_000 => write!(f, "{n} ns"),
            n if n < 1_000_000 => write!(f, "{:.1} us", n as f64 / 1e3),
            n if n < 1_000_000_000 => write!(f, "{:.1} ms", n as f64 / 1e6),
            n if n < 120_000_000_000 => write!(f, "{:.1} s", n as f64 / 1e9),
            n => write!(f, "{} min {} s", n / 60_000_000_000, n % 60_000_000_000 / 1_000_000_000),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut amount = self.0 as f64;
        let mut unit = units[0];
        for next in &units[1..] {
            if amount < 1024.0 {
                break;
            }
            (amount, unit) = (amount / 1024.0, next);
        }
        if unit == "B" { write!(f, "{amount:.0} B") } else { write!(f, "{amount:.1} {unit}") }
    }
}

/// A length of time as studies and definitions write it: a text such as `"100ms"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DurationText(pub Nanos);

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Nanos::parse(&text).map(DurationText).map_err(serde::de::Error::custom)
    }
}

impl Serialize for DurationText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}ns", self.0.0))
    }
}

impl schemars::JsonSchema for DurationText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A length of time: a number with ns, us, ms, s, min or h.",
            "pattern": "^[0-9.]+ *(ns|us|µs|ms|s|min|m|h)$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_need_a_unit() {
        assert_eq!(Nanos::parse("100ms"), Ok(Nanos(100_000_000)));
        assert_eq!(Nanos::parse("1.5 s"), Ok(Nanos(1_500_000_000)));
        assert!(Nanos::parse("100").is_err());
        assert!(Nanos::parse("fast").is_err());
    }

    #[test]
    fn sizes_know_both_families() {
        assert_eq!(Bytes::parse("64MiB"), Ok(Bytes(64 << 20)));
        assert_eq!(Bytes::parse("64MB"), Ok(Bytes(64_000_000)));
        assert_eq!(Bytes::parse("4K"), Ok(Bytes(4096)));
        assert!(Bytes::parse("4 potatoes").is_err());
    }

    #[test]
    fn people_read_short_quantities() {
        assert_eq!(Nanos(1_234_567).to_string(), "1.2 ms");
        assert_eq!(Nanos(150_000_000_000).to_string(), "2 min 30 s");
        assert_eq!(Bytes(64 << 20).to_string(), "64.0 MiB");
    }
}
