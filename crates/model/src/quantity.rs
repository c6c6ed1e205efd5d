//! Times, sizes and ratios ([`Nanos`], [`Bytes`], [`Ratio`]), and the spellings that people use for them in studies and
//! options (`100ms`, `64MiB`, `3%`): the one grammar.
//!
//! ```text
//! quantity = number [space] unit          number = digits ["." digits]       (no sign, exponent or grouping)
//! time     = number (ns | us | µs | ms | s | min | m | h | d)
//! size     = number (B | kB | KB | MB | GB | TB | KiB | MiB | GiB | TiB | K | M | G | T)
//! ratio    = number %
//! ```
//!
//! A bare number is refused everywhere, and the message shows it with its unit.

use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

/// Nanoseconds: a length of time, or a point on CLOCK_MONOTONIC of the target that recorded it.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A part of something, or a relative change: 0.02 is 2 %.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ratio(pub f64);

/// A text that is not a quantity of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// A bare number: its unit would be a guess.
    #[error("`{text}` has no unit: write {hint}")]
    NoUnit {
        /// What was written.
        text: String,
        /// The same with the units that were most likely meant.
        hint: String,
    },
    /// No such quantity at all, or one that is too large to be held.
    #[error("`{text}` is not {wanted}")]
    Unreadable {
        /// What was written.
        text: String,
        /// What was wanted, with an example.
        wanted: &'static str,
    },
    /// A ratio that is not allowed where it stands.
    #[error("`{text}` is not {allowed}")]
    OutOfRange {
        /// What was written.
        text: String,
        /// What is allowed: `above 0% and below 100%`.
        allowed: String,
    },
}

/// The units of one kind of quantity, and what to say where a text has none of them.
struct UnitFamily {
    /// Each unit in its smallest one; of two spellings, the first is the one that is written.
    units: &'static [(&'static str, u64)],
    /// Units that a bare number most likely lacks.
    likely: &'static [&'static str],
    wanted: &'static str,
}

const TIME: UnitFamily = UnitFamily {
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("\u{b5}s", 1_000),
        ("\u{3bc}s", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
    ],
    likely: &["s", "ms"],
    wanted: "a time: write a number with ns, us, ms, s, min, h or d, such as `100ms`",
};

const SIZE: UnitFamily = UnitFamily {
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("K", 1 << 10),
        ("M", 1 << 20),
        ("G", 1 << 30),
        ("T", 1 << 40),
    ],
    likely: &["MiB", "B"],
    wanted: "a size: write a number with B, KiB, MiB, GiB, kB, MB or GB, such as `64MiB`",
};

const RATIO: &str = "a ratio: write a number with %, such as `3%`";

/// `quantity = number [space] unit`, taken apart; a number is `digits ["." digits]`, without sign, exponent or grouping.
struct WrittenQuantity<'a> {
    whole: &'a str,
    fraction: &'a str,
    unit: &'a str,
}

impl<'a> WrittenQuantity<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let (whole, fraction) = match number.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (number, ""),
        };
        let is_number = !whole.is_empty() && !fraction.contains('.');
        is_number.then_some(WrittenQuantity { whole, fraction, unit: unit.trim_start() })
    }

    fn number(&self) -> String {
        if self.fraction.is_empty() {
            self.whole.to_owned()
        } else {
            format!("{}.{}", self.whole, self.fraction)
        }
    }

    /// The amount in units of `1 / factor`: whole numbers exactly, fractions to the nearest.
    fn scaled(&self, factor: u64) -> Option<u64> {
        let whole = self.whole.parse::<u64>().ok()?.checked_mul(factor)?;
        let fraction = match self.fraction {
            "" => 0.0,
            digits => format!("0.{digits}").parse::<f64>().ok()?,
        };
        whole.checked_add((fraction * factor as f64).round() as u64)
    }
}

