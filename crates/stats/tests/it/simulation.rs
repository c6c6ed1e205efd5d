//! Rates by simulation with fixed seeds: false alarms, coverage, detection; for ranks, means, boots and their bootstrap.

use perflab_stats::*;

use crate::noise::{NormalNoise, share_of_hits};

/// Times with log-normal noise of 2 % around `centre`.
fn lognormal_times(noise: &mut NormalNoise, n: usize, centre: f64) -> Vec<f64> {
    noise.normals(n).iter().map(|normal| centre * (0.02 * normal).exp()).collect()
}

/// Boots of iterations around 100, with a standard deviation of 1 inside a boot and `between` among boots.
fn make_boots(noise: &mut NormalNoise, boots: usize, iterations: usize, between: f64) -> Vec<Vec<f64>> {
    let mut boot = || {
        let luck = 100.0 + between * noise.normal();
        noise.normals(iterations).iter().map(|value| value + luck).collect()
    };
    (0..boots).map(|_| boot()).collect()
}

fn boot_slices(boots: &[Vec<f64>]) -> Vec<&[f64]> {
    boots.iter().map(Vec::as_slice).collect()
}

fn boot_means(boots: &[Vec<f64>]) -> Vec<f64> {
    boots.iter().map(|boot| mean(boot).unwrap()).collect()
}

fn covers_truth(estimate: &IntervalEstimate, truth: f64) -> bool {
    !estimate.interval.unwrap().excludes(truth)
}

#[test]
fn equal_systems_are_called_different_in_3_to_6_percent() {
    for n in 6..=10 {
        let mut noise = NormalNoise::from_seed(n as u64);
        let alarms = share_of_hits(10_000, || {
            let (x, y) = (lognormal_times(&mut noise, n, 100.0), lognormal_times(&mut noise, n, 100.0));
            mann_whitney(&x, &y).unwrap().p < 0.05
        });
        assert!((0.03..=0.06).contains(&alarms), "n = {n}: {alarms}");
        let mut noise = NormalNoise::from_seed(n as u64);
        let by_interval = share_of_hits(4_000, || {
            let (x, y) = (lognormal_times(&mut noise, n, 100.0), lognormal_times(&mut noise, n, 100.0));
            hodges_lehmann_ratio(&x, &y, 0.95).unwrap().interval.unwrap().excludes(1.0)
        });
        assert!((0.03..=0.06).contains(&by_interval), "n = {n}: {by_interval}");
    }
}

#[test]
fn intervals_cover_a_true_ratio() {
    for (n, confidence, expected) in [(6, 0.95, 0.94), (10, 0.95, 0.94), (20, 0.95, 0.94), (5, 0.90, 0.89)] {
        let mut noise = NormalNoise::from_seed(100 + n as u64);
        let covered = share_of_hits(3_000, || {
            let (x, y) = (lognormal_times(&mut noise, n, 100.0), lognormal_times(&mut noise, n, 103.0));
            !hodges_lehmann_ratio(&x, &y, confidence).unwrap().interval.unwrap().excludes(1.03)
        });
        assert!(covered >= expected, "n = {n}: {covered}");
    }
}

/// Blocks share luck that is five times the noise; pairs see through it.
#[test]
fn paired_intervals_cover_a_true_ratio() {
    for n in [6, 10, 20] {
        let mut noise = NormalNoise::from_seed(200 + n as u64);
        let covered = share_of_hits(4_000, || {
            let luck: Vec<f64> = (0..n).map(|_| (0.1 * noise.normal()).exp()).collect();
            let mut side = |centre| {
                luck.iter().map(|l| l * lognormal_times(&mut noise, 1, centre)[0]).collect::<Vec<_>>()
            };
            let (x, y) = (side(100.0), side(103.0));
            !WalshAverages::relative(&x, &y).unwrap().estimate(0.95).unwrap().interval.unwrap().excludes(1.03)
        });
        assert!((0.94..=0.985).contains(&covered), "n = {n}: {covered}");
    }
}

/// A clock so coarse that most values are tied: the true shift (whole steps) stays covered.
#[test]
fn intervals_cover_with_heavy_ties() {
    for n in [4, 6, 10, 20] {
        let mut noise = NormalNoise::from_seed(300 + n as u64);
        let covered = share_of_hits(3_000, || {
            let mut side =
                |centre: f64| (0..n).map(|_| (centre + noise.normal()).round()).collect::<Vec<_>>();
            let (x, y) = (side(100.0), side(102.0));
            !PairwiseShifts::absolute(&x, &y).unwrap().estimate(0.95).unwrap().interval.unwrap().excludes(2.0)
        });
        assert!(covered >= 0.95, "n = {n}: {covered}");
    }
}

