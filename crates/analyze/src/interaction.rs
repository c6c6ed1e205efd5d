//! Two factors at once: the effect of each averaged over the other, and their interaction, each with its interval.
//!
//! On logarithms where all values are above zero, so effects are ratios, and an interaction is a ratio of ratios: by
//! how much the effect of one factor differs under the other. Weights of an effect: + 1/J and - 1/J over the J levels
//! of the other factor; of an interaction: + - - +. Every cell must have been measured; where blocks are complete,
//! comparison is within them.

use std::collections::BTreeMap;

use indexmap::{IndexMap, IndexSet};
use perflab_model::{Direction, RunRecord, Sample, Unit};
use perflab_stats::{StatsError, WalshAverages, benjamini_hochberg, mean_contrast, median, signed_rank};
use serde::Serialize;

use crate::compare::change::{ChangeInterval, ChangeScale, IntervalMeaning, MetricChange, RepetitionLevel};
use crate::compare::comparison::Verdict;
use crate::compare::pipeline::factor_levels;
use crate::method_description::MethodDescription;
use crate::{AnalysisOptions, AnalyzeError, ComparisonSide};

/// Fewest blocks (or boots) that every cell must share to be compared within them.
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

/// One effect or interaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectRow {
    /// The case without the two factors.
    pub subject: String,
    /// The metric.
    pub metric: String,
    /// Unit of its values.
    pub unit: Unit,
    /// Which way is good.
    pub direction: Direction,
    /// Whether the metric decides or explains.
    pub primary: bool,
    /// `guest: new against old`, or `host × guest: new, new`.
    pub effect: String,
    /// Whether it is an interaction.
    pub is_interaction: bool,
    /// Its size.
    pub change: MetricChange,
    /// Two-sided p-value of none.
    pub p: f64,
    /// The same, adjusted over all rows of the family.
    pub q: f64,
    /// For an effect as ever; for an interaction *same* means none that matters, and anything else is *unclear* unless
    /// `differs` says that it is there.
    pub verdict: Verdict,
    /// The interval excludes none, and q is small.
    pub differs: bool,
    /// What was compared.
    pub level: RepetitionLevel,
    /// Blocks or boots that all cells share; absent where the cells were compared by their means.
    pub blocks: Option<usize>,
    /// Cells were measured in different boots which do not repeat: no verdict.
    pub one_boot: bool,
}

/// Values of one cell by unit: (run, boot, iteration) or (run, boot).
type FactorialCell = BTreeMap<(usize, u32, u32), Vec<f64>>;

struct InteractionSamples<'a> {
    sample: &'a Sample,
    margin: f64,
    cells: IndexMap<(String, String), FactorialCell>,
}

/// One contrast to be estimated.
struct FactorContrast {
    effect: String,
    is_interaction: bool,
    weights: Vec<((String, String), f64)>,
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
    let [first, second] = [factor_levels(side, factors[0])?, factor_levels(side, factors[1])?];
    let mut found: IndexMap<(String, String), InteractionSamples<'_>> = IndexMap::new();
    for (number, run) in side.runs.iter().enumerate() {
        collect_factorial_samples(number, run, factors, options, &mut found);
    }
    if found.is_empty() {
        let filter = options.metrics.join(", ");
        return Err(AnalyzeError::NoSamples { side: side.name.clone(), filter, known: Vec::new() });
    }
    let contrasts = factor_contrasts(factors, &first, &second);
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    for ((subject, metric), one) in &found {
        for contrast in &contrasts {
            match effect_row(subject, one, contrast, side, options) {
                Ok(found) => rows.push(found),
                Err(reason) => left_out.push(format!("{subject}, {metric}, {}: {reason}", contrast.effect)),
            }
        }
    }
    set_effect_verdicts(&mut rows, &found, options);
    Ok(InteractionTable {
        side: side.name.clone(),
        factors: factors.map(str::to_owned),
        confidence: options.confidence,
        notes: describe_interaction_methods(&rows),
        rows,
        left_out,
    })
}

