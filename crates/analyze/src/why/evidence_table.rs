//! The units of a comparison with all that is known of each: the metric on both sides, and every quantity beside it.

use std::collections::{BTreeMap, BTreeSet};

use perflab_formats::kernel::counters::counts_of_workload;
use perflab_model::quantity::is_count_unit;
use perflab_model::resource_use::ResourceMetric;
use perflab_model::{Direction, Unit};

use crate::compare::alignment::{self, AlignedSide, CaseSelection, IterationKey, MetricSamples, SampleIndex};
use crate::compare::change::RepetitionLevel;
use crate::compare::comparison::{Comparison, SamplePoint, VerdictRow};
use crate::compare::failures::VerdictBasis;
use crate::compare::options::{AnalysisOptions, ComparisonSide};
use crate::compare::target_levels::with_target_levels;
use crate::error::AnalyzeError;
use crate::why::cause_table::{TimePart, is_consequence};
use crate::why::explanation::FailureEvidence;
use crate::why::iteration_quantities::{DURATION, is_of_workload};

/// A quantity that more than this share of the units lack is left out.
const MOST_MISSING: f64 = 0.2;

/// A metric in seconds is the time of the iteration where it is at least this share of it.
const LEAST_SHARE_OF_ITERATION: f64 = 0.5;

/// What changes by less than this part of the change of the work, on the logarithmic scale, is the same in every iteration.
const CONSTANT_SHARE: f64 = 0.1;

/// No part of an iteration is much longer than all of it: what says so is another time.
const MOST_SHARE_OF_ITERATION: f64 = 1.2;

/// What the values of one side's units are, by unit.
type SideUnits = BTreeMap<IterationKey, f64>;

/// A quantity over the units: those of the baseline first, NaN where a unit has none.
#[derive(Debug, Clone)]
pub(crate) struct Quantity {
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) values: Vec<f64>,
}

/// What the values of the metric mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseMeaning {
    /// seconds that an iteration took: parts of time account for it
    IterationTime,
    /// something else, in the metric's unit
    Other,
}

/// All that is known, unit by unit.
#[derive(Debug)]
pub(crate) struct EvidenceTable {
    /// The metric, or the time that the baseline's work takes where the metric is work a second.
    pub(crate) response: Vec<f64>,
    pub(crate) meaning: ResponseMeaning,
    /// Unit of the response.
    pub(crate) unit: Unit,
    /// Whether the response is time for as much work as the baseline does in an iteration.
    pub(crate) by_work: bool,
    /// Seconds that each unit took; NaN where not known.
    pub(crate) duration: Vec<f64>,
    /// How many units are the baseline's; they stand first.
    pub(crate) baseline: usize,
    /// Whether unit i of the baseline is a pair of unit i of the candidate.
    pub(crate) paired: bool,
    pub(crate) quantities: Vec<Quantity>,
    /// Quantities that one side has, and the other does not.
    pub(crate) one_sided: Vec<String>,
    /// Quantities that too many units lack.
    pub(crate) incomplete: Vec<String>,
}

