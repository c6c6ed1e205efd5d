//! How a chart over two axes is to look, where whoever asks for it says so: its size, ranges, logarithmic axes.

/// What is asked of one axis; what is not said follows from the data.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AxisLook {
    /// Where it begins, in the unit of the values.
    pub low: Option<f64>,
    /// Where it ends, in the unit of the values.
    pub high: Option<f64>,
    /// Whether equal distances are equal ratios; values that are not above zero have no place then.
    pub logarithmic: bool,
}

impl AxisLook {
    /// Whether a value has a place on the axis.
    #[must_use]
    pub fn shows(&self, value: f64) -> bool {
        value.is_finite()
            && (!self.logarithmic || value > 0.0)
            && self.low.is_none_or(|low| value >= low)
            && self.high.is_none_or(|high| value <= high)
    }
}

/// What is asked of a chart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChartLook {
    /// Pixels.
    pub width: f64,
    /// Pixels.
    pub height: f64,
    /// The horizontal axis.
    pub x: AxisLook,
    /// The vertical axis.
    pub y: AxisLook,
}

impl Default for ChartLook {
    fn default() -> Self {
        ChartLook { width: 900.0, height: 440.0, x: AxisLook::default(), y: AxisLook::default() }
    }
}

impl ChartLook {
    /// Below this width a legend stands above the chart, not beside it, and margins are small.
    const NARROW: f64 = 640.0;

    pub(crate) fn is_narrow(&self) -> bool {
        self.width < Self::NARROW
    }
}
