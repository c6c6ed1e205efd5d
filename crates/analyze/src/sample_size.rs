//! How many boots, runs or iterations a precision costs, and the time that they take, from the noise of earlier runs.
//!
//! Planned is the highest level that was seen to repeat. Where that is the iteration, both sides are levels of one run: how much
//! a run differs from the next is not known then, and two runs, one a side, get no verdict however long they are.

use indexmap::IndexMap;
use perflab_model::{Nanos, RunRecord, Sample, Unit};
use perflab_stats::{PowerGoal, PowerRules, SamplePairing, TwoLevelNoise, median, sd};
use serde::Serialize;

use crate::compare::change::RepetitionLevel;

use crate::compare::noise_measurement::run_cost;
use crate::compare::options::{AnalysisOptions, ComparisonSide};
use crate::error::AnalyzeError;

/// What a plan asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleSizeOptions {
    /// The relative size that the goal is about, such as 0.01.
    pub size: f64,
    /// What is to be reached at this size.
    pub aim: SampleSizeAim,
    /// What a boot costs besides its iterations.
    pub boot_cost: Nanos,
    /// Iterations in each boot; the cheapest number where absent.
    pub iterations: Option<usize>,
}

/// What is to be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SampleSizeAim {
    /// an interval of the change that reaches so far to either side
    Precision,
    /// a real change of this size found in 80 % of experiments
    Detect,
    /// a verdict either way in 80 % of experiments: changed, or the same within ± the size
    Decide,
}

/// The plan for one metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampleSizePlan {
    /// The case.
    pub subject: String,
    /// The metric.
    pub metric: String,
    /// Unit of its values.
    pub unit: Unit,
    /// What is repeated: boots, or runs of one boot, or iterations of a run in which both sides are levels.
    pub level: RepetitionLevel,
    /// Boots (or runs, where one boot was seen) and values that the noise was learnt from.
    pub observed: (usize, usize),
    /// Standard deviation between iterations of a boot or run, relative.
    pub within: f64,
    /// Standard deviation between boots, or between runs, relative; absent where neither repeats.
    pub between: Option<f64>,
    /// Iterations of a side in each boot or run.
    pub iterations: usize,
    /// Boots or runs a side; 1 where iterations are repeated, in one run; absent where a million do not suffice.
    pub repetitions: Option<usize>,
    /// Time a side; absent as the repetitions are, and where nobody knows how long an iteration takes.
    pub time: Option<Nanos>,
    /// The smallest relative change that this many repetitions find in 80 % of experiments.
    pub detects: Option<f64>,
}

/// What became of a metric without a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnplannedMetric {
    /// The case.
    pub subject: String,
    /// The metric.
    pub metric: String,
    /// Why.
    pub reason: String,
}

/// Iterations that one run or boot has at most in a plan that nobody asked to have more.
pub(crate) const MOST_ITERATIONS: usize = 1_000;

/// Iterations in each boot or run for the least time: as many as narrow the interval most for the time spent (`None` where boots
/// or runs add nothing, so that only iterations do), but no more than as few repetitions need, which are whole numbers and never
/// fewer than have an interval.
pub(crate) fn cheapest_iterations<E>(
    narrowest: Option<usize>,
    needed_repetitions: impl Fn(usize) -> Result<Option<usize>, E>,
) -> Result<usize, E> {
    let most = narrowest.unwrap_or(MOST_ITERATIONS).clamp(1, MOST_ITERATIONS);
    let Some(repetitions) = needed_repetitions(most)? else { return Ok(most) };
    let (mut low, mut high) = (1, most);
    while low < high {
        let middle = low.midpoint(high);
        if needed_repetitions(middle)?.is_some_and(|needed| needed <= repetitions) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(high)
}

impl SampleSizeOptions {
    /// What repetitions are for.
    pub(crate) fn power_goal(&self) -> PowerGoal {
        match self.aim {
            SampleSizeAim::Precision => PowerGoal::HalfWidth(self.size),
            SampleSizeAim::Detect => PowerGoal::Detect(self.size),
            SampleSizeAim::Decide => PowerGoal::Decide(self.size),
        }
    }
}

/// Iterations of a repetition that are tried beside the number asked for.
const SIZES: [usize; 16] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];

/// Values of one metric of one case, by boot and by run.
struct BootSamples<'a> {
    unit: &'a Unit,
    primary: bool,
    boots: IndexMap<(String, u32), Vec<f64>>,
    runs: IndexMap<&'a str, Vec<f64>>,
    span: u64,
}