impl EvidenceTable {
    /// Lines up what the runs of both sides hold of a row's case. The runs have all quantities as samples.
    ///
    /// # Errors
    /// A row whose case or metric the runs do not have.
    pub(crate) fn gather(
        comparison: &Comparison,
        row: &VerdictRow,
        sides: &[ComparisonSide],
        options: &AnalysisOptions,
    ) -> Result<Self, AnalyzeError> {
        let options = AnalysisOptions {
            includes_resources: true,
            metrics: Vec::new(),
            leave_out_warm_up: false,
            ..options.clone()
        };
        let mut index = SampleIndex::default();
        let (ours, theirs) = align_sides(&mut index, comparison, row, sides, &options)?;
        let subject = index.subjects.get_index_of(&row.subject).unwrap_or(usize::MAX);
        let is_metric = |metric: usize| {
            index
                .metrics
                .get_index(metric)
                .is_some_and(|key| key.name.as_str() == row.metric && key.unit == row.unit)
        };
        let cell = |side: &'_ AlignedSide| -> Option<MetricSamples> {
            side.cells
                .iter()
                .find(|((of, metric), _)| *of == subject && is_metric(*metric))
                .map(|(_, cell)| cell.clone())
        };
        let (Some(baseline), Some(candidate)) = (cell(&ours), cell(&theirs)) else {
            return Err(AnalyzeError::NoSamples {
                side: row.candidate_name.clone(),
                filter: row.metric.clone(),
                known: Vec::new(),
            });
        };
        let level = row.method.map_or(RepetitionLevel::Iteration, |method| method.level);
        let paired = row.method.is_some_and(|method| method.paired)
            && matches!(level, RepetitionLevel::Iteration | RepetitionLevel::Boot | RepetitionLevel::Machine);
        let key = |point: &SamplePoint| match level {
            RepetitionLevel::Iteration | RepetitionLevel::Layout => (point.run, point.boot, point.iteration),
            RepetitionLevel::Run => (point.run, point.boot, 0),
            RepetitionLevel::Boot => (0, point.boot, 0),
            RepetitionLevel::Machine => (0, index.machine_of(point.run).unwrap_or(u32::MAX), 0),
        };
        let (ours_by_unit, theirs_by_unit) =
            (mean_by(&baseline.points, key), mean_by(&candidate.points, key));
        let (our_keys, their_keys) = unit_keys(&ours_by_unit, &theirs_by_unit, paired);
        let values = |ours: &SideUnits, theirs: &SideUnits| -> Vec<f64> {
            let of = |keys: &[IterationKey], side: &SideUnits| -> Vec<f64> {
                keys.iter().map(|key| side.get(key).copied().unwrap_or(f64::NAN)).collect()
            };
            [of(&our_keys, ours), of(&their_keys, theirs)].concat()
        };
        let metric = values(&ours_by_unit, &theirs_by_unit);
        let all: BTreeSet<usize> = [&ours, &theirs]
            .iter()
            .flat_map(|side| side.cells.keys())
            .filter(|(of, _)| *of == subject)
            .map(|(_, metric)| *metric)
            .collect();
        let mut found = EvidenceTable {
            response: metric,
            meaning: ResponseMeaning::Other,
            unit: row.unit.clone(),
            by_work: false,
            duration: vec![f64::NAN; our_keys.len() + their_keys.len()],
            baseline: our_keys.len(),
            paired,
            quantities: Vec::new(),
            one_sided: Vec::new(),
            incomplete: Vec::new(),
        };
        let mut one_sided = Vec::new();
        for metric in all {
            let Some(metric_key) = index.metrics.get_index(metric) else { continue };
            let name = metric_key.name.as_str();
            let sides = [&ours, &theirs].map(|side| side.cells.get(&(subject, metric)));
            let by_unit = sides.map(|cell| cell.map(|cell| mean_by(&cell.points, key)).unwrap_or_default());
            let [ours, theirs] = &by_unit;
            if name == DURATION {
                found.duration = values(ours, theirs);
                continue;
            }
            let is_quantity = name.contains(' ')
                || ResourceMetric::is_name(name)
                || name == crate::why::iteration_quantities::OTHERS;
            // Nothing explains itself.
            let is_own_metric =
                name == row.metric || !name.contains(' ') && sides.iter().flatten().any(|cell| cell.primary);
            if !is_quantity || is_own_metric || is_consequence(name) {
                continue;
            }
            if ours.is_empty() || theirs.is_empty() {
                one_sided.push(name.to_owned());
                continue;
            }
            let values = values(ours, theirs);
            let missing = values.iter().filter(|value| value.is_nan()).count();
            if missing as f64 > MOST_MISSING * values.len() as f64 {
                found.incomplete.push(name.to_owned());
                continue;
            }
            found.quantities.push(Quantity { name: name.to_owned(), unit: metric_key.unit.clone(), values });
        }
        found.quantities.sort_by(|one, other| one.name.cmp(&other.name));
        found.keep_one_sided(&one_sided);
        found.relate_to_work(row);
        Ok(found)
    }

    /// How often the iterations of a row failed, and why; nothing where none did.
    ///
    /// # Errors
    /// A side that the comparison does not have.
    pub(crate) fn find_failures(
        comparison: &Comparison,
        row: &VerdictRow,
        sides: &[ComparisonSide],
        options: &AnalysisOptions,
    ) -> Result<Option<FailureEvidence>, AnalyzeError> {
        let Some(counts) = row.failures else { return Ok(None) };
        let mut index = SampleIndex::default();
        let (ours, theirs) = align_sides(&mut index, comparison, row, sides, options)?;
        let subject = index.subjects.get_index_of(&row.subject).unwrap_or(usize::MAX);
        let reason = |side: &AlignedSide| {
            let reason = &side.iterations.get(&subject)?.reason;
            (!reason.is_empty()).then(|| reason.clone())
        };
        Ok(Some(FailureEvidence {
            counts,
            decides: row.basis == VerdictBasis::Failures,
            baseline_reason: reason(&ours),
            candidate_reason: reason(&theirs),
        }))
    }

    /// Of what one side lacks, monitors that it lacks as a whole, and counters; rows come and go.
    fn keep_one_sided(&mut self, names: &[String]) {
        let monitor = |name: &str| name.split(' ').next().unwrap_or(name).to_owned();
        for name in names {
            let is_shared = self.quantities.iter().any(|quantity| monitor(&quantity.name) == monitor(name));
            let told = if is_shared { name.clone() } else { monitor(name) };
            let is_counter = counts_of_workload(&monitor(name));
            if (!is_shared || is_counter) && !self.one_sided.contains(&told) {
                self.one_sided.push(told);
            }
        }
    }

    /// The metric as time where it is time or work a second, and the workload's own quantities by work where iterations do unequal
    /// work.
    fn relate_to_work(&mut self, row: &VerdictRow) {
        let mean = |values: &[f64]| {
            let known: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
            perflab_stats::mean(&known).ok()
        };
        let Some(duration) = mean(&self.duration) else { return };
        if let Some(scale) = seconds_of(&row.unit) {
            let share = mean(&self.response).map(|response| response * scale / duration);
            let is_iterations =
                |share: f64| (LEAST_SHARE_OF_ITERATION..=MOST_SHARE_OF_ITERATION).contains(&share);
            if share.is_some_and(is_iterations) {
                self.meaning = ResponseMeaning::IterationTime;
                self.response.iter_mut().for_each(|value| *value *= scale);
                self.unit = Unit::new("s");
            }
            return;
        }
        let what = row.unit.0.as_str().strip_suffix("/s").unwrap_or_default();
        let is_work = !what.is_empty() && (is_count_unit(what) || what.to_ascii_lowercase().contains('b'));
        let is_above_zero = self.response.iter().all(|value| *value > 0.0);
        if !is_work || row.direction != Direction::Higher || !is_above_zero {
            return;
        }
        let work: Vec<f64> =
            self.response.iter().zip(&self.duration).map(|(rate, seconds)| rate * seconds).collect();
        let Some(usual) = work.get(..self.baseline).and_then(mean) else { return };
        let baseline = self.baseline;
        let log_change = |values: &[f64]| -> Option<f64> {
            let (before, after) = values.split_at_checked(baseline)?;
            Some((mean(after)? / mean(before)?).ln()).filter(|change| change.is_finite())
        };
        let of_work = log_change(&work).unwrap_or_default();
        // As many page faults however much was done are those of the start, and no cause of what was not done. Times are its price.
        let is_constant = |quantity: &Quantity| {
            seconds_of(&quantity.unit).is_none()
                && log_change(&quantity.values)
                    .is_some_and(|change| change.abs() < CONSTANT_SHARE * of_work.abs())
        };
        for quantity in &mut self.quantities {
            if is_level(&quantity.name) || is_constant(quantity) {
                continue;
            }
            quantity.values.iter_mut().zip(&work).for_each(|(value, work)| *value *= usual / work);
        }
        self.response.iter_mut().for_each(|rate| *rate = usual / *rate);
        self.duration.iter_mut().zip(&work).for_each(|(seconds, work)| *seconds *= usual / work);
        self.meaning = ResponseMeaning::IterationTime;
        self.unit = Unit::new("s");
        self.by_work = true;
    }

    /// What of a quantity does not come with time that passes, or with CPU time that is needed: an iteration that lasts longer has more
    /// of what goes on in the machine, and one that computes more is preempted more often; neither is longer because of it. What is
    /// left is the excess over the baseline's rate. Nothing of the workload's own, and of levels.
    pub(crate) fn excess(&self, quantity: &Quantity) -> Option<Vec<f64>> {
        if is_level(&quantity.name) {
            return None;
        }
        let cpu_time;
        let by = match quantity.name.as_str() {
            "involuntary-switches" | "delays run_delay_ns" => {
                cpu_time = self.cpu_time()?;
                &cpu_time
            }
            name if is_of_workload(name) => return None,
            _ => &self.duration,
        };
        excess_over(&quantity.values, by, self.baseline)
    }

    /// CPU time of the workload, in seconds.
    fn cpu_time(&self) -> Option<Vec<f64>> {
        let find = |name: &str| self.quantities.iter().find(|quantity| quantity.name == name);
        let (user, system) = (find("user")?, find("system")?);
        Some(user.values.iter().zip(&system.values).map(|(user, system)| user + system).collect())
    }

    /// The parts of the time of an iteration; without the time off the CPUs where the workload ran on several at once.
    pub(crate) fn time_parts(&self) -> Vec<(TimePart, Vec<f64>)> {
        let find = |name: &str| self.quantities.iter().find(|quantity| quantity.name == name);
        let (Some(user), Some(system)) = (find("user"), find("system")) else { return Vec::new() };
        let Some(cpu_time) = self.cpu_time().filter(|_| self.meaning == ResponseMeaning::IterationTime)
        else {
            return Vec::new();
        };
        let mut parts =
            vec![(TimePart::User, user.values.clone()), (TimePart::System, system.values.clone())];
        let off: Vec<f64> = self.response.iter().zip(&cpu_time).map(|(all, cpu)| all - cpu).collect();
        let known = |values: &[f64]| values.iter().filter(|value| value.is_finite()).sum::<f64>();
        let (ours, theirs) = off.split_at(self.baseline.min(off.len()));
        let is_single = known(ours) >= 0.0 && known(theirs) >= 0.0;
        let waits = self.waits();
        if is_single && !waits.is_empty() {
            let waited = waits.iter().fold(off.clone(), |rest, (_, wait)| {
                rest.iter().zip(wait).map(|(rest, wait)| rest - wait).collect()
            });
            let (ours, theirs) = waited.split_at(self.baseline.min(waited.len()));
            // Threads that wait at once wait for longer than the iteration lasts.
            let is_sound = known(ours) >= 0.0 && known(theirs) >= 0.0;
            parts.extend(waits);
            parts.extend(is_sound.then_some((TimePart::Blocked, waited)));
        } else {
            parts.extend(waits);
        }
        if is_single {
            parts.push((TimePart::OffCpu, off));
        }
        parts
    }

    /// What the workload's threads waited for, in seconds, where that was recorded and ever happened.
    fn waits(&self) -> Vec<(TimePart, Vec<f64>)> {
        let find = |name: &&str| self.quantities.iter().find(|quantity| quantity.name == **name);
        let sum = |series: &[&str]| -> Option<Vec<f64>> {
            let mut found = series
                .iter()
                .filter_map(find)
                .map(|quantity| quantity.values.iter().map(|nanos| nanos / 1e9).collect::<Vec<f64>>());
            let first = found.next()?;
            let all = found.fold(first, |sum, one| sum.iter().zip(&one).map(|(a, b)| a + b).collect());
            all.iter().any(|seconds| *seconds > 0.0).then_some(all)
        };
        TimePart::WAITS.iter().filter_map(|(part, series)| Some((*part, sum(series)?))).collect()
    }

    /// Time off the CPUs beyond what comes with the CPU time that is needed, at the baseline's rate.
    pub(crate) fn excess_off_cpu(&self) -> Option<Vec<f64>> {
        let (_, off) = self.time_parts().into_iter().find(|(part, _)| *part == TimePart::OffCpu)?;
        excess_over(&off, &self.cpu_time()?, self.baseline)
    }

    /// How many seconds pass on the baseline for each second on a CPU: other work takes turns with it. 1 of a workload on several.
    pub(crate) fn stretch(&self) -> f64 {
        let known =
            |values: &[f64]| values.iter().take(self.baseline).filter(|value| value.is_finite()).sum::<f64>();
        let cpu_time = self.cpu_time().map_or(0.0, |cpu_time| known(&cpu_time));
        if cpu_time > 0.0 { (known(&self.response) / cpu_time).max(1.0) } else { 1.0 }
    }
}

