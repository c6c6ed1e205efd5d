//! One run a side, not interleaved: what its iterations say of these two runs, and what earlier runs say of any two.
//!
//! Iterations of one run share its luck. Their interval is that of the difference between these two runs, widened by how much
//! they resemble their neighbours. Only what other runs of the study, else noise runs of the machine, showed from run to run makes
//! it one of the change. Where a side has two or three, the same helps to know their spread: `pooled_noise`.

use std::collections::HashMap;

use perflab_model::RunRecord;
use perflab_stats::{
    ConfidenceInterval, DependentShift, KnownVariance, SerialDependence, StatsError, SuccessiveDifferences,
    dependent_freedom, median,
};

use crate::compare::alignment::{CaseSelection, MetricKey, MetricSamples, SampleIndex};
use crate::compare::change::{
    BetweenRuns, ChangeEstimate, ChangeInterval, ChangeScale, IntervalMeaning, MetricChange, RepetitionLevel,
};
use crate::compare::experimental_unit::SideRelation;
use crate::compare::noise_card::{NextRunQuery, NoiseCard};
use crate::compare::options::{AnalysisOptions, ComparisonSide};
use crate::compare::run_differences::{edited_cases, machine_differences};

/// Fewest differences between earlier runs from which anything follows.
const FEWEST_DIFFERENCES: usize = 3;

/// A range that reaches further than so many times the estimate, or than such a part of it, says nothing, and is not shown.
pub(crate) const FARTHEST_RATIO: f64 = 10.0;

/// A drift within runs is extended over no more than so many times their length.
const FARTHEST_RUNS: f64 = 3.0;

/// Values of earlier runs, by case and metric, in order of time.
#[derive(Debug, Default)]
pub(crate) struct EarlierRuns {
    runs: HashMap<(String, MetricKey), Vec<EarlierValues>>,
    /// The machine's noise card, where it holds for these runs: it speaks where earlier runs are too few.
    card: Option<NoiseCard>,
}

/// Those of one run in one of its boots.
#[derive(Debug, Clone)]
struct EarlierValues {
    boot: u32,
    values: Vec<f64>,
}

/// What earlier runs say of a row.
#[derive(Debug, Clone, Copy)]
struct RunNoise {
    differences: SuccessiveDifferences,
    pairs: usize,
    from_card: bool,
    /// Most values that one of the earlier runs has; none of a card's.
    most_values: Option<usize>,
}

/// Of which boots or runs the noise is asked.
pub(crate) struct UnitNoiseQuery<'a> {
    pub(crate) subject: &'a str,
    pub(crate) workload: &'a str,
    pub(crate) metric: &'a MetricKey,
    /// They are boots.
    pub(crate) other_boots: bool,
    /// How many values each of them holds.
    pub(crate) values: usize,
}

/// What earlier runs say of the variance of boots or runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnitNoise {
    pub(crate) variance: KnownVariance,
    pub(crate) pairs: usize,
    pub(crate) from_card: bool,
}

impl EarlierRuns {
    /// The earlier runs of the options on the machine of `side`, their cases named as in a comparison that hides these factors.
    pub(crate) fn on_machine_of(side: &ComparisonSide, hidden: &[String], options: &AnalysisOptions) -> Self {
        let Some(first) = side.runs.first() else { return EarlierRuns::default() };
        let mut index = SampleIndex::default();
        let selection = CaseSelection { level: None, hidden: hidden.to_vec() };
        let machine = &first.manifest.facts;
        // Runs of other cases under the same names are another experiment.
        let is_edited = |run: &RunRecord| {
            let sides = [std::slice::from_ref(first), std::slice::from_ref(run)];
            !edited_cases(sides, hidden, hidden).is_empty()
        };
        let is_same = |run: &&RunRecord| {
            machine_differences(machine, &run.manifest.facts).is_empty() && !is_edited(run)
        };
        let mut runs: Vec<RunRecord> = options.earlier.iter().filter(is_same).cloned().collect();
        runs.sort_by_key(|run| run.manifest.anchor.realtime);
        let side = ComparisonSide { name: String::new(), runs };
        let table = index.align_side(&side, "", &selection, options);
        let mut runs = HashMap::new();
        for ((subject, metric), cell) in &table.cells {
            let names = (index.subjects.get_index(*subject), index.metrics.get_index(*metric));
            let (Some((name, _)), Some(metric)) = names else { continue };
            let of_run = |((_, boot), values)| EarlierValues { boot, values };
            runs.insert((name.clone(), metric.clone()), cell.by_run().into_iter().map(of_run).collect());
        }
        let card = options.noise.clone().filter(|card| card.reasons_for_doubt(&first.manifest).is_empty());
        EarlierRuns { runs, card }
    }

