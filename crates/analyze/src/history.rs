//! A metric over the runs of an archive: one value per run, and its change points.
//!
//! Steps are found by E-divisive (energy distance, permutations with a seed, values that may depend on the ones before) on
//! the logarithms where all values are above zero, and held against all series that were searched: q. Hunter's t-test is not used: at its usual level of 0.001 it alarms on 1 to 3.5 % of flat series, since
//! its p-value belongs to a place chosen beforehand (`crates/stats/tests/it/hunter.rs`).
//!
//! Runs of one day (UTC) share its luck: where days differ by more than the runs within them explain, a day is a level like a boot.
//! Its runs are a block of the permutations, and count as one value in the size of a step.
//!
//! A step lies between two runs; which change is to blame takes a new measurement. Each unit of a metric is a series of
//! its own, and so is each machine and each version of a case.

use std::collections::{BTreeMap, HashMap};

use indexmap::IndexMap;
use perflab_model::{AcceptedStep, Case, Direction, Manifest, Nanos, RunRecord, Sample, Unit};
use perflab_stats::{
    EDivisive, PairwiseShifts, SeriesGroups, StatsError, benjamini_hochberg, median, median_with_interval,
};
use serde::Serialize;

use crate::compare::change::{ChangeInterval, ChangeScale, IntervalMeaning, MetricChange};
use crate::compare::comparison::{ComparedRun, Verdict, measured_commit};
use crate::compare::run_differences::{self, PlanDifference, case_differences, machine_differences};
use crate::method_description::MethodDescription;
use crate::{AnalysisOptions, AnalyzeError};

/// Version of the shape of [`MetricHistories`] as JSON.
pub const HISTORY_FORMAT: u32 = 1;

/// Fewest runs between two steps, so at least twice as many for a step to be found at all.
pub const SHORTEST_SEGMENT: usize = 3;

/// Metrics over runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricHistories {
    /// [`HISTORY_FORMAT`].
    pub format: u32,
    /// The writer: `perflab 0.1.0`.
    pub writer: String,
    /// The runs, the oldest first.
    pub runs: Vec<ComparedRun>,
    /// One series a case, metric and unit.
    pub series: Vec<MetricHistory>,
    /// How the numbers came about, and what was left out; who writes JSON adds them as sentences.
    #[serde(skip)]
    pub notes: Vec<MethodDescription>,
}

/// One metric of one case over the runs that have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricHistory {
    /// The case, with the levels of its factors.
    pub subject: String,
    /// The metric.
    pub metric: String,
    /// Unit of its values.
    pub unit: Unit,
    /// Which way is good.
    pub direction: Direction,
    /// Whether the metric decides or explains.
    pub primary: bool,
    /// The relative change that matters.
    pub margin: f64,
    /// Where the case was edited or the machine is another one since the series of this name before it: what differs, as
    /// `key: before -> after`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edited: Vec<String>,
    /// Where somebody accepted a step and a new baseline begins, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<AcceptedBaseline>,
    /// Whether a day is a level: its runs resemble one another more than those of other days.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_day: bool,
    /// One value a run, the oldest first.
    pub points: Vec<HistoryPoint>,
    /// The steps, the oldest first.
    pub steps: Vec<HistoryChangePoint>,
}

/// A baseline that somebody began.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AcceptedBaseline {
    /// Its first point, index into [`MetricHistory::points`].
    pub at: usize,
    /// The run with which it began; where that is gone, the point is the next one's.
    pub run: String,
    /// Why the step before it was accepted.
    pub note: String,
}

/// A step between two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryChangePoint {
    /// First point after the step, index into [`MetricHistory::points`].
    pub at: usize,
    /// The last run before it.
    pub last_good: String,
    /// The first run after it.
    pub first_bad: String,
    /// Runs of the archive between the two that do not have the metric: the step may lie at any of them.
    pub between: Vec<String>,
    /// From the segment before to the segment after.
    pub change: MetricChange,
    /// What it means: *same* where it is smaller than the margin, *unclear* where the metric has no direction.
    pub verdict: Verdict,
    /// How surprising it is, were there none.
    pub p: f64,
    /// The same, adjusted for all series that were searched.
    pub q: f64,
    /// Other series that have a step at the same run.
    pub together: usize,
    /// Facts that differ between the two runs, the likely causes first, as `key: before -> after`.
    pub facts: Vec<String>,
    /// The commit of the tree that the first run after it was of, else of the kernel that it ran on, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// The history of the metrics chosen in the options.
///
/// # Errors
/// No run; no sample of what was chosen; options out of range.
pub fn metric_histories(
    runs: &[RunRecord],
    options: &AnalysisOptions,
) -> Result<MetricHistories, AnalyzeError> {
    options.validate()?;
    let mut ordered: Vec<&RunRecord> = runs.iter().collect();
    ordered.sort_by_key(|run| (run.manifest.anchor.realtime, run.manifest.id.clone()));
    if ordered.is_empty() {
        return Err(AnalyzeError::NoRun { side: "history".into() });
    }
    let mut series = collect_series(&ordered, options)?;
    let found = significant_steps(&series, 1.0 - options.confidence)?;
    for (one, steps) in series.iter_mut().zip(found) {
        one.steps = describe_change_points(one, &steps, &ordered, options)?;
    }
    count_simultaneous(&mut series);
    Ok(MetricHistories {
        format: HISTORY_FORMAT,
        writer: concat!("perflab ", env!("CARGO_PKG_VERSION")).into(),
        runs: ordered.iter().map(|run| ComparedRun::from_record(run, "")).collect(),
        notes: describe_history_methods(&series, &ordered),
        series,
    })
}

