//! A machine's noise card: what a run of one variant under two labels (A/A) showed, and how comparisons use it.
//!
//! A change smaller than what this machine shows without any is flagged, not hidden. Where a side has so few boots or runs that their
//! spread is hardly known, the card helps to know it: `between_runs`, `pooled_noise`.

use perflab_model::fact_table;
use perflab_model::{Manifest, Nanos, Unit};
use perflab_stats::{PowerRules, SamplePairing, StatsError, TwoLevelNoise, mann_whitney, sd, signed_rank};
use serde::{Deserialize, Serialize};

use crate::compare::change::ChangeScale;
use crate::compare::comparison::{Comparison, SideSummary, VerdictRow};
use crate::compare::diagnostic::NoiseCardDoubt;
use crate::compare::noise_levels::{LevelNoise, NextRun, NoiseLevels};

/// Version of a stored card.
pub const NOISE_CARD_FORMAT: u32 = 1;

/// A card older than this is reported as old.
pub const LONGEST_CARD_AGE: Nanos = Nanos(30 * 86_400_000_000_000);

/// Iterations a side of the small experiments that are cut out of the run.
const WINDOW: usize = 6;

const ALPHA: f64 = 0.05;

/// What an A/A run showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoiseCard {
    /// [`NOISE_CARD_FORMAT`].
    pub format: u32,
    /// The run's id.
    pub run: String,
    /// When it began, nanoseconds since 1970.
    pub made: Nanos,
    /// The kernel that it ran under; empty where unknown.
    pub kernel: String,
    /// The processor; empty where unknown.
    pub cpu: String,
    /// Share of the time of all processors that the hypervisor gave to others during the run; absent where nobody counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal: Option<f64>,
    /// Context switches a second during the run, on all processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_switches: Option<f64>,
    /// What a run costs besides its iterations, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_cost: Option<Nanos>,
    /// One row a case and metric.
    pub rows: Vec<NoiseRow>,
}

/// One metric of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoiseRow {
    /// The case.
    pub subject: String,
    /// Its workload.
    pub workload: String,
    /// The metric.
    pub metric: String,
    /// Unit of its values.
    pub unit: Unit,
    /// Values under each label.
    pub n: usize,
    /// Standard deviation of one iteration, relative.
    pub noise: f64,
    /// The change that was seen although nothing changed.
    pub change: f64,
    /// The largest relative change that the interval of that change admits.
    pub reach: f64,
    /// The smallest relative change that as many iterations find in 80 % of experiments.
    pub detects: Option<f64>,
    /// Share of false alarms at 5 % in small experiments cut out of this run whose sides were interleaved.
    pub interleaved: Option<f64>,
    /// The same where one side was measured after the other.
    pub in_turn: Option<f64>,
    /// What each level adds, over all noise runs of this case on this machine; absent on cards of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<NoiseLevels>,
    /// The same variant on both halves of the machine at one moment; absent where nobody measured that (`perflab noise --duet`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duet: Option<DuetPairs>,
}

/// What two executions at one moment, each on half of the CPUs, differ by where nothing differs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DuetPairs {
    /// Pairs that were measured.
    pub pairs: usize,
    /// Root mean square of their relative differences: levels swap halves, so that unequal halves are noise, too.
    pub sd: f64,
    /// How long a pair takes, ns.
    pub pair_time: Nanos,
}

impl NoiseCard {
    /// The card of an A/A comparison, and the rows that have no card, each with the reason.
    #[must_use]
    pub fn from_comparison(comparison: &Comparison, manifest: &Manifest) -> (Self, Vec<String>) {
        let (mut rows, mut without) = (Vec::new(), Vec::new());
        for row in &comparison.rows {
            match build_noise_row(row, comparison.confidence) {
                Some(Ok(found)) => rows.push(found),
                Some(Err(error)) => without.push(format!("{}, {}: {error}", row.subject, row.metric)),
                None => without
                    .push(format!("{}, {}: no relative change with an interval", row.subject, row.metric)),
            }
        }
        let card = NoiseCard {
            format: NOISE_CARD_FORMAT,
            run: manifest.id.clone(),
            made: manifest.anchor.realtime,
            kernel: manifest.facts.text(&fact_table::KERNEL_RELEASE),
            cpu: manifest.facts.text(&fact_table::CPU_MODEL),
            steal: None,
            context_switches: None,
            run_cost: None,
            rows,
        };
        (card, without)
    }

    /// How much a run differs from the next on this machine, for a metric without any change: of the case itself, else of the
    /// noisiest case of its workload.
    pub(crate) fn next_run(&self, wanted: &NextRunQuery<'_>) -> Option<NextRun> {
        let is_of_metric = |row: &&NoiseRow| {
            row.metric == wanted.metric && row.unit == *wanted.unit && row.workload == wanted.workload
        };
        let found = |row: &NoiseRow| {
            let levels = row.levels?;
            if wanted.other_boots { levels.next_boot } else { levels.next_run }
        };
        let rows = || self.rows.iter().filter(is_of_metric);
        let own = rows().find(|row| row.subject == wanted.subject).and_then(found);
        own.or_else(|| rows().filter_map(found).max_by(|a, b| a.mean_square.total_cmp(&b.mean_square)))
    }

