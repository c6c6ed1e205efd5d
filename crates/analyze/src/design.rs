//! Which experiment reaches a goal for the least time on a machine whose noise is known, and what each finds per minute.
//!
//! Each design has the noise of its unit of comparison: pairs within blocks, runs in turns, boots. What it cannot repeat it
//! cannot speak of: blocks of one run hold for that boot.

use perflab_model::{Nanos, Unit};
use perflab_stats::{PowerGoal, PowerRules, SamplePairing, StatsError};
use serde::Serialize;

use crate::compare::noise_card::{NoiseCard, NoiseRow};
use crate::compare::noise_levels::NoiseLevels;
use crate::sample_size::{SampleSizeAim, SampleSizeOptions};

/// Times for which a design says what it finds: a minute, ten, an hour.
pub const BUDGETS: [Nanos; 3] = [Nanos(60_000_000_000), Nanos(600_000_000_000), Nanos(3_600_000_000_000)];

/// Iterations that one run or boot has at most in a proposal.
const MOST_ITERATIONS: usize = 1_000;

/// How two sides are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DesignKind {
    /// Levels of a factor in one run, in complete blocks: holds for that boot.
    Interleaved,
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
            DesignKind::Runs => "runs",
            DesignKind::Boots => "boots",
        }
    }

    /// What its verdict holds for.
    #[must_use]
    pub fn scope(self) -> &'static str {
        match self {
            DesignKind::Interleaved => "this run's boot",
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
    /// Runs or boots a side; 1 where interleaved.
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
    /// standard deviation of one unit, of a pair's difference where interleaved
    sd: f64,
    pairing: SamplePairing,
    iterations: usize,
    /// of one unit of both sides together
    unit_cost: f64,
    /// once
    fixed_cost: f64,
}

/// Proposals for every metric of the card whose levels are known: those of a metric together, in the order of their kinds.
///
/// # Errors
/// Sizes or confidences out of range.
pub fn propose_designs(
    card: &NoiseCard,
    requested: &SampleSizeOptions,
) -> Result<Vec<DesignProposal>, StatsError> {
    let mut proposals = Vec::new();
    for row in &card.rows {
        let Some(levels) = &row.levels else { continue };
        let run_cost = card.run_cost.unwrap_or_default();
        let mut own = Vec::new();
        for noise in known_designs(levels, run_cost, requested) {
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

/// The designs whose noise is known: runs and boots only where they were seen to repeat.
fn known_designs(levels: &NoiseLevels, run_cost: Nanos, requested: &SampleSizeOptions) -> Vec<DesignNoise> {
    let variance = |sd: Option<f64>| sd.unwrap_or(0.0).powi(2);
    let iteration = (levels.iteration_time.0 as f64).max(1.0);
    let (boots, runs) = (levels.boots.sd, levels.runs.sd);
    let within = variance(levels.iterations.sd) + variance(levels.blocks.sd);
    let run_cost = (run_cost.0 as f64).max(1.0);
    // A pair shares its block.
    let pair = (2.0 * variance(levels.iterations.sd)).sqrt();
    let mut found = vec![DesignNoise {
        kind: DesignKind::Interleaved,
        sd: pair,
        pairing: SamplePairing::Paired,
        iterations: 1,
        unit_cost: 2.0 * iteration,
        fixed_cost: run_cost,
    }];
    let mut repeat = |kind: DesignKind, own: f64, cost: f64| {
        let best = (cost / iteration * within / own).sqrt().ceil();
        let best = if best.is_finite() { best as usize } else { MOST_ITERATIONS };
        let iterations = requested.iterations.unwrap_or(best).clamp(1, MOST_ITERATIONS);
        found.push(DesignNoise {
            kind,
            sd: (own + within / iterations as f64).sqrt(),
            pairing: SamplePairing::Independent,
            iterations,
            unit_cost: 2.0 * (cost + iterations as f64 * iteration),
            fixed_cost: 0.0,
        });
    };
    if runs.is_some() {
        repeat(DesignKind::Runs, variance(runs), run_cost);
    }
    if boots.is_some() {
        let cost = (requested.boot_cost.0 as f64).max(1.0) + run_cost;
        repeat(DesignKind::Boots, variance(boots) + variance(runs), cost);
    }
    found
}

fn propose_design(
    row: &NoiseRow,
    noise: &DesignNoise,
    requested: &SampleSizeOptions,
) -> Result<DesignProposal, StatsError> {
    let rules = PowerRules { pairing: noise.pairing, ..PowerRules::default() };
    let goal = match requested.aim {
        SampleSizeAim::Precision => PowerGoal::HalfWidth(requested.size),
        SampleSizeAim::Detect => PowerGoal::Detect(requested.size),
        SampleSizeAim::Decide => PowerGoal::Decide(requested.size),
    };
    // Without noise, the fewest that have an interval.
    let sd = noise.sd.max(f64::MIN_POSITIVE.sqrt());
    let units = rules.needed_repetitions(sd, goal)?;
    let fewest = rules.needed_repetitions(sd, PowerGoal::Detect(1e9))?.unwrap_or(usize::MAX);
    let is_interleaved = noise.kind == DesignKind::Interleaved;
    let finds = BUDGETS.map(|budget| {
        let units = ((budget.0 as f64 - noise.fixed_cost) / noise.unit_cost).floor().max(0.0) as usize;
        if units < fewest { None } else { rules.detectable_change(sd, units.min(1_000_000)).ok() }
    });
    let time = units.map(|units| Nanos((noise.fixed_cost + units as f64 * noise.unit_cost) as u64));
    Ok(DesignProposal {
        subject: row.subject.clone(),
        metric: row.metric.clone(),
        unit: row.unit.clone(),
        design: noise.kind,
        iterations: if is_interleaved { units } else { Some(noise.iterations) },
        repetitions: if is_interleaved { units.map(|_| 1) } else { units },
        time,
        finds,
        cheapest: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::noise_levels::LevelNoise;

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
        // √(2 s / 1 s · (2² + 1²) / 0.5²) = 6.3; √(62 · 5 / 1.25) = 15.7
        assert_eq!((runs.iterations, boots.iterations), (Some(7), Some(16)));
        assert!(interleaved.cheapest && !runs.cheapest && !boots.cheapest);
        assert!(interleaved.time < runs.time && runs.time < boots.time);
        for one in &found {
            assert!(one.finds[1] > one.finds[2] || one.finds[1].is_none(), "{one:?}");
        }
        assert_eq!(boots.finds[0], None, "two boots take two minutes");
    }
}
