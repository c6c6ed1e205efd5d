//! The table of bisections of docs/statistics.md: how often the walk over a history ends at a wrong commit, and how many boots it
//! takes, beside bisections that measure each commit a fixed number of times.
//!
//! `cargo xtask long simulate` runs it and puts what it prints, Markdown, into docs/statistics.md. Arguments: the seed and the
//! number of histories.

#![expect(clippy::unwrap_used, reason = "a simulation that cannot be set up must stop")]
#![expect(clippy::print_stdout, reason = "what it prints is what it is for")]

use std::collections::{BTreeMap, BTreeSet};

use fixtures::cell_simulation::{share_in_percent, simulate_cells};
use fixtures::replayed_noise::RecordedNoise;
use fixtures::run_builder::SplitMixNoise;
use perflab_analyze::bisection::{
    Bisection, BisectionCosts, BisectionEnd, BisectionOptions, BisectionStep, MeasuredBlock,
};
use perflab_stats::{mean, median};

/// How much worse the culprit makes the metric.
const STEPS: [f64; 4] = [0.01, 0.02, 0.03, 0.05];

/// How the middle of the noise scatters.
const SPREAD: f64 = 0.02;

const ERROR: f64 = 0.05;

/// In boots.
const COSTS: BisectionCosts = BisectionCosts { build: 5.0, boot: 1.0, step: 0.5 };

const MOST_BOOTS: usize = 20_000;

/// Boots of each commit that a fixed bisection may have.
const FIXED: [usize; 22] =
    [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 300, 500];

/// A history: commit 0 is good, the last one bad.
struct SyntheticHistory {
    bad: usize,
    culprit: usize,
    step: f64,
    unbuildable: BTreeSet<usize>,
}

impl SyntheticHistory {
    /// Of 16 to 1,000 commits, evenly by the logarithm; in every third one, one commit in ten does not build, often with the next ones.
    fn draw(step: f64, noise: &mut SplitMixNoise) -> Self {
        let bad = (16.0 * (1000.0_f64 / 16.0).powf(noise.uniform())).round() as usize;
        let culprit = 1 + (noise.uniform() * bad as f64) as usize;
        let mut unbuildable = BTreeSet::new();
        if noise.uniform() < 1.0 / 3.0 {
            let mut is_broken = false;
            for commit in 1..bad {
                is_broken = noise.uniform() < if is_broken { 0.6 } else { 0.05 };
                if is_broken {
                    unbuildable.insert(commit);
                }
            }
        }
        SyntheticHistory { bad, culprit, step, unbuildable }
    }

    fn level(&self, commit: usize) -> f64 {
        if commit >= self.culprit { 1.0 + self.step } else { 1.0 }
    }

    /// A block of commits in drawn order.
    fn measure(
        &self,
        commits: &[usize],
        noise: &mut SplitMixNoise,
        next: &mut impl FnMut() -> f64,
    ) -> MeasuredBlock {
        let mut order: Vec<usize> = (0..commits.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, (noise.uniform() * (at + 1) as f64) as usize);
        }
        let mut values = vec![0.0; commits.len()];
        for at in order {
            values[at] = (self.level(commits[at]) * next()).ln();
        }
        MeasuredBlock { commits: commits.to_vec(), values }
    }
}

/// How a walk ended.
struct WalkOutcome {
    is_right: bool,
    is_wrong: bool,
    boots: f64,
    confirmation: f64,
    builds: f64,
    covers: Option<bool>,
}

fn walk_history(
    history: &SyntheticHistory,
    recorded: &RecordedNoise,
    noise: &mut SplitMixNoise,
) -> WalkOutcome {
    let options = BisectionOptions {
        error: ERROR,
        margin: 0.002,
        costs: COSTS,
        most_end_blocks: 400,
        most_boots: MOST_BOOTS,
    };
    let mut walk = Bisection::new(history.bad, options).unwrap();
    let mut next = recorded.replay(noise);
    let mut built = BTreeSet::new();
    let end = loop {
        match walk.next_step() {
            BisectionStep::End(end) => break end,
            BisectionStep::Measure { commits, blocks, .. } => {
                if let Some(broken) = commits.iter().find(|one| history.unbuildable.contains(one)) {
                    walk.skip(*broken);
                    continue;
                }
                for commit in &commits {
                    walk.mark_built(*commit);
                    built.insert(*commit);
                }
                let blocks: Vec<_> =
                    (0..blocks).map(|_| history.measure(&commits, noise, &mut next)).collect();
                walk.observe(&blocks).unwrap();
            }
        }
    };
    let confirmation = match end {
        BisectionEnd::Found(found) => Some(found),
        _ => None,
    };
    let is_right = confirmation.map(|found| found.range.contains(history.culprit));
    let change = (1.0 + history.step).ln();
    let interval = confirmation.and_then(|found| found.change.interval);
    let confirming = confirmation.map_or(0, |found| 2 * found.blocks);
    WalkOutcome {
        is_right: is_right == Some(true),
        is_wrong: is_right == Some(false),
        boots: (walk.boots() - confirming) as f64,
        confirmation: confirming as f64,
        builds: built.len() as f64,
        covers: interval
            .filter(|_| is_right == Some(true))
            .map(|interval| interval.low <= change && change <= interval.high),
    }
}