    /// The values of each run.
    pub(crate) fn values(&self, subject: &str, metric: &MetricKey) -> impl Iterator<Item = &[f64]> {
        let runs =
            if self.runs.is_empty() { None } else { self.runs.get(&(subject.to_owned(), metric.clone())) };
        runs.into_iter().flatten().map(|run| run.values.as_slice())
    }

    /// The noise from one run to the next, on a scale: between runs of different boots, or of any.
    fn noise(
        &self,
        subject: &str,
        metric: &MetricKey,
        scale: ChangeScale,
        other_boots: bool,
    ) -> Option<RunNoise> {
        if self.runs.is_empty() {
            return None;
        }
        let runs = self.runs.get(&(subject.to_owned(), metric.clone()))?;
        let medians: Vec<(u32, f64)> =
            runs.iter().filter_map(|run| Some((run.boot, median(&run.values).ok()?))).collect();
        let has_place = |value: f64| scale == ChangeScale::Absolute || value > 0.0;
        let on_scale = |value: f64| has_place(value).then(|| scale.on_scale(value));
        let pairs = medians.iter().zip(medians.iter().skip(1));
        let pairs = pairs.filter(|(one, next)| !other_boots || one.0 != next.0);
        let differences: Vec<f64> =
            pairs.filter_map(|(one, next)| Some(on_scale(next.1)? - on_scale(one.1)?)).collect();
        if differences.len() < FEWEST_DIFFERENCES {
            return None;
        }
        let found = SuccessiveDifferences::from_differences(&differences).ok()?;
        let most_values = runs.iter().map(|run| run.values.len()).max();
        Some(RunNoise { differences: found, pairs: differences.len(), from_card: false, most_values })
    }

    /// The variance of medians of boots or runs: of earlier ones that hold about as many values, else what the card says of as many.
    pub(crate) fn noise_of_units(&self, query: &UnitNoiseQuery<'_>, scale: ChangeScale) -> Option<UnitNoise> {
        let is_as_long =
            |noise: &RunNoise| noise.most_values.is_some_and(|most| 2 * most <= 3 * query.values);
        let of_runs = self.noise(query.subject, query.metric, scale, query.other_boots).filter(is_as_long);
        if let Some(RunNoise { differences, pairs, .. }) = of_runs {
            // That of a difference is twice that of a median.
            let variance =
                KnownVariance { variance: differences.mean_square / 2.0, freedom: differences.freedom };
            return Some(UnitNoise { variance, pairs, from_card: false });
        }
        let card = self.card.as_ref().filter(|_| scale == ChangeScale::Ratio)?;
        let (variance, next) = card.unit_variance(&query.of_next_run(), query.values)?;
        let variance = KnownVariance { variance, freedom: next.freedom };
        let is_known = next.pairs >= FEWEST_DIFFERENCES;
        is_known.then_some(UnitNoise { variance, pairs: next.pairs, from_card: true })
    }

    /// What the machine's card says, which knows relative noise.
    fn noise_of_card(&self, query: &NextRunQuery<'_>, scale: ChangeScale) -> Option<RunNoise> {
        let card = self.card.as_ref().filter(|_| scale == ChangeScale::Ratio)?;
        let found = card.next_run(query).filter(|found| found.pairs >= FEWEST_DIFFERENCES)?;
        let differences = found.differences();
        Some(RunNoise { differences, pairs: found.pairs, from_card: true, most_values: None })
    }
}

impl UnitNoiseQuery<'_> {
    fn of_next_run(&self) -> NextRunQuery<'_> {
        NextRunQuery {
            subject: self.subject,
            workload: self.workload,
            metric: &self.metric.name,
            unit: &self.metric.unit,
            other_boots: self.other_boots,
        }
    }
}