fn collect_factorial_samples<'a>(
    number: usize,
    run: &'a RunRecord,
    [a, b]: [&str; 2],
    options: &AnalysisOptions,
    found: &mut IndexMap<(String, String), InteractionSamples<'a>>,
) {
    let plan = &run.manifest.plan;
    for sample in
        run.samples.iter().filter(|sample| options.includes_metric(sample) && sample.value.is_finite())
    {
        let Some(case) = plan.case(sample.case).filter(|case| options.includes_workload(&case.workload))
        else {
            continue;
        };
        let (Some(first), Some(second)) = (case.levels.get(a), case.levels.get(b)) else { continue };
        let others = case.levels.iter().filter(|(name, _)| *name != a && *name != b);
        let subject =
            others.fold(case.label_without_levels(), |text, (name, level)| format!("{text} {name}={level}"));
        let one =
            found.entry((subject, String::from(&sample.metric))).or_insert_with(|| InteractionSamples {
                sample,
                margin: plan.margins.get(sample.metric.as_str()).copied().unwrap_or(options.default_margin),
                cells: IndexMap::new(),
            });
        let cell = one.cells.entry((first.clone(), second.clone())).or_default();
        cell.entry((number, sample.boot, sample.iteration)).or_default().push(sample.value);
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

/// Value by block (run, boot, iteration) or by boot (run, boot, 0).
type MediansByUnit = BTreeMap<(usize, u32, u32), f64>;

/// The values that a contrast is made of.
struct ContrastUnits {
    /// Cell by cell: value by block or boot.
    cells: Vec<(f64, MediansByUnit)>,
    level: RepetitionLevel,
    one_boot: bool,
}

fn contrast_units(
    one: &InteractionSamples<'_>,
    contrast: &FactorContrast,
    side: &ComparisonSide,
) -> Result<ContrastUnits, String> {
    let mut cells = Vec::new();
    let mut boots: Vec<IndexSet<(String, u32)>> = Vec::new();
    for (key, weight) in &contrast.weights {
        let cell = one.cells.get(key).ok_or_else(|| format!("{} with {} has no value", key.0, key.1))?;
        boots.push(cell.keys().filter_map(|(run, boot, _)| boot_key(side, *run, *boot)).collect());
        cells.push((*weight, cell));
    }
    let repeats = boots.iter().all(|boots| boots.len() >= 2);
    let one_boot = !repeats && boots.windows(2).any(|pair| pair.first() != pair.last());
    let middle = |cell: &FactorialCell| -> Result<MediansByUnit, StatsError> {
        let mut groups: BTreeMap<(usize, u32, u32), Vec<f64>> = BTreeMap::new();
        for ((run, boot, iteration), values) in cell {
            let key = (*run, *boot, if repeats { 0 } else { *iteration });
            groups.entry(key).or_default().extend(values);
        }
        groups.into_iter().map(|(key, values)| Ok((key, median(&values)?))).collect()
    };
    let cells = cells.into_iter().map(|(weight, cell)| Ok((weight, middle(cell)?)));
    let cells = cells.collect::<Result<Vec<_>, StatsError>>().map_err(|error| error.to_string())?;
    Ok(ContrastUnits {
        cells,
        level: if repeats { RepetitionLevel::Boot } else { RepetitionLevel::Iteration },
        one_boot,
    })
}

fn boot_key(side: &ComparisonSide, run: usize, boot: u32) -> Option<(String, u32)> {
    side.runs.get(run).map(|run| run.manifest.boot_key(boot, false))
}

impl ContrastUnits {
    /// The contrast of every block that all cells have, where blocks were complete and shuffled.
    fn contrasts_by_block(&self, side: &ComparisonSide) -> Vec<f64> {
        let Some((_, first)) = self.cells.first() else { return Vec::new() };
        let shuffled =
            |run: usize| side.runs.get(run).is_some_and(|run| run.manifest.plan.order == "randomised");
        let of_block = |key: &(usize, u32, u32)| {
            let parts = self.cells.iter().map(|(weight, cell)| Some(weight * cell.get(key)?));
            parts.sum::<Option<f64>>()
        };
        first
            .keys()
            .filter(|key| self.level == RepetitionLevel::Boot || shuffled(key.0))
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
    one: &InteractionSamples<'_>,
    contrast: &FactorContrast,
    side: &ComparisonSide,
    options: &AnalysisOptions,
) -> Result<EffectRow, String> {
    let (units, scale) = contrast_units(one, contrast, side)?.choose_scale();
    let blocks = units.contrasts_by_block(side);
    let within = blocks.len() >= FEWEST_BLOCKS;
    let found =
        if within { contrast_within_blocks(&blocks, options) } else { contrast_of_means(&units, options) };
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
    let Sample { metric, unit, direction, primary, .. } = one.sample;
    Ok(EffectRow {
        subject: subject.into(),
        metric: metric.into(),
        unit: unit.clone(),
        direction: *direction,
        primary: *primary,
        effect: contrast.effect.clone(),
        is_interaction: contrast.is_interaction,
        change,
        p,
        q: p,
        verdict: Verdict::Unclear,
        differs: false,
        level: units.level,
        blocks: within.then_some(blocks.len()),
        one_boot: units.one_boot,
    })
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
    let found = mean_contrast(&weighted)?;
    let (wide, narrow) = (found.interval(options.confidence)?, found.interval(options.narrow_confidence())?);
    Ok((found.difference, Some(wide), Some(narrow), found.p))
}

fn set_effect_verdicts(
    rows: &mut [EffectRow],
    found: &IndexMap<(String, String), InteractionSamples<'_>>,
    options: &AnalysisOptions,
) {
    for primary in [true, false] {
        let mut family: Vec<&mut EffectRow> = rows.iter_mut().filter(|row| row.primary == primary).collect();
        let p_values: Vec<f64> = family.iter().map(|row| row.p).collect();
        let q_values = benjamini_hochberg(&p_values).unwrap_or_default();
        for (row, q) in family.iter_mut().zip(q_values) {
            row.q = q;
            let margin = found.get(&(row.subject.clone(), row.metric.clone())).map_or(0.0, |one| one.margin);
            set_effect_verdict(row, margin, options);
        }
    }
}

fn set_effect_verdict(row: &mut EffectRow, margin: f64, options: &AnalysisOptions) {
    let inside =
        |i: ChangeInterval| row.change.scale == ChangeScale::Ratio && -margin < i.low && i.high < margin;
    if row.one_boot {
        return;
    }
    if row.change.narrow.is_some_and(inside) {
        row.verdict = Verdict::Same;
        return;
    }
    let excludes = row.change.interval.is_some_and(|i| i.low > 0.0 || i.high < 0.0);
    row.differs = excludes && options.is_significant(row.q);
    if row.differs && !row.is_interaction {
        row.verdict = match (row.direction, row.change.value > 0.0) {
            (Direction::Higher, true) | (Direction::Lower, false) => Verdict::Better,
            (Direction::Higher, false) | (Direction::Lower, true) => Verdict::Worse,
            (Direction::Neither, _) => Verdict::Unclear,
        };
    }
}

impl EffectRow {
    /// The word that people should read.
    #[must_use]
    pub fn verdict_word(&self) -> &'static str {
        match (self.verdict, self.is_interaction, self.differs) {
            (Verdict::Same, true, _) => "none",
            (_, true, true) => "interacts",
            (Verdict::Unclear, false, true) => "changed",
            (verdict, ..) => verdict.word(),
        }
    }
}

fn describe_interaction_methods(rows: &[EffectRow]) -> Vec<MethodDescription> {
    let mut notes = vec![MethodDescription::EffectContrasts];
    let has = |is_so: fn(&EffectRow) -> bool| rows.iter().any(is_so);
    notes.extend(has(|row| row.blocks.is_some()).then_some(MethodDescription::EffectsWithinBlocks));
    notes.extend(has(|row| row.blocks.is_none()).then_some(MethodDescription::EffectsByMeans));
    notes.extend(has(|row| row.one_boot).then_some(MethodDescription::EffectsWithoutBoots));
    notes
}
