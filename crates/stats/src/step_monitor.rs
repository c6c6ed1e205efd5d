//! A step in values that keep coming, looked for after each of them, with one bound on all looks together.
//!
//! After t values the evidence is E = Σ wₖ Bₖ over the k values before the step: a weighted mean of Bayes factors, each of
//! them a step after k values against none. Level and spread are unknown to both (right-Haar prior), the step is normal
//! with a standard deviation of [`STEP_PRIOR`] times that of the values: the g-prior factor of Liang and others ("Mixtures
//! of g priors for Bayesian variable selection", Journal of the American Statistical Association 103, 2008), which for
//! independent values is Gönen and others' two-sample t ("The Bayesian two-sample t-test", American Statistician 59,
//! 2005). Such factors are martingales of the values' invariants, so E exceeds 1/α at any time with probability at most α
//! (Ville; Pérez-Ortiz, Lardy, de Heide and Grünwald, "E-statistics, group invariance and anytime-valid testing", Annals of
//! Statistics 52, 2024). The mixture over k bounds the alarms of a whole life, where a CUSUM bounds their rate.
//!
//! Values may depend on the ones before: the model is AR(1) with any of the [`CORRELATIONS`]. The step's side is their
//! mixture; the other side is the best of them, after universal inference (Wasserman, Ramdas and Balakrishnan, PNAS 117,
//! 2020), correlated ones counting for [`CORRELATION_WEIGHT`] only. So the bound is a theorem for independent normal values,
//! and for others a simulation: `docs/statistics.md`. Values are counted in robust standard deviations around the median and
//! cut at [`CLIP`] of them, so that single outliers are no steps.

use std::sync::LazyLock;

use crate::descriptive::MAD_TO_SD;
use crate::error::{StatsError, check_open_fraction, check_sample};
use crate::series_groups::SeriesGroups;

/// Fewest values before a step, in a [`StepMonitor`]'s baseline.
pub const FEWEST_BEFORE_STEP: usize = 5;

/// Values beyond so many robust standard deviations count for so many.
const CLIP: f64 = 3.0;

/// Standard deviation of the steps that are looked for, in standard deviations of the values.
const STEP_PRIOR: f64 = 2.0;

/// Lag-one correlations that values may have.
const CORRELATIONS: [f64; 5] = [0.0, 0.15, 0.3, 0.45, 0.6];

/// Weight of independence among the correlations of the step's side; the others share the rest.
const INDEPENDENT_SHARE: f64 = 0.8;

/// What a correlated model counts for beside an independent one, on the side without a step.
const CORRELATION_WEIGHT: f64 = 0.08;

/// Baselines shorter than this have less weight, by the third power.
const FULL_BASELINE: f64 = 20.0;

/// The weight of steps after k values is shared among as many k as these; what lies beyond adds up to 1 / ln of it.
const SUMMED_BASELINES: usize = 20_000;

/// wₖ ∝ min(k / 20, 1)³ / (K ln² K) with K = max(k, 20), before they are divided by their sum.
fn unscaled_weight(before: usize) -> f64 {
    let k = before as f64;
    let capped = k.max(FULL_BASELINE);
    (k.min(FULL_BASELINE) / FULL_BASELINE).powi(3) / (capped * capped.ln().powi(2))
}

/// The sum of all weights; the tail is the integral of 1 / (x ln² x).
static WEIGHT_SUM: LazyLock<f64> = LazyLock::new(|| {
    let summed: f64 = (FEWEST_BEFORE_STEP..SUMMED_BASELINES).map(unscaled_weight).sum();
    summed + 1.0 / (SUMMED_BASELINES as f64).ln()
});

/// Steps that are bounded together.
const NEIGHBOURS: usize = 16;

/// Sums of the weights of all shorter baselines, in steps' order, up to those that are usually looked at.
struct WeightSums(Vec<f64>);

