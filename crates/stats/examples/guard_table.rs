//! The guard's table of docs/statistics.md: how often a flat series ever alarms, and how many runs a step takes, for every
//! shape of noise.
//!
//! `cargo xtask long simulate` runs it and puts what it prints, Markdown, into docs/statistics.md. Arguments: the seed, the
//! series of a cell, and the runs that each lives for.

#![expect(clippy::unwrap_used, reason = "a simulation that cannot be set up must stop")]
#![expect(clippy::print_stdout, reason = "what it prints is what it is for")]

use perflab_stats::{EDivisive, SeriesGroups, StepMonitor, mean, quantile};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How runs scatter, with a standard deviation of 1 but for the outliers.
#[derive(Clone, Copy)]
enum RunNoise {
    Normal,
    LogNormal,
    Bimodal,
    Dependent(f64),
    Outliers,
    Quantised,
}

const SHAPES: [(RunNoise, &str); 8] = [
    (RunNoise::Normal, "normal"),
    (RunNoise::LogNormal, "log-normal, skewed"),
    (RunNoise::Bimodal, "two modes"),
    (RunNoise::Outliers, "1 % outliers x 10"),
    (RunNoise::Quantised, "quantised to 1 sd"),
    (RunNoise::Dependent(0.3), "AR(1) 0.3"),
    (RunNoise::Dependent(0.5), "AR(1) 0.5"),
    (RunNoise::Dependent(0.8), "AR(1) 0.8"),
];

/// Correlations beyond the monitor's own have no bound.
const HIGHEST_BOUNDED: f64 = 0.6;

/// Runs of baseline before the step.
const BASELINES: [usize; 4] = [10, 20, 50, 200];

/// A step, in standard deviations of the noise: 4 % where it is 2 %.
const STEP: f64 = 2.0;

/// A step that takes more runs than these counts as one that takes longer.
const LONGEST_DELAY: usize = 60;

