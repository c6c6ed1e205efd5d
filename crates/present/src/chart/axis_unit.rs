//! What a figure's numbers are counted in.

use perflab_model::quantity::UnitScale;

/// The unit of an axis or a bar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AxisUnit {
    /// bytes, shown in binary units (KiB, MiB)
    #[default]
    Bytes,
    /// a ratio from 0 to 1, shown in per cent
    Share,
    /// numbers whose axis says elsewhere what they are; never scaled
    Number,
    /// anything else, by its name
    Plain(String),
}

impl AxisUnit {
    /// The form in which `largest` has one to four digits before the point.
    pub(crate) fn scale_for(&self, largest: f64) -> UnitScale {
        match self {
            AxisUnit::Bytes => UnitScale::fitting("B", largest),
            AxisUnit::Share => UnitScale { name: "%".into(), divisor: 0.01 },
            AxisUnit::Number => UnitScale { name: String::new(), divisor: 1.0 },
            AxisUnit::Plain(name) => UnitScale::fitting(name, largest),
        }
    }

    /// One number with its unit, alone.
    pub(crate) fn format_value(&self, value: f64) -> String {
        let scale = self.scale_for(value);
        format!("{} {}", scale.format_number(value), scale.name).trim_end().to_owned()
    }
}