/// The normal approximation beyond 50 against 50.
#[test]
fn large_samples_cover_too() {
    let mut noise = NormalNoise::from_seed(400);
    let covered = share_of_hits(600, || {
        let (x, y) = (lognormal_times(&mut noise, 55, 100.0), lognormal_times(&mut noise, 50, 101.0));
        !hodges_lehmann_ratio(&x, &y, 0.95).unwrap().interval.unwrap().excludes(1.01)
    });
    assert!(covered >= 0.93, "{covered}");
}

#[test]
fn one_mode_is_rarely_called_two() {
    for n in [8, 10, 12, 15, 20, 25, 30, 60] {
        let mut noise = NormalNoise::from_seed(500 + n as u64);
        let mut alarms = |shape: fn(&mut NormalNoise) -> f64| {
            share_of_hits(3_000, || {
                let sample: Vec<f64> = (0..n).map(|_| shape(&mut noise)).collect();
                find_two_modes(&sample, 1).unwrap().is_some()
            })
        };
        let normal = alarms(|noise| 100.0 + 3.0 * noise.normal());
        let slight = alarms(|noise| (0.02 * noise.normal()).exp());
        let skewed = alarms(|noise| (0.5 * noise.normal()).exp());
        let long_tail = alarms(|noise| noise.normal().exp());
        let flat = alarms(|noise| noise.uniform() + 1.0);
        for (shape, alarms) in
            [("normal", normal), ("slight", slight), ("skewed", skewed), ("tail", long_tail)]
        {
            assert!(alarms <= 0.02, "{shape}, n = {n}: {alarms}");
        }
        assert!(flat <= 0.04, "uniform, n = {n}: {flat}");
    }
}

#[test]
fn two_clear_modes_are_found() {
    for n in [8, 10, 20, 30] {
        let mut noise = NormalNoise::from_seed(600 + n as u64);
        let found = share_of_hits(2_000, || {
            let upper = |index: usize| if index < n / 3 { 112.0 } else { 100.0 };
            let sample: Vec<f64> = (0..n).map(|index| upper(index) + noise.normal()).collect();
            find_two_modes(&sample, 1)
                .unwrap()
                .is_some_and(|modes| (modes.high - modes.low - 12.0).abs() < 3.0)
        });
        assert!(found >= 0.95, "n = {n}: {found}");
    }
}

#[test]
fn drift_is_found_and_rarely_imagined() {
    for n in [6, 10, 11, 20, 40] {
        let mut noise = NormalNoise::from_seed(700 + n as u64);
        let imagined = share_of_hits(4_000, || {
            drift_correlation(&lognormal_times(&mut noise, n, 100.0)).unwrap().p < 0.01
        });
        assert!(imagined <= 0.015, "n = {n}: {imagined}");
    }
    // With fewer than ten, hardly anything but a perfect order is below 1 %.
    for n in [10, 11, 20, 40] {
        let mut noise = NormalNoise::from_seed(750 + n as u64);
        let rising =
            |noise: &mut NormalNoise| (0..n).map(|i| 100.0 + i as f64 + noise.normal()).collect::<Vec<_>>();
        let found = share_of_hits(500, || drift_correlation(&rising(&mut noise)).unwrap().p < 0.01);
        assert!(found > 0.95, "n = {n}: {found}");
    }
}

/// The plan's promise: at the planned size, the change is found about as often as its power says.
#[test]
fn planned_repetitions_have_the_power_promised() {
    let plan = PowerRules::default();
    let n = plan.needed_repetitions(0.02, PowerGoal::Detect(0.02)).unwrap().unwrap();
    let mut noise = NormalNoise::from_seed(800);
    let found = share_of_hits(3_000, || {
        let (x, y) =
            (lognormal_times(&mut noise, n, 100.0), lognormal_times(&mut noise, n, 100.0 * 0.02_f64.exp()));
        mann_whitney(&x, &y).unwrap().p < 0.05
    });
    assert!((0.77..=0.85).contains(&found), "n = {n}: {found}");
}

#[test]
fn a_planned_verdict_of_same_comes_as_often_as_promised() {
    let n = PowerRules::default().needed_repetitions(0.02, PowerGoal::ShowSame(0.02)).unwrap().unwrap();
    let mut noise = NormalNoise::from_seed(900);
    let same = share_of_hits(1_500, || {
        let (x, y) = (lognormal_times(&mut noise, n, 100.0), lognormal_times(&mut noise, n, 100.0));
        let interval = hodges_lehmann_ratio(&x, &y, 0.90).unwrap().interval.unwrap();
        interval.is_inside((-0.02_f64).exp(), 0.02_f64.exp())
    });
    assert!((0.76..=0.88).contains(&same), "n = {n}: {same}");
}

