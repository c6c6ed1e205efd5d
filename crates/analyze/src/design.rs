//! Which experiment reaches a goal for the least time on a machine whose noise is known, and what each finds per minute.
//!
//! Each design has the noise of its unit of comparison: pairs within blocks, pairs at one moment, runs in turns, boots. What it
//! cannot repeat it cannot speak of: blocks of one run hold for that boot.

use perflab_model::{Nanos, Unit};
use perflab_stats::{PowerGoal, PowerRules, SamplePairing, StatsError, TwoLevelNoise};
use serde::Serialize;

use crate::compare::noise_card::{NoiseCard, NoiseRow};
use crate::compare::noise_levels::NoiseLevels;
use crate::sample_size::{MOST_ITERATIONS, SampleSizeOptions, cheapest_iterations};

/// Times for which a design says what it finds: a minute, ten, an hour.
pub const BUDGETS: [Nanos; 3] = [Nanos(60_000_000_000), Nanos(600_000_000_000), Nanos(3_600_000_000_000)];

/// How two sides are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DesignKind {
    /// Levels of a factor in one run, in complete blocks: holds for that boot.
    Interleaved,
    /// Both levels at one moment, each on half of the CPUs (`order = "duet"`): holds for that boot.
    Duet,
    /// Runs of each side in turns: holds for that boot, whatever a run draws.
    Runs,
    /// Boots of each side: holds for the machine.
    Boots,
}

impl DesignKind {
    /// Its name in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DesignKind::Interleaved => "interleaved",
            DesignKind::Duet => "duet",
            DesignKind::Runs => "runs",
            DesignKind::Boots => "boots",
        }
    }

    /// What its verdict holds for.
    #[must_use]
    pub fn scope(self) -> &'static str {
        match self {
            DesignKind::Interleaved | DesignKind::Duet => "this run's boot",
            DesignKind::Runs => "one boot",
            DesignKind::Boots => "this machine",
        }
    }
}

/// One experiment for one metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DesignProposal {
    /// The case.
    pub subject: String,
    /// The metric.
    pub metric: String,
    /// Unit of its values.
    pub unit: Unit,
    /// How the sides are measured.
    pub design: DesignKind,
    /// Iterations of a side in each run or boot.
    pub iterations: Option<usize>,
    /// Runs or boots a side; 1 where both sides are levels of one run.
    pub repetitions: Option<usize>,
    /// Machine time of both sides; absent as the repetitions are: a million do not suffice.
    pub time: Option<Nanos>,
    /// The smallest relative change found in 80 % of experiments within each of [`BUDGETS`]; absent where too few fit in.
    pub finds: [Option<f64>; 3],
    /// Whether it reaches the goal in the least time of its metric's designs.
    pub cheapest: bool,
}

/// What a design's repetitions cost and scatter by.
struct DesignNoise {
    kind: DesignKind,
    unit: DesignUnit,
    /// once
    fixed_cost: f64,
}

/// What is compared with what.
enum DesignUnit {
    /// Pairs of one run.
    Pairs {
        /// standard deviation of a pair's difference
        sd: f64,
        /// of one pair
        cost: f64,
    },
    /// Medians of runs or boots.
    Medians {
        /// relative noise between them and within each
        noise: TwoLevelNoise,
        /// of one run or boot besides its iterations
        cost: f64,
        /// of one iteration
        iteration: f64,
    },
}

/// A design of which the iterations are known.
struct SizedDesign {
    pairing: SamplePairing,
    iterations: usize,
    sd: f64,
    /// of one unit of both sides together
    unit_cost: f64,
}

/// Proposals for every metric of the card whose noise is known: those of a metric together, in the order of their kinds.
///
/// # Errors
/// Sizes or confidences out of range.
pub fn propose_designs(
    card: &NoiseCard,
    requested: &SampleSizeOptions,
) -> Result<Vec<DesignProposal>, StatsError> {
    let mut proposals = Vec::new();
    for row in &card.rows {
        let run_cost = card.run_cost.unwrap_or_default();
        let mut own = Vec::new();
        for noise in known_designs(row, run_cost, requested) {
            own.push(propose_design(row, &noise, requested)?);
        }
        let least = own.iter().filter_map(|one| one.time).min();
        for one in &mut own {
            one.cheapest = least.is_some() && one.time == least;
        }
        proposals.extend(own);
    }
    Ok(proposals)
}

/// The designs whose noise is known: runs and boots only where they were seen to repeat, a duet only where it was measured.
fn known_designs(row: &NoiseRow, run_cost: Nanos, requested: &SampleSizeOptions) -> Vec<DesignNoise> {
    let cost = (run_cost.0 as f64).max(1.0);
    let levels = row.levels.as_ref().map(|levels| level_designs(levels, cost, requested));
    let mut found = levels.unwrap_or_default();
    found.extend(row.duet.as_ref().map(|duet| DesignNoise {
        kind: DesignKind::Duet,
        unit: DesignUnit::Pairs { sd: duet.sd, cost: (duet.pair_time.0 as f64).max(1.0) },
        fixed_cost: cost,
    }));
    found.sort_by_key(|one| one.kind);
    found
}

