//! The rules of other tools and ours, on simulated data with fixed seeds: the figures of the book (docs/statistics.md), whose
//! pictures are drawn with this file.

use perflab_stats::{
    benjamini_hochberg, harmonic_mean, mann_whitney, mean, median_with_interval, sd, signed_rank, welch,
};

use crate::noise::{NormalNoise, share_of_hits};

/// Values around a centre, log-normal.
pub fn lognormal_values(noise: &mut NormalNoise, centre: f64, spread: f64, n: usize) -> Vec<f64> {
    (0..n).map(|_| centre * (spread * noise.normal()).exp()).collect()
}

/// A rule that says whether two samples differ.
pub type DifferenceRule = fn(&[f64], &[f64]) -> bool;

/// perflab: Mann and Whitney.
pub fn differ_by_ranks(a: &[f64], b: &[f64]) -> bool {
    mann_whitney(a, b).unwrap().p < 0.05
}

/// MMTests since 2024: bands of ± 1.96 standard deviations around the means do not touch.
pub fn differ_by_bands(a: &[f64], b: &[f64]) -> bool {
    (mean(a).unwrap() - mean(b).unwrap()).abs() > 1.96 * (sd(a).unwrap() + sd(b).unwrap())
}

/// lkp: the ranges lie apart, or the gap between them is more than half the difference of the means.
pub fn differ_by_ranges(a: &[f64], b: &[f64]) -> bool {
    let low = |x: &[f64]| x.iter().copied().fold(f64::INFINITY, f64::min);
    let high = |x: &[f64]| x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (ma, mb) = (mean(a).unwrap(), mean(b).unwrap());
    let apart = (low(b) > ma && mb > high(a)) || (low(a) > mb && ma > high(b));
    apart || (low(b) - high(a)).max(low(a) - high(b)) > (mb - ma).abs() / 2.0
}

/// The eye: minima more than 2 % apart.
pub fn differ_by_minima(a: &[f64], b: &[f64]) -> bool {
    let low = |x: &[f64]| x.iter().copied().fold(f64::INFINITY, f64::min);
    (low(b) / low(a) - 1.0).abs() > 0.02
}

/// How often a rule reports a change of `ratio` from n values a side with 2 % noise.
pub fn reported_share(rule: DifferenceRule, ratio: f64, n: usize, tries: usize) -> f64 {
    let mut noise = NormalNoise::from_seed(100 + n as u64);
    share_of_hits(tries, || {
        rule(&lognormal_values(&mut noise, 1.0, 0.02, n), &lognormal_values(&mut noise, ratio, 0.02, n))
    })
}

/// False alarms where boots have as much spread as iterations: pooled iterations by ranks, and boot means by t.
pub fn boot_false_alarms(boots: usize, iterations: usize, tries: usize) -> (f64, f64) {
    let mut noise = NormalNoise::from_seed((boots * 1_000 + iterations) as u64);
    let mut side = || -> Vec<Vec<f64>> {
        let boot = |noise: &mut NormalNoise| {
            let luck = 0.02 * noise.normal();
            lognormal_values(noise, luck.exp(), 0.02, iterations)
        };
        (0..boots).map(|_| boot(&mut noise)).collect()
    };
    let (mut pooled, mut means) = (0, 0);
    for _ in 0..tries {
        let (a, b) = (side(), side());
        pooled += usize::from(differ_by_ranks(&a.concat(), &b.concat()));
        let of = |side: &[Vec<f64>]| side.iter().map(|boot| mean(boot).unwrap()).collect::<Vec<_>>();
        means += usize::from(welch(&of(&a), &of(&b)).is_ok_and(|found| found.p < 0.05));
    }
    (pooled as f64 / tries as f64, means as f64 / tries as f64)
}

/// False alarms under a drift over the whole run, ten a side: one side after the other, and in pairs of random order.
pub fn drift_false_alarms(total: f64, tries: usize) -> (f64, f64) {
    let mut noise = NormalNoise::from_seed(7);
    let (mut in_turn, mut paired) = (0, 0);
    for _ in 0..tries {
        let series: Vec<f64> =
            (0..20).map(|at| 1.0 + total * at as f64 / 19.0 + 0.01 * noise.normal()).collect();
        in_turn += usize::from(differ_by_ranks(&series[..10], &series[10..]));
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for pair in series.chunks(2) {
            let swap = noise.uniform() < 0.5;
            a.push(pair[usize::from(swap)]);
            b.push(pair[usize::from(!swap)]);
        }
        paired += usize::from(signed_rank(&a, &b).unwrap().p < 0.05);
    }
    (in_turn as f64 / tries as f64, paired as f64 / tries as f64)
}

