//! What several noise runs of one machine say together: how much each level of repetition adds, how values follow one another,
//! and how much a run differs from the next.

use std::collections::{BTreeMap, HashMap};

use perflab_model::{Nanos, RunRecord};
use perflab_stats::{NestedComponents, SerialDependence, StatsError, median, theil_sen};

use crate::compare::alignment::{CaseSelection, MetricSamples, SampleIndex};
use crate::compare::between_runs::FARTHEST_RATIO;
use crate::compare::comparison::{Comparison, SamplePoint, VerdictRow};
use crate::compare::noise_card::{DuetPairs, NoiseCard};
use crate::compare::noise_levels::{NextRun, NoiseLevels};
use crate::compare::options::{AnalysisOptions, ComparisonSide};
use crate::compare::run_differences::machine_differences;

impl NoiseCard {
    /// Adds what each level contributes, from noise runs in order of time, of which the newest is the card's own; their sides
    /// are levels of `factor`.
    #[must_use]
    pub fn with_levels(mut self, runs: &[RunRecord], factor: &str) -> Self {
        let newest = runs.last();
        // Pairs at one moment have other noise than iterations in turn, and half of the machine each.
        let runs: Vec<RunRecord> = runs.iter().filter(|run| !run.manifest.plan.is_duet()).cloned().collect();
        let levels = measure_noise_levels(&runs, factor);
        for row in &mut self.rows {
            row.levels = levels.get(&(row.subject.clone(), row.metric.clone())).copied();
        }
        self.run_cost = newest.and_then(run_cost);
        self
    }

    /// Adds what the pairs of a duet differ by, from the comparison of its two equal levels and that run.
    #[must_use]
    pub fn with_duet(mut self, comparison: &Comparison, run: &RunRecord) -> Self {
        let durations = iteration_times(run, comparison.by.as_deref().unwrap_or_default());
        for row in &mut self.rows {
            let is_own = |found: &&VerdictRow| (&found.subject, &found.metric) == (&row.subject, &row.metric);
            let compared = comparison.rows.iter().find(is_own);
            let pair_time = durations.get(&row.subject).copied().unwrap_or_default();
            row.duet = compared.and_then(|compared| duet_pairs(compared, pair_time));
        }
        self
    }
}

/// The pairs of a row, of positive values.
fn duet_pairs(row: &VerdictRow, pair_time: Nanos) -> Option<DuetPairs> {
    let (ours, theirs) = (row.baseline.as_ref()?, row.candidate.as_ref()?);
    let theirs: HashMap<_, f64> =
        theirs.values.iter().map(|point| (point.iteration_key(), point.value)).collect();
    let difference = |point: &SamplePoint| {
        let other = *theirs.get(&point.iteration_key())?;
        (other > 0.0 && point.value > 0.0).then(|| (other / point.value).ln())
    };
    let differences: Vec<f64> = ours.values.iter().filter_map(difference).collect();
    let squares: f64 = differences.iter().map(|difference| difference * difference).sum();
    let pairs = differences.len();
    (pairs > 0).then(|| DuetPairs { pairs, sd: (squares / pairs as f64).sqrt(), pair_time })
}

/// What a run took besides its iterations; of one that another tool measured it is not known.
pub(crate) fn run_cost(run: &RunRecord) -> Option<Nanos> {
    let wall = run.manifest.overhead.wall;
    let iterations: u64 = run.iterations.iter().map(|one| one.end.since(one.start).0).sum();
    (wall > Nanos(0)).then(|| wall.since(Nanos(iterations)))
}

/// The levels of every case and metric over noise runs, by both names; `hidden` is the factor whose levels are the same. The
/// newest run comes last; those of another machine or with other cases are left out.
fn measure_noise_levels(runs: &[RunRecord], hidden: &str) -> HashMap<(String, String), NoiseLevels> {
    let Some(newest) = runs.last() else { return HashMap::new() };
    let is_alike = |run: &&RunRecord| {
        let (ours, theirs) = (&newest.manifest, &run.manifest);
        let same_cases =
            ours.plan.cases == theirs.plan.cases && ours.plan.definitions == theirs.plan.definitions;
        same_cases && machine_differences(&ours.facts, &theirs.facts).is_empty()
    };
    let runs: Vec<RunRecord> = runs.iter().filter(is_alike).cloned().collect();
    let durations = iteration_times(newest, hidden);
    let mut index = SampleIndex::default();
    let selection = CaseSelection { level: None, hidden: vec![hidden.to_owned()] };
    let side = ComparisonSide { name: String::new(), runs };
    let table = index.align_side(&side, "", &selection, &AnalysisOptions::default());
    let mut found = HashMap::new();
    for ((subject, metric), cell) in &table.cells {
        let names = (index.subjects.get_index(*subject), index.metrics.get_index(*metric));
        let (Some((name, _)), Some(metric)) = names else { continue };
        let time = durations.get(name).copied().unwrap_or_default();
        if let Ok(Some(levels)) = levels_of_cell(cell, time) {
            found.insert((name.clone(), String::from(&metric.name)), levels);
        }
    }
    found
}

