//! The table of runs that end once they are decided: how often each word comes where the truth is known, how often the interval
//! holds it, and how many blocks it takes, for every shape of noise, beside runs of a fixed number of blocks.
//!
//! `cargo xtask long simulate` runs it and puts what it prints, Markdown, into docs/statistics.md. Arguments: the seed and the
//! repetitions of a cell.

#![expect(clippy::unwrap_used, reason = "a simulation that cannot be set up must stop")]
#![expect(clippy::print_stdout, reason = "what it prints is what it is for")]

use std::collections::BTreeMap;

use fixtures::cell_simulation::{share_in_percent, simulate_cells};
use fixtures::noise_shapes::{NOISE_SHAPES, NoiseShape, ValueProcess};
use fixtures::run_builder::{RunBuilder, SplitMixNoise};
use perflab_analyze::{AnalysisOptions, ComparisonSide, DecidingRows, Verdict, VerdictRow, compare_levels};
use perflab_model::RunRecord;
use perflab_model::study::StoppingRule;
use perflab_stats::quantile;

/// The most blocks of a run that ends once it is decided.
const AT_MOST: u32 = 60;

/// The blocks of the runs beside it.
const FIXED: u32 = 30;

const CHANGES: [f64; 4] = [0.0, 0.01, 0.02, 0.05];

/// Both levels of a run of so many blocks, in drawn order within each block.
fn draw_run(shape: NoiseShape, change: f64, noise: &mut SplitMixNoise) -> RunRecord {
    let state = noise.normal();
    let mut process = ValueProcess { shape, noise, state, step: 0, steps: 2 * AT_MOST };
    let lab = RunBuilder::new("r").with(|lab| {
        lab.factors = vec![("build", vec!["old", "new"])];
        lab.iterations = AT_MOST;
    });
    let mut candidate = None;
    lab.build_run(|at| {
        if at.level("build") == "new" {
            return candidate.take().unwrap();
        }
        let is_first = process.noise.uniform() < 0.5;
        let early = process.next_value(if is_first { 1.0 } else { 1.0 + change });
        let late = process.next_value(if is_first { 1.0 + change } else { 1.0 });
        let (baseline, other) = if is_first { (early, late) } else { (late, early) };
        candidate = Some(other);
        baseline
    })
}

/// The run when so many blocks are done.
fn after_blocks(run: &RunRecord, blocks: u32, until: Option<StoppingRule>) -> RunRecord {
    let mut manifest = run.manifest.clone();
    manifest.study.run.until = until;
    RunRecord {
        samples: run.samples.iter().filter(|sample| sample.iteration < blocks).cloned().collect(),
        iterations: run.iterations.iter().filter(|one| one.slot < 2 * blocks).cloned().collect(),
        ..RunRecord::new(manifest)
    }
}

fn options_with_margin(margin: f64) -> AnalysisOptions {
    AnalysisOptions { default_margin: margin, ..AnalysisOptions::default() }
}

fn judge_run(run: RunRecord, margin: f64) -> VerdictRow {
    let side = ComparisonSide { name: "r".into(), runs: vec![run] };
    compare_levels(&side, "build", &options_with_margin(margin)).unwrap().rows.remove(0)
}

/// Looks after every block until the run is decided; the blocks, and the row that is then shown.
fn run_until_decided(run: &RunRecord, until: Option<StoppingRule>, margin: f64) -> (u32, VerdictRow) {
    let options = options_with_margin(margin);
    let is_decided = |blocks: &u32| {
        DecidingRows::of_run(&after_blocks(run, *blocks, until), &options).unwrap().are_decided()
    };
    let blocks = (StoppingRule::FEWEST_DECIDED_BLOCKS..AT_MOST).find(is_decided).unwrap_or(AT_MOST);
    (blocks, judge_run(after_blocks(run, blocks, until), margin))
}

fn is_better_or_worse(row: &VerdictRow) -> bool {
    matches!(row.verdict, Verdict::Better | Verdict::Worse)
}

/// What came of a cell.
#[derive(Debug, Default, Clone)]
struct CellCounts {
    words: BTreeMap<&'static str, usize>,
    blocks: Vec<f64>,
    intervals: usize,
    covering: usize,
    fixed_words: BTreeMap<&'static str, usize>,
    /// Better or worse with a margin of zero, which never says same.
    alarms_without_margin: usize,
    /// The same of ordinary intervals that are looked at as often, and the experiments of them.
    peeking_alarms: usize,
    peeking: usize,
}

