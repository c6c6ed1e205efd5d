//! Two factors at once: the effect of each averaged over the other, and their interaction, each with its interval.
//!
//! On logarithms where all values are above zero, so effects are ratios, and an interaction is a ratio of ratios: by
//! how much the effect of one factor differs under the other. Weights of an effect: + 1/J and - 1/J over the J levels
//! of the other factor; of an interaction: + - - +. Every cell must have been measured; where blocks are complete,
//! comparison is within them. Iterations that failed are results: `interaction_failures` judges them.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::{IndexMap, IndexSet};
use perflab_model::{Direction, Metric, RunRecord};
use perflab_stats::{StatsError, WalshAverages, benjamini_hochberg, mean_contrast, median, signed_rank};
use serde::Serialize;

use crate::compare::case_condition::check_conditions;
use crate::compare::change::{ChangeInterval, ChangeScale, IntervalMeaning, MetricChange, RepetitionLevel};
use crate::compare::comparison::Verdict;
use crate::compare::failures::VerdictBasis;
use crate::compare::pipeline::factor_levels;
use crate::factorial_effect::{
    FactorContrast, FactorialCell, ImputedEffect, InteractionSamples, boot_key, is_within_ratio,
    subject_without,
};
use crate::interaction_failures::{FactorialIterations, bad_and_good_ends, judge_effect_failures};
use crate::method_description::MethodDescription;
use crate::{AnalysisOptions, AnalyzeError, ComparisonSide};

pub use crate::factorial_effect::EffectRow;

/// Fewest blocks, boots or machines that every cell must share to be compared within them by ranks.
const FEWEST_BLOCKS: usize = 6;

/// Effects and interactions of two factors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InteractionTable {
    /// Name of the side.
    pub side: String,
    /// The two factors.
    pub factors: [String; 2],
    /// Confidence of the intervals.
    pub confidence: f64,
    /// Effects and interactions, by case and metric.
    pub rows: Vec<EffectRow>,
    /// What has no row, and why.
    pub left_out: Vec<String>,
    /// How the numbers came about; who writes JSON adds them as sentences.
    #[serde(skip)]
    pub notes: Vec<MethodDescription>,
}

/// Estimates effects and interactions within runs that are repetitions of one another.
///
/// # Errors
/// No run; a factor that was not varied; options out of range; no sample with both factors.
pub fn estimate_interactions(
    side: &ComparisonSide,
    factors: [&str; 2],
    options: &AnalysisOptions,
) -> Result<InteractionTable, AnalyzeError> {
    options.validate()?;
    check_conditions(side.runs.iter(), &options.conditions)?;
    let [first, second] = [factor_levels(side, factors[0])?, factor_levels(side, factors[1])?];
    let mut found: IndexMap<(String, String), InteractionSamples> = IndexMap::new();
    let mut iterations = FactorialIterations::default();
    for (number, run) in side.runs.iter().enumerate() {
        collect_factorial_samples(number, run, factors, options, &mut found);
        iterations.add_run(number, run, factors);
    }
    for run in &side.runs {
        add_declared_metrics(run, (factors, &iterations), options, &mut found);
    }
    if found.is_empty() {
        let filter = options.metrics.join(", ");
        return Err(AnalyzeError::NoSamples { side: side.name.clone(), filter, known: Vec::new() });
    }
    let contrasts = factor_contrasts(factors, &first, &second);
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    for ((subject, metric), one) in &found {
        for contrast in &contrasts {
            let failures = iterations.compare(subject, one, contrast, side);
            match effect_row(subject, one, contrast, side, options) {
                Ok(row) => {
                    let imputed =
                        failures.map(|_| impute_effect(subject, one, contrast, &iterations, side, options));
                    rows.push(EffectRow { failures, imputed: imputed.flatten(), ..row });
                }
                Err(_) if failures.is_some() && !contrast.is_interaction => {
                    rows.push(EffectRow { failures, ..empty_row(subject, one, contrast) });
                }
                Err(reason) => left_out.push(format!("{subject}, {metric}, {}: {reason}", contrast.effect)),
            }
        }
    }
    let families = set_effect_verdicts(&mut rows, &found, options);
    let margin =
        |row: &EffectRow| found.get(&(row.subject.clone(), row.metric.clone())).map_or(0.0, |one| one.margin);
    judge_effect_failures(&mut rows, &families, margin, options);
    Ok(InteractionTable {
        side: side.name.clone(),
        factors: factors.map(str::to_owned),
        confidence: options.confidence,
        notes: describe_interaction_methods(&rows),
        rows,
        left_out,
    })
}