static WEIGHTS_UP_TO: LazyLock<WeightSums> = LazyLock::new(|| {
    let mut sum = 0.0;
    let sums = (0..2_048).map(|before| {
        let below = sum;
        sum += if before < FEWEST_BEFORE_STEP { 0.0 } else { unscaled_weight(before) / *WEIGHT_SUM };
        below
    });
    WeightSums(sums.collect())
});

impl WeightSums {
    /// The weights of baselines of `from` to `end` values, without the last.
    fn sum_of(&self, from: usize, end: usize) -> f64 {
        match (self.0.get(from), self.0.get(end)) {
            (Some(below), Some(up_to)) => up_to - below,
            _ => (from..end).map(|before| unscaled_weight(before) / *WEIGHT_SUM).sum(),
        }
    }
}

/// Watches a series for steps. After an alarm a new life begins at the step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepMonitor {
    /// Chance of any false alarm from one baseline on, such as 0.05.
    alpha: f64,
    /// At most so many values are looked back: the oldest are left out of the baseline.
    longest: usize,
}

/// What the values so far say of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepEvidence {
    /// E: at any time above 1/α with probability at most α while there is no step.
    pub e_value: f64,
    /// The first value after the likeliest step, where there are enough values for one.
    pub likeliest: Option<usize>,
}

/// An alarm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepAlarm {
    /// First value after the step, as the values up to the alarm locate it.
    pub step: usize,
    /// The value with which it was seen.
    pub seen: usize,
    /// E at that value.
    pub e_value: f64,
}

/// The alarms of a series, and what has been seen since the last.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchedSeries {
    /// In time order.
    pub alarms: Vec<StepAlarm>,
    /// First value of the present baseline.
    pub baseline: usize,
    /// The evidence against the present baseline.
    pub evidence: StepEvidence,
}

impl StepMonitor {
    /// A monitor with this bound, which looks back at most `longest` values.
    ///
    /// # Errors
    /// A bound outside (0, 1); fewer values than a step takes.
    pub fn new(alpha: f64, longest: usize) -> Result<Self, StatsError> {
        check_open_fraction("bound on false alarms", alpha)?;
        if longest <= FEWEST_BEFORE_STEP {
            return Err(StatsError::TooFew { needed: FEWEST_BEFORE_STEP + 1, got: longest });
        }
        Ok(Self { alpha, longest })
    }

    /// Goes through a series as if each value had just come. `restarts` are the values at which somebody began a new
    /// baseline. Takes time with n · min(n, longest): for 500 values some milliseconds.
    ///
    /// # Errors
    /// No value, one that is not finite, or values whose distances overflow.
    pub fn watch(&self, in_time_order: &[f64], restarts: &[usize]) -> Result<WatchedSeries, StatsError> {
        let values = check_sample(in_time_order)?;
        if values.iter().any(|value| value.abs() > f64::MAX / 4.0) {
            return Err(StatsError::Overflow);
        }
        let mut window = SortedWindow::default();
        let mut alarms = Vec::new();
        let mut baseline = 0;
        let mut evidence = StepEvidence { e_value: 1.0, likeliest: None };
        for (at, value) in values.iter().enumerate() {
            if restarts.contains(&at) {
                baseline = at;
                window = SortedWindow::default();
            }
            window.push(*value);
            if window.in_time.len() > self.longest {
                window.pop_oldest();
                baseline += 1;
            }
            // Between the alarms nobody asks for evidence but the last.
            if at + 1 < values.len() && !window.may_reach(1.0 / self.alpha) {
                continue;
            }
            evidence = window.evidence(baseline);
            if let Some(step) = evidence.likeliest
                && evidence.e_value >= 1.0 / self.alpha
            {
                alarms.push(StepAlarm { step, seen: at, e_value: evidence.e_value });
                baseline = step;
                window = SortedWindow::default();
                values.get(step..=at).unwrap_or_default().iter().for_each(|value| window.push(*value));
                evidence = StepEvidence { e_value: 1.0, likeliest: None };
            }
        }
        Ok(WatchedSeries { alarms, baseline, evidence })
    }
}

