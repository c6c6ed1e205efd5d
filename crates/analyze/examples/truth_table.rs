//! The table of truth: how often each word comes where the truth is known, by simulation, for every shape of noise, design and
//! number of iterations, beside what other tools' rules say of the same data.
//!
//! `cargo xtask long simulate` runs it and puts what it prints, Markdown, into docs/statistics.md. Arguments: the seed and the
//! repetitions of a cell.

#![expect(clippy::unwrap_used, reason = "a simulation that cannot be set up must stop")]
#![expect(clippy::print_stdout, reason = "what it prints is what it is for")]

use std::collections::BTreeMap;

use fixtures::cell_simulation::{share_in_percent, simulate_cells};
use fixtures::noise_shapes::{NOISE_SHAPES as SHAPES, NoiseShape, ValueProcess};
use fixtures::run_builder::{RunBuilder, SplitMixNoise};
use perflab_analyze::{
    AnalysisOptions, ComparisonSide, IntervalMeaning, RowFlag, Verdict, VerdictRow, compare_levels,
    compare_sides,
};
use perflab_model::RunRecord;
use perflab_model::fact_table;
use perflab_stats::{mann_whitney, mean, sd, welch};

/// How both sides are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Design {
    Interleaved,
    OneRunEach,
    SeveralRuns,
    Boots,
    UnequalBoots,
    Imports,
}

const DESIGNS: [(Design, &str); 6] = [
    (Design::Interleaved, "interleaved"),
    (Design::OneRunEach, "one run each, one boot"),
    (Design::SeveralRuns, "4 runs each in turns, one boot"),
    (Design::Boots, "5 boots each"),
    (Design::UnequalBoots, "5 unequal boots each"),
    (Design::Imports, "one import each"),
];

/// Flags that judge values, and so may come by chance.
const FLAGS: [(RowFlag, &str); 4] = [
    (RowFlag::Drift, "drift"),
    (RowFlag::Modes, "two modes"),
    (RowFlag::Outliers, "outliers"),
    (RowFlag::Paired, "paired"),
];

const ITERATIONS: [u32; 4] = [5, 10, 30, 100];
const CHANGES: [f64; 5] = [0.0, 0.01, 0.02, 0.03, 0.05];
const RUNS: u64 = 4;
const BOOTS: u32 = 5;
/// How many fifths of the usual number of iterations each unequal boot holds.
const FIFTHS: [u32; BOOTS as usize] = [1, 3, 5, 7, 9];
/// The luck of a run and of a boot.
const LUCK: f64 = 0.01;

/// One experiment: both sides, or the levels of one run.
enum Experiment {
    Levels(Box<RunRecord>),
    Sides(Vec<RunRecord>, Vec<RunRecord>),
}

fn build_run(
    name: &str,
    turn: u64,
    iterations: u32,
    process: &mut ValueProcess<'_>,
    centre: f64,
) -> RunRecord {
    let lab = RunBuilder::new(&format!("{name}{turn}")).with(|lab| lab.iterations = iterations);
    let mut run = lab.build_run(|_| process.next_value(centre));
    run.manifest.anchor.realtime.0 += turn * 600_000_000_000;
    run
}

