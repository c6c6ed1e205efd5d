//! From a row that changed to its explanation, step by step.

use perflab_stats::{JointPermutation, JointShift, StatsError, fit_line, mean_with_interval, pooled_t, sd};

use crate::compare::comparison::{Comparison, VerdictRow};
use crate::compare::options::{AnalysisOptions, ComparisonSide};
use crate::error::AnalyzeError;
use crate::why::candidate_families::{QuantityFamily, group_quantities};
use crate::why::cause_table::{CAUSES, CauseSpec, TimePart, cause_of};
use crate::why::evidence_table::{EvidenceTable, Quantity, ResponseMeaning, is_level, seconds_of};
use crate::why::explanation::{
    AccountEvidence, AccountLimit, ComparedUnits, DifferenceEvidence, DoseEvidence, DoseWord,
    EXPLANATION_FORMAT, Explanation, IntervalValue, LeftOut, QuantityCounts, RuledOut, RuledOutReason,
    Suspect, TimePlace,
};
use crate::why::log_evidence::weigh_kernel_log;
use crate::why::recorded_study::RecordedStudy;
use crate::why::recording_advice::advise_recording;
use crate::why::series_figures::{command_of_comparison, command_of_series};
use crate::why::varied_setting::find_varied_settings;

/// What can carry less of the change is no suspect.
const LEAST_SHARE: f64 = 0.1;

/// A quantity whose spread within the sides is smaller, in parts of its difference, has no slope that could be trusted.
const LEAST_SPREAD: f64 = 0.02;

/// A slope rules a quantity out only where it spreads this much within the sides, in parts of its difference: a line through less is no
/// witness of what the difference did.
const LEAST_SPREAD_AGAINST: f64 = 0.2;

/// An excess over what comes with time is one where it is at least this part of the difference.
const LEAST_EXCESS: f64 = 0.01;

/// A smaller part of what a quantity can carry is not told apart.
const LEAST_WAITING: f64 = 0.02;

/// What differs with a p above is put down to chance.
const MOST_P: f64 = 0.05;

/// From so many pairs on, exchanging sides can tell something from chance: 2 / 2^6 is below 5 %. Of independent units, four a side.
const FEWEST_PAIRS: usize = 6;
const FEWEST_UNITS: usize = 4;

/// So many names are listed of what one side lacks.
const MOST_NAMES: usize = 6;

/// Explains a row of a comparison. `sides` are those of the comparison, each run with its quantities as samples
/// ([`add_durations`](crate::why::add_durations), [`add_monitor_quantities`](crate::why::add_monitor_quantities)); where levels are
/// compared, the only side.
///
/// # Errors
/// A row of which the runs have no values.
pub fn explain_row(
    comparison: &Comparison,
    row: &VerdictRow,
    sides: &[ComparisonSide],
    options: &AnalysisOptions,
    monitors: &[String],
) -> Result<Explanation, AnalyzeError> {
    let of_side = sides.iter().find(|side| side.name == row.candidate_name).or(sides.first());
    let level = comparison.by.as_ref().map(|_| row.candidate_name.as_str());
    let run = of_side.and_then(|side| side.runs.first());
    let study = run.map_or_else(RecordedStudy::unknown, |run| RecordedStudy::of_run(run, level));
    let facts = comparison
        .facts
        .iter()
        .filter(|fact| fact.important && fact.candidate_name == row.candidate_name)
        .cloned()
        .collect();
    let mut found = Explanation {
        format: EXPLANATION_FORMAT,
        writer: concat!("perflab ", env!("CARGO_PKG_VERSION")).into(),
        subject: row.subject.clone(),
        metric: row.metric.clone(),
        by: comparison.by.clone(),
        baseline: comparison.baseline.clone(),
        candidate: row.candidate_name.clone(),
        verdict: row.verdict_word().to_owned(),
        study: study.name(),
        before: None,
        change: None,
        failures: EvidenceTable::find_failures(comparison, row, sides, options)?,
        unit: row.unit.clone(),
        by_work: false,
        units: ComparedUnits {
            baseline: row.baseline.as_ref().map_or(0, |side| side.n),
            candidate: row.candidate.as_ref().map_or(0, |side| side.n),
            paired: false,
            noun: row.method.map_or("iterations", |method| method.level.noun()),
            these_two_only: row.between_runs.is_some(),
        },
        places: Vec::new(),
        suspects: Vec::new(),
        ruled_out: Vec::new(),
        looked_at: QuantityCounts::default(),
        varied: find_varied_settings(comparison, row, sides),
        facts,
        kernel_log: weigh_kernel_log(comparison, row),
        left_out: Vec::new(),
        to_record: Vec::new(),
        tested: None,
    };
    // Where all iterations of a side failed, there is no value to explain.
    if row.change.is_some() {
        let table = EvidenceTable::gather(comparison, row, sides, options)?;
        weigh_quantities(&mut found, &table, options.confidence).map_err(|error| {
            AnalyzeError::NoSamples {
                side: row.candidate_name.clone(),
                filter: format!("{} ({error})", row.metric),
                known: Vec::new(),
            }
        })?;
        let series: Vec<String> = table.quantities.iter().map(|quantity| quantity.name.clone()).collect();
        if let Some(change) = found.change.filter(|_| !found.is_mostly_carried()) {
            found.to_record = advise_recording(&found.places, change, (monitors, &series), &study);
        }
    }
    for suspect in &mut found.suspects {
        suspect.test = study.complete_command(&suspect.test);
        suspect.shown_by = command_of_series(&suspect.series, comparison, row);
    }
    for line in &mut found.kernel_log {
        line.shown_by = command_of_comparison(comparison, row);
    }
    Ok(found)
}

