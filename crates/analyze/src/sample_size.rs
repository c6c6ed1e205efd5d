//! How many boots and iterations a precision costs, and the time that both take, from the noise of earlier runs.
//!
//! One boot does not tell the noise between boots: it is reported as unknown, not guessed.

use indexmap::IndexMap;
use perflab_model::{Nanos, RunRecord, Sample, Unit};
use perflab_stats::{PowerGoal, PowerRules, SamplePairing, TwoLevelNoise, sd};
use serde::Serialize;

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
    /// Boots and values that the noise was learnt from.
    pub observed: (usize, usize),
    /// Standard deviation between iterations of a boot, relative.
    pub within: f64,
    /// Standard deviation between boots, relative; absent where one boot was seen.
    pub between: Option<f64>,
    /// Iterations in each boot.
    pub iterations: usize,
    /// Boots a side (1 where only one boot was seen: iterations alone); absent where a million do not suffice.
    pub boots: Option<usize>,
    /// Time a side; absent as the boots are.
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

/// Values of one metric of one case, by boot.
struct BootSamples<'a> {
    unit: &'a Unit,
    primary: bool,
    boots: IndexMap<(String, u32), Vec<f64>>,
    span: u64,
}

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
    let (mut planned, mut unplanned) = (Vec::new(), Vec::new());
    for ((subject, metric), one) in seen {
        match plan_metric(&subject, &metric, &one, requested, options) {
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
        if !options.includes_workload(&case.workload) {
            continue;
        }
        let one = seen.entry((case.label(), String::from(&sample.metric))).or_insert_with(|| BootSamples {
            unit: &sample.unit,
            primary: sample.primary,
            boots: IndexMap::new(),
            span: 0,
        });
        one.boots.entry(manifest.boot_key(sample.boot, options.boots_differ)).or_default().push(sample.value);
        one.span += sample.end.since(sample.start).0;
    }
}

fn plan_metric(
    subject: &str,
    metric: &str,
    seen: &BootSamples<'_>,
    requested: &SampleSizeOptions,
    options: &AnalysisOptions,
) -> Result<SampleSizePlan, String> {
    let values: usize = seen.boots.values().map(Vec::len).sum();
    let logarithms = boot_logarithms(seen)?;
    let noise = estimate_boot_noise(&logarithms)?;
    let (known, noise) = noise;
    let cost = (seen.span as f64 / values as f64).max(1.0);
    let boot_cost = (requested.boot_cost.0 as f64).max(1.0);
    let best = noise.best_iterations(boot_cost, cost).map_err(|error| error.to_string())?;
    let iterations = requested.iterations.or(best.filter(|_| known)).unwrap_or(10).clamp(1, 1_000);
    let boots = seen.boots.len();
    // Within one boot, levels are interleaved: pairs, with the noise of their differences.
    let (pairing, unit, freedom) = if known {
        (
            SamplePairing::Independent,
            noise.boot_median_sd(iterations),
            noise.freedom(iterations, boots, values),
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
    let goal = match requested.aim {
        SampleSizeAim::Precision => PowerGoal::HalfWidth(requested.size),
        SampleSizeAim::Detect => PowerGoal::Detect(requested.size),
        SampleSizeAim::Decide => PowerGoal::Decide(requested.size),
    };
    let needed =
        if unit > 0.0 { rules.needed_repetitions(unit, goal).map_err(|e| e.to_string())? } else { Some(4) };
    let (iterations, boots) =
        if known { (iterations, needed) } else { (needed.unwrap_or(iterations), needed.map(|_| 1)) };
    let time = boots.map(|boots| boots as f64 * (boot_cost + iterations as f64 * cost));
    let detects = needed.filter(|_| unit > 0.0).and_then(|n| rules.detectable_change(unit, n.max(2)).ok());
    Ok(SampleSizePlan {
        subject: subject.into(),
        metric: metric.into(),
        unit: seen.unit.clone(),
        observed: (seen.boots.len(), values),
        within: noise.within,
        between: known.then_some(noise.between),
        iterations,
        boots,
        time: time.map(|time| Nanos(time as u64)),
        detects,
    })
}

fn boot_logarithms(seen: &BootSamples<'_>) -> Result<Vec<Vec<f64>>, String> {
    let all = seen.boots.values();
    if all.clone().flatten().any(|value| *value <= 0.0) {
        return Err("has values that are not above zero, so no relative noise".into());
    }
    Ok(all.map(|boot| boot.iter().map(|value| value.ln()).collect()).collect())
}

/// The noise, and whether that between boots is known.
fn estimate_boot_noise(boots: &[Vec<f64>]) -> Result<(bool, TwoLevelNoise), String> {
    let slices: Vec<&[f64]> = boots.iter().map(Vec::as_slice).collect();
    match TwoLevelNoise::from_boots(&slices) {
        Ok(noise) => Ok((true, noise)),
        Err(_) if boots.len() >= 2 => {
            // One value a boot: the boots' spread is all there is.
            let singles: Vec<f64> = boots.iter().filter_map(|boot| boot.first().copied()).collect();
            Ok((
                true,
                TwoLevelNoise { between: sd(&singles).map_err(|error| error.to_string())?, within: 0.0 },
            ))
        }
        Err(_) => {
            let only = boots.first().map(Vec::as_slice).unwrap_or_default();
            let within = sd(only).map_err(|_| "has a single value, so no noise is known".to_owned())?;
            Ok((false, TwoLevelNoise { between: 0.0, within }))
        }
    }
}