fn run_experiment(
    shape: NoiseShape,
    design: Design,
    n: u32,
    change: f64,
    noise: &mut SplitMixNoise,
) -> Experiment {
    let repetitions = match design {
        Design::Interleaved | Design::OneRunEach | Design::Imports => 1,
        Design::SeveralRuns => u32::try_from(RUNS).unwrap(),
        Design::Boots | Design::UnequalBoots => BOOTS,
    };
    let lucks: Vec<f64> = (0..2 * repetitions).map(|_| noise.lognormal_around(1.0, LUCK)).collect();
    let state = noise.normal();
    let process = &mut ValueProcess { shape, noise, state, step: 0, steps: 2 * n * repetitions };
    let after = 1.0 + change;
    match design {
        Design::Interleaved => {
            let lab = RunBuilder::new("r").with(|lab| {
                lab.factors = vec![("build", vec!["old", "new"])];
                lab.iterations = n;
            });
            Experiment::Levels(Box::new(
                lab.build_run(|at| process.next_value(if at.level("build") == "new" { after } else { 1.0 })),
            ))
        }
        Design::OneRunEach | Design::Imports => {
            let mut runs = [build_run("a", 0, n, process, 1.0), build_run("b", 1, n, process, after)];
            if design == Design::Imports {
                for run in &mut runs {
                    run.manifest.boot_id = String::new();
                    run.manifest.facts.add(fact_table::IMPORT_KIND, "hyperfine", "import");
                }
            }
            let [ours, theirs] = runs;
            Experiment::Sides(vec![ours], vec![theirs])
        }
        Design::SeveralRuns => {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for (turn, luck) in (0..).zip(&lucks) {
                let (name, centre, side) =
                    if turn % 2 == 0 { ("a", 1.0, &mut ours) } else { ("b", after, &mut theirs) };
                side.push(build_run(name, turn, n, process, centre * luck));
            }
            Experiment::Sides(ours, theirs)
        }
        Design::Boots | Design::UnequalBoots => {
            let sizes = FIFTHS.map(|fifths| if design == Design::Boots { n } else { n * fifths / 5 });
            let mut side = |name: &str, centre: f64, lucks: &[f64]| {
                let lab = RunBuilder::new(name).with(|lab| {
                    (lab.boots, lab.boot_id) = (BOOTS, name.into());
                    lab.iterations = sizes.into_iter().max().unwrap_or(n);
                });
                let mut boot = 0;
                let mut run = lab.build_run(|at| {
                    if at.boot != boot {
                        // Another boot drifts and depends on nothing that was before.
                        (boot, process.state) = (at.boot, process.noise.normal());
                    }
                    process.step = at.iteration;
                    let size = sizes[at.boot as usize];
                    process.steps = size;
                    if at.iteration < size {
                        process.next_value(centre * lucks[at.boot as usize])
                    } else {
                        None
                    }
                });
                // What a boot did not come to did not fail.
                let mut at = 0;
                run.iterations.retain(|one| {
                    at += 1;
                    one.slot < sizes[(at - 1) / lab.iterations as usize]
                });
                run
            };
            let (ours, theirs) = lucks.split_at(BOOTS as usize);
            Experiment::Sides(vec![side("a", 1.0, ours)], vec![side("b", after, theirs)])
        }
    }
}

fn judge_experiment(experiment: &Experiment, margin: f64) -> VerdictRow {
    let options = AnalysisOptions { default_margin: margin, ..AnalysisOptions::default() };
    let side = |name: &str, runs: &[RunRecord]| ComparisonSide { name: name.into(), runs: runs.to_vec() };
    let mut found = match experiment {
        Experiment::Levels(run) => {
            compare_levels(&side("r", std::slice::from_ref(run.as_ref())), "build", &options)
        }
        Experiment::Sides(ours, theirs) => compare_sides(&side("a", ours), &[side("b", theirs)], &options),
    }
    .unwrap();
    found.rows.remove(0)
}

/// What came of a cell.
#[derive(Debug, Default, Clone)]
struct CellCounts {
    /// Better or worse, with a margin of zero.
    alarms: usize,
    /// Intervals of the change, those that hold it, and those that exclude "no change".
    intervals: usize,
    covering: usize,
    excluding: usize,
    /// Words at the default margin, and what stands on another part than the middle: worse or better, or left open.
    words: BTreeMap<&'static str, usize>,
    parts: [usize; 2],
    /// Rows with a flag that judges values.
    flags: BTreeMap<RowFlag, usize>,
    /// What benchstat's, Welch's, hyperfine's and MMTests' rules call different.
    peers: [usize; 4],
}

fn simulate_cell(
    shape: NoiseShape,
    design: Design,
    n: u32,
    change: f64,
    tries: usize,
    seed: u64,
) -> CellCounts {
    let mut noise = SplitMixNoise(seed);
    let mut counts = CellCounts::default();
    for _ in 0..tries {
        let experiment = run_experiment(shape, design, n, change, &mut noise);
        let row = judge_experiment(&experiment, 0.0);
        counts.alarms += usize::from(matches!(row.verdict, Verdict::Better | Verdict::Worse));
        row.flags.iter().for_each(|flag| *counts.flags.entry(*flag).or_default() += 1);
        let of_change = row.change.filter(|change| change.covers == IntervalMeaning::Change);
        if let Some(interval) = of_change.and_then(|change| change.interval) {
            counts.intervals += 1;
            counts.covering += usize::from(interval.low <= change && change <= interval.high);
            counts.excluding += usize::from(interval.low > 0.0 || interval.high < 0.0);
        }
        let usual = judge_experiment(&experiment, 0.03);
        *counts.words.entry(usual.verdict.word()).or_default() += 1;
        if usual.middle.is_some() {
            counts.parts[usize::from(usual.verdict == Verdict::Unclear)] += 1;
        }
        if let (Some(ours), Some(theirs)) = (&row.baseline, &row.candidate) {
            let values = |side: &perflab_analyze::SideSummary| {
                side.values.iter().map(|point| point.value).collect::<Vec<f64>>()
            };
            for (count, differs) in counts.peers.iter_mut().zip(peers_differ(&values(ours), &values(theirs)))
            {
                *count += usize::from(differs);
            }
        }
    }
    counts
}