/// Difference, dose and account of everything that is known unit by unit.
fn weigh_quantities(
    found: &mut Explanation,
    table: &EvidenceTable,
    confidence: f64,
) -> Result<(), StatsError> {
    let change = table.change_of(&table.response, confidence)?;
    let excess: Vec<Option<Vec<f64>>> =
        table.quantities.iter().map(|quantity| table.excess(quantity)).collect();
    let places = table.time_places(confidence);
    let candidates = Candidates::choose(table);
    let shifts = candidates.test(table, &excess);
    let excess_off_cpu = table.excess_off_cpu().and_then(|values| table.change_of(&values, confidence).ok());
    let weigh = Weighing { table, change, places: &places, excess_off_cpu, confidence };
    let mut suspects: Vec<(SuspectRank, Suspect)> = Vec::new();
    let mut differing = 0;
    for (family, shift) in candidates.families.iter().zip(&shifts) {
        if shift.adjusted > MOST_P || !candidates.has_differing_best(table, &shifts, family) {
            continue;
        }
        differing += 1;
        match weigh.judge(family, shift, &excess) {
            Ok(suspect) => suspects.push(suspect),
            Err(Some(reason)) => found.ruled_out.push(reason),
            Err(None) => {}
        }
    }
    suspects.sort_by(|(one, _), (other, _)| one.cmp(other));
    found.suspects = suspects.into_iter().map(|(_, suspect)| suspect).collect();
    keep_best_of_cause(&mut found.suspects);
    // Another measure of what is a suspect already.
    let suspects = &found.suspects;
    found.ruled_out.retain(|other| suspects.iter().all(|one| !one.known || one.cause != other.cause));
    found.units = ComparedUnits {
        baseline: table.baseline,
        candidate: table.response.len() - table.baseline,
        paired: table.paired,
        ..found.units
    };
    found.looked_at = QuantityCounts {
        quantities: table.quantities.len(),
        constant: candidates.constant,
        families: candidates.families.len(),
        beyond: candidates.beyond,
        differing,
    };
    found.before = Some(table.mean_before(&table.response));
    found.change = Some(change);
    found.unit = table.unit.clone();
    found.by_work = table.by_work;
    found.left_out = list_left_out(table, found.units);
    found.places = places;
    Ok(())
}

/// What of the quantities was not looked at.
fn list_left_out(table: &EvidenceTable, units: ComparedUnits) -> Vec<LeftOut> {
    let mut left_out = Vec::new();
    let list = |names: &[String]| {
        let mut listed: Vec<String> = names.iter().take(MOST_NAMES).cloned().collect();
        if names.len() > MOST_NAMES {
            listed.push(format!("and {} more", names.len() - MOST_NAMES));
        }
        listed
    };
    if !table.one_sided.is_empty() {
        left_out.push(LeftOut::OneSided { names: list(&monitors_of(&table.one_sided)) });
    }
    if !table.incomplete.is_empty() {
        left_out.push(LeftOut::Incomplete { names: list(&table.incomplete) });
    }
    if units.baseline.min(units.candidate) < table.fewest_units() {
        left_out.push(LeftOut::TooFewUnits { needed: table.fewest_units() });
    }
    left_out
}

