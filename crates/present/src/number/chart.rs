//! Owns what a figure's numbers are counted in, and their spelling. It refuses precision: four digits that count.

/// The unit of an axis or a bar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AxisUnit {
    /// bytes, shown in binary units (KiB, MiB)
    #[default]
    Bytes,
    /// a ratio from 0 to 1, shown in per cent
    Share,
    /// anything else, by its name; shown as it is, but for `ns`, which become µs, ms and s
    Plain(String),
}

/// How a unit is shown on one axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScaledUnit {
    /// what a stored number is divided by
    pub(crate) divisor: f64,
    /// what stands at the axis
    pub(crate) name: String,
}

const BINARY: [(&str, f64); 5] = [
    ("bytes", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];

const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];

impl AxisUnit {
    /// The form in which `largest` has one to four digits before the point.
    pub(crate) fn scaled_for(&self, largest: f64) -> ScaledUnit {
        match self {
            AxisUnit::Bytes => {
                let fits = BINARY.iter().rev().find(|(_, size)| largest.abs() >= *size);
                let (name, divisor) = fits.copied().unwrap_or(("bytes", 1.0));
                ScaledUnit { divisor, name: name.into() }
            }
            AxisUnit::Share => ScaledUnit { divisor: 0.01, name: "%".into() },
            AxisUnit::Plain(name) if name == "ns" => {
                let fits = TIMES.iter().rev().find(|(_, size)| largest.abs() >= *size);
                let (name, divisor) = fits.copied().unwrap_or(("ns", 1.0));
                ScaledUnit { divisor, name: name.into() }
            }
            AxisUnit::Plain(name) => ScaledUnit { divisor: 1.0, name: name.clone() },
        }
    }

    /// One number with its unit, alone.
    pub(crate) fn format_value(&self, value: f64) -> String {
        let shown = self.scaled_for(value);
        format!("{} {}", format_significant(value / shown.divisor), shown.name).trim_end().to_owned()
    }
}

/// Four digits that count, without zeros at the end.
pub(crate) fn format_significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { value.to_string() };
    }
    let before = value.abs().log10().floor() as i32;
    let decimals = usize::try_from(3 - before).unwrap_or(0).min(9);
    let text = format!("{value:.decimals$}").replace('-', "−");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}