/// benchstat: Mann and Whitney below 5 %. Welch below 5 %. hyperfine: "x ± y times faster" with x - 1 > y. MMTests: bands of
/// ± 1.96 standard deviations that do not touch.
fn peers_differ(x: &[f64], y: &[f64]) -> [bool; 4] {
    let (mx, my) = (mean(x).unwrap(), mean(y).unwrap());
    let (sx, sy) = (sd(x).unwrap_or(0.0), sd(y).unwrap_or(0.0));
    let (slow, fast) = if mx > my { ((mx, sx), (my, sy)) } else { ((my, sy), (mx, sx)) };
    let ratio = slow.0 / fast.0;
    let error = ratio * ((slow.1 / slow.0).powi(2) + (fast.1 / fast.0).powi(2)).sqrt();
    [
        mann_whitney(x, y).is_ok_and(|found| found.p < 0.05),
        welch(x, y).is_ok_and(|found| found.p < 0.05),
        ratio - 1.0 > error,
        (mx - my).abs() > 1.96 * (sx + sy),
    ]
}

/// Power needs fewer experiments than rates near 5 %.
fn power_tries(tries: usize) -> usize {
    (tries / 4).max(1)
}

type CellKey = (NoiseShape, Design, u32, usize);

fn simulate_all(seed: u64, tries: usize) -> BTreeMap<CellKey, CellCounts> {
    let mut keys: Vec<CellKey> = Vec::new();
    for (shape, _) in SHAPES {
        for (design, _) in DESIGNS {
            for n in ITERATIONS {
                keys.extend((0..CHANGES.len()).map(|change| (shape, design, n, change)));
            }
        }
    }
    simulate_cells(&keys, seed, |(shape, design, n, change), own| {
        let tries = if change == 0 { tries } else { power_tries(tries) };
        simulate_cell(shape, design, n, CHANGES[change], tries, own)
    })
}

fn percent_text(count: usize, of: usize) -> String {
    if of == 0 { "-".into() } else { format!("{:.1}", share_in_percent(count, of)) }
}