/// The monitors, or names, of quantities, each once.
fn monitors_of(names: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in names {
        let monitor = name.split(' ').next().unwrap_or(name).to_owned();
        if !found.contains(&monitor) {
            found.push(monitor);
        }
    }
    found
}

/// Leaves the first of the suspects that measure one cause; the others are said to go with it.
fn keep_best_of_cause(suspects: &mut Vec<Suspect>) {
    let mut kept: Vec<Suspect> = Vec::new();
    for suspect in suspects.drain(..) {
        match kept.iter_mut().find(|one| one.known && one.cause == suspect.cause) {
            Some(first) => {
                first.twins.push(suspect.series);
                first.twins.extend(suspect.twins);
            }
            None => kept.push(suspect),
        }
    }
    *suspects = kept;
}

/// What is tested.
struct Candidates {
    families: Vec<QuantityFamily>,
    constant: usize,
    beyond: usize,
}

impl Candidates {
    fn choose(table: &EvidenceTable) -> Self {
        let is_part = |quantity: &Quantity| matches!(quantity.name.as_str(), "user" | "system");
        // Parts of the time say where it is, not why.
        let values =
            |quantity: &Quantity| if is_part(quantity) { Vec::new() } else { quantity.values.clone() };
        let tested: Vec<Vec<f64>> = table.quantities.iter().map(values).collect();
        let (families, constant, beyond) = group_quantities(&table.quantities, &tested);
        let parts = table.quantities.iter().filter(|quantity| is_part(quantity)).count();
        Candidates { families, constant: constant.saturating_sub(parts), beyond }
    }

    /// Whether the best recorded measure of a family's cause differs, where that is asked for.
    fn has_differing_best(
        &self,
        table: &EvidenceTable,
        shifts: &[JointShift],
        family: &QuantityFamily,
    ) -> bool {
        let Some(cause) = family.cause.filter(|at| CAUSES.get(*at).is_some_and(|spec| spec.by_best)) else {
            return true;
        };
        let measure = |at: usize| {
            let (of, measure) = cause_of(&table.quantities.get(at)?.name)?;
            (of == cause).then_some(measure)
        };
        let best = (0..table.quantities.len()).filter_map(measure).min();
        let holds_best = |family: &QuantityFamily| {
            std::iter::once(&family.leader).chain(&family.others).any(|at| measure(*at) == best)
        };
        self.families.iter().zip(shifts).any(|(family, shift)| shift.adjusted <= MOST_P && holds_best(family))
    }

    /// Both what there is of a quantity and its excess have to differ, the same way: the weaker one counts.
    fn test(&self, table: &EvidenceTable, excess: &[Option<Vec<f64>>]) -> Vec<JointShift> {
        let whole =
            |family: &QuantityFamily| table.quantities.get(family.leader).map(|one| one.values.clone());
        let excess =
            |family: &QuantityFamily| excess.get(family.leader).cloned().flatten().or_else(|| whole(family));
        let (whole, excess): (Vec<Vec<f64>>, Vec<Vec<f64>>) =
            self.families.iter().filter_map(|family| Some((whole(family)?, excess(family)?))).unzip();
        let is_left = |(whole, excess): (&Vec<f64>, &Vec<f64>)| {
            let change = |values: &[f64]| table.mean_after(values) - table.mean_before(values);
            change(excess).abs() >= LEAST_EXCESS * change(whole).abs()
        };
        let is_left: Vec<bool> = whole.iter().zip(&excess).map(is_left).collect();
        let (whole, excess) = (test_jointly(table, whole), test_jointly(table, excess));
        let weaker = |((one, other), is_left): ((&JointShift, &JointShift), bool)| match is_left
            && one.t * other.t > 0.0
        {
            true if one.adjusted >= other.adjusted => *one,
            true => *other,
            false => JointShift { t: 0.0, p: 1.0, adjusted: 1.0 },
        };
        whole.iter().zip(&excess).zip(is_left).map(weaker).collect()
    }
}