impl MetricHistories {
    /// Begins the baselines that somebody accepted; steps of other series are passed over.
    pub fn begin_accepted_baselines(&mut self, steps: &[AcceptedStep]) {
        for series in &mut self.series {
            let name = (&series.subject, &series.metric, &series.unit);
            let own = steps.iter().filter(|step| (&step.subject, &step.metric, &step.unit) == name);
            for step in own {
                // The run itself may be gone, or may lie before the runs that are looked at.
                let at = series.points.iter().position(|point| point.at >= step.began);
                let Some(at) = at.filter(|at| *at > 0) else { continue };
                series.baselines.retain(|other| other.at != at);
                series.baselines.push(AcceptedBaseline {
                    at,
                    run: step.run.clone(),
                    note: step.note.clone(),
                });
            }
            series.baselines.sort_by_key(|baseline| baseline.at);
        }
    }
}

impl MetricHistory {
    /// The baseline that was accepted with a step: both may name neighbouring runs.
    #[must_use]
    pub fn accepted_with(&self, step: &HistoryChangePoint) -> Option<&AcceptedBaseline> {
        self.baselines.iter().find(|baseline| baseline.at.abs_diff(step.at) < SHORTEST_SEGMENT)
    }

    pub(crate) fn statistic_error(&self, source: StatsError) -> AnalyzeError {
        AnalyzeError::Statistic { subject: self.subject.clone(), metric: self.metric.clone(), source }
    }

    /// The values, on logarithms where all are above zero.
    pub(crate) fn scaled_values(&self) -> Vec<f64> {
        let values = || self.points.iter().map(|point| point.value);
        if values().all(|value| value > 0.0) { values().map(f64::ln).collect() } else { values().collect() }
    }

    /// Its runs by day.
    pub(crate) fn days(&self) -> SeriesGroups {
        let days: Vec<u64> = self.points.iter().map(|point| point.at.0 / NANOSECONDS_OF_A_DAY).collect();
        SeriesGroups::from_keys(&days)
    }

    /// What counts as a value among these points: the runs, or where a day is a level, the median of each day. Of too few days for
    /// a step between them, steps are those within days, and runs count.
    pub(crate) fn units_of(&self, range: std::ops::Range<usize>) -> Result<Vec<f64>, StatsError> {
        let points = self.points.get(range.clone()).unwrap_or_default();
        let values: Vec<f64> = points.iter().map(|point| point.value).collect();
        let days = self.days();
        let counts = self.by_day && days.count() >= 2 * SHORTEST_SEGMENT;
        if counts { days.part(range).medians(&values) } else { Ok(values) }
    }
}

const NANOSECONDS_OF_A_DAY: u64 = 86_400_000_000_000;

fn describe_history_methods(series: &[MetricHistory], runs: &[&RunRecord]) -> Vec<MethodDescription> {
    let mut notes = vec![MethodDescription::HistorySteps];
    let mut named = std::collections::BTreeSet::new();
    for one in series.iter().filter(|one| !one.edited.is_empty()) {
        let run = one.points.first().and_then(|point| runs.get(point.run));
        let id = run.map_or("", |run| run.manifest.id.as_str());
        if named.insert((one.subject.clone(), id)) {
            notes.push(MethodDescription::EditedCase {
                subject: one.subject.clone(),
                run: id.to_owned(),
                differences: one.edited.clone(),
            });
        }
    }
    let fewest_runs = 2 * SHORTEST_SEGMENT;
    let short = series.iter().filter(|one| one.points.len() < fewest_runs).count();
    notes.extend((short > 0).then_some(MethodDescription::ShortSeries { series: short, fewest_runs }));
    let by_day = series.iter().filter(|one| one.by_day).count();
    notes.extend((by_day > 0).then_some(MethodDescription::DaysAsLevel { series: by_day }));
    notes
}

/// One run's value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryPoint {
    /// Index of its run in [`History::runs`](MetricHistories::runs).
    pub run: usize,
    /// When the run began, nanoseconds since 1970.
    pub at: Nanos,
    /// Median of the boots' medians, in the unit of the series.
    pub value: f64,
    /// Interval of the median over boots, or over iterations where there is one boot; absent where there are too few.
    pub interval: Option<ChangeInterval>,
    /// Values.
    pub n: usize,
    /// Boots.
    pub boots: usize,
}

/// Case, metric, unit, and which version of the case.
type HistorySeriesKey<'a> = (String, &'a str, &'a str, usize);

/// The versions of every case: what stands under one name, but does something else or runs on another machine, is another
/// series.
#[derive(Default)]
struct CaseVersions<'a>(IndexMap<String, Vec<(&'a Manifest, &'a Case)>>);

/// What differs between two versions of a case.
fn version_differences(before: (&Manifest, &Case), after: (&Manifest, &Case)) -> Vec<PlanDifference> {
    let mut found = machine_differences(&before.0.facts, &after.0.facts);
    found.extend(case_differences(before, after));
    found
}

impl<'a> CaseVersions<'a> {
    /// The latest version that does the same; a new one where none does.
    fn version_number(&mut self, run: &'a Manifest, case: &'a Case) -> usize {
        let known = self.0.entry(case.label()).or_default();
        let same = known.iter().rposition(|version| version_differences(*version, (run, case)).is_empty());
        same.unwrap_or_else(|| {
            known.push((run, case));
            known.len() - 1
        })
    }