/// The sides of a row with one run each, or with several of one boot each.
pub(crate) struct RunPair<'a> {
    pub(crate) subject: &'a str,
    pub(crate) workload: &'a str,
    pub(crate) metric: &'a MetricKey,
    pub(crate) baseline: &'a MetricSamples,
    pub(crate) candidate: &'a MetricSamples,
    /// What they share.
    pub(crate) relation: SideRelation,
    /// Iterations, or medians of several runs of one boot a side.
    pub(crate) level: RepetitionLevel,
    /// How many values of each side were compared.
    pub(crate) compared: [usize; 2],
}

impl RunPair<'_> {
    /// Widens what independent iterations would say by their dependence, and by what earlier runs showed, which it gives, too.
    pub(crate) fn widen(
        &self,
        found: &mut ChangeEstimate,
        earlier: &EarlierRuns,
        confidences: [f64; 2],
    ) -> Result<(BetweenRuns, Option<SuccessiveDifferences>), StatsError> {
        let scale = found.change.scale;
        let runs = [self.baseline, self.candidate].map(|side| values_on_scale(side, scale));
        let dependence = SerialDependence::from_runs(&[&runs[0], &runs[1]])?;
        let value = scale.shift_of_change(found.change.value);
        let mut widened = 1.0;
        found.change.covers = IntervalMeaning::TheseRuns;
        // Medians of runs do not depend on one another as iterations do.
        if self.level == RepetitionLevel::Iteration {
            widened = dependence.widening(self.compared.into_iter().min().unwrap_or(0));
            self.widen_by(widened, found, value, confidences)?;
        }
        // Earlier runs were in the same order, and say nothing of what it does.
        let noise = if self.relation.in_turn { None } else { self.noise_between_runs(earlier, scale) };
        // Where these runs set no bound themselves, runs as short as they are show what such runs differ by.
        let is_bounded = found.change.covers != IntervalMeaning::Unbounded;
        let fewest = self.compared.into_iter().min().unwrap_or(0);
        let noise = noise.filter(|noise| is_bounded || noise.most_values.is_some_and(|most| most <= fewest));
        if let Some(noise) = &noise {
            noise.extend_to_any_runs(found, value, confidences)?;
        }
        let between = BetweenRuns {
            in_turn: self.relation.in_turn,
            autocorrelation: dependence.autocorrelation,
            widened,
            earlier_pairs: noise.map_or(0, |noise| noise.pairs),
            from_card: noise.is_some_and(|noise| noise.from_card),
            drift: self.drift(&runs).map(|drift| scale.change_of_shift(drift)),
        };
        Ok((between, noise.map(|noise| noise.differences)))
    }

    /// What earlier runs of the study show, or else the card.
    fn noise_between_runs(&self, earlier: &EarlierRuns, scale: ChangeScale) -> Option<RunNoise> {
        let query = NextRunQuery {
            subject: self.subject,
            workload: self.workload,
            metric: &self.metric.name,
            unit: &self.metric.unit,
            other_boots: self.relation.one_boot || self.relation.unknown_boot,
        };
        let of_runs = earlier.noise(self.subject, self.metric, scale, query.other_boots);
        of_runs.or_else(|| earlier.noise_of_card(&query, scale))
    }

    /// Makes the intervals of independent iterations so many times as wide, by Student's quantiles, and the p-value what inverts
    /// them; takes them away where they reach so far that they say nothing.
    fn widen_by(
        &self,
        widening: f64,
        found: &mut ChangeEstimate,
        value: f64,
        [confidence, narrow_confidence]: [f64; 2],
    ) -> Result<(), StatsError> {
        let scale = found.change.scale;
        let change = &mut found.change;
        found.sd = found.sd.map(|sd| sd * widening);
        let Some(independent) = change.interval else { return Ok(()) };
        let freedom = dependent_freedom(self.compared.into_iter().sum(), widening);
        let dependent = DependentShift { shift: value, widening, freedom };
        let shift_of = |limit: f64| scale.shift_of_change(limit);
        let (low, high) = (shift_of(independent.low), shift_of(independent.high));
        found.p = found.p.max(dependent.p(ConfidenceInterval { low, high, level: independent.level })?);
        let widen = |interval: ChangeInterval, confidence: f64| {
            let factor = dependent.factor(interval.level, confidence)?;
            let limit = |limit: f64| scale.change_of_shift(value + factor * (shift_of(limit) - value));
            Ok::<_, StatsError>(ChangeInterval {
                low: limit(interval.low),
                high: limit(interval.high),
                level: if factor > 1.0 { interval.level.min(confidence) } else { interval.level },
            })
        };
        let wide = widen(independent, confidence)?;
        let reach = (shift_of(wide.high) - value).max(value - shift_of(wide.low));
        if scale == ChangeScale::Ratio && reach > FARTHEST_RATIO.ln() {
            leave_out_interval(found);
            found.p = 1.0;
            return Ok(());
        }
        change.interval = Some(wide);
        // The error is read from another exact limit, and may be a larger one.
        let inside = |narrow: ChangeInterval| ChangeInterval {
            low: narrow.low.max(wide.low),
            high: narrow.high.min(wide.high),
            ..narrow
        };
        let narrow = change.narrow.map(|narrow| widen(narrow, narrow_confidence)).transpose()?;
        change.narrow = narrow.map(inside);
        Ok(())
    }

    /// How far a straight line through both runs, one slope and two levels, moves from the middle of one to that of the other.
    fn drift(&self, runs: &[Vec<f64>; 2]) -> Option<f64> {
        let times = [self.baseline, self.candidate]
            .map(|side| side.points.iter().map(|point| point.at.0 as f64 / 1e9).collect::<Vec<f64>>());
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let (mut products, mut squares) = (0.0, 0.0);
        for (times, values) in times.iter().zip(runs) {
            let (middle, level) = (mean(times), mean(values));
            for (time, value) in times.iter().zip(values) {
                products += (time - middle) * (value - level);
                squares += (time - middle).powi(2);
            }
        }
        let span = |times: &Vec<f64>| Some(times.last()? - times.first()?);
        let longest = times.iter().filter_map(span).fold(0.0, f64::max);
        let apart = mean(&times[1]) - mean(&times[0]);
        (squares > 0.0 && apart.abs() <= FARTHEST_RUNS * longest).then(|| products / squares * apart)
    }
}