impl BootSamples<'_> {
    /// The highest level that repeats, and its values.
    fn repeated(&self) -> (RepetitionLevel, Vec<&[f64]>) {
        if self.boots.len() < 2 && self.runs.len() >= 2 {
            return (RepetitionLevel::Run, self.runs.values().map(Vec::as_slice).collect());
        }
        let level = if self.boots.len() < 2 { RepetitionLevel::Iteration } else { RepetitionLevel::Boot };
        (level, self.boots.values().map(Vec::as_slice).collect())
    }

    /// Nanoseconds of an iteration: what it took, or what it says that it took.
    fn iteration_cost(&self) -> Option<f64> {
        let values: Vec<f64> = self.boots.values().flatten().copied().collect();
        if self.span > 0 {
            return Some((self.span as f64 / values.len().max(1) as f64).max(1.0));
        }
        let (_, nanoseconds) = TIMES.iter().find(|(name, _)| *name == self.unit.0.as_str())?;
        median(&values).ok().filter(|value| *value > 0.0).map(|value| value * nanoseconds)
    }
}

/// Units of a duration, in nanoseconds.
const TIMES: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];

/// Plans for the metrics chosen in the options: the primary ones, where there are any.
///
/// # Errors
/// No run, no sample of what was chosen, options out of range.
pub fn plan_sample_sizes(
    side: &ComparisonSide,
    requested: &SampleSizeOptions,
    options: &AnalysisOptions,
) -> Result<(Vec<SampleSizePlan>, Vec<UnplannedMetric>), AnalyzeError> {
    options.validate()?;
    if side.runs.is_empty() {
        return Err(AnalyzeError::NoRun { side: side.name.clone() });
    }
    let mut seen: IndexMap<(String, String), BootSamples<'_>> = IndexMap::new();
    side.runs.iter().for_each(|run| collect_boot_samples(run, options, &mut seen));
    let has_primary = seen.values().any(|one| one.primary);
    seen.retain(|_, one| one.primary || !has_primary);
    if seen.is_empty() {
        let filter = options.metrics.join(", ");
        return Err(AnalyzeError::NoSamples { side: side.name.clone(), filter, known: Vec::new() });
    }
    let run_costs: Vec<f64> = side.runs.iter().filter_map(run_cost).map(|cost| cost.0 as f64).collect();
    let run_cost = median(&run_costs).unwrap_or(0.0);
    let (mut planned, mut unplanned) = (Vec::new(), Vec::new());
    for ((subject, metric), one) in seen {
        match plan_metric(&subject, &metric, &one, (requested, run_cost), options) {
            Ok(found) => planned.push(found),
            Err(reason) => unplanned.push(UnplannedMetric { subject, metric, reason }),
        }
    }
    Ok((planned, unplanned))
}

fn collect_boot_samples<'a>(
    run: &'a RunRecord,
    options: &AnalysisOptions,
    seen: &mut IndexMap<(String, String), BootSamples<'a>>,
) {
    let manifest = &run.manifest;
    let requested = |sample: &&Sample| options.includes_metric(sample) && sample.value.is_finite();
    let mut samples: Vec<&Sample> = run.samples.iter().filter(requested).collect();
    // As the study has its cases, not as they happened to be drawn.
    samples.sort_by_key(|sample| sample.case);
    for sample in samples {
        let Some(case) = manifest.plan.case(sample.case) else { continue };
        if !options.includes_case(case) {
            continue;
        }
        let one = seen.entry((case.label(), String::from(&sample.metric))).or_insert_with(|| BootSamples {
            unit: &sample.unit,
            primary: sample.primary,
            boots: IndexMap::new(),
            runs: IndexMap::new(),
            span: 0,
        });
        one.boots.entry(manifest.boot_key(sample.boot, options.boots_differ)).or_default().push(sample.value);
        one.runs.entry(manifest.id.as_str()).or_default().push(sample.value);
        one.span += sample.end.since(sample.start).0;
    }
}