fn collect_factorial_samples(
    number: usize,
    run: &RunRecord,
    [a, b]: [&str; 2],
    options: &AnalysisOptions,
    found: &mut IndexMap<(String, String), InteractionSamples>,
) {
    let plan = &run.manifest.plan;
    for sample in
        run.samples.iter().filter(|sample| options.includes_metric(sample) && sample.value.is_finite())
    {
        let Some(case) = plan.case(sample.case).filter(|case| options.includes_case(case)) else {
            continue;
        };
        let (Some(first), Some(second)) = (case.levels.get(a), case.levels.get(b)) else { continue };
        let subject = subject_without(case, [a, b]);
        let one =
            found.entry((subject, String::from(&sample.metric))).or_insert_with(|| InteractionSamples {
                metric: Metric {
                    name: String::from(&sample.metric),
                    unit: sample.unit.clone(),
                    direction: sample.direction,
                    primary: sample.primary,
                },
                margin: plan.margins.get(sample.metric.as_str()).copied().unwrap_or(options.default_margin),
                cells: IndexMap::new(),
            });
        let cell = one.cells.entry((first.clone(), second.clone())).or_default();
        cell.entry((number, sample.boot, sample.iteration)).or_default().push(sample.value);
    }
}

/// Adds the metrics that decide, else all, of cases of which no iteration gave a value, though some failed.
fn add_declared_metrics(
    run: &RunRecord,
    ([a, b], iterations): ([&str; 2], &FactorialIterations),
    options: &AnalysisOptions,
    found: &mut IndexMap<(String, String), InteractionSamples>,
) {
    let plan = &run.manifest.plan;
    let mut measured: BTreeSet<String> = found
        .iter()
        .filter(|(_, one)| !one.cells.is_empty())
        .map(|((subject, _), _)| subject.clone())
        .collect();
    for case in plan.cases.iter().filter(|case| options.includes_case(case)) {
        let subject = subject_without(case, [a, b]);
        let has_factors = case.levels.contains_key(a) && case.levels.contains_key(b);
        if !has_factors || !iterations.has_failures(&subject) || !measured.insert(subject.clone()) {
            continue;
        }
        let all = plan.metrics.get(&case.uses).map_or(&[][..], Vec::as_slice);
        let has_primary = all.iter().any(|metric| metric.primary);
        let decides = all.iter().filter(|metric| metric.primary || !has_primary);
        for metric in decides.filter(|metric| options.includes_metric_named(&metric.name, metric.primary)) {
            found.entry((subject.clone(), metric.name.clone())).or_insert_with(|| InteractionSamples {
                metric: metric.clone(),
                margin: plan.margins.get(&metric.name).copied().unwrap_or(options.default_margin),
                cells: IndexMap::new(),
            });
        }
    }
}

fn factor_contrasts([a, b]: [&str; 2], first: &[String], second: &[String]) -> Vec<FactorContrast> {
    let mut all = Vec::new();
    let mut main = |name: &str, levels: &[String], others: &[String], turned: bool| {
        let Some((base, rest)) = levels.split_first() else { return };
        for level in rest {
            let share = (others.len() as f64).recip();
            let cell = |own: &String, other: &String| {
                if turned { (other.clone(), own.clone()) } else { (own.clone(), other.clone()) }
            };
            let weights =
                others.iter().flat_map(|other| [(cell(level, other), share), (cell(base, other), -share)]);
            let effect = format!("{name}: {level} against {base}");
            all.push(FactorContrast { effect, is_interaction: false, weights: weights.collect() });
        }
    };
    main(a, first, second, false);
    main(b, second, first, true);
    let (Some((a0, rest_a)), Some((b0, rest_b))) = (first.split_first(), second.split_first()) else {
        return all;
    };
    for (ai, bj) in rest_a.iter().flat_map(|ai| rest_b.iter().map(move |bj| (ai, bj))) {
        let weights = [((ai, bj), 1.0), ((ai, b0), -1.0), ((a0, bj), -1.0), ((a0, b0), 1.0)];
        let weights = weights.map(|((x, y), weight)| ((x.clone(), y.clone()), weight));
        all.push(FactorContrast {
            effect: format!("{a} × {b}: {ai}, {bj}"),
            is_interaction: true,
            weights: weights.into(),
        });
    }
    all
}

