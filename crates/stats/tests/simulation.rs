//! Rates by simulation with fixed seeds: false alarms, coverage, detection.

use perflab_stats::{
    PowerGoal, PowerRules, drift_correlation, find_two_modes, hodges_lehmann_ratio, hodges_lehmann_shift,
    mann_whitney, pseudo_median_ratio,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Normal numbers by Box and Muller.
struct TimeNoise(ChaCha8Rng);

impl TimeNoise {
    fn from_seed(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    fn uniform(&mut self) -> f64 {
        1.0 - self.0.random::<f64>()
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Times with log-normal noise of 2 % around `centre`.
    fn lognormal_times(&mut self, n: usize, centre: f64) -> Vec<f64> {
        (0..n).map(|_| centre * (0.02 * self.normal()).exp()).collect()
    }
}

fn share_of_hits(tries: usize, mut hit: impl FnMut() -> bool) -> f64 {
    (0..tries).filter(|_| hit()).count() as f64 / tries as f64
}

#[test]
fn equal_systems_are_called_different_in_3_to_6_percent() {
    for n in 6..=10 {
        let mut noise = TimeNoise::from_seed(n as u64);
        let alarms = share_of_hits(10_000, || {
            let (x, y) = (noise.lognormal_times(n, 100.0), noise.lognormal_times(n, 100.0));
            mann_whitney(&x, &y).unwrap().p < 0.05
        });
        assert!((0.03..=0.06).contains(&alarms), "n = {n}: {alarms}");
        let mut noise = TimeNoise::from_seed(n as u64);
        let by_interval = share_of_hits(4_000, || {
            let (x, y) = (noise.lognormal_times(n, 100.0), noise.lognormal_times(n, 100.0));
            hodges_lehmann_ratio(&x, &y, 0.95).unwrap().interval.unwrap().excludes(1.0)
        });
        assert!((0.03..=0.06).contains(&by_interval), "n = {n}: {by_interval}");
    }
}

#[test]
fn intervals_cover_a_true_ratio() {
    for (n, confidence, wanted) in [(6, 0.95, 0.94), (10, 0.95, 0.94), (20, 0.95, 0.94), (5, 0.90, 0.89)] {
        let mut noise = TimeNoise::from_seed(100 + n as u64);
        let covered = share_of_hits(3_000, || {
            let (x, y) = (noise.lognormal_times(n, 100.0), noise.lognormal_times(n, 103.0));
            !hodges_lehmann_ratio(&x, &y, confidence).unwrap().interval.unwrap().excludes(1.03)
        });
        assert!(covered >= wanted, "n = {n}: {covered}");
    }
}

/// Blocks share luck that is five times the noise; pairs see through it.
#[test]
fn paired_intervals_cover_a_true_ratio() {
    for n in [6, 10, 20] {
        let mut noise = TimeNoise::from_seed(200 + n as u64);
        let covered = share_of_hits(4_000, || {
            let luck: Vec<f64> = (0..n).map(|_| (0.1 * noise.normal()).exp()).collect();
            let mut side =
                |centre| luck.iter().map(|l| l * noise.lognormal_times(1, centre)[0]).collect::<Vec<_>>();
            let (x, y) = (side(100.0), side(103.0));
            !pseudo_median_ratio(&x, &y, 0.95).unwrap().interval.unwrap().excludes(1.03)
        });
        assert!((0.94..=0.985).contains(&covered), "n = {n}: {covered}");
    }
}

/// A clock so coarse that most values are tied: the true shift (whole steps) stays covered.
#[test]
fn intervals_cover_with_heavy_ties() {
    for n in [4, 6, 10, 20] {
        let mut noise = TimeNoise::from_seed(300 + n as u64);
        let covered = share_of_hits(3_000, || {
            let mut side =
                |centre: f64| (0..n).map(|_| (centre + noise.normal()).round()).collect::<Vec<_>>();
            let (x, y) = (side(100.0), side(102.0));
            !hodges_lehmann_shift(&x, &y, 0.95).unwrap().interval.unwrap().excludes(2.0)
        });
        assert!(covered >= 0.95, "n = {n}: {covered}");
    }
}

/// The normal approximation beyond 50 against 50.
#[test]
fn large_samples_cover_too() {
    let mut noise = TimeNoise::from_seed(400);
    let covered = share_of_hits(600, || {
        let (x, y) = (noise.lognormal_times(55, 100.0), noise.lognormal_times(50, 101.0));
        !hodges_lehmann_ratio(&x, &y, 0.95).unwrap().interval.unwrap().excludes(1.01)
    });
    assert!(covered >= 0.93, "{covered}");
}

#[test]
fn one_mode_is_rarely_called_two() {
    for n in [8, 10, 12, 15, 20, 25, 30, 60] {
        let mut noise = TimeNoise::from_seed(500 + n as u64);
        let mut alarms = |shape: fn(&mut TimeNoise) -> f64| {
            share_of_hits(3_000, || {
                let sample: Vec<f64> = (0..n).map(|_| shape(&mut noise)).collect();
                find_two_modes(&sample).unwrap().is_some()
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
        let mut noise = TimeNoise::from_seed(600 + n as u64);
        let found = share_of_hits(2_000, || {
            let upper = |index: usize| if index < n / 3 { 112.0 } else { 100.0 };
            let sample: Vec<f64> = (0..n).map(|index| upper(index) + noise.normal()).collect();
            find_two_modes(&sample).unwrap().is_some_and(|modes| (modes.high - modes.low - 12.0).abs() < 3.0)
        });
        assert!(found >= 0.95, "n = {n}: {found}");
    }
}

#[test]
fn drift_is_found_and_rarely_imagined() {
    for n in [6, 10, 11, 20, 40] {
        let mut noise = TimeNoise::from_seed(700 + n as u64);
        let imagined =
            share_of_hits(4_000, || drift_correlation(&noise.lognormal_times(n, 100.0)).unwrap().p < 0.01);
        assert!(imagined <= 0.015, "n = {n}: {imagined}");
    }
    // With fewer than ten, hardly anything but a perfect order is below 1 %.
    for n in [10, 11, 20, 40] {
        let mut noise = TimeNoise::from_seed(750 + n as u64);
        let rising =
            |noise: &mut TimeNoise| (0..n).map(|i| 100.0 + i as f64 + noise.normal()).collect::<Vec<_>>();
        let found = share_of_hits(500, || drift_correlation(&rising(&mut noise)).unwrap().p < 0.01);
        assert!(found > 0.95, "n = {n}: {found}");
    }
}

/// The plan's promise: at the planned size, the change is found about as often as its power says.
#[test]
fn planned_repetitions_have_the_power_promised() {
    let plan = PowerRules::default();
    let n = plan.needed_repetitions(0.02, PowerGoal::Detect(0.02)).unwrap().unwrap();
    let mut noise = TimeNoise::from_seed(800);
    let found = share_of_hits(3_000, || {
        let (x, y) = (noise.lognormal_times(n, 100.0), noise.lognormal_times(n, 100.0 * 0.02_f64.exp()));
        mann_whitney(&x, &y).unwrap().p < 0.05
    });
    assert!((0.77..=0.85).contains(&found), "n = {n}: {found}");
}

#[test]
fn a_planned_verdict_of_same_comes_as_often_as_promised() {
    let n = PowerRules::default().needed_repetitions(0.02, PowerGoal::ShowSame(0.02)).unwrap().unwrap();
    let mut noise = TimeNoise::from_seed(900);
    let same = share_of_hits(1_500, || {
        let (x, y) = (noise.lognormal_times(n, 100.0), noise.lognormal_times(n, 100.0));
        let interval = hodges_lehmann_ratio(&x, &y, 0.90).unwrap().interval.unwrap();
        interval.is_inside((-0.02_f64).exp(), 0.02_f64.exp())
    });
    assert!((0.76..=0.88).contains(&same), "n = {n}: {same}");
}