/// Bisection as it is done by hand, with `n` boots a commit: whether it ends right, its boots and builds.
fn bisect_fixed(
    history: &SyntheticHistory,
    n: usize,
    is_interleaved: bool,
    recorded: &RecordedNoise,
    noise: &mut SplitMixNoise,
) -> (bool, f64, f64) {
    let mut next = recorded.replay(noise);
    let mut boots = 0;
    let mut builds = 2;
    let mut values = |commits: &[usize], boots: &mut usize, noise: &mut SplitMixNoise| -> Vec<Vec<f64>> {
        let blocks: Vec<MeasuredBlock> = (0..n).map(|_| history.measure(commits, noise, &mut next)).collect();
        *boots += n * commits.len();
        (0..commits.len()).map(|at| blocks.iter().map(|block| block.values[at]).collect()).collect()
    };
    let threshold = |good: &[f64], bad: &[f64]| median(good).unwrap().midpoint(median(bad).unwrap());
    let mut ends = Vec::new();
    if !is_interleaved {
        ends = values(&[0, history.bad], &mut boots, noise);
    }
    let mut skipped = BTreeSet::new();
    let (mut good, mut bad) = (0_usize, history.bad);
    loop {
        let middle = good.midpoint(bad);
        let open = (good + 1..bad).filter(|commit| !skipped.contains(commit));
        let Some(commit) = open.min_by_key(|commit| commit.abs_diff(middle)) else { break };
        if history.unbuildable.contains(&commit) {
            skipped.insert(commit);
            continue;
        }
        builds += 1;
        let is_bad = if is_interleaved {
            let found = values(&[0, commit, history.bad], &mut boots, noise);
            median(&found[1]).unwrap() > threshold(&found[0], &found[2])
        } else {
            let found = values(&[commit], &mut boots, noise);
            median(&found[0]).unwrap() > threshold(&ends[0], &ends[1])
        };
        if is_bad { bad = commit } else { good = commit }
    }
    ((good + 1..=bad).contains(&history.culprit), boots as f64, f64::from(builds))
}

#[derive(Default)]
struct CellCounts {
    right: usize,
    wrong: usize,
    boots: Vec<f64>,
    confirmations: Vec<f64>,
    builds: Vec<f64>,
    intervals: usize,
    covering: usize,
    /// By n and whether both ends are measured with each commit: right ones, and boots.
    fixed: BTreeMap<(bool, usize), (usize, f64, f64)>,
}

fn simulate_cell(step: f64, recorded: &RecordedNoise, histories: usize, seed: u64) -> CellCounts {
    let mut noise = SplitMixNoise(seed);
    let mut counts = CellCounts::default();
    for _ in 0..histories {
        let history = SyntheticHistory::draw(step, &mut noise);
        let found = walk_history(&history, recorded, &mut noise);
        counts.right += usize::from(found.is_right);
        counts.wrong += usize::from(found.is_wrong);
        counts.boots.push(found.boots);
        counts.confirmations.push(found.confirmation);
        counts.builds.push(found.builds);
        counts.intervals += usize::from(found.covers.is_some());
        counts.covering += usize::from(found.covers == Some(true));
        for is_interleaved in [false, true] {
            for n in FIXED {
                let (is_right, boots, builds) =
                    bisect_fixed(&history, n, is_interleaved, recorded, &mut noise);
                let all = counts.fixed.entry((is_interleaved, n)).or_default();
                all.0 += usize::from(is_right);
                all.1 += boots;
                all.2 += builds;
            }
        }
    }
    counts
}

/// The interval of a share by Wilson (1927), 95 %, in per cent.
fn share_interval(count: usize, of: usize) -> (f64, f64) {
    let (z, n) = (1.96_f64, of as f64);
    let share = count as f64 / n;
    let centre = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    (100.0 * (centre - half).max(0.0), 100.0 * (centre + half).min(1.0))
}