fn test_jointly(table: &EvidenceTable, values: Vec<Vec<f64>>) -> Vec<JointShift> {
    let none = vec![JointShift { t: 0.0, p: 1.0, adjusted: 1.0 }; values.len()];
    let joint = JointPermutation::default();
    if table.paired {
        let differences: Vec<Vec<f64>> =
            values.iter().map(|values| pair_differences(values, table.baseline)).collect();
        return joint.of_pairs(&differences).unwrap_or(none);
    }
    let is_candidate: Vec<bool> = (0..table.response.len()).map(|at| at >= table.baseline).collect();
    joint.of_samples(&values, &is_candidate).unwrap_or(none)
}

/// Candidate less baseline of every pair.
fn pair_differences(values: &[f64], baseline: usize) -> Vec<f64> {
    let (ours, theirs) = values.split_at(baseline.min(values.len()));
    ours.iter().zip(theirs).map(|(ours, theirs)| theirs - ours).collect()
}

impl EvidenceTable {
    fn fewest_units(&self) -> usize {
        if self.paired { FEWEST_PAIRS } else { FEWEST_UNITS }
    }

    /// The change of the mean from baseline to candidate.
    fn change_of(&self, values: &[f64], confidence: f64) -> Result<IntervalValue, StatsError> {
        let known =
            |values: &[f64]| values.iter().copied().filter(|value| value.is_finite()).collect::<Vec<_>>();
        let only = |value: f64| IntervalValue { value, low: f64::NEG_INFINITY, high: f64::INFINITY };
        if self.paired {
            let differences = known(&pair_differences(values, self.baseline));
            let found = mean_with_interval(&differences, confidence)?;
            return Ok(match found.interval {
                Some(interval) => IntervalValue::new(found.value, interval),
                None => only(found.value),
            });
        }
        let (ours, theirs) = values.split_at(self.baseline.min(values.len()));
        let (ours, theirs) = (known(ours), known(theirs));
        let value = perflab_stats::mean(&theirs)? - perflab_stats::mean(&ours)?;
        let found = match perflab_stats::welch(&ours, &theirs) {
            Ok(found) => Ok(found),
            Err(_) => pooled_t(&ours, &theirs),
        };
        Ok(match found.and_then(|found| found.interval(confidence)) {
            Ok(interval) => IntervalValue::new(value, interval),
            // Sides without any spread differ by exactly that.
            Err(StatsError::NoSpread) => IntervalValue { value, low: value, high: value },
            Err(_) => only(value),
        })
    }

    pub(crate) fn mean_before(&self, values: &[f64]) -> f64 {
        mean_of(values.get(..self.baseline).unwrap_or_default())
    }

    fn mean_after(&self, values: &[f64]) -> f64 {
        mean_of(values.get(self.baseline..).unwrap_or_default())
    }

    /// Where the time of the change is.
    fn time_places(&self, confidence: f64) -> Vec<TimePlace> {
        let place = |(part, values): (TimePart, Vec<f64>)| {
            let change = self.change_of(&values, confidence).ok()?;
            Some(TimePlace { part, before: self.mean_before(&values), change })
        };
        self.time_parts().into_iter().filter_map(place).collect()
    }

    /// The metric for one more of a quantity, and what remains of the change without it.
    fn adjust(&self, values: &[f64], confidence: f64) -> Option<Adjusted> {
        let coefficients = if self.paired {
            let (x, y): (Vec<f64>, Vec<f64>) = pair_differences(values, self.baseline)
                .into_iter()
                .zip(pair_differences(&self.response, self.baseline))
                .filter(|(x, y)| x.is_finite() && y.is_finite())
                .unzip();
            let ones = vec![1.0; x.len()];
            fit_line(&[&ones, &x], &y).ok()?
        } else {
            let side = |at: usize| if at < self.baseline { 0.0 } else { 1.0 };
            let all = self.response.iter().zip(values).enumerate();
            let known: Vec<(f64, f64, f64)> = all
                .filter(|(_, (y, x))| x.is_finite() && y.is_finite())
                .map(|(at, (y, x))| (side(at), *x, *y))
                .collect();
            let ones = vec![1.0; known.len()];
            let sides: Vec<f64> = known.iter().map(|(side, ..)| *side).collect();
            let x: Vec<f64> = known.iter().map(|(_, x, _)| *x).collect();
            let y: Vec<f64> = known.iter().map(|(.., y)| *y).collect();
            let found = fit_line(&[&ones, &sides, &x], &y).ok()?;
            found.into_iter().skip(1).collect()
        };
        let [remains, slope] = coefficients.get(..2)? else { return None };
        let bound = |one: &perflab_stats::LineCoefficient| {
            Some(IntervalValue::new(one.value, one.interval(confidence).ok()?))
        };
        Some(Adjusted { slope: bound(slope)?, remains: bound(remains)? })
    }