/// Takes the intervals away: there is no bound that says anything.
fn leave_out_interval(found: &mut ChangeEstimate) {
    let change = &mut found.change;
    (change.interval, change.narrow, change.covers) = (None, None, IntervalMeaning::Unbounded);
}

/// Takes away an interval that holds "no change" and reaches so far that it says nothing: two runs a side with large noise know
/// their spread so badly that it may go to a million per cent. One that excludes "no change" says that much, and stays.
pub(crate) fn leave_out_boundless_interval(found: &mut ChangeEstimate) {
    let change = found.change;
    let Some(interval) = change.interval.filter(|_| change.scale == ChangeScale::Ratio) else { return };
    let shift = |limit: f64| change.scale.shift_of_change(limit);
    let reach = (shift(interval.high) - shift(change.value)).max(shift(change.value) - shift(interval.low));
    // Below -100 % there is nothing: a logarithm that cannot be taken reaches as far.
    let is_boundless = reach.is_nan() || reach > FARTHEST_RATIO.ln();
    if is_boundless && !change.excludes_none() {
        leave_out_interval(found);
    }
}

impl RunNoise {
    /// The interval of the change: no narrower than what any two runs differ by.
    fn extend_to_any_runs(
        &self,
        found: &mut ChangeEstimate,
        value: f64,
        [confidence, narrow]: [f64; 2],
    ) -> Result<(), StatsError> {
        let scale = found.change.scale;
        let is_bounded = found.change.covers != IntervalMeaning::Unbounded;
        let extend = |within: Option<ChangeInterval>, confidence| {
            let any = self.differences.interval(value, confidence)?;
            let (low, high) = (scale.change_of_shift(any.low), scale.change_of_shift(any.high));
            let any = ChangeInterval { low, high, level: confidence };
            let both = |within: ChangeInterval| ChangeInterval {
                low: within.low.min(low),
                high: within.high.max(high),
                level: within.level.min(confidence),
            };
            Ok::<_, StatsError>(if is_bounded { within.map(both) } else { Some(any) })
        };
        let MetricChange { interval, narrow: of_same, .. } = found.change;
        found.change.interval = extend(interval, confidence)?;
        found.change.narrow = extend(of_same, narrow)?;
        found.change.covers = IntervalMeaning::Change;
        let p = self.differences.p(value);
        found.p = if is_bounded { found.p.max(p) } else { p };
        Ok(())
    }
}

fn values_on_scale(side: &MetricSamples, scale: ChangeScale) -> Vec<f64> {
    side.points.iter().map(|point| scale.on_scale(point.value)).collect()
}