fn level_designs(levels: &NoiseLevels, run_cost: f64, requested: &SampleSizeOptions) -> Vec<DesignNoise> {
    let variance = |sd: Option<f64>| sd.unwrap_or(0.0).powi(2);
    let iteration = (levels.iteration_time.0 as f64).max(1.0);
    let within = (variance(levels.iterations.sd) + variance(levels.blocks.sd)).sqrt();
    // A pair shares its block.
    let pair = (2.0 * variance(levels.iterations.sd)).sqrt();
    let mut found = vec![DesignNoise {
        kind: DesignKind::Interleaved,
        unit: DesignUnit::Pairs { sd: pair, cost: 2.0 * iteration },
        fixed_cost: run_cost,
    }];
    let mut repeat = |kind: DesignKind, own: f64, cost: f64| {
        let noise = TwoLevelNoise { between: own.sqrt(), within };
        let unit = DesignUnit::Medians { noise, cost, iteration };
        found.push(DesignNoise { kind, unit, fixed_cost: 0.0 });
    };
    let (boots, runs) = (levels.boots.sd, levels.runs.sd);
    if runs.is_some() {
        repeat(DesignKind::Runs, variance(runs), run_cost);
    }
    if boots.is_some() {
        let cost = (requested.boot_cost.0 as f64).max(1.0) + run_cost;
        repeat(DesignKind::Boots, variance(boots) + variance(runs), cost);
    }
    found
}

/// Without noise, the fewest that have an interval.
const NO_NOISE: f64 = 1e-150;

impl DesignUnit {
    fn size(&self, requested: &SampleSizeOptions) -> Result<SizedDesign, StatsError> {
        match self {
            DesignUnit::Pairs { sd, cost } => Ok(SizedDesign {
                pairing: SamplePairing::Paired,
                iterations: 1,
                sd: sd.max(NO_NOISE),
                unit_cost: *cost,
            }),
            DesignUnit::Medians { noise, cost, iteration } => {
                let pairing = SamplePairing::Independent;
                let sd = |iterations: usize| noise.boot_median_sd(iterations).max(NO_NOISE);
                let needed = |iterations: usize| {
                    let rules = PowerRules { pairing, ..PowerRules::default() };
                    rules.needed_repetitions(sd(iterations), requested.power_goal())
                };
                let narrowest = noise.best_iterations(*cost, *iteration)?;
                let iterations = match requested.iterations {
                    Some(iterations) => iterations.clamp(1, MOST_ITERATIONS),
                    None => cheapest_iterations(narrowest, needed)?,
                };
                let unit_cost = 2.0 * (cost + iterations as f64 * iteration);
                Ok(SizedDesign { pairing, iterations, sd: sd(iterations), unit_cost })
            }
        }
    }
}