impl StepMonitor {
    /// The same where groups of neighbours share their luck, as the runs of one day may ([`SeriesGroups::share_luck`]; otherwise
    /// groups change nothing): each group is one value, its median. With as few groups as make no baseline, a step is looked for
    /// within each, since nobody can tell one between two of them from their luck.
    ///
    /// # Errors
    /// As [`watch`](Self::watch); groups of another number of values.
    pub fn watch_in_groups(
        &self,
        in_time_order: &[f64],
        restarts: &[usize],
        groups: &SeriesGroups,
    ) -> Result<WatchedSeries, StatsError> {
        if !groups.share_luck(in_time_order)? {
            return self.watch(in_time_order, restarts);
        }
        if groups.count() <= FEWEST_BEFORE_STEP {
            return self.watch(in_time_order, &[restarts, groups.starts()].concat());
        }
        let pieces = groups.cut_at(restarts);
        let piece_of = |at: &usize| pieces.starts().partition_point(|start| start < at);
        let restarts: Vec<usize> = restarts.iter().map(piece_of).collect();
        let watched = self.watch(&pieces.medians(in_time_order)?, &restarts)?;
        let start = |piece: usize| pieces.starts().get(piece).copied().unwrap_or(in_time_order.len());
        let alarm = |alarm: StepAlarm| StepAlarm {
            step: start(alarm.step),
            seen: start(alarm.seen + 1) - 1,
            ..alarm
        };
        let StepEvidence { e_value, likeliest } = watched.evidence;
        Ok(WatchedSeries {
            alarms: watched.alarms.into_iter().map(alarm).collect(),
            baseline: start(watched.baseline),
            evidence: StepEvidence { e_value, likeliest: likeliest.map(start) },
        })
    }
}

/// The values of a baseline and after, in time order and sorted.
#[derive(Debug, Default)]
struct SortedWindow {
    in_time: std::collections::VecDeque<f64>,
    sorted: Vec<f64>,
}

impl SortedWindow {
    fn push(&mut self, value: f64) {
        self.in_time.push_back(value);
        let at = self.sorted.partition_point(|other| *other < value);
        self.sorted.insert(at, value);
    }

    fn pop_oldest(&mut self) {
        let Some(value) = self.in_time.pop_front() else { return };
        let at = self.sorted.partition_point(|other| *other < value);
        self.sorted.remove(at);
    }

    fn evidence(&self, first: usize) -> StepEvidence {
        if self.in_time.len() <= FEWEST_BEFORE_STEP {
            return StepEvidence { e_value: 1.0, likeliest: None };
        }
        let found = step_evidence(&self.scores());
        StepEvidence { likeliest: found.likeliest.map(|at| at + first), ..found }
    }

    /// Whether the evidence may be as high as this: a bound on it, which costs a tenth of it.
    fn may_reach(&self, threshold: f64) -> bool {
        self.in_time.len() > FEWEST_BEFORE_STEP && bound_step_evidence(&self.scores()) >= threshold
    }

    /// Distances from the median in robust standard deviations, cut at [`CLIP`]; where more than half of the values are
    /// equal, whether they lie below or above.
    fn scores(&self) -> Vec<f64> {
        let middle = median_of_ascending(&self.sorted);
        let centre = self.sorted.partition_point(|value| *value < middle);
        // Distances ascend from the median outwards on both sides: merged, they are sorted.
        let (below, above) = self.sorted.split_at(centre);
        let mut below = below.iter().rev().map(|value| middle - value).peekable();
        let mut above = above.iter().map(|value| value - middle).peekable();
        let distances: Vec<f64> = std::iter::from_fn(|| match (below.peek(), above.peek()) {
            (Some(a), Some(b)) if a <= b => below.next(),
            (_, Some(_)) => above.next(),
            (_, None) => below.next(),
        })
        .collect();
        let spread = MAD_TO_SD * median_of_ascending(&distances);
        let score = |value: &f64| {
            let distance = value - middle;
            if spread > 0.0 {
                (distance / spread).clamp(-CLIP, CLIP)
            } else if distance == 0.0 {
                0.0
            } else {
                distance.signum()
            }
        };
        self.in_time.iter().map(score).collect()
    }
}