    /// How a quantity spreads within the sides: of pairs, from one difference to the next.
    fn spread_within(&self, values: &[f64]) -> f64 {
        let known =
            |values: &[f64]| values.iter().copied().filter(|value| value.is_finite()).collect::<Vec<_>>();
        if self.paired {
            return sd(&known(&pair_differences(values, self.baseline))).unwrap_or(0.0);
        }
        let (ours, theirs) = values.split_at(self.baseline.min(values.len()));
        let of = |side: &[f64]| sd(&known(side)).unwrap_or(0.0);
        of(ours).max(of(theirs))
    }
}

fn mean_of(values: &[f64]) -> f64 {
    let known: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    perflab_stats::mean(&known).unwrap_or(f64::NAN)
}

/// A regression of the metric on a quantity, sides apart.
struct Adjusted {
    slope: IntervalValue,
    remains: IntervalValue,
}

/// How suspects are ordered: those that can carry more first, in rough steps, then those whose dose agrees, then those of which it is known
/// how much they can carry, then by the table.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
struct SuspectRank {
    carries_less: bool,
    unknown: bool,
    dose: u8,
    unlimited: bool,
    place: usize,
    weakness: f64,
}

impl SuspectRank {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |one: &Self| (one.carries_less, one.unknown, one.dose, one.unlimited, one.place);
        key(self).cmp(&key(other)).then(self.weakness.total_cmp(&other.weakness))
    }
}

/// What a quantity is weighed against.
struct Weighing<'a> {
    table: &'a EvidenceTable,
    change: IntervalValue,
    places: &'a [TimePlace],
    /// Of the time off the CPUs, what does not come with the CPU time that is needed.
    excess_off_cpu: Option<IntervalValue>,
    confidence: f64,
}