/// Value by block (run, boot, iteration), by boot (run, boot, 0) or by machine (machine, 0, 0).
type MediansByUnit = BTreeMap<(usize, u32, u32), f64>;

/// The values that a contrast is made of.
struct ContrastUnits {
    /// Cell by cell: value by block, boot or machine.
    cells: Vec<(f64, MediansByUnit)>,
    level: RepetitionLevel,
    one_boot: bool,
}

fn contrast_units(
    one: &InteractionSamples,
    contrast: &FactorContrast,
    side: &ComparisonSide,
) -> Result<ContrastUnits, String> {
    let mut cells = Vec::new();
    let mut boots: Vec<IndexSet<(String, u32)>> = Vec::new();
    // Each run's machine, by its number; none unless all of them are known.
    let mut ids: IndexSet<String> = IndexSet::new();
    let machines: Vec<usize> =
        side.runs.iter().map(|run| ids.insert_full(run.manifest.machine_id()).0).collect();
    let machine_of = |run: usize| machines.get(run).copied().filter(|_| !ids.contains(""));
    for (key, weight) in &contrast.weights {
        let cell = one.cells.get(key).ok_or_else(|| format!("{} with {} has no value", key.0, key.1))?;
        boots.push(cell.keys().filter_map(|(run, boot, _)| boot_key(side, *run, *boot)).collect());
        cells.push((*weight, cell));
    }
    let count_machines = |cell: &FactorialCell| {
        cell.keys().filter_map(|(run, ..)| machine_of(*run)).collect::<BTreeSet<_>>().len()
    };
    let level = if cells.iter().all(|(_, cell)| count_machines(cell) >= 2) {
        RepetitionLevel::Machine
    } else if boots.iter().all(|boots| boots.len() >= 2) {
        RepetitionLevel::Boot
    } else {
        RepetitionLevel::Iteration
    };
    let one_boot =
        level == RepetitionLevel::Iteration && boots.windows(2).any(|pair| pair.first() != pair.last());
    let middle = |cell: &FactorialCell| -> Result<MediansByUnit, StatsError> {
        let mut groups: BTreeMap<(usize, u32, u32), Vec<f64>> = BTreeMap::new();
        for ((run, boot, iteration), values) in cell {
            let key = match level {
                RepetitionLevel::Machine => (machine_of(*run).unwrap_or_default(), 0, 0),
                RepetitionLevel::Boot => (*run, *boot, 0),
                _ => (*run, *boot, *iteration),
            };
            groups.entry(key).or_default().extend(values);
        }
        groups.into_iter().map(|(key, values)| Ok((key, median(&values)?))).collect()
    };
    let cells = cells.into_iter().map(|(weight, cell)| Ok((weight, middle(cell)?)));
    let cells = cells.collect::<Result<Vec<_>, StatsError>>().map_err(|error| error.to_string())?;
    Ok(ContrastUnits { cells, level, one_boot })
}

impl ContrastUnits {
    /// The contrast of every block that all cells have, where blocks were complete and shuffled.
    fn contrasts_by_block(&self, side: &ComparisonSide) -> Vec<f64> {
        let Some((_, first)) = self.cells.first() else { return Vec::new() };
        let shuffled =
            |run: usize| side.runs.get(run).is_some_and(|run| run.manifest.plan.has_complete_blocks());
        let of_block = |key: &(usize, u32, u32)| {
            let parts = self.cells.iter().map(|(weight, cell)| Some(weight * cell.get(key)?));
            parts.sum::<Option<f64>>()
        };
        first
            .keys()
            .filter(|key| self.level != RepetitionLevel::Iteration || shuffled(key.0))
            .filter_map(of_block)
            .collect()
    }

