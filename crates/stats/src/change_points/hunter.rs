//! Hunter's search: candidates by energy distance in overlapping windows, judged by Student's t, then merged.
//!
//! Its p-values must not be taken at face value: the place was chosen where they are small (see [`Hunter`]).

use std::ops::Range;

use crate::StatsError;
use crate::change_points::{ChangePoint, best_candidate, check_searchable, segment_mean, segment_ranges};
use crate::error::check_open_fraction;
use crate::student_t::t_two_sided;

/// Whose details of the method apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HunterRules {
    /// The variance of a segment has n - 1 in the denominator, as the t-test wants it, and when a step is dropped both of
    /// its neighbours are tested anew.
    Sound,
    /// As Apache Otava at 1ceb153: the variance that goes into the t-test has n in the denominator, so that p-values are too
    /// small for short segments; and when a step is dropped, the two steps *after* it are tested anew, so that the one
    /// before keeps a p-value from a segment that is no more.
    Otava,
}

/// How to search. The p-value of a step belongs to a place chosen because it stands out, so a series without steps has
/// one found far more often than `level` says: at 0.001, in 1.0 % of flat normal series of 30 values and 3.5 % of 100 (by
/// Otava's rules 2.0 and 7.1 %; 4,000 simulations). Use [`super::EDivisive`] where the rate must be known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hunter {
    /// Values looked at together; the next window starts half of it later, or at the last step found.
    pub window: usize,
    /// Steps whose p-value stays below this are kept, such as 0.001.
    pub level: f64,
    /// Steps that change the mean by no more than this fraction (of the smaller mean) are dropped; 0 keeps all.
    pub least_change: f64,
    /// Fewest values between two candidates of one window.
    pub shortest: usize,
    /// Whose details of the method apply.
    pub rules: HunterRules,
}

impl Default for Hunter {
    fn default() -> Self {
        Self { window: 50, level: 0.001, least_change: 0.0, shortest: 3, rules: HunterRules::Sound }
    }
}

impl Hunter {
    /// The settings with which the steps are those of Apache Otava (`compute_change_points`, at 1ceb153).
    #[must_use]
    pub fn with_otava_rules(window: usize, level: f64, least_change: f64) -> Self {
        Self { window, level, least_change, shortest: 1, rules: HunterRules::Otava }
    }

    /// The steps of a series in time order, ascending. First each window is split while the best candidate of it has a
    /// p-value up to ten times the level (twice from 0.05 on, the level itself from 0.5 on); then the weakest step of the
    /// whole series is dropped, and its neighbours tested anew between the steps that are left, until all are below the
    /// level and above the least change. Source: Fleming et al., "Hunter: using change point detection to hunt for
    /// performance regressions", ICPE 2023.
    ///
    /// # Errors
    /// Fewer than two segments' worth of values, one that is not finite, more than 10,000, a level outside (0, 1), a
    /// window below two values, a least change below zero, a shortest segment of zero, values whose squares overflow.
    pub fn find(&self, in_time_order: &[f64]) -> Result<Vec<ChangePoint>, StatsError> {
        let series = check_searchable(in_time_order, self.shortest)?;
        self.check_series(series)?;
        let steps = self.find_candidates(series);
        Ok(self.merge_points(series, self.test_steps(series, &steps)))
    }

    fn check_series(&self, series: &[f64]) -> Result<(), StatsError> {
        check_open_fraction("level", self.level)?;
        if self.window < 2 {
            return Err(StatsError::OutOfRange {
                name: "window",
                value: self.window as f64,
                range: "[2, infinity)",
            });
        }
        if !(self.least_change >= 0.0 && self.least_change.is_finite()) {
            let value = self.least_change;
            return Err(StatsError::OutOfRange { name: "least change", value, range: "[0, infinity)" });
        }
        // Means times counts are squared in the t-test.
        let widest = series.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        if widest > 1e140 { Err(StatsError::Overflow) } else { Ok(()) }
    }

    /// The level of the first pass, which later merging makes strict again.
    fn weak_level(&self) -> f64 {
        match self.level {
            level if level < 0.05 => level * 10.0,
            level if level < 0.5 => level * 2.0,
            level => level,
        }
    }

    fn find_candidates(&self, series: &[f64]) -> Vec<usize> {
        let mut steps = Vec::new();
        let mut start = 0;
        while let Some(rest) = series.get(start..).filter(|rest| !rest.is_empty()) {
            let window = &rest[..self.window.min(rest.len())];
            let found: Vec<usize> = self.split_window(window).iter().map(|index| index + start).collect();
            start = (start + (self.window / 2).max(1)).max(found.last().copied().unwrap_or(0));
            steps.extend(found);
        }
        steps.sort_unstable();
        steps.dedup();
        steps
    }

