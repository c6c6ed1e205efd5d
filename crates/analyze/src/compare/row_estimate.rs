//! One row per case, metric and candidate, with its numbers and without a verdict.
//!
//! Nothing is dropped: what one side lacks becomes a row that says so.

use std::collections::{BTreeSet, HashMap};

use perflab_model::Direction;
use perflab_model::study::StoppingRule;
use perflab_stats::{StatsError, SuccessiveDifferences, median};
use rayon::prelude::*;

use crate::compare::alignment::{AlignedSide, CaseIdentity, MetricKey, MetricSamples, SampleIndex};
use crate::compare::between_runs::{EarlierRuns, RunPair, UnitNoiseQuery, leave_out_boundless_interval};
use crate::compare::change::{ChangeEstimate, ChangeScale, RepetitionLevel, estimate_change};
use crate::compare::comparison::{SideSummary, Verdict, VerdictRow};
use crate::compare::diagnostic::{ComparisonDiagnostic, DiagnosticLocation, RowFlag};
use crate::compare::exact_values::exact_change;
use crate::compare::experimental_unit::{ComparisonUnits, middle_summary};
use crate::compare::failures::{FailureComparison, VerdictBasis, failure_shares};
use crate::compare::layout_effect::compare_layouts;
use crate::compare::missing_values::{
    bad_end, count_failures, count_failures_by_run, impute_failures, values_beyond,
};
use crate::compare::options::AnalysisOptions;
use crate::compare::part_estimate::{PartContext, compare_parts};
use crate::compare::pooled_noise::pool_earlier_noise;
use crate::compare::tails::{FarFences, compare_tails, count_earlier_tails};
use crate::compare::unequal_units::estimate_unequal_units;
use crate::error::AnalyzeError;

/// Fewest values a side that, being all equal on both, count as exact.
const FEWEST_EXACT: usize = 3;

/// A row on its way to a verdict.
#[derive(Debug)]
pub(crate) struct RowEstimate {
    pub(crate) row: VerdictRow,
    /// Standard deviation of the estimate's noise; see [`ChangeEstimate`](crate::compare::change::ChangeEstimate).
    pub(crate) sd: Option<f64>,
    /// How much any two runs differ, where earlier ones say so of a row with one run a side.
    pub(crate) run_noise: Option<SuccessiveDifferences>,
    /// The sides come from different boots, which do not repeat on both.
    pub(crate) one_boot: bool,
    /// Of some of several runs nobody knows whether they are of one boot.
    pub(crate) unknown_boot: bool,
    /// All values of both sides are one and the same number.
    pub(crate) constant: bool,
    /// Compared without statistics: see [`exact_values`](crate::compare::exact_values).
    pub(crate) exact: bool,
    /// What the data would say if iterations that failed had the worst values in the candidate and the best in the baseline,
    /// and the other way round; absent where nothing failed.
    pub(crate) imputed: Option<[ChangeEstimate; 2]>,
    /// What the runs contradict each other in, so that there is no verdict.
    pub(crate) contradiction: Option<String>,
}

/// What all rows are estimated with.
pub(crate) struct EstimateContext<'a> {
    pub(crate) options: &'a AnalysisOptions,
    /// What other runs of the study showed.
    pub(crate) earlier: &'a EarlierRuns,
}

/// Where a row stands.
struct RowPosition<'a> {
    subject: usize,
    name: &'a str,
    identity: &'a CaseIdentity,
    metric: &'a MetricKey,
    baseline: (&'a AlignedSide, Option<&'a MetricSamples>),
    candidate: (&'a AlignedSide, Option<&'a MetricSamples>),
    /// The metric as the case declares it, where no iteration of either side gave a value.
    declared: Option<&'a MetricSamples>,
}