/// Welch keeps its 5 %, but for 2 or 3 values where it is too careful.
#[test]
fn equal_means_are_called_different_in_5_percent() {
    for (n, least) in [(2, 0.01), (3, 0.025), (5, 0.035), (10, 0.04), (20, 0.04)] {
        let mut noise = NormalNoise::from_seed(n as u64);
        let alarms = share_of_hits(4_000, || welch(&noise.normals(n), &noise.normals(n)).unwrap().p < 0.05);
        assert!((least..=0.06).contains(&alarms), "n = {n}: {alarms}");
    }
}

/// Iterations of one boot share its luck: taken as independent they give far too many alarms, boot means do not.
#[test]
fn iterations_are_no_independent_values() {
    for (boots, iterations, between, pooled_at_least) in
        [(5, 10, 1.0, 0.30), (10, 3, 1.0, 0.10), (5, 10, 0.3, 0.08)]
    {
        let mut noise = NormalNoise::from_seed(10 + boots as u64);
        let mut pooled = 0;
        let alarms = share_of_hits(1_000, || {
            let [x, y] = [(); 2].map(|()| make_boots(&mut noise, boots, iterations, between));
            pooled += usize::from(mann_whitney(&x.concat(), &y.concat()).unwrap().p < 0.05);
            welch(&boot_means(&x), &boot_means(&y)).unwrap().p < 0.05
        });
        let pooled = pooled as f64 / 1_000.0;
        assert!((0.025..=0.065).contains(&alarms), "{boots} x {iterations}: {alarms}");
        assert!(pooled >= pooled_at_least, "{boots} x {iterations}, pooled: {pooled}");
    }
}

/// A warm room makes all later runs 3 % slower: blocks AAAA BBBB take it for a change, pairs do not.
#[test]
fn drift_fools_blocks_and_not_pairs() {
    let mut noise = NormalNoise::from_seed(20);
    let mut series = || -> Vec<f64> {
        (0..20).map(|i| 100.0 * (1.0 + 0.03 * f64::from(i) / 19.0) * (0.01 * noise.normal()).exp()).collect()
    };
    let blocks = share_of_hits(1_000, || {
        let runs = series();
        welch(&runs[..10], &runs[10..]).unwrap().p < 0.05
    });
    let pairs = share_of_hits(4_000, || {
        // AB BA AB BA …
        let runs = series();
        let (mut x, mut y) = (vec![], vec![]);
        for (index, pair) in runs.chunks(2).enumerate() {
            let (first, second) = if index % 2 == 0 { (0, 1) } else { (1, 0) };
            x.push(pair[first]);
            y.push(pair[second]);
        }
        signed_rank(&x, &y).unwrap().p < 0.05
    });
    assert!(blocks > 0.6, "{blocks}");
    assert!((0.03..=0.06).contains(&pairs), "{pairs}");
}

#[test]
fn intervals_of_means_and_ratios_cover() {
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
    for n in [3, 5, 10] {
        let mut noise = NormalNoise::from_seed(30 + n as u64);
        let (mut by_welch, mut by_means, mut of_mean, mut of_new) = (0, 0, 0, 0);
        for _ in 0..2_000 {
            let (x, y) = (lognormal_times(&mut noise, n, 100.0), lognormal_times(&mut noise, n, 103.0));
            by_welch += usize::from(
                !welch(&logs(&x), &logs(&y)).unwrap().interval(0.95).unwrap().excludes(1.03_f64.ln()),
            );
            let of_means = mean_shift(&x, &y, MeanScale::LogRatio).unwrap();
            by_means += usize::from(!of_means.interval(0.95).unwrap().excludes(1.03_f64.ln()));
            of_mean +=
                usize::from(covers_truth(&mean_with_interval(&x, 0.9).unwrap(), 100.0 * 0.0002_f64.exp()));
            let next = lognormal_times(&mut noise, 1, 100.0)[0];
            of_new += usize::from(covers_truth(&prediction_interval(&logs(&x), 0.95).unwrap(), next.ln()));
        }
        let [by_welch, by_means, of_mean, of_new] =
            [by_welch, by_means, of_mean, of_new].map(|hits| hits as f64 / 2_000.0);
        assert!((0.94..=0.98).contains(&by_welch), "n = {n}, welch: {by_welch}");
        assert!((0.94..=0.99).contains(&by_means), "n = {n}, ratio of means: {by_means}");
        assert!((0.885..=0.915).contains(&of_mean), "n = {n}, mean: {of_mean}");
        assert!((0.935..=0.965).contains(&of_new), "n = {n}, new value: {of_new}");
    }
}