fn simulate_cell(shape: NoiseShape, change: f64, tries: usize, seed: u64) -> CellCounts {
    let mut noise = SplitMixNoise(seed);
    let mut counts = CellCounts::default();
    let until = Some(StoppingRule::decided(AT_MOST));
    for number in 0..tries {
        let run = draw_run(shape, change, &mut noise);
        let (blocks, row) = run_until_decided(&run, until, 0.03);
        *counts.words.entry(row.verdict.word()).or_default() += 1;
        counts.blocks.push(f64::from(blocks));
        if let Some(interval) = row.change.and_then(|change| change.interval) {
            counts.intervals += 1;
            counts.covering += usize::from(interval.low <= change && change <= interval.high);
        }
        let fixed = judge_run(after_blocks(&run, FIXED, None), 0.03);
        *counts.fixed_words.entry(fixed.verdict.word()).or_default() += 1;
        if change == 0.0 {
            // What any look excludes stays excluded, so that the last one tells of them all.
            let alarms = usize::from(is_better_or_worse(&judge_run(after_blocks(&run, AT_MOST, until), 0.0)));
            counts.alarms_without_margin += alarms;
            if number.is_multiple_of(8) {
                counts.peeking += 1;
                let alarms = usize::from(is_better_or_worse(&run_until_decided(&run, None, 0.0).1));
                counts.peeking_alarms += alarms;
            }
        }
    }
    counts
}

type CellKey = (NoiseShape, usize);

fn simulate_all(seed: u64, tries: usize) -> BTreeMap<CellKey, CellCounts> {
    let keys: Vec<CellKey> = NOISE_SHAPES
        .iter()
        .flat_map(|(shape, _)| (0..CHANGES.len()).map(move |change| (*shape, change)))
        .collect();
    simulate_cells(&keys, seed, |(shape, change), own| simulate_cell(shape, CHANGES[change], tries, own))
}

const WORDS: [&str; 4] = ["better", "worse", "same", "unclear"];

fn shares_text(words: &BTreeMap<&'static str, usize>, tries: usize) -> String {
    let shares =
        WORDS.map(|word| format!("{:.1}", share_in_percent(words.get(word).copied().unwrap_or(0), tries)));
    shares.join(" / ")
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>().unwrap());
    let (seed, tries) = (arguments.next().unwrap_or(2026), arguments.next().unwrap_or(2_000) as usize);
    let found = simulate_all(seed, tries);
    println!(
        "Seed {seed}, {tries} experiments a cell of two interleaved levels with 2 % noise, looked at after every block from the \
         sixth to the {AT_MOST}th; a margin of 3 %. Better / worse / same / unclear, in %:\n"
    );
    println!(
        "| shape | change | until decided | blocks: median (90 % need no more) | the interval holds the change | {FIXED} blocks, looked at once |\n\
         |:--|--:|:--|--:|--:|:--|"
    );
    for (shape, name) in NOISE_SHAPES {
        for (at, change) in CHANGES.iter().enumerate() {
            let counts = &found[&(shape, at)];
            let blocks = |share: f64| quantile(&counts.blocks, share).unwrap();
            println!(
                "| {name} | {:.0} % | {} | {:.0} ({:.0}) | {:.1} % | {} |",
                100.0 * change,
                shares_text(&counts.words, tries),
                blocks(0.5),
                blocks(0.9),
                share_in_percent(counts.covering, counts.intervals),
                shares_text(&counts.fixed_words, tries),
            );
        }
    }
    println!(
        "\nBetter or worse where nothing changed, in % of runs: with the margin of 3 %; with a margin of zero, where nothing but a \
         false alarm ends a run; and the same with ordinary intervals that are looked at as often:\n"
    );
    println!("| shape | margin 3 % | margin 0 | ordinary intervals, margin 0 |\n|:--|--:|--:|--:|");
    let mut alarms = Vec::new();
    for (shape, name) in NOISE_SHAPES {
        let counts = &found[&(shape, 0)];
        let words = ["better", "worse"].iter().filter_map(|word| counts.words.get(word)).sum();
        let own = [words, counts.alarms_without_margin].map(|count| share_in_percent(count, tries));
        let peeking = share_in_percent(counts.peeking_alarms, counts.peeking);
        println!("| {name} | {:.1} | {:.1} | {peeking:.1} |", own[0], own[1]);
        alarms.extend(own);
    }
    let coverages: Vec<f64> =
        found.values().map(|one| share_in_percent(one.covering, one.intervals)).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let worst = alarms.iter().copied().fold(0.0, f64::max);
    println!("\nWorst cell {worst:.1} %, mean {:.1} %.", mean(&alarms));
    println!("\nOf the intervals' coverage:");
    let least = coverages.iter().copied().fold(100.0, f64::min);
    println!("\nWorst cell {least:.1} %, mean {:.1} %.", mean(&coverages));
}
