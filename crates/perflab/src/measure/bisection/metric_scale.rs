//! How a metric's values are compared: by their ratio where all are above zero, larger always being worse.

use perflab_analyze::ChangeScale;
use perflab_model::Direction;

/// The scale of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricScale {
    is_ratio: bool,
    /// Whether less is worse.
    is_reversed: bool,
}

impl MetricScale {
    /// By the first values, and the way that is good.
    pub fn of_values(values: &[Vec<f64>], good: Direction) -> Self {
        let is_ratio = values.iter().flatten().all(|value| *value > 0.0);
        MetricScale { is_ratio, is_reversed: good == Direction::Higher }
    }

    /// A value as the walk takes it; none where a ratio of it means nothing.
    pub fn walked(self, value: f64) -> Option<f64> {
        let scaled = if self.is_ratio { (value > 0.0).then(|| value.ln())? } else { value };
        Some(if self.is_reversed { -scaled } else { scaled })
    }

    /// A difference of walked values as a change of the metric: a share, or in its unit.
    pub fn shown(self, difference: f64) -> f64 {
        let difference = if self.is_reversed { -difference } else { difference };
        if self.is_ratio { difference.exp_m1() } else { difference }
    }

    /// A relative margin as a difference of walked values; `level` is a value of the good end.
    pub fn margin(self, share: f64, level: f64) -> f64 {
        if self.is_ratio { share.ln_1p() } else { share * level.abs() }
    }

    /// What a change is.
    pub fn change_scale(self) -> ChangeScale {
        if self.is_ratio { ChangeScale::Ratio } else { ChangeScale::Absolute }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_throughput_is_worse_and_shown_as_less() {
        let scale = MetricScale::of_values(&[vec![100.0, 50.0]], Direction::Higher);
        let difference = scale.walked(50.0).unwrap() - scale.walked(100.0).unwrap();
        assert!(difference > 0.0);
        assert!((scale.shown(difference) + 0.5).abs() < 1e-12);
        assert_eq!(scale.walked(0.0), None);
    }

    #[test]
    fn a_metric_that_may_be_zero_is_compared_in_its_unit() {
        let scale = MetricScale::of_values(&[vec![0.0, 3.0]], Direction::Lower);
        assert_eq!((scale.walked(0.0), scale.shown(2.0)), (Some(0.0), 2.0));
        assert_eq!(scale.margin(0.01, -200.0), 2.0);
    }
}