/// All rows in order: by case; primary metrics first; by metric; by candidate. The warnings are those that only
/// the comparison of two cells can give.
pub(crate) fn estimate_rows(
    index: &SampleIndex,
    baseline: &AlignedSide,
    candidates: &[AlignedSide],
    context: &EstimateContext<'_>,
) -> Result<RowEstimates, AnalyzeError> {
    let keys = row_keys(baseline, candidates);
    let of = |part: &[(usize, usize)]| -> Result<RowEstimates, AnalyzeError> {
        let mut found = RowEstimates::default();
        part.iter().try_for_each(|key| {
            estimate_metric_rows(*key, (index, baseline, candidates), context, &mut found)
        })?;
        Ok(found)
    };
    let parts: Vec<_> = keys.par_chunks(FEWEST_PER_THREAD).map(of).collect();
    let mut all = RowEstimates::default();
    for part in parts {
        let (found, warnings) = part?;
        all.0.extend(found);
        all.1.extend(warnings);
    }
    Ok(all)
}

/// Rows, and the warnings that belong to them.
type RowEstimates = (Vec<RowEstimate>, Vec<ComparisonDiagnostic>);

/// The rows of one metric of a case.
fn estimate_metric_rows(
    key: (usize, usize),
    (index, baseline, candidates): (&SampleIndex, &AlignedSide, &[AlignedSide]),
    context: &EstimateContext<'_>,
    (found, warnings): &mut RowEstimates,
) -> Result<(), AnalyzeError> {
    let (subject, number) = key;
    let (Some((name, what)), Some(metric)) =
        (index.subjects.get_index(subject), index.metrics.get_index(number))
    else {
        return Ok(());
    };
    for candidate in candidates {
        let declared = baseline.declared.get(&key).or_else(|| candidate.declared.get(&key));
        let baseline = (baseline, find_metric_samples(baseline, key));
        let candidate = (candidate, find_metric_samples(candidate, key));
        let spot = RowPosition { subject, name, identity: what, metric, baseline, candidate, declared };
        found.extend(spot.estimate_row(index, context, warnings)?);
    }
    Ok(())
}

fn find_metric_samples(table: &AlignedSide, key: (usize, usize)) -> Option<&MetricSamples> {
    table.cells.get(&key).filter(|cell| cell.has_values())
}

/// Every case with the metrics that any side has of it, primary ones first. Of a case that only failed, what it declares.
fn row_keys(baseline: &AlignedSide, candidates: &[AlignedSide]) -> Vec<(usize, usize)> {
    let mut primary: HashMap<(usize, usize), bool> = HashMap::new();
    let tables = || std::iter::once(baseline).chain(candidates);
    for (key, cell) in tables().flat_map(|table| &table.cells).filter(|(_, cell)| cell.has_values()) {
        *primary.entry(*key).or_default() |= cell.primary;
    }
    let with_values: BTreeSet<usize> = primary.keys().map(|(subject, _)| *subject).collect();
    for (key, cell) in tables().flat_map(|table| &table.declared) {
        if !with_values.contains(&key.0) {
            *primary.entry(*key).or_default() |= cell.primary;
        }
    }
    let mut keys: Vec<_> = primary.into_iter().collect();
    keys.sort_by_key(|((subject, metric), is_primary)| (*subject, !is_primary, *metric));
    keys.into_iter().map(|(key, _)| key).collect()
}