fn draw_normal(random: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

fn draw_series(noise: RunNoise, n: usize, random: &mut ChaCha8Rng) -> Vec<f64> {
    let mut before = draw_normal(random);
    let value = |_| match noise {
        RunNoise::Normal => draw_normal(random),
        // Skewness 1.75, standard deviation 1.
        RunNoise::LogNormal => (0.5 * draw_normal(random)).exp() / 0.604,
        RunNoise::Bimodal => {
            0.3 * draw_normal(random) + if random.random::<f64>() < 0.3 { 2.08 } else { 0.0 }
        }
        RunNoise::Dependent(correlation) => {
            before = correlation * before + (1.0 - correlation * correlation).sqrt() * draw_normal(random);
            before
        }
        RunNoise::Outliers => draw_normal(random) * if random.random::<f64>() < 0.01 { 10.0 } else { 1.0 },
        RunNoise::Quantised => draw_normal(random).round(),
    };
    (0..n).map(value).collect()
}

/// Days and runs a day of flat series whose days have a luck of their own, in standard deviations of the runs.
const DAYS: [(usize, usize, f64); 7] =
    [(30, 4, 0.0), (30, 4, 0.5), (30, 4, 1.0), (30, 4, 2.0), (10, 10, 1.0), (3, 10, 1.0), (2, 10, 1.0)];

/// Runs and the day of each.
fn draw_days((days, runs, luck): (usize, usize, f64), random: &mut ChaCha8Rng) -> (Vec<f64>, SeriesGroups) {
    let (mut values, mut keys) = (Vec::new(), Vec::new());
    for day in 0..days {
        let centre = luck * draw_normal(random);
        values.extend((0..runs).map(|_| centre + draw_normal(random)));
        keys.extend((0..runs).map(|_| day));
    }
    (values, SeriesGroups::from_keys(&keys))
}

/// Steps that `history` finds and alarms of the guard, where each day has a luck of its own: by runs, and with days as a level.
fn print_day_table(seed: usize, series: usize, monitor: &StepMonitor) {
    println!(
        "\nFlat series of several runs a day ({series} each), whose days have a luck of their own; with any step in `history`, and with any \
         alarm by the end of any day, in %: where every run counts, and where a day is a level.\n"
    );
    println!("| days | runs a day | luck of a day | history: runs | days | guard: runs | days |");
    println!("|--:|--:|--:|--:|--:|--:|--:|");
    let search = EDivisive { shortest: 3, autocorrelated: true, ..EDivisive::default() };
    for cell in DAYS {
        let mut random = ChaCha8Rng::seed_from_u64(seed as u64);
        let mut counts = [0_usize; 4];
        for _ in 0..series {
            let (values, groups) = draw_days(cell, &mut random);
            counts[0] += usize::from(!search.find(&values).unwrap().is_empty());
            counts[1] += usize::from(!search.find_in_groups(&values, &groups).unwrap().is_empty());
            counts[2] += usize::from(!monitor.watch(&values, &[]).unwrap().alarms.is_empty());
            // What is the level may change with what is known of the days.
            let ever = groups.ranges().any(|day| {
                let known = groups.part(0..day.end);
                let watched = monitor.watch_in_groups(&values[..day.end], &[], &known).unwrap();
                watched.alarms.last().is_some_and(|alarm| alarm.seen >= day.start)
            });
            counts[3] += usize::from(ever);
        }
        let shares = counts.map(|count| format!("{:.1}", 100.0 * count as f64 / series as f64));
        let (days, runs, luck) = cell;
        println!("| {days} | {runs} | {luck} sd | {} |", shares.join(" | "));
    }
}

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).map(|text| text.parse().unwrap()).collect();
    let number = |at: usize, usual: usize| numbers.get(at).copied().unwrap_or(usual);
    let (seed, repetitions, life) = (number(0, 2026), number(1, 1000), number(2, 500));
    let monitor = StepMonitor::new(0.05, 500).unwrap();
    let alarm = |values: &[f64]| monitor.watch(values, &[]).unwrap().alarms.first().copied();
    println!(
        "Seed {seed}, {repetitions} series a cell ({} with a step), lives of {life} runs.\n",
        repetitions / 4
    );
    let mut bounded = Vec::new();
    println!(
        "| noise | flat series that ever alarm, in {life} runs | {} |",
        BASELINES.map(|n| format!("after {n} runs")).join(" | ")
    );
    println!("|---|---|{}", "---|".repeat(BASELINES.len()));
    for (noise, name) in SHAPES {
        let mut random = ChaCha8Rng::seed_from_u64(seed as u64);
        let alarms =
            (0..repetitions).filter(|_| alarm(&draw_series(noise, life, &mut random)).is_some()).count();
        let delays = BASELINES.map(|baseline| {
            let mut delay = |number: usize| {
                let mut values = draw_series(noise, baseline + LONGEST_DELAY, &mut random);
                let step = if number.is_multiple_of(2) { STEP } else { -STEP };
                values.iter_mut().skip(baseline).for_each(|value| *value += step);
                let found =
                    monitor.watch(&values, &[]).unwrap().alarms.into_iter().find(|a| a.seen >= baseline);
                found.map_or(LONGEST_DELAY as f64 + 1.0, |alarm| (alarm.seen - baseline + 1) as f64)
            };
            let delays: Vec<f64> = (0..repetitions / 4).map(&mut delay).collect();
            let text = |share: f64| {
                let runs = quantile(&delays, share).unwrap();
                if runs > LONGEST_DELAY as f64 { format!("> {LONGEST_DELAY}") } else { format!("{runs:.0}") }
            };
            format!("{} ({})", text(0.5), text(0.9))
        });
        let rate = 100.0 * alarms as f64 / repetitions as f64;
        println!("| {name} | {rate:.1} % | {} |", delays.join(" | "));
        if !matches!(noise, RunNoise::Dependent(correlation) if correlation > HIGHEST_BOUNDED) {
            bounded.push(rate);
        }
    }
    let worst = bounded.iter().copied().fold(0.0, f64::max);
    println!("\nWorst cell {worst:.1} %, mean {:.1} %.", mean(&bounded).unwrap());
    print_day_table(seed, repetitions / 2, &monitor);
}