    /// What a version does differently from the one before it.
    fn edits_of_version(&self, label: &str, number: usize) -> Vec<String> {
        let version = |number: usize| self.0.get(label)?.get(number).copied();
        let pair = number.checked_sub(1).and_then(version).zip(version(number));
        pair.map(|(before, after)| version_differences(before, after))
            .unwrap_or_default()
            .iter()
            .map(ToString::to_string)
            .collect()
    }
}

/// What is known of a series before its statistics.
struct HistorySamples<'a> {
    sample: &'a Sample,
    margin: Option<f64>,
    runs: BTreeMap<usize, BTreeMap<u32, Vec<f64>>>,
}

/// All series of the runs, in the order in which they are first met.
fn collect_series(
    runs: &[&RunRecord],
    options: &crate::compare::options::AnalysisOptions,
) -> Result<Vec<MetricHistory>, crate::error::AnalyzeError> {
    let mut found: IndexMap<HistorySeriesKey<'_>, HistorySamples<'_>> = IndexMap::new();
    let mut versions = CaseVersions::default();
    for (number, run) in runs.iter().enumerate() {
        let cases = run.manifest.plan.cases.iter();
        let labels: Vec<Option<(String, usize)>> = cases
            .map(|case| {
                let version = versions.version_number(&run.manifest, case);
                options.includes_case(case).then(|| (case.label(), version))
            })
            .collect();
        for sample in run.samples.iter().filter(|sample| options.includes_metric(sample)) {
            let Some(Some((label, version))) = labels.get(sample.case as usize) else { continue };
            let known = found
                .entry((label.clone(), &sample.metric, &sample.unit.0, *version))
                .or_insert_with(|| HistorySamples {
                    sample,
                    margin: run.manifest.plan.margins.get(sample.metric.as_str()).copied(),
                    runs: BTreeMap::new(),
                });
            if sample.value.is_finite() {
                known.runs.entry(number).or_default().entry(sample.boot).or_default().push(sample.value);
            }
        }
    }
    found.retain(|_, one| !one.runs.is_empty());
    if found.is_empty() {
        return Err(no_series_error(runs, options));
    }
    found
        .into_iter()
        .map(|(key, one)| {
            let edited = versions.edits_of_version(&key.0, key.3);
            Ok(MetricHistory { edited, ..metric_history(key, &one, runs, options)? })
        })
        .collect()
}

fn no_series_error(
    runs: &[&RunRecord],
    options: &crate::compare::options::AnalysisOptions,
) -> crate::error::AnalyzeError {
    let names: std::collections::BTreeSet<&str> =
        runs.iter().flat_map(|run| &run.samples).map(|sample| sample.metric.as_str()).collect();
    let filter: Vec<&str> = options.metrics.iter().chain(&options.workloads).map(String::as_str).collect();
    crate::error::AnalyzeError::NoSamples {
        side: "history".into(),
        filter: filter.join(", "),
        known: names.into_iter().take(20).map(str::to_owned).collect(),
    }
}

fn metric_history(
    (subject, metric, _, _): HistorySeriesKey<'_>,
    found: &HistorySamples<'_>,
    runs: &[&RunRecord],
    options: &crate::compare::options::AnalysisOptions,
) -> Result<MetricHistory, crate::error::AnalyzeError> {
    let error = |source| crate::error::AnalyzeError::Statistic {
        subject: subject.clone(),
        metric: metric.into(),
        source,
    };
    let point = |(number, boots): (&usize, &BTreeMap<u32, Vec<f64>>)| {
        let at = runs.get(*number).map(|run| run.manifest.anchor.realtime).unwrap_or_default();
        history_point(*number, at, boots, options.confidence)
    };
    let points = found.runs.iter().map(point).collect::<Result<Vec<_>, _>>().map_err(error)?;
    let Sample { unit, direction, primary, .. } = found.sample;
    let (direction, primary): (Direction, bool) = (*direction, *primary);
    let margin = found.margin.unwrap_or(options.default_margin);
    let mut series = MetricHistory {
        metric: metric.into(),
        unit: unit.clone(),
        subject,
        direction,
        primary,
        margin,
        edited: Vec::new(),
        baselines: Vec::new(),
        by_day: false,
        points,
        steps: Vec::new(),
    };
    match series.days().share_luck(&series.scaled_values()) {
        Ok(by_day) => series.by_day = by_day,
        Err(source) => return Err(series.statistic_error(source)),
    }
    Ok(series)
}

fn history_point(
    run: usize,
    at: Nanos,
    boots: &BTreeMap<u32, Vec<f64>>,
    confidence: f64,
) -> Result<HistoryPoint, perflab_stats::StatsError> {
    let medians: Vec<f64> = boots.values().map(|values| median(values)).collect::<Result<_, _>>()?;
    let units = if let (1, Some(only)) = (boots.len(), boots.values().next()) { only } else { &medians };
    let interval = median_with_interval(units, confidence)?.interval;
    Ok(HistoryPoint {
        run,
        at,
        value: median(&medians)?,
        interval: interval.map(|i| ChangeInterval { low: i.low, high: i.high, level: i.level }),
        n: boots.values().map(Vec::len).sum(),
        boots: boots.len(),
    })
}

/// Longer histories are searched from here back only: the search takes time with the square.
const LONGEST_HISTORY: usize = 1_000;

/// A step among the values of a series.
#[derive(Debug, Clone, Copy)]
struct SeriesStep {
    at: usize,
    p: f64,
    q: f64,
}