fn median_of_ascending(values: &[f64]) -> f64 {
    let at = |index: usize| values.get(index).copied().unwrap_or_default();
    at(values.len().saturating_sub(1) / 2).midpoint(at(values.len() / 2))
}

/// The values as one correlation sees them: innovations, and the best level.
struct WhitenedValues {
    correlation: f64,
    /// Σ of the innovations from each value on.
    sums_from: Vec<f64>,
    /// Squared length of the column of ones after whitening, and its product with the innovations.
    level_square: f64,
    level_product: f64,
    /// Sum of squares around the best level.
    squares: f64,
    /// Logarithm of the marginal likelihood without a step, but for what all correlations share.
    log_marginal: f64,
}

/// Sums of squares below this are a constant series.
const LEAST_SQUARES: f64 = 1e-9;

impl WhitenedValues {
    fn new(scores: &[f64], correlation: f64) -> Self {
        let stationary = (1.0 - correlation * correlation).sqrt();
        let first = scores.first().copied().unwrap_or_default() * stationary;
        let rest = scores.windows(2).map(|pair| pair[1] - correlation * pair[0]);
        let innovations: Vec<f64> = std::iter::once(first).chain(rest).collect();
        let mut sums_from = vec![0.0; innovations.len() + 1];
        let mut total_squares = 0.0;
        for (at, innovation) in innovations.iter().enumerate().rev() {
            sums_from[at] = sums_from[at + 1] + innovation;
            total_squares += innovation * innovation;
        }
        let n = scores.len() as f64;
        let kept = 1.0 - correlation;
        let level_square = stationary * stationary + (n - 1.0) * kept * kept;
        let level_product = stationary * first + kept * sums_from[1];
        let squares = (total_squares - level_product * level_product / level_square).max(LEAST_SQUARES);
        let log_marginal = stationary.ln() - 0.5 * level_square.ln() - 0.5 * (n - 1.0) * squares.ln();
        Self { correlation, sums_from, level_square, level_product, squares, log_marginal }
    }

    /// g of a step after so many values, and the squares that it takes off: g / (1 + g) of what its column explains.
    fn step_gain(&self, before: usize) -> (f64, f64) {
        let n = self.sums_from.len() - 1;
        let kept = 1.0 - self.correlation;
        let later = (n - before - 1) as f64;
        let at_step = self.sums_from[before] - self.sums_from[before + 1];
        let product = at_step + kept * self.sums_from[before + 1];
        let with_level = kept + later * kept * kept;
        let share_of_level = with_level / self.level_square;
        let square = 1.0 + later * kept * kept - with_level * share_of_level;
        // The prior is in standard deviations of the values, not of the innovations.
        let prior = STEP_PRIOR * STEP_PRIOR / (1.0 - self.correlation * self.correlation);
        let g = prior * square;
        (g, prior * (product - share_of_level * self.level_product).powi(2) / (1.0 + g))
    }

    /// Logarithm of the Bayes factor of a step after so many values, against none.
    fn log_step_factor(&self, before: usize) -> f64 {
        let (g, gain) = self.step_gain(before);
        self.log_factor(g, gain)
    }

    fn log_factor(&self, g: f64, gain: f64) -> f64 {
        let n = self.sums_from.len() - 1;
        let left = (self.squares - gain).max(LEAST_SQUARES);
        0.5 * (n as f64 - 1.0) * (self.squares / left).ln() - 0.5 * (1.0 + g).ln()
    }