fn plan_metric(
    subject: &str,
    metric: &str,
    seen: &BootSamples<'_>,
    (requested, run_cost): (&SampleSizeOptions, f64),
    options: &AnalysisOptions,
) -> Result<SampleSizePlan, String> {
    let values: usize = seen.boots.values().map(Vec::len).sum();
    let (level, groups) = seen.repeated();
    let noise = estimate_noise(level, &take_logarithms(&groups)?)?;
    let is_repeated = level != RepetitionLevel::Iteration;
    let cost = seen.iteration_cost();
    let boot_cost = match level {
        RepetitionLevel::Boot => (requested.boot_cost.0 as f64).max(1.0),
        RepetitionLevel::Run => run_cost,
        // A level within a run costs its iterations.
        _ => 0.0,
    };
    let observed = groups.len();
    let cheapest = match level {
        RepetitionLevel::Boot => {
            noise.best_iterations(boot_cost, cost.unwrap_or(1.0)).map_err(|error| error.to_string())?
        }
        RepetitionLevel::Run => Some(values.div_ceil(observed.max(1))),
        _ => None,
    };
    // Within one run, levels are interleaved: pairs, with the noise of their differences.
    let design = |iterations: usize| {
        let (pairing, unit, freedom) = if is_repeated {
            (
                SamplePairing::Independent,
                noise.boot_median_sd(iterations),
                noise.freedom(iterations, observed, values),
            )
        } else {
            (SamplePairing::Paired, noise.within * std::f64::consts::SQRT_2, (values - 1) as f64)
        };
        let rules = PowerRules {
            pairing,
            confidence: options.confidence,
            noise_freedom: Some(freedom),
            ranked_levels: true,
            ..PowerRules::default()
        };
        (rules, unit)
    };
    let goal = requested.power_goal();
    let needed_of = |iterations: usize| match design(iterations) {
        (rules, unit) if unit > 0.0 => {
            rules.needed_repetitions(unit, goal).map_err(|error| error.to_string())
        }
        _ => Ok(Some(4)),
    };
    // How well the noise of a repetition is known depends on its iterations, too. What fewer of them can do, more can.
    let needed_and_iterations = |iterations: usize| {
        let smaller = SIZES.iter().copied().filter(|size| is_repeated && *size < iterations);
        let all = smaller.chain([iterations]).map(|size| Ok((needed_of(size)?, size)));
        let all = all.collect::<Result<Vec<(Option<usize>, usize)>, String>>()?;
        let fewest = all.iter().filter(|(needed, _)| needed.is_some()).min();
        Ok::<_, String>(fewest.copied().unwrap_or((None, iterations)))
    };
    let needed_with = |iterations: usize| Ok::<_, String>(needed_and_iterations(iterations)?.0);
    let iterations = match (requested.iterations, level) {
        (Some(iterations), _) => iterations.clamp(1, MOST_ITERATIONS),
        (None, RepetitionLevel::Boot) => cheapest_iterations(cheapest, needed_with)?,
        (None, _) => cheapest.unwrap_or(10).clamp(1, MOST_ITERATIONS),
    };
    let (needed, counted) = needed_and_iterations(iterations)?;
    let (rules, unit) = design(counted);
    let (iterations, repetitions) =
        if is_repeated { (iterations, needed) } else { (needed.unwrap_or(iterations), needed.map(|_| 1)) };
    let time = repetitions.zip(cost);
    let time = time.map(|(repetitions, cost)| repetitions as f64 * (boot_cost + iterations as f64 * cost));
    let detects = needed.filter(|_| unit > 0.0).and_then(|n| rules.detectable_change(unit, n.max(2)).ok());
    Ok(SampleSizePlan {
        subject: subject.into(),
        metric: metric.into(),
        unit: seen.unit.clone(),
        level,
        observed: (observed, values),
        within: noise.within,
        between: is_repeated.then_some(noise.between),
        iterations,
        repetitions,
        time: time.map(|time| Nanos(time as u64)),
        detects,
    })
}

fn take_logarithms(groups: &[&[f64]]) -> Result<Vec<Vec<f64>>, String> {
    if groups.iter().copied().flatten().any(|value| *value <= 0.0) {
        return Err("has values that are not above zero, so no relative noise".into());
    }
    Ok(groups.iter().map(|group| group.iter().map(|value| value.ln()).collect()).collect())
}

fn estimate_noise(level: RepetitionLevel, groups: &[Vec<f64>]) -> Result<TwoLevelNoise, String> {
    if level == RepetitionLevel::Iteration {
        let only = groups.first().map(Vec::as_slice).unwrap_or_default();
        let within = sd(only).map_err(|_| "has a single value, so no noise is known".to_owned())?;
        return Ok(TwoLevelNoise { between: 0.0, within });
    }
    let slices: Vec<&[f64]> = groups.iter().map(Vec::as_slice).collect();
    TwoLevelNoise::from_boots(&slices).or_else(|_| {
        // One value each: their spread is all there is.
        let singles: Vec<f64> = groups.iter().filter_map(|group| group.first().copied()).collect();
        let between = sd(&singles).map_err(|error| error.to_string())?;
        Ok(TwoLevelNoise { between, within: 0.0 })
    })
}
