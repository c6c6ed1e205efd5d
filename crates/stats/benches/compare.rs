//! The statistics of `perflab compare` for 1,000 cases of 30 against 30: ratio with its 90 and 95 % intervals,
//! p-value, and the warnings. `cargo bench -p perflab-stats`; the bar is 300 ms for all of it. Then one comparison of 50
//! against 50 with nothing counted before (bar 1 ms), and 10,000 metrics of 30 against 30 with their false discovery rate
//! (bar 1 s).

use perflab_stats::{
    BetterDirection, ClusterBootstrap, EDivisive, PairwiseShifts, PowerGoal, PowerRules, StatsError,
    WarmupRules, benjamini_hochberg, benjamini_yekutieli, drift_correlation, find_outlying_values,
    find_two_modes, mann_whitney, median,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::hint::black_box;
use std::time::Instant;

fn compare_pair(x: &[f64], y: &[f64]) -> Result<f64, StatsError> {
    let shifts = PairwiseShifts::relative(x, y)?;
    black_box((shifts.estimate(0.90)?, shifts.estimate(0.95)?));
    Ok(mann_whitney(x, y)?.p)
}

fn check_sample(x: &[f64]) -> Result<(), StatsError> {
    black_box((drift_correlation(x)?, find_two_modes(x, 1)?, find_outlying_values(x, 0.01)?));
    Ok(())
}

fn plan_repetitions(sd: f64) -> Result<(), StatsError> {
    black_box(PowerRules::default().needed_repetitions(sd, PowerGoal::Decide(0.01))?);
    Ok(())
}

fn make_cases(coarse: bool) -> Vec<(Vec<f64>, Vec<f64>)> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut value =
        || if coarse { rng.random_range(100..110).into() } else { rng.random_range(100.0..110.0) };
    let mut sample = || (0..30).map(|_| value()).collect();
    (0..1_000).map(|_| (sample(), sample())).collect()
}

fn print_times(name: &str, mut work: impl FnMut() -> Result<(), StatsError>) -> Result<(), StatsError> {
    for _ in 0..3 {
        let start = Instant::now();
        work()?;
        println!("{name}: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(())
}

/// The first of its sizes, so that the exact distribution is counted in it; then with that remembered.
fn compare_fifty_with_fifty() -> Result<(), StatsError> {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let [x, y]: [Vec<f64>; 2] =
        std::array::from_fn(|_| (0..50).map(|_| rng.random_range(100.0..110.0)).collect());
    for state in ["first", "again", "again"] {
        let start = Instant::now();
        black_box((PairwiseShifts::relative(&x, &y)?.estimate(0.95)?, mann_whitney(&x, &y)?));
        println!("exact 50 x 50 with interval, {state}: {:.3} ms", start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(())
}

fn compare_ten_thousand(cases: &[(Vec<f64>, Vec<f64>)]) -> Result<(), StatsError> {
    let compared = (0..10).flat_map(|_| cases).map(|(x, y)| compare_pair(x, y));
    let p = compared.collect::<Result<Vec<f64>, _>>()?;
    black_box((benjamini_hochberg(&p)?, benjamini_yekutieli(&p)?));
    Ok(())
}

/// A history of 200 values and the course of 2,000 iterations.
fn analyse_series() -> Result<(), StatsError> {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let values: Vec<f64> = (0..2_000).map(|_| rng.random_range(100.0..110.0)).collect();
    print_times("E-divisive, 200 values, 199 shuffles", || {
        EDivisive::default().find(&values[..200]).map(drop)
    })?;
    print_times("warm-up of 2,000 iterations", || {
        WarmupRules::default().classify(&values, BetterDirection::Lower).map(drop)
    })?;
    let boots: Vec<&[f64]> = values.chunks(200).collect();
    print_times("BCa ratio of medians, 10 x 200, 2,000 resamples", || {
        ClusterBootstrap::default().bca_ratio(&boots, &boots, &median).map(drop)
    })
}

fn main() -> Result<(), StatsError> {
    compare_fifty_with_fifty()?;
    print_times("10,000 metrics with FDR", || compare_ten_thousand(&make_cases(false)))?;
    analyse_series()?;
    for coarse in [false, true] {
        let cases = make_cases(coarse);
        let kind = if coarse { "tied" } else { "untied" };
        print_times(&format!("1,000 {kind} comparisons"), || {
            cases.iter().try_for_each(|(x, y)| compare_pair(x, y).map(drop))
        })?;
        print_times(&format!("1,000 {kind} x 2 warnings"), || {
            cases.iter().try_for_each(|(x, y)| check_sample(x).and_then(|()| check_sample(y)))
        })?;
    }
    print_times("1,000 plans", || (1..=1_000).try_for_each(|i| plan_repetitions(f64::from(i) * 1e-4)))
}
