//! The statistics of `perflab compare` for 1,000 cases of 30 against 30: ratio with its 90 and 95 % intervals,
//! p-value, and the warnings. `cargo bench -p perflab-stats`; the bar is 300 ms for all of it.

use perflab_stats::{Goal, PairwiseShifts, Plan, StatsError, drift, mann_whitney, outliers, two_modes};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::hint::black_box;
use std::time::Instant;

fn compare(x: &[f64], y: &[f64]) -> Result<f64, StatsError> {
    let shifts = PairwiseShifts::relative(x, y)?;
    black_box((shifts.estimate(0.90)?, shifts.estimate(0.95)?));
    Ok(mann_whitney(x, y)?.p)
}

fn warn(x: &[f64]) -> Result<(), StatsError> {
    black_box((drift(x)?, two_modes(x)?, outliers(x)?));
    Ok(())
}

fn plan(sd: f64) -> Result<(), StatsError> {
    black_box(Plan::default().needed_repetitions(sd, Goal::Decide(0.01))?);
    Ok(())
}

fn cases(coarse: bool) -> Vec<(Vec<f64>, Vec<f64>)> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut value =
        || if coarse { rng.random_range(100..110).into() } else { rng.random_range(100.0..110.0) };
    let mut sample = || (0..30).map(|_| value()).collect();
    (0..1_000).map(|_| (sample(), sample())).collect()
}

fn timed(name: &str, mut work: impl FnMut() -> Result<(), StatsError>) -> Result<(), StatsError> {
    for _ in 0..3 {
        let start = Instant::now();
        work()?;
        println!("{name}: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(())
}

fn main() -> Result<(), StatsError> {
    for coarse in [false, true] {
        let cases = cases(coarse);
        let kind = if coarse { "tied" } else { "untied" };
        timed(&format!("1,000 {kind} comparisons"), || {
            cases.iter().try_for_each(|(x, y)| compare(x, y).map(drop))
        })?;
        timed(&format!("1,000 {kind} x 2 warnings"), || {
            cases.iter().try_for_each(|(x, y)| warn(x).and_then(|()| warn(y)))
        })?;
    }
    timed("1,000 plans", || (1..=1_000).try_for_each(|i| plan(f64::from(i) * 1e-4)))
}
