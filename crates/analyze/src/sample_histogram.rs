//! The lines of a picture as histograms over the same bins.

use perflab_stats::{BinRule, count_in_bins, histogram_edges};

use crate::sample_lines::SampleLine;

/// Histograms of some lines.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SampleHistogram {
    /// One more than there are bins, ascending, in the metric's unit; none where no value takes part.
    pub edges: Vec<f64>,
    /// For each line the share of all its values that each bin holds.
    pub shares: Vec<Vec<f64>>,
}

/// Histograms of the values that take part; those that do not are in no bin, but count among all. Bins have one width, which the rule
/// gives for the narrowest line; with `by_ratio` they have one ratio, and the rule is applied to logarithms.
#[must_use]
pub fn sample_histogram(
    lines: &[SampleLine],
    rule: BinRule,
    by_ratio: bool,
    takes_part: impl Fn(f64) -> bool,
) -> SampleHistogram {
    let place = |value: f64| if by_ratio { value.ln() } else { value };
    let places = |line: &SampleLine| -> Vec<f64> {
        let values = line.points.iter().map(|point| point.value).filter(|value| takes_part(*value));
        values.map(place).filter(|place| place.is_finite()).collect()
    };
    let samples: Vec<Vec<f64>> = lines.iter().map(places).collect();
    let drawn: Vec<&[f64]> = samples.iter().map(Vec::as_slice).filter(|values| !values.is_empty()).collect();
    // Values whose range no number holds have no bins.
    let edges = histogram_edges(&drawn, rule).unwrap_or_default();
    let share = |(line, values): (&SampleLine, &Vec<f64>)| {
        let all = line.points.len().max(1) as f64;
        count_in_bins(values, &edges).into_iter().map(|count| count as f64 / all).collect()
    };
    let shares = lines.iter().zip(&samples).map(share).collect();
    let edge = |edge: f64| if by_ratio { edge.exp() } else { edge };
    SampleHistogram { edges: edges.into_iter().map(edge).collect(), shares }
}

#[cfg(test)]
mod tests {
    use perflab_model::Nanos;

    use super::*;
    use crate::compare::comparison::SamplePoint;

    fn line(values: &[f64]) -> SampleLine {
        let point = |value: &f64| SamplePoint { value: *value, at: Nanos(0), run: 0, boot: 0, iteration: 0 };
        SampleLine {
            name: "a".into(),
            points: values.iter().map(point).collect(),
            machines: Default::default(),
        }
    }

    #[test]
    fn shares_are_of_all_values_of_a_line() {
        let lines = [line(&[1.0, 2.0, 3.0, 100.0]), line(&[2.0, 2.5])];
        let found = sample_histogram(&lines, BinRule::Scott, false, |value| value < 50.0);
        let sums: Vec<f64> = found.shares.iter().map(|shares| shares.iter().sum()).collect();
        assert_eq!(sums, [0.75, 1.0]);
        assert_eq!((found.edges.first(), found.edges.last()), (Some(&1.0), Some(&3.0)));
    }

    #[test]
    fn bins_by_ratio_hold_what_has_a_logarithm() {
        let found = sample_histogram(&[line(&[0.0, 1.0, 10.0, 100.0])], BinRule::Scott, true, |_| true);
        assert_eq!(found.shares[0].iter().sum::<f64>(), 0.75);
        let nothing = sample_histogram(&[line(&[0.0])], BinRule::Scott, true, |_| true);
        assert!(nothing.edges.is_empty() && nothing.shares == [Vec::<f64>::new()]);
    }
}