/// The steps of all series. Series are families: those are kept whose least p-value has a q (Benjamini and Hochberg's over
/// all series that are long enough) within the level, and of these the steps within the level times the share of series
/// kept. Source: Benjamini and Bogomolov, "Selective inference on multiple families of hypotheses", JRSS B 76 (2014).
fn significant_steps(series: &[MetricHistory], level: f64) -> Result<Vec<Vec<SeriesStep>>, AnalyzeError> {
    let mut found = Vec::with_capacity(series.len());
    for one in series {
        let steps = change_point_indexes(one, one.points.len());
        found.push(steps.map_err(|source| one.statistic_error(source))?);
    }
    let least = |steps: &[(usize, f64)]| steps.iter().map(|(_, p)| *p).fold(1.0, f64::min);
    let searched = |one: &MetricHistory| one.points.len() >= 2 * SHORTEST_SEGMENT;
    let p_values: Vec<f64> =
        found.iter().zip(series).filter(|(_, one)| searched(one)).map(|(steps, _)| least(steps)).collect();
    let q_values = benjamini_hochberg(&p_values).unwrap_or_default();
    let kept = q_values.iter().filter(|q| **q <= level).count().max(1);
    let factor = p_values.len().max(1) as f64 / kept as f64;
    let adjusted = |(at, p): (usize, f64)| SeriesStep { at, p, q: (p * factor).min(1.0) };
    let within = |steps: Vec<(usize, f64)>| {
        steps.into_iter().map(adjusted).filter(|step| step.q <= level).collect::<Vec<_>>()
    };
    Ok(found.into_iter().map(within).collect())
}

/// What the steps of one series are.
fn describe_change_points(
    series: &MetricHistory,
    found: &[SeriesStep],
    runs: &[&RunRecord],
    options: &AnalysisOptions,
) -> Result<Vec<HistoryChangePoint>, AnalyzeError> {
    let ends: Vec<usize> = found.iter().map(|step| step.at).chain([series.points.len()]).collect();
    let mut steps = Vec::new();
    let mut start = 0;
    for (step, end) in found.iter().zip(ends.iter().skip(1)) {
        let change = series
            .units_of(start..step.at)
            .and_then(|before| estimate_step_change(&before, &series.units_of(step.at..*end)?, options));
        let change = change.map_err(|source| series.statistic_error(source))?;
        steps.extend(describe_change_point(series, runs, *step, change));
        start = step.at;
    }
    Ok(steps)
}

/// Index and p of each step among the first `end` points, on logarithms where there are such.
pub(crate) fn change_point_indexes(
    series: &MetricHistory,
    end: usize,
) -> Result<Vec<(usize, f64)>, StatsError> {
    let skipped = end.saturating_sub(LONGEST_HISTORY);
    let points = series.points.get(skipped..end).unwrap_or_default();
    if points.len() < 2 * SHORTEST_SEGMENT {
        return Ok(Vec::new());
    }
    let positive = points.iter().all(|point| point.value > 0.0);
    let scaled: Vec<f64> =
        points.iter().map(|point| if positive { point.value.ln() } else { point.value }).collect();
    let search = EDivisive { shortest: SHORTEST_SEGMENT, autocorrelated: true, ..EDivisive::default() };
    let found = search.find_in_groups(&scaled, &series.days().part(skipped..end))?;
    Ok(found.into_iter().map(|step| (step.index + skipped, step.p)).collect())
}

/// From one segment to the next.
pub(crate) fn estimate_step_change(
    before: &[f64],
    after: &[f64],
    options: &crate::compare::options::AnalysisOptions,
) -> Result<MetricChange, StatsError> {
    let positive = before.iter().chain(after).all(|value| *value > 0.0);
    let shifts = if positive {
        let logarithms = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
        PairwiseShifts::absolute(&logarithms(before), &logarithms(after))?
    } else {
        PairwiseShifts::absolute(before, after)?
    };
    let on = |shift: f64| if positive { shift.exp_m1() } else { shift };
    let (wide, narrow) =
        (shifts.estimate(options.confidence)?, shifts.estimate(options.narrow_confidence())?);
    let interval = |i: perflab_stats::ConfidenceInterval| ChangeInterval {
        low: on(i.low),
        high: on(i.high),
        level: i.level,
    };
    Ok(MetricChange {
        scale: if positive { ChangeScale::Ratio } else { ChangeScale::Absolute },
        value: on(wide.value),
        interval: wide.interval.map(interval),
        narrow: narrow.interval.map(interval),
        covers: IntervalMeaning::Change,
    })
}

fn describe_change_point(
    series: &MetricHistory,
    runs: &[&RunRecord],
    SeriesStep { at, p, q }: SeriesStep,
    change: MetricChange,
) -> Option<HistoryChangePoint> {
    let (last, first) = (series.points.get(at.checked_sub(1)?)?, series.points.get(at)?);
    let (good, bad) = (runs.get(last.run)?, runs.get(first.run)?);
    let id = |run: &&RunRecord| run.manifest.id.clone();
    let between = runs.get(last.run + 1..first.run).unwrap_or_default();
    let differences =
        run_differences::fact_differences(std::slice::from_ref(good), "after", std::slice::from_ref(bad));
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
    let facts = differences.iter().filter(|fact| fact.important);
    Some(HistoryChangePoint {
        at,
        last_good: id(good),
        first_bad: id(bad),
        between: between.iter().map(id).collect(),
        verdict: step_verdict(change, last.value, series),
        change,
        p,
        q,
        together: 0,
        facts: facts
            .map(|fact| format!("{}: {} -> {}", fact.key, value(&fact.baseline), value(&fact.candidate)))
            .collect(),
        commit: measured_commit(&bad.manifest.facts),
    })
}