fn propose_design(
    row: &NoiseRow,
    noise: &DesignNoise,
    requested: &SampleSizeOptions,
) -> Result<DesignProposal, StatsError> {
    let SizedDesign { pairing, iterations, sd, unit_cost } = noise.unit.size(requested)?;
    let rules = PowerRules { pairing, ..PowerRules::default() };
    let units = rules.needed_repetitions(sd, requested.power_goal())?;
    let fewest = rules.needed_repetitions(sd, PowerGoal::Detect(1e9))?.unwrap_or(usize::MAX);
    let is_paired = pairing == SamplePairing::Paired;
    let finds = BUDGETS.map(|budget| {
        let units = ((budget.0 as f64 - noise.fixed_cost) / unit_cost).floor().max(0.0) as usize;
        if units < fewest { None } else { rules.detectable_change(sd, units.min(1_000_000)).ok() }
    });
    let time = units.map(|units| Nanos((noise.fixed_cost + units as f64 * unit_cost) as u64));
    Ok(DesignProposal {
        subject: row.subject.clone(),
        metric: row.metric.clone(),
        unit: row.unit.clone(),
        design: noise.kind,
        iterations: if is_paired { units } else { Some(iterations) },
        repetitions: if is_paired { units.map(|_| 1) } else { units },
        time,
        finds,
        cheapest: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::noise_card::DuetPairs;
    use crate::compare::noise_levels::LevelNoise;
    use crate::sample_size::SampleSizeAim;

    fn levels(boots: Option<f64>, runs: Option<f64>) -> NoiseLevels {
        let level = |sd| LevelNoise { n: 10, sd };
        NoiseLevels {
            boots: level(boots),
            runs: level(runs),
            blocks: level(Some(0.01)),
            iterations: level(Some(0.02)),
            autocorrelation: 0.0,
            drift: None,
            next_run: None,
            next_boot: None,
            iteration_time: Nanos(1_000_000_000),
        }
    }

    fn card(levels: NoiseLevels) -> NoiseCard {
        let row = serde_json::json!({
            "subject": "w", "workload": "w", "metric": "m", "unit": "s", "n": 20, "noise": 0.02, "change": 0.0, "reach": 0.01,
            "detects": null, "interleaved": null, "in_turn": null, "levels": levels,
        });
        let card = serde_json::json!({
            "format": 1, "run": "", "made": 0, "kernel": "", "cpu": "", "run_cost": 2_000_000_000_u64, "rows": [row],
        });
        serde_json::from_value(card).unwrap()
    }

    const GOAL: SampleSizeOptions = SampleSizeOptions {
        size: 0.01,
        aim: SampleSizeAim::Detect,
        boot_cost: Nanos(60_000_000_000),
        iterations: None,
    };

    #[test]
    fn only_levels_that_were_seen_to_repeat_are_proposed() {
        let kinds = |levels| -> Vec<DesignKind> {
            propose_designs(&card(levels), &GOAL).unwrap().iter().map(|one| one.design).collect()
        };
        assert_eq!(kinds(levels(None, None)), [DesignKind::Interleaved]);
        let all = [DesignKind::Interleaved, DesignKind::Runs, DesignKind::Boots];
        assert_eq!(kinds(levels(Some(0.01), Some(0.005))), all);
    }

    #[test]
    fn each_design_has_the_noise_of_its_unit() {
        let found = propose_designs(&card(levels(Some(0.01), Some(0.005))), &GOAL).unwrap();
        let [interleaved, runs, boots] = found.as_slice() else { panic!("{found:?}") };
        let paired = PowerRules { pairing: SamplePairing::Paired, ..PowerRules::default() };
        let blocks = paired.needed_repetitions(0.02 * 2.0_f64.sqrt(), PowerGoal::Detect(0.01)).unwrap();
        assert_eq!((interleaved.iterations, interleaved.repetitions), (blocks, Some(1)));
        // √(2 s / 1 s · (2² + 1²) / 0.5²) = 6.3; √(62 · 5 / 1.25) = 15.7; fewer where as many repetitions do.
        let at_most = |one: &DesignProposal, most| (1..=most).contains(&one.iterations.unwrap());
        assert!(at_most(runs, 7) && at_most(boots, 16), "{found:?}");
        assert!(interleaved.cheapest && !runs.cheapest && !boots.cheapest);
        assert!(interleaved.time < runs.time && runs.time < boots.time);
        for one in &found {
            assert!(one.finds[1] > one.finds[2] || one.finds[1].is_none(), "{one:?}");
        }
        assert_eq!(boots.finds[0], None, "two boots take two minutes");
    }

    /// Where runs or boots add nothing, iterations within one run come first, and no design has more of them than it needs.
    #[test]
    fn levels_that_add_nothing_need_no_thousand_iterations() {
        let found = propose_designs(&card(levels(Some(0.0), Some(0.0))), &GOAL).unwrap();
        let [interleaved, runs, boots] = found.as_slice() else { panic!("{found:?}") };
        assert!(interleaved.cheapest && interleaved.iterations < Some(100), "{found:?}");
        for one in [runs, boots] {
            assert_eq!(one.repetitions, Some(4), "{one:?}");
            let (noise, fewer) =
                (TwoLevelNoise { between: 0.0, within: 0.0005_f64.sqrt() }, one.iterations.unwrap() - 1);
            let needed = PowerRules::default()
                .needed_repetitions(noise.boot_median_sd(fewer), PowerGoal::Detect(0.01));
            assert!(needed.unwrap() > Some(4) && !one.cheapest, "{one:?}");
        }
        // Hardly anything is not nothing.
        let found = propose_designs(&card(levels(Some(1e-6), Some(1e-6))), &GOAL).unwrap();
        assert!(found.iter().all(|one| one.iterations < Some(200)), "{found:?}");
    }

    #[test]
    fn a_duet_is_proposed_where_it_was_measured() {
        let propose = |sd: f64| {
            let mut card = card(levels(None, None));
            card.rows[0].duet = Some(DuetPairs { pairs: 20, sd, pair_time: Nanos(1_000_000_000) });
            propose_designs(&card, &GOAL).unwrap()
        };
        let [interleaved, duet] = propose(0.005).try_into().unwrap();
        assert_eq!((interleaved.design, duet.design), (DesignKind::Interleaved, DesignKind::Duet));
        assert!(duet.cheapest && !interleaved.cheapest && duet.time < interleaved.time, "{duet:?}");
        assert_eq!(duet.repetitions, Some(1));
        assert!(!propose(0.1)[1].cheapest);
    }
}
