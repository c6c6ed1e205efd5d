//! The table of docs/decisions/location-shift.md: what the test that suits the values finds in pairs, beside signed ranks alone and
//! beside the test of two samples.
//!
//! `cargo xtask long simulate` runs it and puts what it prints, Markdown, into the page. Arguments: the seed and the experiments of a
//! cell.

#![expect(clippy::unwrap_used, reason = "a simulation that cannot be set up must stop")]
#![expect(clippy::print_stdout, reason = "what it prints is what it is for")]

use fixtures::cell_simulation::{share_in_percent, simulate_cells};
use fixtures::noise_shapes::{NoiseShape, ValueProcess};
use fixtures::run_builder::SplitMixNoise;
use perflab_stats::{IntervalEstimate, LocationShift, PairwiseShifts, WalshAverages};

/// What is looked for, as a share of the baseline.
const CHANGE: f64 = 0.01;

/// Fewest pairs for an interval at 95 % by signed ranks.
const FEWEST_PAIRS: usize = 6;

const ROWS: [(NoiseShape, &str, usize); 17] = [
    (NoiseShape::Normal, "normal", 8),
    (NoiseShape::Normal, "normal", 10),
    (NoiseShape::Normal, "normal", 30),
    (NoiseShape::Bimodal, "two modes, 5 % apart", 8),
    (NoiseShape::Bimodal, "two modes, 5 % apart", 10),
    (NoiseShape::Bimodal, "two modes, 5 % apart", 30),
    (NoiseShape::HeavyTail, "tail: 5 % x 3", 10),
    (NoiseShape::HeavyTail, "tail: 5 % x 3", 30),
    (NoiseShape::HeavyTail, "tail: 5 % x 3", 100),
    (NoiseShape::FailingWhenSlow, "the slow tenth fails", 30),
    (NoiseShape::Quantised, "in steps of 2 %", 10),
    (NoiseShape::Quantised, "in steps of 2 %", 30),
    (NoiseShape::CoarselyQuantised, "in steps of 5 %", 30),
    (NoiseShape::Dependent, "AR(1) 0.5", 30),
    (NoiseShape::SteepDrift, "drift of 50 %", 30),
    (NoiseShape::Alternating, "alternating 0, 5 %", 10),
    (NoiseShape::Alternating, "alternating 0, 5 %", 30),
];

/// How often one estimator alarms, finds the change, and covers it.
#[derive(Debug, Clone, Copy, Default)]
struct EstimatorRates {
    alarms: usize,
    found: usize,
    covered: usize,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seed: u64 = arguments.next().unwrap().parse().unwrap();
    let experiments: usize = arguments.next().unwrap().parse().unwrap();
    let cells: Vec<usize> = (0..ROWS.len()).collect();
    let rates = simulate_cells(&cells, seed, |at, seed| simulate_row(ROWS[at], seed, experiments));
    println!("Seed {seed}, {experiments} experiments a cell.\n");
    println!("| values | pairs | signed ranks | unpaired (Mann-Whitney) | as decided |");
    println!("|:--|:--|:--|:--|:--|");
    for (at, (_, name, pairs)) in ROWS.iter().enumerate() {
        let cells = rates[&at].map(|rates| {
            let [alarms, found, covered] =
                [rates.alarms, rates.found, rates.covered].map(|count| share_in_percent(count, experiments));
            format!("{alarms:.1} %, {found:.0} %, {covered:.1} %")
        });
        println!("| {name} | {pairs} | {} |", cells.join(" | "));
    }
}

fn simulate_row(
    (shape, _, pairs): (NoiseShape, &str, usize),
    seed: u64,
    experiments: usize,
) -> [EstimatorRates; 3] {
    let mut noise = SplitMixNoise(seed);
    let mut rates = [EstimatorRates::default(); 3];
    for change in [0.0, CHANGE] {
        for _ in 0..experiments {
            let (x, y) = draw_pairs(shape, pairs, change, &mut noise);
            for (rates, found) in rates.iter_mut().zip(estimate_thrice(&x, &y)) {
                let Some(interval) = found.interval else { continue };
                if change > 0.0 {
                    rates.found += usize::from(interval.excludes(0.0));
                    rates.covered += usize::from(!interval.excludes(change.ln_1p()));
                } else {
                    rates.alarms += usize::from(interval.excludes(0.0));
                }
            }
        }
    }
    rates
}

/// By signed ranks, by the ranks of two samples, and as decided.
fn estimate_thrice(x: &[f64], y: &[f64]) -> [IntervalEstimate; 3] {
    [
        WalshAverages::absolute(x, y).unwrap().estimate(0.95).unwrap(),
        PairwiseShifts::absolute(x, y).unwrap().estimate(0.95).unwrap(),
        LocationShift::of_pairs(x, y).unwrap().estimate(0.95).unwrap(),
    ]
}

/// Logarithms of the values of complete pairs, whose order was drawn; as many blocks as there are to be pairs, again where too few
/// of them are complete.
fn draw_pairs(
    shape: NoiseShape,
    blocks: usize,
    change: f64,
    noise: &mut SplitMixNoise,
) -> (Vec<f64>, Vec<f64>) {
    let pairs = loop {
        let state = noise.normal();
        let mut process = ValueProcess { shape, noise, state, step: 0, steps: 2 * blocks as u32 };
        let complete = |_| {
            let baseline_first = process.noise.uniform() < 0.5;
            let (first, second) = if baseline_first { (1.0, 1.0 + change) } else { (1.0 + change, 1.0) };
            let (first, second) = (process.next_value(first), process.next_value(second));
            let (baseline, candidate) = if baseline_first { (first, second) } else { (second, first) };
            baseline.zip(candidate)
        };
        let pairs: Vec<(f64, f64)> = (0..blocks).filter_map(complete).collect();
        if pairs.len() >= FEWEST_PAIRS {
            break pairs;
        }
    };
    pairs.into_iter().map(|(x, y)| (x.ln(), y.ln())).unzip()
}