const FREQUENCY: UnitFamily = UnitFamily {
    units: &[("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)],
    likely: &["GHz", "MHz"],
    wanted: "a frequency such as 2.4GHz",
};

/// Reads `2.4GHz`, `800MHz`, in hertz; a bare number is refused.
///
/// # Errors
/// For whatever else.
pub fn parse_hertz(text: &str) -> Result<u64, QuantityError> {
    parse_amount(text, &FREQUENCY)
}

fn parse_amount(text: &str, family: &UnitFamily) -> Result<u64, QuantityError> {
    let text = text.trim();
    let unreadable = || QuantityError::Unreadable { text: text.into(), wanted: family.wanted };
    let written = WrittenQuantity::parse(text).ok_or_else(unreadable)?;
    if written.unit.is_empty() {
        let likely: Vec<String> = family.likely.iter().map(|unit| format!("`{text}{unit}`")).collect();
        return Err(QuantityError::NoUnit { text: text.into(), hint: likely.join(" or ") });
    }
    let unit = family.units.iter().find(|(name, _)| *name == written.unit);
    unit.and_then(|(_, factor)| written.scaled(*factor)).ok_or_else(unreadable)
}

/// The amount in the largest of these units in which it is whole: `90s`, `1500ms`.
fn exact_text(amount: u64, units: &[(&str, u64)]) -> String {
    let fits = |(_, factor): &&(&str, u64)| amount.is_multiple_of(*factor);
    let largest = units.iter().filter(fits).max_by_key(|(_, factor)| *factor);
    let (unit, factor) = largest.copied().filter(|_| amount > 0).unwrap_or(units[0]);
    format!("{}{unit}", amount / factor)
}

impl Nanos {
    /// Reads `250us`, `1.5s`, `2min`, `30d`; a bare number is refused, as its unit would be a guess.
    ///
    /// # Errors
    /// For whatever else.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        parse_amount(text, &TIME).map(Nanos)
    }

    /// As a study would write it, and exactly: `90s`, `1500ms`.
    #[must_use]
    pub fn to_study_text(self) -> String {
        let units =
            [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("h", 3_600_000_000_000)];
        exact_text(self.0, &units)
    }

    /// Whole seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Nanos(seconds * 1_000_000_000)
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
    /// As a study would write it, and exactly: `64MiB`, `1500B`.
    #[must_use]
    pub fn to_study_text(self) -> String {
        exact_text(
            self.0,
            &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)],
        )
    }

    /// Reads `64MiB`, `4K`: decimal units are powers of 1000, `K M G T` of 1024; a bare number is refused.
    ///
    /// # Errors
    /// For whatever else.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        parse_amount(text, &SIZE).map(Bytes)
    }
}

impl Ratio {
    /// Reads `2%` or `0.5 %`. A bare number is refused: 2 may mean 2 % or 200 %, and 0.02 may mean 2 % or 0.02 %.
    ///
    /// # Errors
    /// For whatever else.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let text = text.trim();
        let unreadable = || QuantityError::Unreadable { text: text.into(), wanted: RATIO };
        let written = WrittenQuantity::parse(text).ok_or_else(unreadable)?;
        let percent = written.number().parse::<f64>().ok().filter(|percent| percent.is_finite());
        let percent = percent.ok_or_else(unreadable)?;
        match written.unit {
            // The nearest to what was written: 99.9 / 100 is not 0.999.
            "%" => format!("{}e-2", written.number()).parse().map(Ratio).map_err(|_| unreadable()),
            "" => {
                let hint = match Ratio(percent) {
                    // A fraction was meant, or so small a share.
                    fraction if 0.0 < percent && percent < 1.0 => format!("`{text}%` or `{fraction}`"),
                    _ => format!("`{text}%`"),
                };
                Err(QuantityError::NoUnit { text: text.into(), hint })
            }
            _ => Err(unreadable()),
        }
    }

    /// The same where only some ratios make sense; the bounds are ratios, so 1.0 is 100 %.
    ///
    /// # Errors
    /// For one outside too.
    pub fn parse_within(text: &str, allowed: impl RangeBounds<f64>) -> Result<Self, QuantityError> {
        let ratio = Ratio::parse(text)?;
        if allowed.contains(&ratio.0) {
            return Ok(ratio);
        }
        let low = match allowed.start_bound() {
            Bound::Included(bound) => Some(format!("at least {}", Ratio(*bound))),
            Bound::Excluded(bound) => Some(format!("above {}", Ratio(*bound))),
            Bound::Unbounded => None,
        };
        let high = match allowed.end_bound() {
            Bound::Included(bound) => Some(format!("at most {}", Ratio(*bound))),
            Bound::Excluded(bound) => Some(format!("below {}", Ratio(*bound))),
            Bound::Unbounded => None,
        };
        let allowed = [low, high].into_iter().flatten().collect::<Vec<_>>().join(" and ");
        Err(QuantityError::OutOfRange { text: text.trim().into(), allowed })
    }

    /// In per cent, as it was written: 0.07 and not 0.07000000000000001.
    #[must_use]
    pub fn percent(self) -> f64 {
        (self.0 * 1e12).round() / 1e10
    }
}

impl FromStr for Nanos {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Nanos::parse(text)
    }
}

impl FromStr for Bytes {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Bytes::parse(text)
    }
}

impl FromStr for Ratio {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Ratio::parse(text)
    }
}