/// Mean length of an iteration by case; `hidden` is the factor whose levels are the same, and in no name.
fn iteration_times(run: &RunRecord, hidden: &str) -> HashMap<String, Nanos> {
    let mut sums: HashMap<String, (u64, u64)> = HashMap::new();
    for one in &run.iterations {
        let slot = run.manifest.plan.slots.get(one.slot as usize);
        let Some(case) = slot.and_then(|slot| run.manifest.plan.case(slot.case)) else { continue };
        let sum = sums.entry(case.label_without(hidden)).or_default();
        *sum = (sum.0.saturating_add(one.end.since(one.start).0), sum.1 + 1);
    }
    sums.into_iter().map(|(case, (sum, count))| (case, Nanos(sum / count.max(1)))).collect()
}

fn levels_of_cell(cell: &MetricSamples, iteration_time: Nanos) -> Result<Option<NoiseLevels>, StatsError> {
    if cell.points.iter().any(|point| point.value <= 0.0) || cell.points.len() < 2 {
        return Ok(None);
    }
    let path = |point: &SamplePoint| ([point.boot, point.run, point.iteration], point.value.ln());
    let values: Vec<([u32; 3], f64)> = cell.points.iter().map(path).collect();
    let components = NestedComponents::from_paths(&values)?;
    let [boots, runs, blocks] = components.levels.as_slice() else { return Ok(None) };
    let by_run = blocks_by_run(cell);
    let series: Vec<Vec<f64>> =
        by_run.iter().map(|run| run.blocks.iter().map(|(_, value)| *value).collect()).collect();
    let series: Vec<&[f64]> = series.iter().map(Vec::as_slice).collect();
    let medians: Vec<(u32, f64)> = by_run
        .iter()
        .map(|run| Ok((run.boot, median(&run.blocks.iter().map(|(_, value)| *value).collect::<Vec<_>>())?)))
        .collect::<Result<_, StatsError>>()?;
    let pairs = || medians.iter().zip(medians.iter().skip(1));
    let difference = |(one, next): (&(u32, f64), &(u32, f64))| next.1 - one.1;
    let all: Vec<f64> = pairs().map(difference).collect();
    let of_boots: Vec<f64> = pairs().filter(|(one, next)| one.0 != next.0).map(difference).collect();
    let slopes: Vec<f64> = by_run.iter().filter_map(RunBlocks::slope).collect();
    Ok(Some(NoiseLevels {
        boots: (*boots).into(),
        runs: (*runs).into(),
        blocks: (*blocks).into(),
        iterations: components.values.into(),
        autocorrelation: SerialDependence::from_runs(&series)?.autocorrelation,
        drift: median(&slopes).ok().filter(|drift| drift.abs() < FARTHEST_RATIO.ln()).map(f64::exp_m1),
        next_run: NextRun::from_differences(&all),
        next_boot: NextRun::from_differences(&of_boots),
        iteration_time,
    }))
}

/// The blocks of one run in order of time: hours since its first, mean of the logarithms.
struct RunBlocks {
    boot: u32,
    blocks: Vec<(f64, f64)>,
}

impl RunBlocks {
    /// Change of the logarithm an hour.
    fn slope(&self) -> Option<f64> {
        if self.blocks.len() < 3 {
            return None;
        }
        let (hours, values): (Vec<f64>, Vec<f64>) = self.blocks.iter().copied().unzip();
        Some(theil_sen(&hours, &values, 0.95).ok()?.value)
    }
}

/// The values of one block: hours since the first of the run, sum of the logarithms.
#[derive(Default)]
struct BlockSum {
    hours: f64,
    sum: f64,
    values: usize,
}

/// Runs in the order in which they were passed, which is that of time; blocks by their number.
fn blocks_by_run(cell: &MetricSamples) -> Vec<RunBlocks> {
    let mut runs: BTreeMap<(u32, u32), (u64, BTreeMap<u32, BlockSum>)> = BTreeMap::new();
    for point in cell.points.iter() {
        let (begun, blocks) =
            runs.entry((point.run, point.boot)).or_insert_with(|| (point.at.0, BTreeMap::new()));
        let hours = point.at.0.saturating_sub(*begun) as f64 / 3.6e12;
        let block =
            blocks.entry(point.iteration).or_insert_with(|| BlockSum { hours, ..BlockSum::default() });
        (block.sum, block.values) = (block.sum + point.value.ln(), block.values + 1);
    }
    let mean = |block: BlockSum| (block.hours, block.sum / block.values as f64);
    runs.into_iter()
        .map(|((_, boot), (_, blocks))| RunBlocks { boot, blocks: blocks.into_values().map(mean).collect() })
        .collect()
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::RunBuilder;

    use super::*;

    /// Rows of a card have the levels of the study's own factors in their names: so have the times that a plan is made with.
    #[test]
    fn iterations_of_each_level_have_a_time() {
        let run = RunBuilder::new("noise")
            .with(|lab| lab.factors = vec![("noise", vec!["a", "b"]), ("pages", vec!["huge", "small"])])
            .build_run(|_| Some(1.0));
        let mut times: Vec<(String, bool)> =
            iteration_times(&run, "noise").into_iter().map(|(case, time)| (case, time > Nanos(0))).collect();
        times.sort();
        let names: Vec<&str> =
            times.iter().map(|(case, _)| case.rsplit(' ').next().unwrap_or(case)).collect();
        assert_eq!(names, ["pages=huge", "pages=small"]);
        assert!(times.iter().all(|(_, is_known)| *is_known), "{times:?}");
    }
}
