//! A suspect's test: what is left of a change where the suspect is switched off. Both sides were measured in turn under each level of
//! a setting that it acts through.

use crate::compare::comparison::{Comparison, VerdictRow};
use crate::why::explanation::{IntervalValue, Suspect, SuspectTest, SuspectTestWord, TestedLevel};

/// From this share of the change on, a suspect carries most of it.
const MOST: f64 = 0.5;

impl SuspectTest {
    /// The test of `suspect`, from a comparison of the sides of `row` under each level of `factor`; `run` measured them.
    #[must_use]
    pub fn new(
        suspect: &Suspect,
        row: &VerdictRow,
        (factor, run): (&str, &str),
        tested: &Comparison,
    ) -> Self {
        let is_of_row = |one: &&VerdictRow| {
            let mut point = one.point.clone();
            let has_level = point.shift_remove(factor).is_some();
            has_level
                && (&one.workload, &one.metric, &one.candidate_name)
                    == (&row.workload, &row.metric, &row.candidate_name)
                && point.iter().all(|(key, value)| row.point.get(key).is_none_or(|own| own == value))
        };
        let level = |one: &VerdictRow| TestedLevel {
            level: one.point.get(factor).cloned().unwrap_or_default(),
            change: one.change,
        };
        let levels: Vec<TestedLevel> = tested.rows.iter().filter(is_of_row).map(level).collect();
        let share = share_gone(&levels);
        let word = match share {
            Some(share) if share.low >= MOST => SuspectTestWord::Cause,
            Some(share) if share.high < MOST => SuspectTestWord::NoCause,
            _ => SuspectTestWord::Undecided,
        };
        SuspectTest {
            cause: suspect.cause.clone(),
            series: suspect.series.clone(),
            factor: factor.to_owned(),
            run: run.to_owned(),
            levels,
            share,
            word,
        }
    }
}

/// How much of the largest change is gone where it is smallest, with the limits that follow from those of both.
fn share_gone(levels: &[TestedLevel]) -> Option<IntervalValue> {
    let changes: Option<Vec<IntervalValue>> = levels
        .iter()
        .map(|level| {
            let change = level.change?;
            let interval = change.interval?;
            Some(IntervalValue { value: change.value, low: interval.low, high: interval.high })
        })
        .collect();
    let changes = changes.filter(|changes| changes.len() > 1)?;
    let by_size = |a: &&IntervalValue, b: &&IntervalValue| a.value.abs().total_cmp(&b.value.abs());
    let (largest, smallest) = (changes.iter().max_by(by_size)?, changes.iter().min_by(by_size)?);
    // A quotient by what may be nothing has no limits.
    if largest.low <= 0.0 && largest.high >= 0.0 {
        return None;
    }
    let left = quotient_limits(*smallest, *largest);
    let value = 1.0 - smallest.value / largest.value;
    Some(IntervalValue { value, low: 1.0 - left.high, high: 1.0 - left.low })
}

/// Limits of the quotient of two estimates that are independent, from the limits of each, by the method of variance estimates recovery:
/// Newcombe, "MOVER-R confidence intervals for ratios and products of two independently estimated quantities", Statistical Methods in
/// Medical Research 25 (2016); Fieller's where both intervals are symmetric. The divisor's limits have one sign.
fn quotient_limits(dividend: IntervalValue, divisor: IntervalValue) -> IntervalValue {
    if divisor.value < 0.0 {
        return quotient_limits(negate_interval(dividend), negate_interval(divisor));
    }
    let product = dividend.value * divisor.value;
    let limit = |one: f64, other: f64, sign: f64| {
        let weight = other * (2.0 * divisor.value - other);
        let inner = product * product - one * (2.0 * dividend.value - one) * weight;
        (product + sign * inner.max(0.0).sqrt()) / weight
    };
    // Which limit of the divisor belongs to which of the dividend depends on the quotient's sign, which may be open.
    let [low, high] = [(dividend.low, -1.0), (dividend.high, 1.0)]
        .map(|(one, sign)| [divisor.low, divisor.high].map(|other| limit(one, other, sign)));
    let low = low.into_iter().filter(|low| low.is_finite()).fold(f64::INFINITY, f64::min);
    let high = high.into_iter().filter(|high| high.is_finite()).fold(f64::NEG_INFINITY, f64::max);
    IntervalValue { value: dividend.value / divisor.value, low, high }
}

fn negate_interval(one: IntervalValue) -> IntervalValue {
    IntervalValue { value: -one.value, low: -one.high, high: -one.low }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::change::{ChangeInterval, ChangeScale, IntervalMeaning, MetricChange};

    fn level(low: f64, value: f64, high: f64) -> TestedLevel {
        let interval = Some(ChangeInterval { low, high, level: 0.975 });
        let covers = IntervalMeaning::Change;
        let change = MetricChange { scale: ChangeScale::Ratio, value, interval, narrow: None, covers };
        TestedLevel { level: "a".into(), change: Some(change) }
    }

    /// Fieller's limits are the quotients R at which (a - R b)^2 is as large as the squares of half the widths of a and R b together.
    #[test]
    fn limits_of_symmetric_intervals_are_fiellers() {
        let around = |value: f64, half: f64| IntervalValue { value, low: value - half, high: value + half };
        for (dividend, divisor) in [
            ((0.0, 0.04), (0.5, 0.1)),
            ((0.2, 0.1), (0.5, 0.2)),
            ((-0.1, 0.03), (0.5, 0.1)),
            ((-0.2, 0.1), (-0.5, 0.2)),
        ] {
            let found = quotient_limits(around(dividend.0, dividend.1), around(divisor.0, divisor.1));
            for limit in [found.low, found.high] {
                let far = (dividend.0 - limit * divisor.0).powi(2);
                let wide = dividend.1 * dividend.1 + (limit * divisor.1).powi(2);
                assert!((far - wide).abs() < 1e-12, "{dividend:?} {divisor:?} {limit}");
            }
            assert!(found.low < found.value && found.value < found.high);
        }
    }

    #[test]
    fn the_share_that_is_gone_is_of_the_largest_change() {
        let share = share_gone(&[level(0.4, 0.5, 0.6), level(-0.02, 0.0, 0.02)]).unwrap();
        assert!(share.value == 1.0 && share.low > 0.95 && share.high < 1.05, "{share:?}");
        // The order of the levels says nothing, nor does the sign of the change.
        let faster = share_gone(&[level(-0.02, 0.0, 0.02), level(-0.6, -0.5, -0.4)]).unwrap();
        assert!((faster.low - share.low).abs() < 1e-12 && (faster.high - share.high).abs() < 1e-12);
        assert_eq!(share_gone(&[level(-0.1, 0.1, 0.3), level(0.0, 0.0, 0.0)]), None, "nothing to be gone");
        assert_eq!(share_gone(&[level(0.4, 0.5, 0.6)]), None);
        assert_eq!(
            share_gone(&[level(0.4, 0.5, 0.6), TestedLevel { level: "b".into(), change: None }]),
            None
        );
    }
}