/// As it is written in studies and options: `2%`.
impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.percent())
    }
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

/// As the printer has it, from two minutes on with minutes: `1.235 ms`, `2 min 30 s`. With a plain space, as messages and
/// what programs read have.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 120_000_000_000 => f.write_str(&format_quantity(n as f64, "ns").replace('\u{a0}', " ")),
            n => write!(f, "{} min {} s", n / 60_000_000_000, n % 60_000_000_000 / 1_000_000_000),
        }
    }
}

/// As the printer has it: `64 MiB`. With a plain space, as messages and what programs read have.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        let scale = UnitScale::fitting("B", bytes);
        write!(f, "{} {}", scale.format_number(bytes), scale.name)
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
            "description": "A length of time: a number with ns, us, ms, s, min, h or d.",
            "pattern": "^[0-9]+([.][0-9]+)? *(ns|us|µs|ms|s|min|m|h|d)$",
        })
    }
}

/// The unit in which quantities are shown, and how many of the stored unit are one of it: the one printer of terminal,
/// report, pictures and browser (`web/src/number.ts`, held to it by `web/test/quantities.json`).
///
/// Times are ns, µs, ms and s; bytes are B, KiB, MiB, GiB and TiB, of 1,024 each; kB, MB, GB and TB stay decimal. Time per
/// second is a share in per cent. A count gets a prefix from 10,000 on. Other units stay as they are.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitScale {
    /// What stands beside the number; empty for plain numbers.
    pub name: String,
    /// How many of the stored unit are one of it.
    pub divisor: f64,
}

/// Units of one kind, each in the first one's scale, from small to large.
type UnitLadder = &'static [(&'static str, f64)];