impl Weighing<'_> {
    /// A suspect with its rank, or why it is none: nothing of a quantity that has no reason to be one.
    fn judge(
        &self,
        family: &QuantityFamily,
        shift: &JointShift,
        excess: &[Option<Vec<f64>>],
    ) -> Result<(SuspectRank, Suspect), Option<RuledOut>> {
        let table = self.table;
        let Some(quantity) = table.quantities.get(family.leader) else { return Err(None) };
        let values = &quantity.values;
        let excess = excess.get(family.leader).and_then(Option::as_ref);
        let spec = family.cause.and_then(|at| CAUSES.get(at));
        let change = table.change_of(values, self.confidence).map_err(|_| None)?;
        let rule_out = |reason: RuledOutReason| {
            Some(RuledOut {
                cause: spec.map_or_else(|| quantity.name.clone(), |spec| spec.name.to_owned()),
                series: quantity.name.clone(),
                before: table.mean_before(&quantity.values),
                after: table.mean_after(&quantity.values),
                adjusted_p: shift.adjusted,
                reason,
            })
        };
        let direction = self.change.value.signum();
        let is_same_way = change.value.signum() == direction;
        let excess_change = excess.and_then(|values| table.change_of(values, self.confidence).ok());
        let dose = self.weaker_dose(values, change, excess.zip(excess_change), direction);
        // Less of it may be the cause where the table says so, or where units with less of it take longer.
        let may_be_less =
            spec.is_some_and(|spec| spec.either_way) || (spec.is_none() && dose.0.word == DoseWord::Agrees);
        if dose.0.word == DoseWord::Contradicts || !is_same_way && !may_be_less {
            return Err(rule_out(RuledOutReason::OtherWay));
        }
        // What comes with time that passes carries nothing.
        let counted = match excess_change {
            Some(excess) if excess.value.abs() < change.value.abs() => excess,
            _ => change,
        };
        let limit = self.limit_of(quantity, counted, spec);
        let at_most = limit.map(|(at_most, _)| at_most.min(self.change.value.abs()));
        let whole = self.change.value.abs();
        if at_most.is_some_and(|at_most| at_most < LEAST_SHARE * whole) {
            let at_most = at_most.unwrap_or_default();
            return Err(rule_out(RuledOutReason::TooSmall { at_most }));
        }
        let (dose, adjusted) = dose;
        let has_slope = dose.word == DoseWord::Agrees;
        let carries = adjusted.as_ref().filter(|_| has_slope).map(|found| found.slope.scaled(counted.value));
        let remains = adjusted.filter(|_| dose.word != DoseWord::Unvarying).map(|found| found.remains);
        let share = match (carries, at_most) {
            (Some(carries), at_most) => carries.value.abs().min(at_most.unwrap_or(whole)),
            (None, at_most) => at_most.unwrap_or(whole),
        };
        if share < LEAST_SHARE * whole {
            return Err(rule_out(RuledOutReason::TooSmall { at_most: share }));
        }
        let names = family.others.iter().filter_map(|at| table.quantities.get(*at));
        let suspect = Suspect {
            cause: spec.map_or_else(|| quantity.name.clone(), |spec| spec.name.to_owned()),
            known: spec.is_some(),
            series: quantity.name.clone(),
            twins: names.map(|other| other.name.clone()).collect(),
            unit: quantity.unit.clone(),
            before: table.mean_before(&quantity.values),
            after: table.mean_after(&quantity.values),
            difference: DifferenceEvidence {
                difference: change.value,
                excess: excess_change.map(|excess| excess.value),
                t: shift.t,
                p: shift.p,
                adjusted_p: shift.adjusted,
            },
            dose,
            account: AccountEvidence {
                carries,
                at_most,
                limit: limit.map(|(_, limit)| limit),
                waiting: at_most.and_then(|most| self.waiting_in(most, spec.map_or(&[], |spec| spec.parts))),
                remains,
            },
            test: spec
                .map_or("perflab run {study} --event off-cpu --event system-call-latency", |spec| spec.test)
                .into(),
            shown_by: String::new(),
        };
        let rank = SuspectRank {
            carries_less: share < 0.5 * whole,
            unknown: spec.is_none(),
            dose: match dose.word {
                DoseWord::Agrees => 0,
                _ => 1,
            },
            unlimited: carries.is_none() && (at_most.is_none() || spec.is_some_and(|spec| spec.is_symptom)),
            place: family.cause.unwrap_or(usize::MAX),
            weakness: -shift.t.abs(),
        };
        Ok((rank, suspect))
    }

    /// The dose by what there is of a quantity, or by its excess, whichever says less.
    fn weaker_dose(
        &self,
        values: &[f64],
        change: IntervalValue,
        excess: Option<(&Vec<f64>, IntervalValue)>,
        direction: f64,
    ) -> (DoseEvidence, Option<Adjusted>) {
        let whole = self.dose_of(values, change, direction);
        let Some((values, change)) = excess else { return whole };
        let excess = self.dose_of(values, change, direction);
        let strength = |word: DoseWord| match word {
            DoseWord::Unvarying => 0,
            DoseWord::Undecided => 1,
            DoseWord::Contradicts => 2,
            DoseWord::Agrees => 3,
        };
        if strength(excess.0.word) <= strength(whole.0.word) { excess } else { whole }
    }

    /// Whether units with more of it have more of the metric, within the sides.
    fn dose_of(
        &self,
        values: &[f64],
        change: IntervalValue,
        direction: f64,
    ) -> (DoseEvidence, Option<Adjusted>) {
        let unvarying = DoseEvidence { word: DoseWord::Unvarying, slope: None };
        let spread = self.table.spread_within(values);
        if spread < LEAST_SPREAD * change.value.abs() {
            return (unvarying, None);
        }
        let Some(found) = self.table.adjust(values, self.confidence) else { return (unvarying, None) };
        // What one more does, times how many more there are, goes the way of the change.
        let way = found.slope.value * change.value * direction;
        let word = match (found.slope.excludes_zero(), way > 0.0) {
            (true, true) => DoseWord::Agrees,
            (true, false) if spread >= LEAST_SPREAD_AGAINST * change.value.abs() => DoseWord::Contradicts,
            (_, _) => DoseWord::Undecided,
        };
        (DoseEvidence { word, slope: Some(found.slope) }, Some(found))
    }

    /// The most of the change that a quantity can carry, in the change's unit, and why.
    fn limit_of(
        &self,
        quantity: &Quantity,
        change: IntervalValue,
        spec: Option<&CauseSpec>,
    ) -> Option<(f64, AccountLimit)> {
        if self.table.meaning != ResponseMeaning::IterationTime {
            return None;
        }
        let reach =
            change.value.abs().max(change.low.abs().max(change.high.abs()).min(change.value.abs() * 2.0));
        let own = seconds_of(&quantity.unit).map(|scale| (reach * scale, AccountLimit::OwnTime));
        let is_count = seconds_of(&quantity.unit).is_none() && !is_level(&quantity.name);
        let each = spec
            .and_then(|spec| spec.most_ns)
            .filter(|_| is_count)
            .map(|most| (reach * most / 1e9, AccountLimit::MostEach));
        let parts = spec.map_or(&[][..], |spec| spec.parts);
        let before = self.table.mean_before(&quantity.values);
        let price = (is_count && before >= 1.0 && spec.is_none_or(|spec| spec.alike))
            .then(|| (reach / before * self.time_before(parts), AccountLimit::PriceBefore));
        let in_places = self.room_in(parts).map(|room| (room, AccountLimit::Places));
        [own, each, price, in_places].into_iter().flatten().min_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// A part of the time; where it is not told apart, all of the time off the CPUs.
    fn place_of(&self, part: TimePart) -> Option<&TimePlace> {
        let find = |part: TimePart| self.places.iter().find(|place| place.part == part);
        find(part).or_else(|| find(TimePart::OffCpu).filter(|_| !part.is_on_cpu()))
    }

    /// The time of these parts in a unit of the baseline; all of it where none is named.
    fn time_before(&self, parts: &[TimePart]) -> f64 {
        let of = |part: &TimePart| {
            let place = self.place_of(*part)?;
            Some(if place.part.is_on_cpu() { place.before * self.table.stretch() } else { place.before })
        };
        let known: Option<Vec<f64>> = parts.iter().map(of).collect();
        match known.filter(|known| !known.is_empty()) {
            Some(known) => known.iter().sum(),
            None => self.table.mean_before(&self.table.response),
        }
    }

    /// How much of the change there is in these parts, at most; nothing where it is not known for all of them.
    fn room_in(&self, parts: &[TimePart]) -> Option<f64> {
        if parts.is_empty() {
            return None;
        }
        let mut on_cpu = parts.iter().filter(|part| part.is_on_cpu());
        let on_cpu =
            on_cpu.try_fold(0.0, |sum, part| Some(sum + self.growth(self.place_of(*part)?.change)))?;
        let off_cpu = parts.iter().filter(|part| !part.is_on_cpu()).try_fold(0.0, |sum, part| {
            let place = self.place_of(*part)?;
            let excess =
                self.excess_off_cpu.filter(|_| matches!(place.part, TimePart::OffCpu | TimePart::CpuWait));
            let excess = excess.map_or(f64::INFINITY, |excess| self.growth(excess));
            Some(sum + self.growth(place.change).min(excess))
        })?;
        // More CPU time is waited for, too, as other work takes turns with it: but no longer than was waited for.
        let turns = on_cpu * (self.table.stretch() - 1.0);
        let waited = self.place_of(TimePart::CpuWait).map_or(0.0, |place| self.growth(place.change));
        Some(on_cpu + off_cpu.max(turns.min(waited)))
    }

    /// The most that a part of the time grew by, the way of the change.
    fn growth(&self, change: IntervalValue) -> f64 {
        let direction = self.change.value.signum();
        (change.low * direction).max(change.high * direction).max(0.0)
    }

    /// What of `most` is beyond the CPU time that these parts grew by, where they are CPU time.
    fn waiting_in(&self, most: f64, parts: &[TimePart]) -> Option<f64> {
        let is_on_cpu = !parts.is_empty() && parts.iter().all(|part| part.is_on_cpu());
        let places: Option<Vec<&TimePlace>> = parts.iter().map(|part| self.place_of(*part)).collect();
        let on_cpu: f64 = places.filter(|_| is_on_cpu)?.iter().map(|place| self.growth(place.change)).sum();
        Some(most - on_cpu).filter(|waiting| *waiting > LEAST_WAITING * most)
    }
}