/// The fewest mean boots of a fixed bisection with at most so many wrong, of either kind: boots, builds, n, whether interleaved.
fn best_fixed(cells: &[&CellCounts], of: usize, most_wrong: f64) -> Option<(f64, f64, usize, bool)> {
    let keys = [false, true].into_iter().flat_map(|kind| FIXED.map(|n| (kind, n)));
    let found = keys.filter_map(|key| {
        let right: usize = cells.iter().map(|cell| cell.fixed[&key].0).sum();
        let sum = |part: fn(&(usize, f64, f64)) -> f64| -> f64 {
            cells.iter().map(|cell| part(&cell.fixed[&key])).sum::<f64>() / of as f64
        };
        let wrong = share_in_percent(of - right, of);
        (wrong <= most_wrong).then(|| (sum(|one| one.1), sum(|one| one.2), key.1, key.0))
    });
    found.min_by(|one, other| one.0.total_cmp(&other.0))
}

fn print_row(name: &str, cells: &[&CellCounts], of: usize) {
    let sum = |part: fn(&CellCounts) -> usize| -> usize { cells.iter().map(|cell| part(cell)).sum() };
    let all = |part: fn(&CellCounts) -> &Vec<f64>| -> f64 {
        mean(&cells.iter().flat_map(|cell| part(cell)).copied().collect::<Vec<_>>()).unwrap()
    };
    let wrong = sum(|cell| cell.wrong);
    let (low, high) = share_interval(wrong, of);
    let fixed = |most: f64| match best_fixed(cells, of, most) {
        Some((boots, builds, n, kind)) => {
            format!("{boots:.0} ({builds:.0}): {n} a commit{}", if kind { ", with both ends" } else { "" })
        }
        None => format!("none of up to {}", FIXED[FIXED.len() - 1]),
    };
    println!(
        "| {name} | {:.1} % ({low:.1} to {high:.1}) | {:.1} % | {:.0} ({:.0}) | {:.0} | {:.1} % | {} | {} |",
        share_in_percent(wrong, of),
        share_in_percent(of - wrong - sum(|cell| cell.right), of),
        all(|cell| &cell.boots),
        all(|cell| &cell.builds),
        all(|cell| &cell.confirmations),
        share_in_percent(sum(|cell| cell.covering), sum(|cell| cell.intervals)),
        fixed(100.0 * ERROR),
        fixed(share_in_percent(wrong, of).max(100.0 / of as f64)),
    );
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>().unwrap());
    let (seed, histories) = (arguments.next().unwrap_or(2026), arguments.next().unwrap_or(1_000) as usize);
    let recorded = RecordedNoise::read_all(SPREAD);
    // Small parts, so that all processors have something to do until the end.
    const PARTS: usize = 4;
    let own = histories.div_ceil(STEPS.len() * recorded.len() * PARTS);
    let keys: Vec<(usize, usize, usize)> = (0..STEPS.len())
        .flat_map(|step| {
            (0..recorded.len()).flat_map(move |noise| (0..PARTS).map(move |part| (step, noise, part)))
        })
        .collect();
    let found = simulate_cells(&keys, seed, |(step, noise, _), own_seed| {
        simulate_cell(STEPS[step], &recorded[noise], own, own_seed)
    });
    println!(
        "Seed {seed}, {} histories of 16 to 1,000 commits, in every third of which one commit in nine does not build; noise as it was \
         recorded, scaled to a spread of {:.0} %; a build costs as much as {} boots. Boots are means, with builds in brackets:\n",
        own * keys.len(),
        100.0 * SPREAD,
        COSTS.build,
    );
    println!(
        "| | wrong (95 %) | no answer | boots (builds) | boots of the confirmation | its interval holds the step | fixed, at most 5 % \
         wrong | fixed, no more wrong than ours |\n|:--|--:|--:|--:|--:|--:|:--|:--|"
    );
    for (at, step) in STEPS.iter().enumerate() {
        let cells: Vec<&CellCounts> =
            found.iter().filter(|(key, _)| key.0 == at).map(|(_, cell)| cell).collect();
        print_row(&format!("a step of {:.0} %", 100.0 * step), &cells, own * cells.len());
    }
    for (at, noise) in recorded.iter().enumerate() {
        let cells: Vec<&CellCounts> =
            found.iter().filter(|(key, _)| key.1 == at).map(|(_, cell)| cell).collect();
        print_row(noise.name, &cells, own * cells.len());
    }
    let cells: Vec<&CellCounts> = found.values().collect();
    print_row("all", &cells, own * cells.len());
    let of = own * cells.len();
    let wrong: usize = cells.iter().map(|cell| cell.wrong).sum();
    let boots: f64 = cells.iter().flat_map(|cell| cell.boots.iter().chain(&cell.confirmations)).sum();
    let fixed = best_fixed(&cells, of, 100.0 * ERROR).map_or(f64::INFINITY, |best| best.0);
    println!(
        "\nWrong in {:.1} % with {:.0} boots, confirmation included; a fixed number takes {fixed:.0}.",
        share_in_percent(wrong, of),
        boots / of as f64,
    );
}