/// False alarms of whoever looks every five values up to fifty: stopping at p < 5 %, and stopping when both medians are
/// known to 1 %.
pub fn peeking_false_alarms(tries: usize) -> (f64, f64) {
    let mut noise = NormalNoise::from_seed(8);
    let (mut significant, mut precise) = (0, 0);
    for _ in 0..tries {
        let (a, b) =
            (lognormal_values(&mut noise, 1.0, 0.02, 50), lognormal_values(&mut noise, 1.0, 0.02, 50));
        let looks: Vec<usize> = (5..=50).step_by(5).collect();
        significant += usize::from(looks.iter().any(|n| differ_by_ranks(&a[..*n], &b[..*n])));
        let width =
            |x: &[f64]| median_with_interval(x, 0.95).unwrap().interval.map_or(1.0, |i| i.half_width());
        let ready = |n: &&usize| **n >= 10 && width(&a[..**n]) <= 0.01 && width(&b[..**n]) <= 0.01;
        let n = looks.iter().find(ready).copied().unwrap_or(50);
        precise += usize::from(differ_by_ranks(&a[..n], &b[..n]));
    }
    (significant as f64 / tries as f64, precise as f64 / tries as f64)
}

/// Chance of any false alarm among so many metrics: at p < 5 % each, and with Benjamini and Hochberg.
pub fn many_metrics_false_alarms(metrics: usize, tries: usize) -> (f64, f64) {
    let mut noise = NormalNoise::from_seed(metrics as u64);
    let (mut each, mut corrected) = (0, 0);
    for _ in 0..tries {
        let mut p = || {
            let (a, b) =
                (lognormal_values(&mut noise, 1.0, 0.02, 10), lognormal_values(&mut noise, 1.0, 0.02, 10));
            mann_whitney(&a, &b).unwrap().p
        };
        let all: Vec<f64> = (0..metrics).map(|_| p()).collect();
        each += usize::from(all.iter().any(|p| *p < 0.05));
        corrected += usize::from(benjamini_hochberg(&all).unwrap().iter().any(|q| *q < 0.05));
    }
    (each as f64 / tries as f64, corrected as f64 / tries as f64)
}

/// MMTests' median (`calc_median`, which nothing prints today): the mean of the two values below the middle where the
/// count is odd, the value below it where it is even.
pub fn median_of_mmtests(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2 - 1;
    if sorted.len().is_multiple_of(2) { sorted[middle] } else { sorted[middle - 1].midpoint(sorted[middle]) }
}

/// One loss among five throughputs: the harmonic mean sees it, the best 95 % do not.
pub fn means_with_one_loss() -> (f64, f64) {
    let values = [100.0, 101.0, 99.0, 100.0, 10.0];
    let best = perflab_stats::best_of_mean(&values, perflab_stats::BetterDirection::Higher, 95.0).unwrap();
    (harmonic_mean(&values).unwrap(), best)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bands of ± 1.96 standard deviations never narrow: a true change of 5 % is seen less with more samples.
    #[test]
    fn a_star_that_more_samples_cannot_earn() {
        let [few, many] = [5, 30].map(|n| reported_share(differ_by_bands, 1.05, n, 400));
        assert!(few < 0.3 && many < 0.02, "{few} {many}");
        assert!(reported_share(differ_by_ranks, 1.05, 30, 200) > 0.99);
    }

    /// Ranges that lie apart are chance with five values, and impossible with many.
    #[test]
    fn ranges_see_less_with_more_samples() {
        let [few, many] = [5, 30].map(|n| reported_share(differ_by_ranges, 1.02, n, 600));
        assert!(few > 0.15 && many < 0.05, "{few} {many}");
        let alarms = reported_share(differ_by_ranks, 1.0, 10, 1_000);
        assert!((0.025..=0.065).contains(&alarms), "{alarms}");
        assert!(reported_share(differ_by_minima, 1.0, 5, 400) > 0.15);
    }

    #[test]
    fn iterations_of_a_boot_share_its_luck() {
        let (pooled, means) = boot_false_alarms(5, 10, 400);
        assert!(pooled > 0.3 && means < 0.075, "{pooled} {means}");
    }

    #[test]
    fn drift_poses_as_a_change_unless_sides_are_interleaved() {
        let (in_turn, paired) = drift_false_alarms(0.03, 400);
        assert!(in_turn > 0.7 && paired < 0.08, "{in_turn} {paired}");
    }

    /// Stopping at significance triples false alarms; stopping at a precision keeps them.
    #[test]
    fn looking_again_and_again() {
        let (significant, precise) = peeking_false_alarms(600);
        assert!(significant > 0.13 && precise < 0.075, "{significant} {precise}");
    }

    #[test]
    fn many_metrics_make_false_alarms_certain() {
        let (each, corrected) = many_metrics_false_alarms(50, 100);
        assert!(each > 0.8 && corrected < 0.13, "{each} {corrected}");
    }

    #[test]
    fn wrong_middles() {
        assert_eq!(median_of_mmtests(&[1.0, 2.0, 3.0, 4.0, 5.0]), 1.5);
        assert_eq!(median_of_mmtests(&[1.0, 2.0, 3.0, 4.0]), 2.0);
        assert_eq!(perflab_stats::median(&[1.0, 2.0, 3.0, 4.0, 5.0]), Ok(3.0));
        let (harmonic, best) = means_with_one_loss();
        assert!(harmonic < 40.0 && best > 99.0, "{harmonic} {best}");
    }
}