    /// At least what the weighted sum of the Bayes factors is: of neighbouring steps each counts as the best, with the least
    /// g, which lies at an end, since g is concave.
    fn bound_weighted_sum(&self, log_scale: f64) -> f64 {
        let n = self.sums_from.len() - 1;
        let mut bound = 0.0;
        let mut from = FEWEST_BEFORE_STEP;
        while from < n {
            let end = (from + NEIGHBOURS).min(n);
            let gain = (from..end).map(|before| self.step_gain(before).1).fold(0.0, f64::max);
            let g = self.step_gain(from).0.min(self.step_gain(end - 1).0);
            let weight = WEIGHTS_UP_TO.sum_of(from, end);
            bound += weight * (log_scale + self.log_factor(g, gain)).min(MOST_LOG).exp();
            from = end;
        }
        bound
    }
}

/// What all correlations say of the values, and what they have in common.
struct CorrelationMixture {
    models: [WhitenedValues; CORRELATIONS.len()],
    /// Logarithm of the marginal likelihood without a step, of the best of them.
    without: f64,
}

impl CorrelationMixture {
    fn new(scores: &[f64]) -> Self {
        let models = CORRELATIONS.map(|correlation| WhitenedValues::new(scores, correlation));
        let weighted = |model: &WhitenedValues| {
            model.log_marginal + if model.correlation > 0.0 { CORRELATION_WEIGHT.ln() } else { 0.0 }
        };
        let without = models.iter().map(weighted).fold(f64::NEG_INFINITY, f64::max);
        Self { models, without }
    }

    /// Weight of a model on the step's side.
    fn share(model: &WhitenedValues) -> f64 {
        let others = (CORRELATIONS.len() - 1) as f64;
        if model.correlation > 0.0 { (1.0 - INDEPENDENT_SHARE) / others } else { INDEPENDENT_SHARE }
    }
}

/// At least what [`step_evidence`] finds, for a tenth of the time.
fn bound_step_evidence(scores: &[f64]) -> f64 {
    let mixture = CorrelationMixture::new(scores);
    let bound = |model: &WhitenedValues| {
        CorrelationMixture::share(model) * model.bound_weighted_sum(model.log_marginal - mixture.without)
    };
    // What is added for steps that are still to come is below one.
    (1.0 + mixture.models.iter().map(bound).sum::<f64>()) * (1.0 + 1e-9)
}

fn step_evidence(scores: &[f64]) -> StepEvidence {
    let CorrelationMixture { models, without } = CorrelationMixture::new(scores);
    let (mut evidence, mut given) = (0.0, 0.0);
    let mut likeliest: Option<(f64, usize)> = None;
    for before in FEWEST_BEFORE_STEP..scores.len() {
        let weight = unscaled_weight(before) / *WEIGHT_SUM;
        let factor = |model: &WhitenedValues| {
            let share = CorrelationMixture::share(model);
            share * (model.log_marginal - without + model.log_step_factor(before)).min(MOST_LOG).exp()
        };
        let part = weight * models.iter().map(factor).sum::<f64>();
        if likeliest.is_none_or(|(most, _)| part > most) {
            likeliest = Some((part, before));
        }
        evidence += part;
        given += weight;
    }
    // Steps that are still to come say nothing yet.
    StepEvidence { e_value: evidence + 1.0 - given, likeliest: likeliest.map(|(_, before)| before) }
}

/// Evidence beyond this is as good as certain, and must stay a number.
const MOST_LOG: f64 = 600.0;

#[cfg(test)]
mod tests {
    use super::{StepMonitor, WEIGHT_SUM, WhitenedValues, unscaled_weight};
    use crate::error::StatsError;

