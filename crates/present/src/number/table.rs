//! Owns numbers for people: four digits that count, and the prefix that keeps them short. It refuses to round what
//! programs read: JSON and CSV have every digit.

/// A unit as it is shown, and how many of the stored unit are one of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ShownUnit {
    pub(crate) name: String,
    pub(crate) divisor: f64,
}

impl ShownUnit {
    /// A value of the stored unit, in the shown one, without its name.
    pub(crate) fn format_value(&self, value: f64) -> String {
        format_four_digits(value / self.divisor)
    }
}

/// Families of units, each from small to large: name and size in the family's smallest.
const FAMILIES: &[&[(&str, f64)]] = &[
    &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)],
    &[("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)],
    &[("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)],
    &[("bytes", 1.0), ("KiB", 1024.0), ("MiB", 1048576.0), ("GiB", 1073741824.0), ("TiB", 1099511627776.0)],
    &[("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)],
    &[("nJ", 1.0), ("uJ", 1e3), ("mJ", 1e6), ("J", 1e9)],
];

/// Prefixes for rates and counts without a family: `kops/s`, `M`.
const PREFIXES: &[(&str, f64)] = &[("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)];

/// The unit in which `largest` has one to four digits before the point.
pub(crate) fn fitting_shown_unit(unit: &str, largest: f64) -> ShownUnit {
    let (base, per) =
        unit.split_once('/').map_or((unit, String::new()), |(base, per)| (base, format!("/{per}")));
    let family = FAMILIES.iter().find(|family| family.iter().any(|(name, _)| *name == base));
    if let Some(family) = family {
        let here = family.iter().find(|(name, _)| *name == base).map_or(1.0, |(_, size)| *size);
        let (name, size) = largest_fitting_unit(family, largest.abs() * here);
        return ShownUnit { name: format!("{name}{per}"), divisor: size / here };
    }
    let counts =
        unit == "1" || (unit.len() > 1 && unit.starts_with(|c: char| c.is_ascii_lowercase() && c != 'k'));
    let (prefix, divisor) = if counts && largest.abs() >= 1e5 {
        largest_fitting_unit(PREFIXES, largest.abs())
    } else {
        ("", 1.0)
    };
    let name = if unit == "1" { prefix.to_owned() } else { format!("{prefix}{unit}") };
    ShownUnit { name, divisor }
}

/// The largest unit of which there is at least one; the smallest where there is none.
fn largest_fitting_unit<'a>(family: &[(&'a str, f64)], amount: f64) -> (&'a str, f64) {
    let fits = family.iter().rev().find(|(_, size)| amount >= *size);
    fits.or(family.first()).copied().unwrap_or(("", 1.0))
}

/// Four digits that count.
pub(crate) fn format_four_digits(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { value.to_string() };
    }
    if !(1e-4..1e7).contains(&size) {
        return format!("{value:.3e}");
    }
    let before = size.log10().floor() as i32;
    let decimals = usize::try_from(3 - before).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    let whole = value.fract() == 0.0;
    if whole { format!("{value:.0}") } else { text }
}

/// `+2.1`: a signed number with so many decimals, without a negative zero.
pub(crate) fn format_signed(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    let is_zero = text.chars().all(|c| !c.is_ascii_digit() || c == '0');
    if is_zero { text.replace(['-', '+'], "") } else { text }
}

/// As many decimals as show two digits of a width, at most three.
pub(crate) fn decimals_for(width: f64) -> usize {
    if width <= 0.0 || !width.is_finite() {
        return 1;
    }
    usize::try_from(1 - width.log10().floor() as i32).unwrap_or(0).min(3)
}

/// A p- or q-value.
pub(crate) fn format_probability(value: f64) -> String {
    if value < 0.001 { "<0.001".into() } else { format!("{value:.3}") }
}