/// Values less what the baseline has of them for each unit of another quantity.
fn excess_over(values: &[f64], by: &[f64], baseline: usize) -> Option<Vec<f64>> {
    let pairs = || values.iter().zip(by).take(baseline);
    let known = || pairs().filter(|(value, by)| value.is_finite() && by.is_finite());
    let (sum, all) = known().fold((0.0, 0.0), |(sum, all), (value, by)| (sum + value, all + by));
    if all <= 0.0 {
        return None;
    }
    let (rate, usual) = (sum / all, all / known().count() as f64);
    Some(values.iter().zip(by).map(|(value, by)| value - rate * (by - usual)).collect())
}

/// What has a height, and does not grow: as much of it is there in a short iteration as in a long one.
pub(crate) fn is_level(name: &str) -> bool {
    let column = name.split(' ').nth(1).unwrap_or(name);
    name == "max-rss"
        || column.starts_with("nr_") && !matches!(column, "nr_dirtied" | "nr_written")
        || [".mean", ".p50", ".p90", ".p99", ".max"].iter().any(|end| column.ends_with(end))
        || column.starts_with("memory_current")
        || column.starts_with("memory_peak")
}

/// How many seconds one of a unit is, where it is a time.
pub(crate) fn seconds_of(unit: &Unit) -> Option<f64> {
    match unit.0.as_str() {
        "s" => Some(1.0),
        "ms" => Some(1e-3),
        "us" => Some(1e-6),
        "ns" => Some(1e-9),
        _ => None,
    }
}

