//! The common axis on which the intervals of a table are drawn: from changes to shares of its width.
//!
//! It is linear where that shows the margin; where changes of +0.2 % and of +300 % stand in one table it is compressed
//! towards its ends, so that both are seen.

use perflab_analyze::{ChangeScale, VerdictRow};

/// A change with its interval, as fractions of the baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ChangeSpan {
    pub(crate) point: f64,
    pub(crate) limits: Option<(f64, f64)>,
    pub(crate) margin: f64,
}

impl ChangeSpan {
    /// A row's change; none where it has none or where the baseline is zero.
    pub(crate) fn from_row(row: &VerdictRow) -> Option<Self> {
        let (change, point) = (row.change?, row.relative_change()?);
        let unit = match change.scale {
            ChangeScale::Ratio => 1.0,
            ChangeScale::Absolute => 1.0 / row.baseline.as_ref()?.median.abs(),
        };
        let limits = change.interval.map(|interval| (interval.low * unit, interval.high * unit));
        Some(ChangeSpan { point, limits, margin: row.margin })
    }

    pub(crate) fn ends(&self) -> (f64, f64) {
        self.limits.unwrap_or((self.point, self.point))
    }
}

/// Beyond so many margins an axis is compressed.
const LINEAR_MARGINS: f64 = 25.0;

/// As many ticks as fit.
const MOST_TICKS: usize = 9;

/// A letter of a label is this share of the width: 5.6 px where the column is as narrow as it gets, 150 px (`.at-drawn` in
/// `web/src/report.css`).
const LETTER: f64 = 5.6 / 150.0;

/// Letters that lie between two labels.
const LABEL_GAP: f64 = 1.0;

/// From changes to shares of the width.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IntervalAxis {
    from: f64,
    to: f64,
    /// Below it the axis is nearly linear, beyond it nearly logarithmic; none for a linear one.
    knee: Option<f64>,
}

/// A tick: where it is, and what it says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AxisTick {
    pub(crate) share: f64,
    pub(crate) text: String,
}

impl IntervalAxis {
    /// An axis that holds zero, all intervals and the margins.
    pub(crate) fn spanning(spans: &[ChangeSpan]) -> Self {
        let margin = spans.iter().map(|span| span.margin).fold(0.0, f64::max).max(1e-4);
        let mut ends = vec![-1.5 * margin, 1.5 * margin];
        ends.extend(spans.iter().flat_map(|span| [span.ends().0, span.ends().1, span.point]));
        let finite = || ends.iter().copied().filter(|end| end.is_finite());
        let (low, high) = (finite().fold(0.0, f64::min), finite().fold(0.0, f64::max));
        let is_wide = high.max(-low) > LINEAR_MARGINS * margin;
        let mut axis = IntervalAxis { from: 0.0, to: 0.0, knee: is_wide.then_some(margin) };
        let (from, to) = (axis.transform(low), axis.transform(high));
        let room = ((to - from) * 0.05).max(1e-6);
        (axis.from, axis.to) = (from - room, to + room);
        axis
    }

    /// A linear axis with these ends.
    pub(crate) fn between(from: f64, to: f64) -> Self {
        let to = if to > from { to } else { from + 0.01 };
        IntervalAxis { from, to, knee: None }
    }