    /// The variance of the logarithm of the median of a boot or run of so many values, by what each level adds, and the differences
    /// that it rests on: of the case itself.
    pub(crate) fn unit_variance(&self, wanted: &NextRunQuery<'_>, values: usize) -> Option<(f64, NextRun)> {
        let is_own = |row: &&NoiseRow| {
            (row.subject.as_str(), row.metric.as_str()) == (wanted.subject, wanted.metric)
                && row.unit == *wanted.unit
        };
        let levels = self.rows.iter().find(is_own)?.levels?;
        let variance = |level: LevelNoise| level.sd.unwrap_or(0.0).powi(2);
        let (between, next) = if wanted.other_boots {
            (levels.boots.sd?.powi(2) + variance(levels.runs), levels.next_boot?)
        } else {
            (levels.runs.sd?.powi(2), levels.next_run?)
        };
        let within = variance(levels.blocks) + variance(levels.iterations);
        let noise = TwoLevelNoise { between: between.sqrt(), within: within.sqrt() };
        Some((noise.boot_median_sd(values).powi(2), next))
    }

    /// The largest change that this machine shows for a metric of a workload without any.
    pub(crate) fn largest_change(&self, workload: &str, metric: &str) -> Option<f64> {
        let rows = self.rows.iter().filter(|row| row.workload == workload && row.metric == metric);
        rows.map(|row| row.reach).reduce(f64::max)
    }

    /// Why the card may not hold for a run that began then and there; empty where it does.
    pub(crate) fn reasons_for_doubt(&self, manifest: &Manifest) -> Vec<NoiseCardDoubt> {
        let age = manifest.anchor.realtime.since(self.made);
        let days = age.0 / 86_400_000_000_000;
        let changed = |card: &String, run: String| {
            (!card.is_empty() && !run.is_empty() && *card != run).then(|| (card.clone(), run))
        };
        let old = (age > LONGEST_CARD_AGE).then_some(NoiseCardDoubt::Age { days });
        let kernel = changed(&self.kernel, manifest.facts.text(&fact_table::KERNEL_RELEASE))
            .map(|(card, run)| NoiseCardDoubt::Kernel { card, run });
        let processor = changed(&self.cpu, manifest.facts.text(&fact_table::CPU_MODEL))
            .map(|(card, run)| NoiseCardDoubt::Processor { card, run });
        [old, kernel, processor].into_iter().flatten().collect()
    }
}

/// For which row the card is asked.
pub(crate) struct NextRunQuery<'a> {
    pub(crate) subject: &'a str,
    pub(crate) workload: &'a str,
    pub(crate) metric: &'a str,
    pub(crate) unit: &'a Unit,
    /// The runs are of different boots, or nobody knows.
    pub(crate) other_boots: bool,
}

fn build_noise_row(row: &VerdictRow, confidence: f64) -> Option<Result<NoiseRow, StatsError>> {
    let change = row.change.filter(|change| change.scale == ChangeScale::Ratio)?;
    let interval = change.interval?;
    let logarithms = |side: &Option<SideSummary>| -> Option<Vec<f64>> {
        Some(side.as_ref()?.values.iter().map(|point| point.value.ln()).collect())
    };
    let (x, y) = (logarithms(&row.baseline)?, logarithms(&row.candidate)?);
    Some(measure_noise(row, (&x, &y), change.value, (interval.low, interval.high), confidence))
}

fn measure_noise(
    row: &VerdictRow,
    (x, y): (&[f64], &[f64]),
    change: f64,
    (low, high): (f64, f64),
    confidence: f64,
) -> Result<NoiseRow, StatsError> {
    let pooled = sd(x)?.powi(2).midpoint(sd(y)?.powi(2)).sqrt();
    let n = x.len().min(y.len());
    let rules = PowerRules { pairing: SamplePairing::Independent, confidence, ..PowerRules::default() };
    let detects = if pooled > 0.0 { rules.detectable_change(pooled, n).ok() } else { None };
    let pairs: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).collect();
    Ok(NoiseRow {
        subject: row.subject.clone(),
        workload: row.workload.clone(),
        metric: row.metric.clone(),
        unit: row.unit.clone(),
        n,
        noise: pooled,
        change,
        reach: low.abs().max(high.abs()),
        detects,
        interleaved: false_alarm_rate(pairs.windows(WINDOW).map(|window| {
            let (x, y): (Vec<f64>, Vec<f64>) = window.iter().copied().unzip();
            Ok(signed_rank(&x, &y)?.p)
        }))?,
        in_turn: false_alarm_rate(pairs.windows(WINDOW).map(|window| {
            let order: Vec<f64> = window.iter().flat_map(|(x, y)| [*x, *y]).collect();
            let (first, second) = order.split_at(WINDOW);
            Ok(mann_whitney(first, second)?.p)
        }))?,
        levels: None,
        duet: None,
    })
}

fn false_alarm_rate(
    p_values: impl Iterator<Item = Result<f64, StatsError>>,
) -> Result<Option<f64>, StatsError> {
    let found = p_values.collect::<Result<Vec<f64>, _>>()?;
    let alarming = found.iter().filter(|p| **p < ALPHA).count();
    Ok((!found.is_empty()).then(|| alarming as f64 / found.len() as f64))
}