    fn split_window(&self, window: &[f64]) -> Vec<usize> {
        let mut steps: Vec<usize> = Vec::new();
        loop {
            let mut best: Option<(f64, usize, Range<usize>)> = None;
            for range in segment_ranges(&steps, window.len()) {
                let Some(found) =
                    window.get(range.clone()).and_then(|part| best_candidate(part, self.shortest))
                else {
                    continue;
                };
                if best.as_ref().is_none_or(|(distance, ..)| found.distance > *distance) {
                    best = Some((found.distance, found.index + range.start, range));
                }
            }
            let Some((_, index, range)) = best else { return steps };
            if self.p_value(&window[range.start..index], &window[index..range.end]) > self.weak_level() {
                return steps;
            }
            steps.push(index);
            steps.sort_unstable();
        }
    }

    fn test_steps(&self, series: &[f64], steps: &[usize]) -> Vec<ChangePoint> {
        let parts = segment_ranges(steps, series.len());
        let point = |pair: &[Range<usize>]| {
            self.change_point(&series[pair[0].clone()], &series[pair[1].clone()], pair[1].start)
        };
        parts.windows(2).map(point).collect()
    }

    fn change_point(&self, left: &[f64], right: &[f64], index: usize) -> ChangePoint {
        ChangePoint {
            index,
            p: self.p_value(left, right),
            before: segment_mean(left),
            after: segment_mean(right),
        }
    }

    fn merge_points(&self, series: &[f64], mut points: Vec<ChangePoint>) -> Vec<ChangePoint> {
        while let Some(weakest) = self.weakest_point(&points) {
            points.remove(weakest);
            let parts =
                segment_ranges(&points.iter().map(|point| point.index).collect::<Vec<_>>(), series.len());
            let neighbours = match self.rules {
                HunterRules::Sound => [weakest.checked_sub(1), Some(weakest)],
                HunterRules::Otava => [Some(weakest), Some(weakest + 1)],
            };
            for changed in neighbours.into_iter().flatten() {
                if let (Some(point), Some(pair)) = (points.get_mut(changed), parts.get(changed..changed + 2))
                {
                    *point =
                        self.change_point(&series[pair[0].clone()], &series[pair[1].clone()], point.index);
                }
            }
        }
        points
    }

    /// The step to drop next: the least surprising of those that are not surprising enough, else the smallest of those
    /// that are too small.
    fn weakest_point(&self, points: &[ChangePoint]) -> Option<usize> {
        let first_of = |key: &dyn Fn(&ChangePoint) -> f64| {
            let keyed = points.iter().map(key).enumerate();
            keyed.reduce(|best, next| if next.1 > best.1 { next } else { best })
        };
        let (unlikely, p) = first_of(&|point| point.p)?;
        if p >= self.level {
            return Some(unlikely);
        }
        let (small, change) = first_of(&|point| -larger_relative_change(point))?;
        (-change <= self.least_change).then_some(small)
    }

    /// Student's t-test with pooled variance; 1 where both segments are constant and equal, or of one value.
    pub(crate) fn p_value(&self, left: &[f64], right: &[f64]) -> f64 {
        let (m, n) = (left.len() as f64, right.len() as f64);
        let freedom = m + n - 2.0;
        if freedom <= 0.0 {
            return 1.0;
        }
        let variance = (self.squared_deviations(left) + self.squared_deviations(right)) / freedom;
        let difference = segment_mean(left) - segment_mean(right);
        if difference == 0.0 {
            return 1.0;
        }
        t_two_sided(difference / (variance * (m.recip() + n.recip())).sqrt(), freedom)
    }

    /// (n - 1) times the variance.
    fn squared_deviations(&self, segment: &[f64]) -> f64 {
        let centre = segment_mean(segment);
        let squares: f64 = segment.iter().map(|value| (value - centre).powi(2)).sum();
        match self.rules {
            HunterRules::Sound => squares,
            HunterRules::Otava => squares * (segment.len() - 1) as f64 / segment.len() as f64,
        }
    }
}

/// The larger of both relative changes, forwards and backwards, so that doubling and halving count alike. A mean of zero
/// has no change relative to it.
fn larger_relative_change(point: &ChangePoint) -> f64 {
    let of = |part: f64, whole: f64| if whole == 0.0 { 0.0 } else { (part / whole - 1.0).abs() };
    of(point.after, point.before).max(of(point.before, point.after))
}