impl RowPosition<'_> {
    /// The row, unless neither of the two sides has a value or declares one.
    fn estimate_row(
        &self,
        index: &SampleIndex,
        context: &EstimateContext<'_>,
        warnings: &mut Vec<ComparisonDiagnostic>,
    ) -> Result<Option<RowEstimate>, AnalyzeError> {
        let Some(any) = self.baseline.1.or(self.candidate.1).or(self.declared) else { return Ok(None) };
        let mut draft = RowEstimate {
            row: self.build_row(any, index, context.options)?,
            sd: None,
            run_noise: None,
            one_boot: false,
            unknown_boot: false,
            constant: false,
            exact: false,
            imputed: None,
            contradiction: self.directions_differ(),
        };
        match (self.baseline.1, self.candidate.1) {
            (Some(baseline), Some(candidate)) => {
                let found = self.fill_estimate(&mut draft, baseline, candidate, index, context);
                warnings.extend(found.unwrap_or_else(|error| {
                    draft.row.flags.push(RowFlag::Few);
                    Some(ComparisonDiagnostic::NotComputed {
                        place: self.diagnostic_location(),
                        reason: error.to_string(),
                    })
                }));
            }
            (None, None) => draft.row.basis = VerdictBasis::MissingValues,
            _ => {
                draft.row.flags.push(RowFlag::OneSided);
                draft.row.withheld = self.unit_difference(index);
            }
        }
        // Of two rows with one metric in two units, the baseline's says so.
        let of_units = draft.row.withheld.clone().filter(|_| self.baseline.1.is_some());
        let reason = draft.contradiction.clone().or(of_units);
        warnings.extend(
            reason
                .map(|reason| ComparisonDiagnostic::NotJudged { place: self.diagnostic_location(), reason }),
        );
        Ok(Some(draft))
    }

    fn build_row(
        &self,
        any: &MetricSamples,
        index: &SampleIndex,
        options: &AnalysisOptions,
    ) -> Result<VerdictRow, AnalyzeError> {
        let margin = [self.baseline.1, self.candidate.1, self.declared]
            .into_iter()
            .flatten()
            .find_map(|cell| cell.margin);
        Ok(VerdictRow {
            subject: self.name.into(),
            workload: self.identity.workload.clone(),
            point: self.identity.point.clone(),
            candidate_name: self.candidate.0.name.clone(),
            metric: String::from(&self.metric.name),
            twins: Vec::new(),
            unit: self.metric.unit.clone(),
            direction: any.direction,
            primary: any.primary,
            baseline: self.summarise_side(self.baseline)?,
            candidate: self.summarise_side(self.candidate)?,
            change: None,
            verdict: Verdict::Unclear,
            p: None,
            q: None,
            margin: margin.unwrap_or(options.default_margin),
            exact: any.exact,
            flags: self.side_flags(),
            method: None,
            withheld: None,
            needed: None,
            failures: self.compare_failures(index),
            basis: VerdictBasis::Values,
            tail: None,
            parts: Vec::new(),
            middle: None,
            unseen_share: None,
            small_change: None,
            no_larger_than: None,
            detectable: None,
            between_runs: None,
            pooled_noise: None,
            layout: None,
            suspect: None,
        })
    }

    /// Which way is good, where the runs do not agree on it.
    fn directions_differ(&self) -> Option<String> {
        let cells = [self.baseline.1, self.candidate.1].into_iter().flatten();
        let directions: BTreeSet<&str> = cells
            .flat_map(|cell| [Some(cell.direction), cell.other_direction])
            .flatten()
            .map(|direction| match direction {
                Direction::Lower => "lower",
                Direction::Higher => "higher",
                Direction::Neither => "neither",
            })
            .collect();
        let several = directions.len() > 1;
        let text = directions.into_iter().collect::<Vec<_>>().join(" or ");
        several.then(|| format!("what is better differs between the runs: {text}"))
    }

    /// In which unit each side has the metric, where the other has it in another.
    fn unit_difference(&self, index: &SampleIndex) -> Option<String> {
        let is_ours = self.baseline.1.is_some();
        let (own, other) =
            if is_ours { (self.baseline.0, self.candidate.0) } else { (self.candidate.0, self.baseline.0) };
        let units = index.metrics.iter().enumerate().filter(|(number, metric)| {
            metric.name == self.metric.name
                && metric.unit != self.metric.unit
                && find_metric_samples(other, (self.subject, *number)).is_some()
        });
        let names: Vec<&str> = units.map(|(_, metric)| metric.unit.0.as_str()).collect();
        if names.is_empty() {
            return None;
        }
        let own = format!("{} in {}", self.metric.unit, own.name);
        let other = format!("{} in {}", names.join(" and "), other.name);
        let (first, second) = if is_ours { (own, other) } else { (other, own) };
        Some(format!("its unit is {first}, but {second}"))
    }

    fn summarise_side(
        &self,
        side: (&AlignedSide, Option<&MetricSamples>),
    ) -> Result<Option<SideSummary>, AnalyzeError> {
        let Some(cell) = side.1 else { return Ok(None) };
        Ok(Some(SideSummary {
            median: median(&cell.values()).map_err(|source| self.statistic_error(source))?,
            n: cell.points.len(),
            boots: cell.boots(),
            failed: side.0.iterations.get(&self.subject).map_or(0, |iterations| iterations.failed.len()),
            values: cell.points.clone(),
        }))
    }

    /// Whether an iteration of the case failed on either side.
    fn has_failures(&self) -> bool {
        [self.baseline, self.candidate].iter().any(|(table, _)| table.has_failures(self.subject))
    }

    /// Counted where something failed: in most rows nothing did.
    fn compare_failures(&self, index: &SampleIndex) -> Option<FailureComparison> {
        if !self.has_failures() {
            return None;
        }
        let counts = [self.baseline, self.candidate].map(|side| count_failures(self.subject, side));
        let [ours, theirs] =
            [self.baseline, self.candidate].map(|side| count_failures_by_run(self.subject, side));
        let units = failure_shares([&ours, &theirs]);
        let [baseline, candidate] = counts;
        let mut found = FailureComparison::from_counts(baseline, candidate, units);
        if ours.keys().any(|key| theirs.contains_key(key) && index.is_looked_at(key.1)) {
            found.p = p_at_any_look(found.p, baseline.of.max(candidate.of));
            found.q = found.p;
        }
        Some(found)
    }

    /// What each side says about itself.
    fn side_flags(&self) -> Vec<RowFlag> {
        let sides = [self.baseline, self.candidate];
        let failed = self.has_failures();
        let cells = sides.into_iter().filter_map(|(_, cell)| cell);
        let found = cells.flat_map(|cell| cell.warnings.iter().filter_map(ComparisonDiagnostic::flag));
        found.chain(failed.then_some(RowFlag::Failed)).collect()
    }

    /// Fills in what the data say; a warning where they say little.
    fn fill_estimate(
        &self,
        draft: &mut RowEstimate,
        baseline: &MetricSamples,
        candidate: &MetricSamples,
        index: &SampleIndex,
        context: &EstimateContext<'_>,
    ) -> Result<Option<ComparisonDiagnostic>, StatsError> {
        if let Some(change) = exact_change(baseline, candidate) {
            (draft.row.change, draft.exact) = (Some(change), true);
            return Ok(None);
        }
        let options = context.options;
        let differences = options.differences;
        let summary = middle_summary(baseline, candidate);
        let units =
            ComparisonUnits { differences, ..ComparisonUnits::choose(baseline, candidate, index, summary)? };
        let confidences = [options.confidence, options.narrow_confidence()];
        let mut method = units.estimation_method();
        // Where iterations failed, what is missing may not be missing by chance: medians and ranks mind that less.
        let of_unequal = match draft.row.failures {
            None => estimate_unequal_units(baseline, candidate, &units, draft.row.margin, confidences),
            Some(_) => None,
        };
        method.random_effects = of_unequal.is_some();
        let relation = units.relation;
        let pooled = match draft.row.failures {
            None => {
                let each = |side: &MetricSamples, units: &[f64]| side.points.len() / units.len().max(1);
                let query = UnitNoiseQuery {
                    subject: self.name,
                    workload: &self.identity.workload,
                    metric: self.metric,
                    other_boots: units.level == RepetitionLevel::Boot || relation.unknown_boot,
                    values: each(baseline, &units.baseline).min(each(candidate, &units.candidate)),
                };
                pool_earlier_noise(&units, method, &query, context.earlier, confidences)?
            }
            Some(_) => None,
        };
        draft.row.pooled_noise = pooled.map(|(_, noise)| noise);
        let mut found = match of_unequal.or(pooled.map(|(found, _)| found)) {
            Some(found) => found,
            None => {
                let sides = (&units.baseline[..], &units.candidate[..]);
                estimate_change(units.scale(), sides, [&units.rest[0], &units.rest[1]], method, confidences)?
            }
        };
        method.estimator = found.estimator;
        if relation.between_runs {
            let pair = RunPair {
                subject: self.name,
                workload: &self.identity.workload,
                metric: self.metric,
                baseline,
                candidate,
                relation,
                level: units.level,
                compared: [units.baseline.len(), units.candidate.len()],
            };
            let (between, noise) = pair.widen(&mut found, context.earlier, confidences)?;
            (draft.row.between_runs, draft.run_noise) = (Some(between), noise);
        }
        leave_out_boundless_interval(&mut found);
        draft.row.method = Some(method);
        draft.row.layout = compare_layouts(baseline, candidate, found.change, index)?;
        self.fill_parts(draft, [baseline, candidate], (index, &units, &found), context)?;
        if method.always_valid {
            hold_parts_at_any_look(&mut draft.row);
        }
        draft.row.change = Some(found.change);
        draft.row.p = Some(found.p);
        draft.sd = found.sd;
        let is_one_boot = relation.one_boot && relation.between_runs;
        (draft.one_boot, draft.unknown_boot) = (is_one_boot, relation.unknown_boot);
        draft.constant = is_constant(baseline, candidate);
        draft.imputed = self.estimate_with_failures(draft, [baseline, candidate], index, options)?;
        draft.row.flags.extend(is_one_boot.then_some(RowFlag::OneBoot));
        draft.row.flags.extend(relation.unknown_boot.then_some(RowFlag::UnknownBoot));
        draft
            .row
            .flags
            .extend((units.paired && has_disagreeing_medians(&draft.row)).then_some(RowFlag::Paired));
        let is_enough = found.change.interval.is_some() || draft.constant;
        draft.row.flags.extend((!is_enough).then_some(RowFlag::Few));
        Ok((!is_enough).then(|| self.too_few_diagnostic(&units)))
    }

    /// Fills in what the data say of the tail, the mean and tail quantiles.
    fn fill_parts(
        &self,
        draft: &mut RowEstimate,
        [baseline, candidate]: [&MetricSamples; 2],
        (index, units, found): (&SampleIndex, &ComparisonUnits, &ChangeEstimate),
        context: &EstimateContext<'_>,
    ) -> Result<(), StatsError> {
        let (direction, margin) = (draft.row.direction, draft.row.margin);
        let fences = FarFences::of_sides(baseline, candidate, margin)?;
        if let Some(fences) = fences {
            draft.row.tail = compare_tails(baseline, candidate, index, fences, direction, units.level)?;
        }
        if let Some(tail) = &mut draft.row.tail {
            tail.earlier = count_earlier_tails(context.earlier, self.name, self.metric, direction, margin);
        }
        let parts = PartContext {
            index,
            units,
            scale: found.change.scale,
            between_runs: draft.row.between_runs,
            confidences: [context.options.confidence, context.options.narrow_confidence()],
            fences,
        };
        draft.row.parts = compare_parts(baseline, candidate, direction, &parts);
        Ok(())
    }

    /// The same estimate with the values that failed iterations would have had: against the candidate, and for it.
    fn estimate_with_failures(
        &self,
        draft: &RowEstimate,
        [baseline, candidate]: [&MetricSamples; 2],
        index: &SampleIndex,
        options: &AnalysisOptions,
    ) -> Result<Option<[ChangeEstimate; 2]>, StatsError> {
        if draft.row.failures.is_none() {
            return Ok(None);
        }
        let [bad, good] = bad_end(values_beyond(baseline, candidate), draft.row.direction);
        let estimate = |in_baseline: f64, in_candidate: f64| {
            let ours = impute_failures((self.baseline.0, baseline), self.subject, in_baseline);
            let theirs = impute_failures((self.candidate.0, candidate), self.subject, in_candidate);
            let differences = options.differences;
            let summary = middle_summary(&ours, &theirs);
            let units =
                ComparisonUnits { differences, ..ComparisonUnits::choose(&ours, &theirs, index, summary)? };
            let confidences = [options.confidence, options.narrow_confidence()];
            let sides = (&units.baseline[..], &units.candidate[..]);
            estimate_change(
                units.scale(),
                sides,
                [&units.rest[0], &units.rest[1]],
                units.estimation_method(),
                confidences,
            )
        };
        Ok(Some([estimate(good, bad)?, estimate(bad, good)?]))
    }

    fn too_few_diagnostic(&self, units: &ComparisonUnits) -> ComparisonDiagnostic {
        let (baseline, candidate) = (units.baseline.len(), units.candidate.len());
        ComparisonDiagnostic::TooFew {
            place: self.diagnostic_location(),
            baseline,
            candidate,
            level: units.level,
        }
    }

    fn diagnostic_location(&self) -> DiagnosticLocation {
        let side = self.candidate.0.name.clone();
        DiagnosticLocation { side, subject: self.name.into(), metric: String::from(&self.metric.name) }
    }

    fn statistic_error(&self, source: StatsError) -> AnalyzeError {
        AnalyzeError::Statistic { subject: self.name.into(), metric: String::from(&self.metric.name), source }
    }
}