    /// Equation 2 of Gönen and others (2005), B₁₀ = (1 + g)^-½ [(1 + t²/ν) / (1 + t²/(ν (1 + g)))]^((ν + 1)/2) with
    /// g = σ² n₁n₂/(n₁ + n₂).
    fn two_sample_factor(before: &[f64], after: &[f64], prior_sd: f64) -> f64 {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let squares = |values: &[f64]| values.iter().map(|value| (value - mean(values)).powi(2)).sum::<f64>();
        let (m, n) = (before.len() as f64, after.len() as f64);
        let freedom = m + n - 2.0;
        let effective = m * n / (m + n);
        let variance = (squares(before) + squares(after)) / freedom;
        let t_square = effective * (mean(before) - mean(after)).powi(2) / variance;
        let g = effective * prior_sd * prior_sd;
        let ratio = (1.0 + t_square / freedom) / (1.0 + t_square / (freedom * (1.0 + g)));
        (1.0 + g).powf(-0.5) * ratio.powf((freedom + 1.0) / 2.0)
    }

    /// Student's sleep data (Biometrika 6, 1908): t = 1.8608 with 18 degrees of freedom.
    const SLEEP: [f64; 20] = [
        0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0, 1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6,
        3.4,
    ];

    #[test]
    fn independent_values_have_the_two_sample_factor() {
        let factor = WhitenedValues::new(&SLEEP, 0.0).log_step_factor(10).exp();
        let (before, after) = SLEEP.split_at(10);
        assert!((factor - two_sample_factor(before, after, 2.0)).abs() < 1e-12, "{factor}");
        // t² = 3.4626, g = 20: 21^-½ (1.19237 / 1.00916)^9.5.
        assert!((factor - 1.064_552_281_643_86).abs() < 1e-12, "{factor}");
    }

    /// Generalised least squares written out: the factor of a correlated model is that of the regression of whitened values
    /// on a whitened level and step.
    #[test]
    fn correlated_values_have_the_factor_of_their_innovations() {
        let (correlation, before) = (0.45_f64, 7);
        let whiten = |values: &[f64]| -> Vec<f64> {
            let first = values[0] * (1.0 - correlation * correlation).sqrt();
            std::iter::once(first)
                .chain(values.windows(2).map(|pair| pair[1] - correlation * pair[0]))
                .collect()
        };
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let step: Vec<f64> = (0..SLEEP.len()).map(|at| f64::from(u8::from(at >= before))).collect();
        let (y, level, step) = (whiten(&SLEEP), whiten(&[1.0; 20]), whiten(&step));
        let without = |values: &[f64]| -> Vec<f64> {
            let share = dot(values, &level) / dot(&level, &level);
            values.iter().zip(&level).map(|(value, level)| value - share * level).collect()
        };
        let (y, step) = (without(&y), without(&step));
        let g = 4.0 / (1.0 - correlation * correlation) * dot(&step, &step);
        let explained = dot(&y, &step).powi(2) / dot(&step, &step) / dot(&y, &y);
        let expected = -0.5 * (1.0 + g).ln() - 9.5 * (1.0 - g / (1.0 + g) * explained).ln();
        let found = WhitenedValues::new(&SLEEP, correlation).log_step_factor(before);
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }

    #[test]
    fn weights_of_all_baselines_add_up_to_one() {
        let near: f64 = (super::FEWEST_BEFORE_STEP..2_000).map(|k| unscaled_weight(k) / *WEIGHT_SUM).sum();
        let rest = 1.0 / 2_000_f64.ln() / *WEIGHT_SUM;
        assert!((near + rest - 1.0).abs() < 1e-4, "{near} {rest}");
    }

    /// The bound saves time only: it never hides an alarm, and is near enough to save any.
    #[test]
    fn the_bound_on_the_evidence_is_never_below_it_and_near() {
        let mut close = 0;
        for (number, step) in [0.0, 0.5, 1.0, 3.0, 0.2].into_iter().enumerate() {
            for n in [6, 7, 20, 21, 22, 37, 120, 300] {
                let scores: Vec<f64> = (0..n)
                    .map(|at| {
                        let wild = ((at * 7919 + number * 104_729) % 1_009) as f64 / 504.5 - 1.0;
                        (1.7 * wild + if at > n / 2 { step } else { 0.0 }).clamp(-3.0, 3.0)
                    })
                    .collect();
                let (bound, exact) =
                    (super::bound_step_evidence(&scores), super::step_evidence(&scores).e_value);
                assert!(bound >= exact, "{bound} {exact}, {n} values");
                close += usize::from(bound < 20.0 && exact < 20.0);
            }
        }
        assert!(close >= 16, "{close}");
        assert!(super::bound_step_evidence(&[0.0; 40]) >= super::step_evidence(&[0.0; 40]).e_value);
    }

