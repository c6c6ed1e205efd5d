//! How often `history` finds steps that are there, and steps that are not, as docs/statistics.md has it.
//!
//! `cargo run --release -p perflab-stats --example step_table [SERIES]` prints Markdown; SERIES of each flat cell, half as many of each
//! course.

#![expect(clippy::unwrap_used, reason = "a simulation that cannot be set up must stop")]
#![expect(clippy::print_stdout, reason = "what it prints is what it is for")]

use perflab_stats::EDivisive;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Where the level changes, by how many standard deviations.
type Course = (usize, &'static [(usize, f64)]);

const COURSES: [Course; 9] = [
    (60, &[(30, 2.0)]),
    (40, &[(13, 2.5), (26, -3.5)]),
    (40, &[(13, 2.5), (26, -6.0)]),
    (40, &[(13, 4.0), (26, -8.0)]),
    (40, &[(13, 3.0), (26, 3.0)]),
    (60, &[(15, 3.0), (30, 3.0), (45, 3.0)]),
    (60, &[(12, 4.0), (24, -4.0), (36, 4.0), (48, -4.0)]),
    (60, &[(25, 4.0), (30, -4.0)]),
    (60, &[(25, 4.0), (45, -4.0)]),
];

fn draw_normal(random: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

/// Values of variance 1 with this lag-one correlation.
fn draw_series(random: &mut ChaCha8Rng, n: usize, correlation: f64) -> Vec<f64> {
    let innovation = (1.0 - correlation * correlation).sqrt();
    let mut value = draw_normal(random);
    let mut next = || {
        value = correlation * value + innovation * draw_normal(random);
        value
    };
    (0..n).map(|_| next()).collect()
}

/// As `history` searches.
fn find_steps(series: &[f64], seed: u64) -> Vec<usize> {
    let search = EDivisive { shortest: 3, seed, autocorrelated: true, ..EDivisive::default() };
    search.find(series).unwrap().iter().map(|step| step.index).collect()
}

fn main() {
    let tries: u32 = std::env::args().nth(1).map_or(600, |text| text.parse().unwrap());
    let percent = |hits: u32, of: u32| 100.0 * f64::from(hits) / f64::from(of);
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut seed = 0;
    println!("| flat values | correlation | with a step, % |\n|--:|--:|--:|");
    for n in [20, 30, 40, 60, 100] {
        for correlation in [0.0, 0.3, 0.6] {
            let mut hits = 0;
            for _ in 0..tries {
                seed += 1;
                let series = draw_series(&mut random, n, correlation);
                hits += u32::from(!find_steps(&series, seed).is_empty());
            }
            println!("| {n} | {correlation} | {:.1} |", percent(hits, tries));
        }
    }
    println!(
        "\n| values | steps (at, standard deviations) | correlation | all found, % | any, % |\n|--:|:--|--:|--:|--:|"
    );
    let tries = tries / 2;
    for (n, steps) in COURSES {
        for correlation in [0.0, 0.3] {
            let (mut all, mut any) = (0, 0);
            for _ in 0..tries {
                seed += 1;
                let mut series = draw_series(&mut random, n, correlation);
                for (at, by) in steps {
                    series.iter_mut().skip(*at).for_each(|value| *value += by);
                }
                let found = find_steps(&series, seed);
                let is_found = |at: usize| found.iter().any(|index| index.abs_diff(at) <= 2);
                all += u32::from(steps.iter().all(|(at, _)| is_found(*at)));
                any += u32::from(!found.is_empty());
            }
            let [all, any] = [all, any].map(|hits| percent(hits, tries));
            println!("| {n} | {steps:?} | {correlation} | {all:.0} | {any:.0} |");
        }
    }
}