const SHOWN_TIMES: UnitLadder = &[("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];

const LADDERS: &[UnitLadder] = &[
    SHOWN_TIMES,
    &[
        ("B", 1.0),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("TiB", 1_099_511_627_776.0),
    ],
    &[("kB", 1.0), ("MB", 1e3), ("GB", 1e6), ("TB", 1e9)],
    &[("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)],
    &[("nJ", 1.0), ("µJ", 1e3), ("mJ", 1e6), ("J", 1e9)],
];

/// From what size on a count gets which prefix.
const PREFIXES: &[(&str, f64, f64)] = &[("k", 1e4, 1e3), ("M", 1e6, 1e6), ("G", 1e9, 1e9), ("T", 1e12, 1e12)];

/// Other spellings of units that are shown in one.
const SPELLINGS: &[(&str, &str)] =
    &[("us", "µs"), ("\u{3bc}s", "µs"), ("uJ", "µJ"), ("bytes", "B"), ("byte", "B"), ("percent", "%")];

impl UnitScale {
    /// The unit in which the largest of some quantities has one to four digits before the point.
    #[must_use]
    pub fn fitting(unit: &str, largest: f64) -> Self {
        let (base, per) =
            unit.split_once('/').map_or((unit, String::new()), |(base, per)| (base, format!("/{per}")));
        let base = SPELLINGS.iter().find(|(other, _)| *other == base).map_or(base, |(_, shown)| shown);
        let time = SHOWN_TIMES.iter().find(|(name, _)| *name == base);
        if let (Some((_, nanos)), "/s") = (time, per.as_str()) {
            return UnitScale { name: "%".into(), divisor: 1e7 / nanos };
        }
        let ladder = LADDERS.iter().find_map(|ladder| {
            ladder.iter().find(|(name, _)| *name == base).map(|(_, size)| (*ladder, *size))
        });
        if let Some((ladder, size)) = ladder {
            let amount = largest.abs() * size;
            // Nothing has the unit that it came in.
            let fits = ladder.iter().rev().find(|(_, step)| amount >= *step).filter(|_| amount > 0.0);
            let smallest = ladder.first().filter(|_| amount > 0.0);
            let (name, step) = fits.or(smallest).copied().unwrap_or((base, size));
            let name = if per.is_empty() { name.into() } else { format!("{name}{per}") };
            return UnitScale { name, divisor: step / size };
        }
        let word = if base == "1" { "" } else { base };
        let is_count =
            !word.starts_with('k') && !word.contains(|c: char| c.is_uppercase() || "%µ".contains(c));
        let prefix = PREFIXES.iter().rev().find(|(_, from, _)| is_count && largest.abs() >= *from);
        let (prefix, divisor) = prefix.map_or(("", 1.0), |(prefix, _, size)| (*prefix, *size));
        let gap = if prefix.is_empty() || word.is_empty() { "" } else { "\u{a0}" };
        UnitScale { name: format!("{prefix}{gap}{word}{per}"), divisor }
    }

    /// A stored number in this unit, without its name.
    #[must_use]
    pub fn format_number(&self, value: f64) -> String {
        format_digits(value / self.divisor)
    }
}

/// Whether a unit stands for things that are counted (`messages`, `1`), not for time, data or another measure.
#[must_use]
pub fn is_count_unit(unit: &str) -> bool {
    let shown = SPELLINGS.iter().find(|(other, _)| *other == unit).map_or(unit, |(_, shown)| shown);
    let is_measure = LADDERS.iter().any(|ladder| ladder.iter().any(|(name, _)| *name == shown));
    !is_measure && !shown.is_empty() && shown != "%" && !shown.starts_with(|c: char| c.is_uppercase())
}

/// A number with its unit: `1.5 MiB`, `12.35 k faults/s`, `37.2 ms`.
#[must_use]
pub fn format_quantity(value: f64, unit: &str) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let scale = UnitScale::fitting(unit, value);
    let number = scale.format_number(value);
    if scale.name.is_empty() { number } else { format!("{number}\u{a0}{}", scale.name) }
}

/// From here on digits before the point say nothing, and fill the page.
const HUGE: f64 = 1e15;

/// Four digits that count, without zeros at the end; with an exponent where they are far from the point.
#[must_use]
pub fn format_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { value.to_string() };
    }
    if value.abs() < 1e-4 || value.abs() >= HUGE {
        let text = format!("{value:.3e}");
        let (number, exponent) = text.split_once('e').unwrap_or((text.as_str(), "0"));
        return format!("{}e{exponent}", trim_zeros(number));
    }
    let decimals = usize::try_from(3 - value.abs().log10().floor() as i32).unwrap_or(0);
    trim_zeros(&format!("{value:.decimals$}")).to_owned()
}

fn trim_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// `+2.1`: a signed number with so many decimals, without a negative zero.
#[must_use]
pub fn format_signed(value: f64, decimals: usize) -> String {
    if value.abs() >= HUGE {
        return format!("{}{}", if value > 0.0 { "+" } else { "" }, format_digits(value));
    }
    let text = format!("{value:+.decimals$}");
    let is_zero = text.chars().all(|c| !c.is_ascii_digit() || c == '0');
    if is_zero { text.replace(['-', '+'], "") } else { text }
}

/// As many decimals as show two digits of a width, at most three.
#[must_use]
pub fn decimals_for_width(width: f64) -> usize {
    if width <= 0.0 || !width.is_finite() {
        return 1;
    }
    usize::try_from(1 - width.log10().floor() as i32).unwrap_or(0).min(3)
}

/// A fraction as a signed percentage: `+12.3 %`, `-0.41 %`.
#[must_use]
pub fn format_percent_change(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let decimals = match percent.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{}\u{a0}%", trim_zeros(&format_signed(percent, decimals)))
}

/// A part of a whole: `93.51 %`, with two decimals always, so that a column can be read at a glance; never nothing or all of
/// it where it is not.
#[must_use]
pub fn format_share(fraction: f64) -> String {
    let text = format!("{:.2}", fraction * 100.0);
    match text.as_str() {
        "0.00" if fraction > 0.0 => "<0.01\u{a0}%".into(),
        "100.00" if fraction < 1.0 => ">99.99\u{a0}%".into(),
        "-0.00" => "0.00\u{a0}%".into(),
        _ => format!("{text}\u{a0}%"),
    }
}

/// A whole number with every digit, in groups of three: `1,416,100`.
#[must_use]
pub fn format_count(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if number < 0 { format!("-{out}") } else { out }
}

/// A p- or q-value.
#[must_use]
pub fn format_probability(value: f64) -> String {
    if value < 0.001 { "<0.001".into() } else { format!("{value:.3}") }
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
    fn a_bare_number_is_shown_with_the_units_that_were_meant() {
        let told = |error: QuantityError| error.to_string();
        assert_eq!(told(Ratio::parse("3").unwrap_err()), "`3` has no unit: write `3%`");
        assert_eq!(told(Ratio::parse("0.03").unwrap_err()), "`0.03` has no unit: write `0.03%` or `3%`");
        assert_eq!(told(Ratio::parse("0").unwrap_err()), "`0` has no unit: write `0%`");
        assert_eq!(told(Nanos::parse("60").unwrap_err()), "`60` has no unit: write `60s` or `60ms`");
        assert_eq!(told(Bytes::parse("512").unwrap_err()), "`512` has no unit: write `512MiB` or `512B`");
    }

    #[test]
    fn a_ratio_is_in_per_cent_and_nothing_else() {
        assert_eq!(Ratio::parse("3%"), Ok(Ratio(0.03)));
        assert_eq!(Ratio::parse(" 0.5 % "), Ok(Ratio(0.005)));
        assert_eq!(Ratio::parse("300%"), Ok(Ratio(3.0)));
        assert_eq!(Ratio::parse("99.9%"), Ok(Ratio(0.999)));
        let wrong = ["", "%", "-1%", "+1%", "1e2%", ".5%", "5.%", "1.2.3%", "3%%", "3 %x", "1,000%", "inf%"];
        assert!(wrong.iter().all(|text| matches!(Ratio::parse(text), Err(QuantityError::Unreadable { .. }))));
        let outside = Ratio::parse_within("0%", (Bound::Excluded(0.0), Bound::Excluded(1.0))).unwrap_err();
        assert_eq!(outside.to_string(), "`0%` is not above 0% and below 100%");
        assert_eq!(Ratio::parse_within("0%", 0.0..1.0), Ok(Ratio(0.0)));
        assert!(Ratio::parse_within("100%", 0.0..1.0).is_err());
    }

    #[test]
    fn what_is_too_long_to_be_held_is_refused() {
        assert_eq!(Nanos::parse("30d"), Ok(Nanos::from_secs(30 * 86_400)));
        assert_eq!(Nanos::parse("18446744073709551615ns"), Ok(Nanos(u64::MAX)));
        assert!(Nanos::parse("999999999d").is_err());
        assert!(Nanos::parse("18446744073709551616ns").is_err());
    }

    proptest::proptest! {
        #[test]
        fn what_studies_write_reads_back(amount: u64, percent in 0.0..1000.0f64) {
            assert_eq!(Nanos::parse(&Nanos(amount).to_study_text()), Ok(Nanos(amount)));
            let seconds = Nanos::from_secs(amount % 1_000_000);
            assert_eq!(Nanos::parse(&seconds.to_study_text()), Ok(seconds));
            let ratio = Ratio(percent / 100.0);
            assert!((Ratio::parse(&ratio.to_string()).unwrap().0 - ratio.0).abs() < 1e-12);
        }

        #[test]
        fn no_text_makes_the_grammar_fall(text: String) {
            let _ = (Nanos::parse(&text), Bytes::parse(&text), Ratio::parse(&text));
        }
    }

    #[test]
    fn people_read_short_quantities() {
        assert_eq!(Nanos(1_234_567).to_string(), "1.235 ms");
        assert_eq!(Nanos(95_000).to_string(), "95 µs");
        assert_eq!(Nanos(150_000_000_000).to_string(), "2 min 30 s");
        assert_eq!(Bytes(64 << 20).to_string(), "64 MiB");
    }

    #[derive(serde::Deserialize)]
    struct SharedQuantityCases {
        quantities: Vec<(f64, String, String)>,
        percents: Vec<(f64, String)>,
        shares: Vec<(f64, String)>,
        counts: Vec<(i64, String)>,
    }

    #[test]
    fn the_browser_and_this_side_print_the_same() {
        let text = include_str!("../../../web/test/quantities.json");
        let shared: SharedQuantityCases = serde_json::from_str(text).unwrap();
        for (value, unit, printed) in shared.quantities {
            assert_eq!(format_quantity(value, &unit).replace('\u{a0}', " "), printed, "{value} {unit}");
        }
        for (value, printed) in shared.percents {
            assert_eq!(format_percent_change(value).replace('\u{a0}', " "), printed);
        }
        for (value, printed) in shared.shares {
            assert_eq!(format_share(value).replace('\u{a0}', " "), printed);
        }
        for (value, printed) in shared.counts {
            assert_eq!(format_count(value), printed);
        }
    }

    #[test]
    fn four_digits_count() {
        let cases = [
            (0.012_345, "0.01235"),
            (9999.6, "10000"),
            (-3.0, "-3"),
            (1e-9, "1e-9"),
            (123_456.7, "123457"),
            (1e308, "1e308"),
            (-1.5e15, "-1.5e15"),
        ];
        for (value, expected) in cases {
            assert_eq!(format_digits(value), expected);
        }
        assert_eq!([1e308, -1e308].map(|value| format_signed(value, 1)), ["+1e308", "-1e308"]);
        assert_eq!((format_signed(-0.001, 1), format_signed(0.25, 1)), ("0.0".to_owned(), "+0.2".to_owned()));
        assert_eq!([0.0005, 0.5].map(format_probability), ["<0.001", "0.500"]);
    }
}