    fn choose_scale(mut self) -> (Self, ChangeScale) {
        let positive = self.cells.iter().all(|(_, cell)| cell.values().all(|value| *value > 0.0));
        if positive {
            self.cells
                .iter_mut()
                .flat_map(|(_, cell)| cell.values_mut())
                .for_each(|value| *value = value.ln());
        }
        (self, if positive { ChangeScale::Ratio } else { ChangeScale::Absolute })
    }
}

fn effect_row(
    subject: &str,
    one: &InteractionSamples,
    contrast: &FactorContrast,
    side: &ComparisonSide,
    options: &AnalysisOptions,
) -> Result<EffectRow, String> {
    let (units, scale) = contrast_units(one, contrast, side)?.choose_scale();
    let blocks = units.contrasts_by_block(side);
    // Machines may differ by any factor: as soon as two have every cell, each is compared with itself.
    let fewest = if units.level == RepetitionLevel::Machine { 2 } else { FEWEST_BLOCKS };
    let within = blocks.len() >= fewest;
    let found = match blocks.len() {
        FEWEST_BLOCKS.. => contrast_within_blocks(&blocks, options),
        _ if within => contrast_by_t(&[(1.0, &blocks)], options),
        _ => contrast_of_means(&units, options),
    };
    let (value, wide, narrow, p) = found.map_err(|error| error.to_string())?;
    let on = |shift: f64| scale.change_of_shift(shift);
    let interval = |i: perflab_stats::ConfidenceInterval| ChangeInterval {
        low: on(i.low),
        high: on(i.high),
        level: i.level,
    };
    let change = MetricChange {
        scale,
        value: on(value),
        interval: wide.map(interval),
        narrow: narrow.map(interval),
        covers: IntervalMeaning::Change,
    };
    Ok(EffectRow {
        change: Some(change),
        p: Some(p),
        q: Some(p),
        level: units.level,
        blocks: within.then_some(blocks.len()),
        one_boot: units.one_boot,
        ..empty_row(subject, one, contrast)
    })
}

/// A row without an estimate.
fn empty_row(subject: &str, one: &InteractionSamples, contrast: &FactorContrast) -> EffectRow {
    let Metric { name, unit, direction, primary } = &one.metric;
    EffectRow {
        subject: subject.into(),
        metric: name.clone(),
        unit: unit.clone(),
        direction: *direction,
        primary: *primary,
        effect: contrast.effect.clone(),
        is_interaction: contrast.is_interaction,
        change: None,
        p: None,
        q: None,
        verdict: Verdict::Unclear,
        differs: false,
        level: RepetitionLevel::Iteration,
        blocks: None,
        one_boot: false,
        failures: None,
        basis: VerdictBasis::Values,
        imputed: None,
    }
}

/// The same estimate with the values that failed iterations would have had: against the candidate's cells, and for them. None
/// where nothing can be estimated.
fn impute_effect(
    subject: &str,
    one: &InteractionSamples,
    contrast: &FactorContrast,
    iterations: &FactorialIterations,
    side: &ComparisonSide,
    options: &AnalysisOptions,
) -> Option<[ImputedEffect; 2]> {
    let [bad, good] = bad_and_good_ends(one, one.metric.direction);
    let estimate = |in_baseline: f64, in_candidate: f64| {
        let mut filled = one.cells.clone();
        for (cell, weight) in &contrast.weights {
            let value = if *weight > 0.0 { in_candidate } else { in_baseline };
            let failed = iterations.failed_in(subject, cell);
            filled.entry(cell.clone()).or_default().extend(failed.map(|key| (key, vec![value])));
        }
        let filled = InteractionSamples { cells: filled, metric: one.metric.clone(), margin: one.margin };
        let row = effect_row(subject, &filled, contrast, side, options).ok()?;
        Some(ImputedEffect { change: row.change?, p: row.p? })
    };
    Some([estimate(good, bad)?, estimate(bad, good)?])
}

type ContrastEstimate =
    (f64, Option<perflab_stats::ConfidenceInterval>, Option<perflab_stats::ConfidenceInterval>, f64);