    fn level_with_step(n: usize, step: usize, size: f64) -> Vec<f64> {
        (0..n).map(|at| (at * 7 % 5) as f64 / 5.0 + if at >= step { size } else { 0.0 }).collect()
    }

    #[test]
    fn an_alarm_begins_a_new_baseline_at_the_step_in_either_direction() {
        let monitor = StepMonitor::new(0.05, 500).unwrap();
        for size in [3.0, -3.0] {
            let found = monitor.watch(&level_with_step(60, 30, size), &[]).unwrap();
            let [alarm] = &found.alarms[..] else { panic!("{found:?}") };
            assert_eq!((alarm.step, found.baseline), (30, 30));
            assert!((32..=36).contains(&alarm.seen) && alarm.e_value >= 20.0, "{alarm:?}");
            assert!(found.evidence.e_value < 20.0);
        }
        assert!(monitor.watch(&level_with_step(60, 30, 0.0), &[]).unwrap().alarms.is_empty());
    }

    #[test]
    fn a_baseline_that_somebody_began_forgets_what_was_before() {
        let monitor = StepMonitor::new(0.05, 500).unwrap();
        let found = monitor.watch(&level_with_step(60, 30, 3.0), &[30]).unwrap();
        assert!(found.alarms.is_empty() && found.baseline == 30, "{found:?}");
    }

    #[test]
    fn a_long_series_is_judged_by_its_latest_values() {
        let monitor = StepMonitor::new(0.05, 40).unwrap();
        let found = monitor.watch(&level_with_step(100, 90, 3.0), &[]).unwrap();
        assert_eq!(found.alarms.iter().map(|alarm| alarm.step).collect::<Vec<_>>(), [90]);
        assert_eq!(monitor.watch(&level_with_step(100, 100, 0.0), &[]).unwrap().baseline, 60);
    }

    /// Constants have no spread: a single other value is none either, three are a step.
    #[test]
    fn constants_step_where_they_stay_away() {
        let monitor = StepMonitor::new(0.05, 500).unwrap();
        let series = |away: usize| -> Vec<f64> {
            (0..20).map(|_| 5.0).chain((0..away).map(|_| 6.0)).chain([5.0; 4]).collect()
        };
        let stays = |away: usize| monitor.watch(&series(away)[..20 + away], &[]).unwrap().alarms.len();
        assert_eq!(stays(3), 1);
        assert!(monitor.watch(&[5.0; 50], &[]).unwrap().alarms.is_empty());
    }

    #[test]
    fn settings_and_values_outside_their_range() {
        assert!(matches!(StepMonitor::new(0.0, 500), Err(StatsError::OutOfRange { .. })));
        assert!(matches!(StepMonitor::new(0.05, 5), Err(StatsError::TooFew { .. })));
        let monitor = StepMonitor::new(0.05, 500).unwrap();
        assert_eq!(monitor.watch(&[], &[]), Err(StatsError::Empty));
        assert_eq!(monitor.watch(&[1.0, f64::NAN], &[]), Err(StatsError::NotFinite { index: 1 }));
        assert_eq!(monitor.watch(&[1.0, 1e308], &[]), Err(StatsError::Overflow));
        let wide = monitor.watch(&[1e-300, 4e307, -4e307, 0.0, 1.0, 4e307, -4e307], &[]).unwrap();
        assert!(wide.evidence.e_value.is_finite());
    }
}