/// What the book says of intervals by resampling boots: BCa is narrow at few boots, bootstrap-t is not.
#[test]
fn bootstrap_over_boots_covers() {
    for (boots, tries, bca_least, t_least) in [(5, 250, 0.76, 0.88), (10, 100, 0.82, 0.88)] {
        let mut noise = NormalNoise::from_seed(50 + boots as u64);
        let (mut by_bca, mut by_t) = (0, 0);
        for seed in 0..tries {
            let found = make_boots(&mut noise, boots, 3, 1.0);
            let how = ClusterBootstrap { resamples: 200, seed, confidence: 0.95 };
            by_bca += usize::from(covers_truth(&how.bca(&boot_slices(&found), &mean).unwrap(), 100.0));
            by_t += usize::from(covers_truth(&how.studentized(&boot_slices(&found), &mean).unwrap(), 100.0));
        }
        let [by_bca, by_t] = [by_bca, by_t].map(|hits| hits as f64 / tries as f64);
        assert!((bca_least..=0.96).contains(&by_bca), "{boots} boots, BCa: {by_bca}");
        assert!((t_least..=0.99).contains(&by_t), "{boots} boots, bootstrap-t: {by_t}");
    }
}

/// The components are unbiased, for equal and for unequal boots.
#[test]
fn variance_components_are_found() {
    let mut noise = NormalNoise::from_seed(60);
    let (mut between, mut within, mut three) = (0.0, 0.0, [0.0; 3]);
    for _ in 0..500 {
        let mut boots = make_boots(&mut noise, 12, 8, 2.0);
        boots.iter_mut().take(6).for_each(|boot| boot.truncate(4));
        let found = TwoLevelNoise::from_boots(&boot_slices(&boots)).unwrap();
        between += found.between.powi(2);
        within += found.within.powi(2);
        let mut nested = Vec::new();
        for boot in 0..6 {
            let luck = 3.0 * noise.normal();
            for (process, values) in (0..).zip(make_boots(&mut noise, 4, 5, 2.0)) {
                nested.extend(values.iter().map(|value| ([boot, process], value + luck)));
            }
        }
        let found = NestedComponents::from_paths(&nested).unwrap();
        let variances = [found.values, found.levels[1], found.levels[0]].map(|level| level.variance.unwrap());
        three.iter_mut().zip(variances).for_each(|(sum, variance)| *sum += variance);
    }
    let shares =
        [between / 2_000.0, within / 500.0, three[0] / 500.0, three[1] / 2_000.0, three[2] / 4_500.0];
    for share in shares {
        assert!((0.92..=1.08).contains(&share), "{shares:?}");
    }
}

/// What is planned from the components is the best use of a fixed time.
#[test]
fn a_plan_over_levels_keeps_its_word() {
    let mut noise = NormalNoise::from_seed(70);
    let pilot = make_boots(&mut noise, 200, 10, 0.5);
    let found = TwoLevelNoise::from_boots(&boot_slices(&pilot)).unwrap();
    let best = found.best_iterations(20.0, 1.0).unwrap().unwrap();
    assert!((8..=10).contains(&best), "√(20 · 1 / 0.25) is about 9: {best}");
    // The same time spent on other numbers of iterations gives a mean that varies more.
    let variance = |iterations: f64| (0.25 + 1.0 / iterations) * (20.0 + iterations);
    assert!([1.0, 3.0, 30.0, 100.0].iter().all(|other| variance(*other) > variance(best as f64)));
}

/// Of the calls at q ≤ 5 %, at most 5 % are wrong on average; Yekutieli makes fewer.
#[test]
fn false_discoveries_stay_rare() {
    let mut noise = NormalNoise::from_seed(80);
    let (mut wrong, mut careful, mut found) = (0.0, 0.0, 0.0);
    for _ in 0..400 {
        let p: Vec<f64> =
            (0..50).map(|metric| noise.uniform().powi(if metric < 10 { 12 } else { 1 })).collect();
        let share = |q: &[f64]| {
            let called: Vec<usize> = (0..50).filter(|metric| q[*metric] <= 0.05).collect();
            called.iter().filter(|metric| **metric >= 10).count() as f64 / called.len().max(1) as f64
        };
        let (hochberg, yekutieli) = (benjamini_hochberg(&p).unwrap(), benjamini_yekutieli(&p).unwrap());
        found += hochberg[..10].iter().filter(|q| **q <= 0.05).count() as f64 / 4_000.0;
        wrong += share(&hochberg) / 400.0;
        careful += share(&yekutieli) / 400.0;
    }
    assert!((0.02..=0.05).contains(&wrong), "{wrong}");
    assert!(careful <= 0.015, "{careful}");
    assert!(found > 0.3, "{found}");
}