/// The tests of the tail and of the parts expect to be asked once.
fn hold_parts_at_any_look(row: &mut VerdictRow) {
    let blocks = [&row.baseline, &row.candidate].into_iter().flatten().map(|side| side.n).max().unwrap_or(0);
    if let Some(tail) = &mut row.tail {
        tail.p = p_at_any_look(tail.p, blocks);
        tail.q = tail.p;
    }
    for part in &mut row.parts {
        part.p = p_at_any_look(part.p, blocks);
        part.q = part.p;
    }
}

/// What a p-value is worth where every block was a look, and this may be any of them: the looks share the level, that after b
/// blocks having 6 / (b (b + 1)) of it, which adds up to 1 from the sixth on (Bonferroni).
fn p_at_any_look(p: f64, blocks: usize) -> f64 {
    let (first, blocks) = (f64::from(StoppingRule::FEWEST_DECIDED_BLOCKS), blocks as f64);
    (p * (blocks * (blocks + 1.0) / first).max(1.0)).min(1.0)
}

/// Whether who divides the medians gets a change that differs from the row's by more than matters, and by more than chance
/// explains.
fn has_disagreeing_medians(row: &VerdictRow) -> bool {
    let (Some(change), Some(ours), Some(theirs)) = (row.change, &row.baseline, &row.candidate) else {
        return false;
    };
    if change.scale != ChangeScale::Ratio || ours.median <= 0.0 {
        return false;
    }
    let of_medians = theirs.median / ours.median - 1.0;
    let is_outside =
        change.interval.is_none_or(|interval| of_medians < interval.low || of_medians > interval.high);
    is_outside && (of_medians - change.value).abs() > row.margin
}

/// Whether both sides are one and the same number throughout, often enough to be no accident.
fn is_constant(baseline: &MetricSamples, candidate: &MetricSamples) -> bool {
    let enough = baseline.points.len().min(candidate.points.len()) >= FEWEST_EXACT;
    let values = || baseline.points.iter().chain(candidate.points.iter()).map(|point| point.value);
    enough && values().zip(values().skip(1)).all(|(one, next)| one == next)
}

/// Fewest cells or rows that are worth another thread.
pub(crate) const FEWEST_PER_THREAD: usize = 4;