fn align_sides(
    index: &mut SampleIndex,
    comparison: &Comparison,
    row: &VerdictRow,
    sides: &[ComparisonSide],
    options: &AnalysisOptions,
) -> Result<(AlignedSide, AlignedSide), AnalyzeError> {
    let missing = |side: &str| AnalyzeError::NoRun { side: side.to_owned() };
    if let Some(factor) = &comparison.by {
        let side = sides.first().ok_or_else(|| missing(&comparison.baseline))?;
        let side = with_target_levels(side, factor);
        let mut level = |level: &str| {
            let selection = CaseSelection {
                level: Some((factor.clone(), level.to_owned())),
                hidden: vec![factor.clone()],
            };
            index.align_side(&side, level, &selection, options)
        };
        return Ok((level(&comparison.baseline), level(&row.candidate_name)));
    }
    let find = |name: &str| sides.iter().find(|side| side.name == name).ok_or_else(|| missing(name));
    let (ours, theirs) = (find(&comparison.baseline)?, find(&row.candidate_name)?);
    let all: Vec<&ComparisonSide> = sides.iter().collect();
    let hidden =
        alignment::compared_factors(&all).iter().map(|factor| factor.name.clone()).collect::<Vec<_>>();
    let selection = CaseSelection { level: None, hidden };
    Ok((
        index.align_side(ours, &ours.name, &selection, options),
        index.align_side(theirs, &theirs.name, &selection, options),
    ))
}

/// The mean of the values of each unit: what is amounts adds up over it.
fn mean_by(points: &[SamplePoint], key: impl Fn(&SamplePoint) -> IterationKey) -> SideUnits {
    let mut sums: BTreeMap<IterationKey, (f64, f64)> = BTreeMap::new();
    for point in points {
        let (sum, count) = sums.entry(key(point)).or_default();
        *sum += point.value;
        *count += 1.0;
    }
    sums.into_iter().map(|(key, (sum, count))| (key, sum / count)).collect()
}

/// The units of both sides; of pairs those that both have, in one order.
fn unit_keys(ours: &SideUnits, theirs: &SideUnits, paired: bool) -> (Vec<IterationKey>, Vec<IterationKey>) {
    if paired {
        let shared: Vec<IterationKey> =
            ours.keys().filter(|key| theirs.contains_key(*key)).copied().collect();
        return (shared.clone(), shared);
    }
    (ours.keys().copied().collect(), theirs.keys().copied().collect())
}