/// A row a shape, a column a design, the numbers of iterations in each cell.
fn print_table(title: &str, cell: impl Fn(CellKey) -> String) {
    println!("{title}\n");
    let designs: Vec<&str> = DESIGNS.iter().map(|(_, name)| *name).collect();
    println!("| shape | {} |\n|:--|{}", designs.join(" | "), ":--|".repeat(designs.len()));
    for (shape, name) in SHAPES {
        let cells: Vec<String> = DESIGNS
            .iter()
            .map(|(design, _)| ITERATIONS.map(|n| cell((shape, *design, n, 0))).join(" / "))
            .collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!();
}

/// How often flags that judge values come where nothing is wrong.
fn print_flag_table(found: &BTreeMap<CellKey, CellCounts>, tries: usize) {
    println!("**Flags on clean samples** (normal noise), in % of rows, at 5 / 10 / 30 / 100 iterations:\n");
    let designs: Vec<&str> = DESIGNS.iter().map(|(_, name)| *name).collect();
    println!("| flag | {} |\n|:--|{}", designs.join(" | "), ":--|".repeat(designs.len()));
    for (flag, name) in FLAGS {
        let cells: Vec<String> = DESIGNS
            .iter()
            .map(|(design, _)| {
                let share = |n: u32| {
                    let flags = &found[&(NoiseShape::Normal, *design, n, 0)].flags;
                    percent_text(flags.get(&flag).copied().unwrap_or(0), tries)
                };
                ITERATIONS.map(share).join(" / ")
            })
            .collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!();
}

fn print_word_table(found: &BTreeMap<CellKey, CellCounts>) {
    println!(
        "**Words at the default margin** of 3 %, at 5 / 10 / 30 / 100 iterations, in % of experiments:\n"
    );
    let words = Verdict::ALL.map(Verdict::word);
    println!(
        "| shape | design | change | {} |\n|:--|:--|--:{}|",
        words.join(" | "),
        "|--:".repeat(words.len())
    );
    for (shape, name) in SHAPES {
        for (design, design_name) in DESIGNS {
            for change in [0, 2, 4] {
                let share = |word: &str| {
                    let at = |n: u32| {
                        let words = &found[&(shape, design, n, change)].words;
                        percent_text(words.get(word).copied().unwrap_or(0), words.values().sum())
                    };
                    ITERATIONS.map(at).join(" / ")
                };
                println!(
                    "| {name} | {design_name} | {:.0} % | {} |",
                    100.0 * CHANGES[change],
                    words.map(share).join(" | ")
                );
            }
        }
    }
}

/// How often the interval excludes "no change" where there is one, a table for each number of iterations.
fn print_power_tables(found: &BTreeMap<CellKey, CellCounts>, tries: usize) {
    let [interleaved, _, several, boots, unequal, _] = DESIGNS;
    for n in ITERATIONS {
        println!(
            "**Power** at {n} iterations: the interval excludes \"no change\" where the candidate is 1 / 2 / 3 / 5 % slower, in %; behind it benchstat's rule on the same values pooled:\n"
        );
        println!(
            "| shape | {} | {} | {} | {} |\n|:--|:--|:--|:--|:--|",
            interleaved.1, several.1, boots.1, unequal.1
        );
        for (shape, name) in SHAPES {
            let cells = [interleaved, several, boots, unequal].map(|(design, _)| {
                let at = |change: usize| &found[&(shape, design, n, change)];
                let ours: Vec<String> =
                    (1..5).map(|change| percent_text(at(change).excluding, power_tries(tries))).collect();
                let theirs: Vec<String> =
                    (1..5).map(|change| percent_text(at(change).peers[0], power_tries(tries))).collect();
                format!("{} ({})", ours.join(" / "), theirs.join(" / "))
            });
            println!("| {name} | {} |", cells.join(" | "));
        }
        println!();
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>().unwrap());
    let (seed, tries) = (arguments.next().unwrap_or(2026), arguments.next().unwrap_or(2_000) as usize);
    let found = simulate_all(seed, tries);
    let flat: Vec<&CellCounts> =
        found.iter().filter(|(key, _)| key.3 == 0).map(|(_, counts)| counts).collect();
    println!(
        "Seed {seed}, {tries} experiments a cell ({} where something changed); 5 / 10 / 30 / 100 iterations of 2 % noise; runs and boots have a luck of 1 % of their own; unequal boots hold 1, 3, 5, 7 and 9 fifths of as many iterations.\n",
        power_tries(tries)
    );
    print_table("**Better or worse where nothing changed**, in %, with a margin of zero:", |key| {
        percent_text(found[&key].alarms, tries)
    });
    let worst = flat.iter().map(|counts| counts.alarms).max().unwrap_or(0);
    let all: usize = flat.iter().map(|counts| counts.alarms).sum();
    println!(
        "Worst cell {} %, mean {} %.\n",
        percent_text(worst, tries),
        percent_text(all, tries * flat.len())
    );
    print_table("**The same at the default margin**, in %: better or worse where nothing changed:", |key| {
        let words = &found[&key].words;
        percent_text(["better", "worse"].iter().filter_map(|word| words.get(word)).sum(), tries)
    });
    let at_margin = |counts: &&CellCounts| -> usize {
        ["better", "worse"].iter().filter_map(|word| counts.words.get(word)).sum()
    };
    let worst = flat.iter().map(at_margin).max().unwrap_or(0);
    println!("Worst cell {} %.\n", percent_text(worst, tries));
    print_table(
        "**The middle is the same, the mean or the tail is not**, where nothing changed: better, worse or differs + left open, in %:",
        |key| {
            let [clear, open] = found[&key].parts;
            format!("{} + {}", percent_text(clear, tries), percent_text(open, tries))
        },
    );
    print_table(
        "**Coverage** of the 95 % interval of the change, in % (-: no interval can be honest, and a range between these two runs is shown):",
        |key| percent_text(found[&key].covering, found[&key].intervals),
    );
    let covered: Vec<(usize, usize)> = flat
        .iter()
        .filter(|counts| counts.intervals > 0)
        .map(|counts| (counts.covering, counts.intervals))
        .collect();
    let least = covered.iter().map(|(hit, of)| *hit as f64 / *of as f64).fold(1.0, f64::min);
    let (hits, of) = covered.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    println!("Worst cell {:.1} %, mean {} %.\n", 100.0 * least, percent_text(hits, of));
    print_power_tables(&found, tries);
    print_table(
        "**Other tools' rules on the same data**, nothing changed: benchstat's, in % (Welch's, hyperfine's and MMTests' at 30 in brackets):",
        |key| {
            let counts = &found[&key];
            let own = percent_text(counts.peers[0], tries);
            if key.2 == 30 {
                let rest: Vec<String> =
                    counts.peers[1..].iter().map(|count| percent_text(*count, tries)).collect();
                return format!("{own} ({})", rest.join(", "));
            }
            own
        },
    );
    print_flag_table(&found, tries);
    print_word_table(&found);
}