/// The pseudo-median over blocks, with the interval that inverts the signed-rank test.
fn contrast_within_blocks(blocks: &[f64], options: &AnalysisOptions) -> Result<ContrastEstimate, StatsError> {
    let none = vec![0.0; blocks.len()];
    let averages = WalshAverages::absolute(&none, blocks)?;
    let (wide, narrow) =
        (averages.estimate(options.confidence)?, averages.estimate(options.narrow_confidence())?);
    Ok((wide.value, wide.interval, narrow.interval, signed_rank(&none, blocks)?.p))
}

/// The contrast of the cells' means.
fn contrast_of_means(
    units: &ContrastUnits,
    options: &AnalysisOptions,
) -> Result<ContrastEstimate, StatsError> {
    let cells: Vec<(f64, Vec<f64>)> =
        units.cells.iter().map(|(weight, cell)| (*weight, cell.values().copied().collect())).collect();
    let weighted: Vec<(f64, &[f64])> =
        cells.iter().map(|(weight, values)| (*weight, values.as_slice())).collect();
    contrast_by_t(&weighted, options)
}

/// A contrast of means with its interval by t.
fn contrast_by_t(
    weighted: &[(f64, &[f64])],
    options: &AnalysisOptions,
) -> Result<ContrastEstimate, StatsError> {
    let found = mean_contrast(weighted)?;
    let (wide, narrow) = (found.interval(options.confidence)?, found.interval(options.narrow_confidence())?);
    Ok((found.difference, Some(wide), Some(narrow), found.p))
}

/// Adjusts and judges each family; gives the p-values of the primary one, and of the other, ascending.
fn set_effect_verdicts(
    rows: &mut [EffectRow],
    found: &IndexMap<(String, String), InteractionSamples>,
    options: &AnalysisOptions,
) -> [Vec<f64>; 2] {
    [true, false].map(|primary| {
        let belongs = |row: &&mut EffectRow| row.primary == primary && row.p.is_some();
        let mut family: Vec<&mut EffectRow> = rows.iter_mut().filter(belongs).collect();
        let mut p_values: Vec<f64> = family.iter().filter_map(|row| row.p).collect();
        let q_values = benjamini_hochberg(&p_values).unwrap_or_default();
        for (row, q) in family.iter_mut().zip(q_values) {
            row.q = Some(q);
            let margin = found.get(&(row.subject.clone(), row.metric.clone())).map_or(0.0, |one| one.margin);
            set_effect_verdict(row, margin, options);
        }
        p_values.sort_unstable_by(f64::total_cmp);
        p_values
    })
}

fn set_effect_verdict(row: &mut EffectRow, margin: f64, options: &AnalysisOptions) {
    let Some(change) = row.change.filter(|_| !row.one_boot) else { return };
    if is_within_ratio(&change, margin) {
        row.verdict = Verdict::Same;
        return;
    }
    row.differs = change.excludes_none() && row.q.is_some_and(|q| options.is_significant(q));
    if row.differs && !row.is_interaction {
        row.verdict = match (row.direction, change.value > 0.0) {
            (Direction::Higher, true) | (Direction::Lower, false) => Verdict::Better,
            (Direction::Higher, false) | (Direction::Lower, true) => Verdict::Worse,
            (Direction::Neither, _) => Verdict::Unclear,
        };
    }
}

fn describe_interaction_methods(rows: &[EffectRow]) -> Vec<MethodDescription> {
    let mut notes = vec![MethodDescription::EffectContrasts];
    let has = |is_so: fn(&EffectRow) -> bool| rows.iter().any(is_so);
    let has_few = |row: &EffectRow| row.blocks.is_some_and(|blocks| blocks < FEWEST_BLOCKS);
    notes.extend(
        rows.iter()
            .any(|row| row.blocks.is_some() && !has_few(row))
            .then_some(MethodDescription::EffectsWithinBlocks),
    );
    notes.extend(rows.iter().any(has_few).then_some(MethodDescription::EffectsWithinMachines));
    notes.extend(
        has(|row| row.blocks.is_none() && row.change.is_some()).then_some(MethodDescription::EffectsByMeans),
    );
    notes.extend(has(|row| row.one_boot).then_some(MethodDescription::EffectsWithoutBoots));
    notes
}