    /// What must be known of an axis that is not linear, as the rest of a sentence.
    pub(crate) fn scale_note(&self) -> &'static str {
        if self.knee.is_some() {
            "; the axis is linear within the margin, and logarithmic beyond"
        } else {
            ""
        }
    }

    fn transform(&self, change: f64) -> f64 {
        self.knee.map_or(change, |knee| (change / knee).asinh())
    }

    /// Where a change is, from 0 at the left end to 1 at the right one.
    pub(crate) fn share(&self, change: f64) -> f64 {
        ((self.transform(change) - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }

    /// Round changes, zero among them, in order.
    pub(crate) fn ticks(&self) -> Vec<AxisTick> {
        let mut picked: Vec<f64> = vec![0.0];
        for change in self.round_changes() {
            let is_apart = picked.iter().all(|other| {
                (self.share(*other) - self.share(change)).abs() >= label_distance(*other, change)
            });
            let share = (self.transform(change) - self.from) / (self.to - self.from);
            if is_apart && (0.02..=0.98).contains(&share) && picked.len() < MOST_TICKS {
                picked.push(change);
            }
        }
        picked.sort_by(f64::total_cmp);
        picked
            .iter()
            .map(|change| AxisTick { share: self.share(*change), text: tick_text(*change) })
            .collect()
    }

    /// Candidates for ticks, the more important ones first.
    fn round_changes(&self) -> Vec<f64> {
        match self.knee {
            None => {
                // Every multiple has room beside the next, or none of this step is drawn.
                let width = self.to - self.from;
                let mut step = nice_step(width / 5.0);
                while step < width && step / width < label_distance(step, 2.0 * step) {
                    step = nice_step(step * 1.01);
                }
                (1..=10).flat_map(|n| [f64::from(n) * step, -f64::from(n) * step]).collect()
            }
            Some(_) => {
                let powers = (-4..=6).rev().map(|power| 10_f64.powi(power));
                powers.flat_map(|change| [change, -change]).collect()
            }
        }
    }
}

/// How far the middles of two labels lie apart at least, as a share of the width.
fn label_distance(one: f64, other: f64) -> f64 {
    let letters = |change: f64| tick_text(change).chars().count() as f64;
    ((letters(one) + letters(other)) / 2.0 + LABEL_GAP) * LETTER
}

fn tick_text(change: f64) -> String {
    if change == 0.0 {
        return "0".into();
    }
    let percent = change * 100.0;
    let decimals = if percent.abs() >= 1.0 { 0 } else { (-percent.abs().log10()).ceil() as usize };
    // A step such as 2.5 % has its half.
    let decimals = decimals.max(usize::from((percent * 10.0).round() % 10.0 != 0.0));
    format!("{percent:+.decimals$}\u{a0}%")
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `rough`.
fn nice_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let times = [1.0, 2.0, 5.0].into_iter().find(|n| n * power >= rough * 0.999).unwrap_or(10.0);
    times * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick_texts(spans: &[ChangeSpan]) -> Vec<String> {
        let ticks = IntervalAxis::spanning(spans).ticks().into_iter();
        ticks.map(|tick| tick.text.replace('\u{a0}', " ")).collect()
    }

    #[test]
    fn axes_hold_zero_and_have_round_ticks() {
        let span = ChangeSpan { point: 0.3, limits: Some((0.25, 0.36)), margin: 0.02 };
        assert_eq!(tick_texts(&[span]), ["0", "+10 %", "+20 %", "+30 %"]);
        assert_eq!((nice_step(0.21), nice_step(0.013)), (0.5, 0.02));
    }

    /// "+10%+15%" was seen where a column is narrow.
    #[test]
    fn labels_do_not_touch() {
        for high in [0.02, 0.05, 0.09, 0.17, 0.3, 0.6] {
            let span = ChangeSpan { point: high / 2.0, limits: Some((0.0, high)), margin: 0.03 };
            let ticks = IntervalAxis::spanning(&[span]).ticks();
            for pair in ticks.windows(2) {
                let letters = pair[0].text.chars().count() + pair[1].text.chars().count();
                assert!(pair[1].share - pair[0].share >= (letters as f64 / 2.0) * LETTER, "{ticks:?}");
            }
            assert!(ticks.len() > 1, "{ticks:?}");
        }
    }

    #[test]
    fn small_and_large_changes_are_seen_on_one_axis() {
        let small = ChangeSpan { point: 0.01, limits: Some((0.005, 0.015)), margin: 0.03 };
        let large = ChangeSpan { point: 31.0, limits: Some((29.0, 33.0)), margin: 0.03 };
        let axis = IntervalAxis::spanning(&[small, large]);
        assert!(axis.share(0.03) - axis.share(0.0) > 0.08, "{axis:?}");
        assert_eq!(tick_texts(&[small, large]), ["0", "+10 %", "+1000 %"]);
    }
}