/// What a change means for a series.
pub(crate) fn step_verdict(change: MetricChange, before: f64, series: &MetricHistory) -> Verdict {
    let margin =
        if change.scale == ChangeScale::Ratio { series.margin } else { series.margin * before.abs() };
    if change.value.abs() <= margin {
        return Verdict::Same;
    }
    match (series.direction, change.value > 0.0) {
        (Direction::Higher, true) | (Direction::Lower, false) => Verdict::Better,
        (Direction::Higher, false) | (Direction::Lower, true) => Verdict::Worse,
        (Direction::Neither, _) => Verdict::Unclear,
    }
}

/// Tells every step how many other series moved at the same run.
fn count_simultaneous(series: &mut [MetricHistory]) {
    let mut moved: HashMap<String, usize> = HashMap::new();
    for step in series.iter().flat_map(|one| &one.steps) {
        *moved.entry(step.first_bad.clone()).or_default() += 1;
    }
    for step in series.iter_mut().flat_map(|one| &mut one.steps) {
        step.together = moved.get(&step.first_bad).copied().unwrap_or(1).saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use perflab_model::Direction;
    use perflab_model::fact_table;

    use super::metric_histories;
    use crate::compare::comparison::Verdict;
    use crate::compare::options::AnalysisOptions;
    use crate::error::AnalyzeError;
    use crate::guard::check_newest_run;
    use fixtures::run_builder::{RunBuilder, SplitMixNoise, primary_metric};

    /// A run a value, a day apart; four iterations around each.
    fn runs_of_values(values: &[f64], seed: u64) -> Vec<perflab_model::RunRecord> {
        let mut noise = SplitMixNoise(seed);
        let run = |(at, value): (usize, &f64)| {
            let lab = RunBuilder::new(&format!("01JD{at:04}")).with(|lab| {
                lab.boot_id = format!("boot-{at}");
                lab.iterations = 4;
            });
            let mut run = lab.build_run(|_| Some(noise.lognormal_around(*value, 0.001)));
            run.manifest.anchor.realtime.0 += super::NANOSECONDS_OF_A_DAY * at as u64;
            run.manifest.facts.add(
                fact_table::KERNEL_RELEASE,
                format!("6.{}", usize::from(at >= 12)).as_str(),
                "uname",
            );
            run
        };
        values.iter().enumerate().map(run).collect()
    }

    fn noisy_values(seed: u64, n: usize, level: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut noise = SplitMixNoise(seed);
        (0..n).map(|at| noise.lognormal_around(level(at), 0.01)).collect()
    }

    #[test]
    fn a_step_has_its_size_its_range_of_runs_and_the_facts_that_changed() {
        let values = noisy_values(7, 20, |at| if at < 12 { 1.0 } else { 1.1 });
        let mut all = runs_of_values(&values, 1);
        all.reverse();
        all[8].samples.clear(); // the first run after the step has no value
        let found = metric_histories(&all, &AnalysisOptions::default()).unwrap();
        let [series] = &found.series[..] else { panic!() };
        let [step] = &series.steps[..] else { panic!("{:?}", series.steps) };
        assert_eq!((step.last_good.as_str(), step.first_bad.as_str()), ("01JD0010", "01JD0012"));
        assert_eq!(step.between, ["01JD0011"]);
        let interval = step.change.interval.unwrap();
        assert!(interval.low < 0.1 && 0.1 < interval.high && interval.low > 0.08, "{interval:?}");
        assert_eq!((step.verdict, step.together), (Verdict::Worse, 0));
        assert_eq!(step.facts, ["kernel.release: 6.0 -> 6.1"]);
    }

    /// The histories of these runs, and what the guard says of the last.
    fn judge_newest(
        runs: &[perflab_model::RunRecord],
    ) -> (crate::history::MetricHistories, crate::guard::GuardReport) {
        let found = metric_histories(runs, &AnalysisOptions::default()).unwrap();
        let judged = check_newest_run(&found, &AnalysisOptions::default()).unwrap();
        (found, judged)
    }

    /// Fifteen runs around 1, then these.
    fn judge_after_fifteen(newest: &[f64]) -> crate::guard::GuardReport {
        let mut values = noisy_values(3, 15, |_| 1.0);
        values.extend(newest);
        judge_newest(&runs_of_values(&values, 2)).1
    }

    #[test]
    fn a_step_that_stays_alarms_and_a_single_run_falls_outside() {
        let worse = judge_after_fifteen(&[1.1, 1.11, 1.09, 1.1, 1.12, 1.1]);
        let [row] = &worse.alarms()[..] else { panic!("{worse:?}") };
        let alarm = row.alarm.as_ref().unwrap();
        assert_eq!((alarm.last_good.as_str(), alarm.first_bad.as_str()), ("01JD0014", "01JD0015"));
        assert!((alarm.change.value - 0.1).abs() < 0.02 && row.verdict == Verdict::Worse, "{row:?}");
        // Its figures are those of the step, whatever the newest run has.
        assert!((alarm.before - 1.0).abs() < 0.02 && (alarm.after - 1.1).abs() < 0.02, "{alarm:?}");
        assert!(alarm.runs == 15 && alarm.e_value >= 20.0 && row.step() == Some(alarm), "{alarm:?}");
        let better = judge_after_fifteen(&[0.9, 0.91, 0.89, 0.9, 0.91, 0.9]);
        assert!(better.alarms().is_empty() && better.rows[0].verdict == Verdict::Better, "{better:?}");
        let improvement = better.rows[0].improvement.as_ref().unwrap();
        assert!(improvement.after < 0.95 && better.rows[0].step() == Some(improvement), "{improvement:?}");
        for newest in [1.1, 0.9] {
            let once = judge_after_fifteen(&[newest]);
            assert!(once.alarms().is_empty() && once.outside().len() == 1, "{once:?}");
            assert_eq!(once.rows[0].verdict, Verdict::Unclear);
        }
        // It is told for as long as nobody accepts it.
        let long_ago = judge_after_fifteen(&noisy_values(4, 20, |_| 1.1));
        assert!(long_ago.alarms().is_empty(), "{long_ago:?}");
        let [row] = &long_ago.standing()[..] else { panic!("{long_ago:?}") };
        assert_eq!(row.standing.as_ref().map(|step| step.first_bad.as_str()), Some("01JD0015"));
        assert!(worse.standing().is_empty());
        let same = judge_after_fifteen(&[1.0]);
        assert!(same.outside().is_empty() && same.rows[0].verdict == Verdict::Same);
    }

    #[test]
    fn a_bad_run_does_not_make_the_next_look_usual() {
        // Before a step is seen, each of its runs is as far outside as the first.
        for bad in 1..=3 {
            let judged = judge_after_fifteen(&vec![1.06; bad]);
            let [row] = &judged.rows[..] else { panic!("{judged:?}") };
            assert!(row.outside || row.alarm.is_some(), "run {bad} of the worse: {row:?}");
            assert!(row.alarm.is_some() || row.runs == 15, "{row:?}");
        }
        // What lies on the other side of the history is no part of it.
        let row = &judge_after_fifteen(&[1.06, 0.94]).rows[0];
        assert!(row.outside && row.runs == 15, "{row:?}");
        let row = &judge_after_fifteen(&[1.06, 1.0]).rows[0];
        assert!(!row.outside && row.verdict == Verdict::Same, "{row:?}");
    }

    #[test]
    fn a_level_that_began_lately_is_the_reason_why_nothing_is_judged() {
        let mut values = noisy_values(3, 15, |_| 1.0);
        let judge = |values: &[f64]| {
            let (found, judged) = judge_newest(&runs_of_values(values, 2));
            (judged.rows[0].expected.is_some(), judged.runs_since_step(&found))
        };
        assert_eq!(judge(&values), (true, None));
        assert_eq!(judge(&values[..4]), (false, None));
        // Of another machine there is a series of its own, which is short without a step.
        let mut runs = runs_of_values(&values, 2);
        for (at, run) in runs.iter_mut().enumerate() {
            let microcode = if at < 12 { "0x2f" } else { "0x30" };
            run.manifest.facts.add(fact_table::CPU_MICROCODE, microcode, "test");
        }
        let (found, judged) = judge_newest(&runs);
        assert_eq!((found.series.len(), judged.runs_since_step(&found)), (2, None));
        values.extend([1.1, 1.11, 1.09, 1.1, 1.1]);
        assert_eq!(judge(&values), (false, Some(4)));
    }

    /// An accepted step alarms no more; the next one does, against the new baseline.
    #[test]
    fn an_accepted_step_begins_a_baseline_that_alarms_anew() {
        let step = |run: usize| perflab_model::AcceptedStep {
            subject: "sweep".into(),
            metric: "time".into(),
            unit: perflab_model::Unit::new("s"),
            run: format!("01JD{run:04}"),
            began: perflab_model::Nanos(0),
            note: "new allocator".into(),
            accepted: perflab_model::Nanos(0),
        };
        let judge = |values: &[f64], accepted: Option<usize>| {
            let runs = runs_of_values(values, 2);
            let mut found = metric_histories(&runs, &AnalysisOptions::default()).unwrap();
            let began = |run: usize| runs[run].manifest.anchor.realtime;
            let steps: Vec<_> = accepted
                .map(|run| perflab_model::AcceptedStep { began: began(run), ..step(run) })
                .into_iter()
                .collect();
            found.begin_accepted_baselines(&steps);
            check_newest_run(&found, &AnalysisOptions::default()).unwrap()
        };
        let mut values = noisy_values(3, 15, |_| 1.0);
        values.extend(noisy_values(4, 7, |_| 1.1));
        assert_eq!(judge(&values, None).alarms().len(), 1);
        let accepted = judge(&values, Some(15));
        let [row] = &accepted.rows[..] else { panic!("{accepted:?}") };
        assert!(accepted.alarms().is_empty() && row.runs == 6, "{row:?}");
        assert_eq!(
            row.baseline.as_ref().map(|baseline| (baseline.at, baseline.note.as_str())),
            Some((15, "new allocator"))
        );
        values.extend(noisy_values(5, 13, |_| 1.1));
        assert!(judge(&values, Some(15)).alarms().is_empty());
        values.extend(noisy_values(6, 6, |_| 1.21));
        let again = judge(&values, Some(15));
        let [row] = &again.alarms()[..] else { panic!("{again:?}") };
        assert!((row.alarm.as_ref().unwrap().change.value - 0.1).abs() < 0.02, "{row:?}");
        // A run that was accepted before all that is looked at changes nothing.
        assert_eq!(judge(&values[10..], Some(0)).rows[0].baseline, None);
    }

    /// The margin is 3 %: beyond its noise, but of no interest.
    #[test]
    fn a_step_within_the_margin_is_no_alarm() {
        let report = judge_after_fifteen(&[1.02; 10]);
        assert!(report.alarms().is_empty() && report.outside().is_empty(), "{report:?}");
    }

    #[test]
    fn a_small_step_alarms_although_no_single_run_does() {
        let values = noisy_values(11, 34, |at| if at < 24 { 1.0 } else { 1.03 });
        let options = AnalysisOptions { default_margin: 0.02, ..AnalysisOptions::default() };
        let found = metric_histories(&runs_of_values(&values, 3), &options).unwrap();
        let report = check_newest_run(&found, &options).unwrap();
        let [row] = &report.alarms()[..] else { panic!("{report:?}") };
        let alarm = row.alarm.as_ref().unwrap();
        assert!((23..=25).any(|at| alarm.first_bad == format!("01JD{at:04}")), "{alarm:?}");
    }

    /// Asked after each run of a flat history, every change counting. Before, 73 % of such series alarmed.
    #[test]
    fn a_flat_history_hardly_ever_alarms_however_often_one_asks() {
        let options = AnalysisOptions { default_margin: 0.0, ..AnalysisOptions::default() };
        let alarms = (1..=6).filter(|seed| {
            let runs = runs_of_values(&noisy_values(seed * 7919, 30, |_| 1.0), *seed);
            (6..=runs.len()).any(|now| {
                let found = metric_histories(&runs[..now], &options).unwrap();
                !check_newest_run(&found, &options).unwrap().alarms().is_empty()
            })
        });
        assert_eq!(alarms.count(), 0);
    }

    #[test]
    fn short_histories_lost_metrics_and_unknown_names_are_told() {
        let (few, judged) = judge_newest(&runs_of_values(&[1.0, 1.0, 5.0], 4));
        assert!(matches!(few.notes[1], crate::MethodDescription::ShortSeries { fewest_runs: 6, .. }));
        assert!(judged.rows[0].expected.is_none() && judged.alarms().is_empty());
        let (_, judged) = judge_newest(&runs_of_values(&[1.0], 4));
        assert_eq!(
            (judged.rows.len(), judged.rows[0].verdict, judged.is_empty()),
            (1, Verdict::Unclear, true)
        );
        assert!(matches!(
            metric_histories(&[], &AnalysisOptions::default()),
            Err(AnalyzeError::NoRun { .. })
        ));
        let options = AnalysisOptions { metrics: vec!["tmie".into()], ..AnalysisOptions::default() };
        let unknown = metric_histories(&runs_of_values(&[1.0], 4), &options);
        assert!(matches!(unknown, Err(AnalyzeError::NoSamples { known, .. }) if known == ["time"]));
        let mut lost = runs_of_values(&[1.0; 8], 5);
        let extra = RunBuilder::new("01JD0007")
            .with(|lab| lab.metrics = vec![primary_metric("other", "s", Direction::Lower)]);
        lost[7].samples = extra.build_run(|_| Some(1.0)).samples;
        assert_eq!(judge_newest(&lost).1.lost, ["sweep, time"]);
    }

    #[test]
    fn a_metric_that_changed_its_unit_is_another_series() {
        let mut all = runs_of_values(&[1.0; 8], 6);
        for sample in all.iter_mut().skip(4).flat_map(|run| &mut run.samples) {
            sample.unit = perflab_model::Unit::new("ms");
        }
        let found = metric_histories(&all, &AnalysisOptions::default()).unwrap();
        assert_eq!(found.series.iter().map(|one| one.points.len()).collect::<Vec<_>>(), [4, 4]);
    }

    #[test]
    fn zeros_and_constants_have_steps_in_the_unit_of_the_metric() {
        let mut all = runs_of_values(&[1.0; 16], 7);
        for (at, run) in all.iter_mut().enumerate() {
            run.samples.iter_mut().for_each(|sample| sample.value = if at < 8 { 0.0 } else { 3.0 });
        }
        let found = metric_histories(&all, &AnalysisOptions::default()).unwrap();
        let [step] = &found.series[0].steps[..] else { panic!() };
        assert_eq!(
            (step.change.scale, step.change.value),
            (crate::compare::change::ChangeScale::Absolute, 3.0)
        );
    }

    /// Review D2: `sleep 0.02` edited to `sleep 0.03` is no regression, and going back goes on with the first series.
    #[test]
    fn an_edited_case_is_a_series_of_its_own_and_leaves_the_guard_nothing_to_judge() {
        let values: Vec<f64> = (0..12).map(|at| if at < 11 { 1.0 } else { 1.5 }).collect();
        let mut all = runs_of_values(&values, 8);
        for (at, run) in all.iter_mut().enumerate() {
            let command = if at < 11 { "sleep 0.02" } else { "sleep 0.03" };
            run.manifest.plan.cases[0]
                .parameters
                .insert("command".into(), perflab_model::Scalar::Text(command.into()));
        }
        let found = metric_histories(&all, &AnalysisOptions::default()).unwrap();
        let shapes: Vec<(usize, &[String])> =
            found.series.iter().map(|one| (one.points.len(), &one.edited[..])).collect();
        assert_eq!(
            shapes,
            [(11, &[][..]), (1, &["sweep: command: sleep 0.02 -> sleep 0.03".to_owned()][..])]
        );
        let judged = check_newest_run(&found, &AnalysisOptions::default()).unwrap();
        assert!(judged.is_empty() && judged.alarms().is_empty(), "{judged:?}");
        all[11].manifest.plan.cases[0] = all[0].manifest.plan.cases[0].clone();
        let back = metric_histories(&all, &AnalysisOptions::default()).unwrap();
        assert!(!check_newest_run(&back, &AnalysisOptions::default()).unwrap().is_empty());
        assert_eq!(back.series.len(), 1);
    }

    /// Another microcode is another machine; a fact that one side does not know, and a few kB less memory, are not.
    #[test]
    fn a_series_ends_where_the_machine_is_another_one() {
        let mut all = runs_of_values(&[1.0; 12], 12);
        for (at, run) in all.iter_mut().enumerate() {
            let facts = &mut run.manifest.facts;
            facts.add(fact_table::CPU_MICROCODE, if at < 8 { "0x2f" } else { "0x30" }, "test");
            facts.add(fact_table::MEMORY_TOTAL, 16_000_000_000 - 4096 * at as i64, "test");
            if at % 2 == 0 {
                facts.add(fact_table::CPU_MODEL, "one", "test");
            }
        }
        let found = metric_histories(&all, &AnalysisOptions::default()).unwrap();
        let shapes: Vec<(usize, &[String])> =
            found.series.iter().map(|one| (one.points.len(), &one.edited[..])).collect();
        assert_eq!(shapes, [(8, &[][..]), (4, &["cpu.microcode: 0x2f -> 0x30".to_owned()][..])]);
    }

    /// Four runs a day: days that differ are a level, and count as one value each; those that do not change nothing.
    #[test]
    fn a_day_is_a_level_where_its_runs_share_its_luck() {
        let series = |luck: f64, step: f64, days: usize| {
            let mut noise = SplitMixNoise(17);
            let lucks: Vec<f64> = (0..30).map(|_| (luck * noise.normal()).exp()).collect();
            let value =
                |at: usize| noise.lognormal_around(lucks[at / 4] * if at >= 80 { step } else { 1.0 }, 0.01);
            let values: Vec<f64> = (0..4 * days).map(value).collect();
            let mut runs = runs_of_values(&values, 5);
            for (at, run) in runs.iter_mut().enumerate() {
                let midnight = run.manifest.anchor.realtime.0 / super::NANOSECONDS_OF_A_DAY - at as u64;
                run.manifest.anchor.realtime.0 = (midnight + at as u64 / 4) * super::NANOSECONDS_OF_A_DAY
                    + 3_600_000_000_000 * (at as u64 % 4);
            }
            let mut found = metric_histories(&runs, &AnalysisOptions::default()).unwrap();
            let by_day = found.notes.contains(&crate::MethodDescription::DaysAsLevel { series: 1 });
            let report = check_newest_run(&found, &AnalysisOptions::default()).unwrap();
            (found.series.remove(0), by_day, report)
        };
        let (lucky, is_told, report) = series(0.03, 1.0, 30);
        assert!(lucky.by_day && is_told && lucky.steps.is_empty() && report.alarms().is_empty(), "{lucky:?}");
        let (stepped, _, _) = series(0.03, 1.3, 30);
        let [step] = &stepped.steps[..] else { panic!("{:?}", stepped.steps) };
        assert_eq!(step.at, 80);
        assert!((22..28).any(|days| !series(0.03, 1.3, days).2.alarms().is_empty()));
        // Days on either side, each as one value.
        let interval = step.change.interval.unwrap();
        assert!(interval.high - interval.low > 0.02, "{interval:?}");
        let (plain, is_told, _) = series(0.0, 1.0, 30);
        assert!(!plain.by_day && !is_told);
    }

    /// One series of twenty steps by little, which alone would be a step.
    #[test]
    fn steps_answer_for_all_series_that_were_searched() {
        let history = |shift: f64| -> Vec<super::MetricHistory> {
            let mut noise = SplitMixNoise(41);
            let series = |number: usize| {
                let value = |at: usize| {
                    let shift = if number == 0 && at >= 6 { shift } else { 0.0 };
                    noise.lognormal_around(1.0 + shift, 0.01)
                };
                let values: Vec<f64> = (0..12).map(value).collect();
                let mut found = metric_histories(&runs_of_values(&values, 1), &AnalysisOptions::default())
                    .unwrap()
                    .series;
                found.remove(0)
            };
            (0..20).map(series).collect()
        };
        let steps = |series: &[super::MetricHistory]| -> usize {
            super::significant_steps(series, 0.05).unwrap().iter().map(Vec::len).sum()
        };
        let small = history(0.02);
        assert_eq!((steps(&small[..1]), steps(&small)), (1, 0));
        assert_eq!(steps(&history(0.1)), 1);
    }

    /// Review D7: the newest value's own interval holds the old level.
    #[test]
    fn a_run_that_cannot_tell_its_value_from_the_old_level_is_not_outside() {
        let judged = |spread: f64| {
            let mut all = runs_of_values(&noisy_values(3, 15, |_| 1.0), 2);
            let mut newest = runs_of_values(&[1.1], 9).remove(0);
            newest.manifest.anchor.realtime.0 += super::NANOSECONDS_OF_A_DAY * 100;
            for (at, sample) in newest.samples.iter_mut().enumerate() {
                sample.value = 1.1 + (at as f64 - 1.5) * spread;
            }
            // Four values have no interval at 95 %: eight do.
            let more: Vec<_> = newest
                .samples
                .iter()
                .cloned()
                .map(|mut sample| {
                    sample.iteration += 4;
                    sample
                })
                .collect();
            newest.samples.extend(more);
            all.push(newest);
            judge_newest(&all).1
        };
        let (wide, narrow) = (judged(0.2), judged(0.001));
        assert!(wide.rows[0].own.unwrap().low < 1.0, "{wide:?}");
        assert!(wide.outside().is_empty() && !wide.is_empty());
        assert_eq!(narrow.outside().len(), 1);
    }
}
