//! The shares of several levels of a factor, or of several runs, beside each other, and by how much they differ.
//!
//! A share of every iteration is a sample, so differences are estimated, paired by boot and corrected for many rows as in every
//! comparison ([`compare_levels`], [`compare_sides`]); they are differences of shares, in points, not ratios.

use std::collections::{BTreeMap, HashSet};

use indexmap::{IndexMap, IndexSet};
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::{Case, Direction, Nanos, RunRecord, Sample, Unit};
use serde::Serialize;

use crate::compare::change::{EstimationMethod, IntervalMeaning};
use crate::compare::comparison::{Comparison, VerdictRow};
use crate::compare::options::{AnalysisOptions, ComparisonSide};
use crate::compare::pipeline::{compare_levels, compare_sides};
use crate::error::AnalyzeError;
use crate::flame::category_rules::CategoryRules;
use crate::flame::category_shares::{
    CategoryShareOptions, CategoryShareRow, CategoryShares, ShareEstimate, category_shares, iteration_shares,
};
use crate::flame::profiled_run::ProfiledRun;

/// What a level's shares are computed from.
#[derive(Debug, Clone)]
pub struct ShareLevelData<'a> {
    /// The level's name, or the run's.
    pub name: String,
    /// The run, the number of the case in it, and that case's profile.
    pub runs: Vec<(&'a RunRecord, u32, ProfiledRun<'a>)>,
    /// Which kernels they ran on, each once.
    pub kernels: Vec<String>,
    /// Operations that one iteration does, by the operation's name.
    pub counts: BTreeMap<String, f64>,
}

/// What a number of [`ComparedShareRow`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShareMeasure {
    /// of all samples
    OfAll,
    /// of the operation's samples
    OfOperation,
    /// time for each operation, in the profile's unit
    PerOperation,
}

impl ShareMeasure {
    const ALL: [ShareMeasure; 3] =
        [ShareMeasure::OfAll, ShareMeasure::OfOperation, ShareMeasure::PerOperation];

    fn word(self) -> &'static str {
        match self {
            ShareMeasure::OfAll => "of-all",
            ShareMeasure::OfOperation => "of-operation",
            ShareMeasure::PerOperation => "per-operation",
        }
    }

    /// What a row says, in unit 1 or that of the profile.
    fn estimate(self, row: &CategoryShareRow) -> Option<(ShareEstimate, &str)> {
        match self {
            ShareMeasure::OfAll => Some((row.of_all.clone(), "1")),
            ShareMeasure::OfOperation => row.category.is_some().then(|| (row.of_operation.clone(), "1")),
            ShareMeasure::PerOperation => {
                let cost = row.per_operation.as_ref()?;
                Some((ShareEstimate { value: Some(cost.value), interval: cost.interval }, &cost.unit))
            }
        }
    }
}

/// One level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShareLevel {
    /// its name
    pub name: String,
    /// which kernels it ran on
    pub kernels: Vec<String>,
    /// the event that was sampled, and what it cannot see
    pub event: String,
    /// what that event cannot see
    pub hides: Option<String>,
    /// its shares
    pub shares: CategoryShares,
}

/// How a level differs from the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CategoryDifference {
    /// the level's value less that of the first, in the row's unit
    pub value: f64,
    /// its confidence interval
    pub interval: Option<(f64, f64)>,
    /// what the interval is of
    pub covers: IntervalMeaning,
    /// p-value adjusted for all rows of the family (Benjamini and Hochberg): whole operations of all samples, or the rest
    pub q: Option<f64>,
    /// whether it is more than chance
    pub differs: bool,
    /// how it was estimated
    pub method: Option<EstimationMethod>,
}

/// A category at every level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedShareRow {
    /// `allocation`
    pub operation: String,
    /// `slow`; `None` for the whole operation
    pub category: Option<String>,
    /// what its numbers are
    pub measure: ShareMeasure,
    /// `1` for shares, else the profile's unit
    pub unit: String,
    /// by level
    pub levels: Vec<ShareEstimate>,
    /// by level but the first
    pub differences: Vec<Option<CategoryDifference>>,
}

/// Levels beside each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CategoryComparison {
    /// the factor; `None` where runs are compared
    pub by: Option<String>,
    /// the confidence of all intervals
    pub confidence: f64,
    /// the first is what others are compared with
    pub levels: Vec<ShareLevel>,
    /// shares of all samples first, then of the operation's, then times
    pub rows: Vec<ComparedShareRow>,
}

/// Why levels cannot be held against each other.
#[derive(Debug, thiserror::Error)]
pub enum CategoryComparisonError {
    /// nothing was sampled
    #[error("{level} has no sample that was kept")]
    NoSamples {
        /// where
        level: String,
    },
    /// the comparison refuses
    #[error(transparent)]
    Compare(#[from] AnalyzeError),
}

impl Classify for CategoryComparisonError {
    fn class(&self) -> ErrorClass {
        match self {
            CategoryComparisonError::NoSamples { .. } => ErrorClass::Usage,
            CategoryComparisonError::Compare(error) => error.class(),
        }
    }
}

/// Operation and category.
type RowKey = (String, Option<String>);

/// Compares the levels of a factor, or runs, with the first of them.
///
/// # Errors
/// A level without samples; runs that cannot be compared.
pub fn compare_categories(
    by: Option<&str>,
    levels: &[ShareLevelData<'_>],
    rules: &CategoryRules,
    options: &CategoryShareOptions,
) -> Result<CategoryComparison, CategoryComparisonError> {
    let analysis = AnalysisOptions { differences: true, across: true, ..AnalysisOptions::default() };
    let compared: Vec<ShareLevel> = levels.iter().map(|level| share_level(level, rules, options)).collect();
    if let Some(empty) = compared.iter().find(|level| level.shares.all.samples == 0) {
        return Err(CategoryComparisonError::NoSamples { level: empty.name.clone() });
    }
    let keys = row_keys(&compared);
    let comparison = match (by, compared.len()) {
        (_, 0 | 1) => None,
        (Some(factor), _) => {
            let runs = levels.iter().flat_map(|level| level.runs.iter().map(move |run| (level, run)));
            let side = ComparisonSide {
                name: factor.into(),
                runs: sampled_records(runs, &keys, (rules, options), by),
            };
            let baseline = levels.first().map(|level| level.name.clone());
            Some(compare_levels(&side, factor, &AnalysisOptions { baseline, ..analysis.clone() })?)
        }
        (None, _) => {
            let side = |level: &ShareLevelData<'_>| ComparisonSide {
                name: level.name.clone(),
                runs: sampled_records(level.runs.iter().map(|run| (level, run)), &keys, (rules, options), by),
            };
            let sides: Vec<ComparisonSide> = levels.iter().map(side).collect();
            let Some((first, others)) = sides.split_first() else { unreachable!("there are two") };
            Some(compare_sides(first, others, &analysis)?)
        }
    };
    let row = |measure| {
        let (compared, comparison) = (&compared, comparison.as_ref());
        keys.iter().filter_map(move |key| compared_row(key, measure, compared, comparison))
    };
    let mut rows: Vec<ComparedShareRow> = ShareMeasure::ALL.into_iter().flat_map(row).collect();
    rows.retain(|row| row.levels.iter().any(|level| level.value.is_some()));
    Ok(CategoryComparison {
        by: by.map(str::to_owned),
        confidence: analysis.confidence,
        levels: compared.into_iter().map(without_empty_rows).collect(),
        rows,
    })
}

fn share_level(
    level: &ShareLevelData<'_>,
    rules: &CategoryRules,
    options: &CategoryShareOptions,
) -> ShareLevel {
    let runs: Vec<ProfiledRun<'_>> = level.runs.iter().map(|(_, _, run)| run.clone()).collect();
    let options = level_options(level, options);
    let mut events: IndexSet<&str> = IndexSet::new();
    events.extend(runs.iter().flat_map(ProfiledRun::pieces).map(|piece| piece.summary.event.as_str()));
    let hides = runs.iter().flat_map(ProfiledRun::pieces).find_map(|piece| piece.summary.hides.clone());
    ShareLevel {
        name: level.name.clone(),
        kernels: level.kernels.clone(),
        event: events.into_iter().collect::<Vec<_>>().join(" and "),
        hides,
        shares: category_shares(&runs, rules, &options),
    }
}

fn level_options(level: &ShareLevelData<'_>, options: &CategoryShareOptions) -> CategoryShareOptions {
    CategoryShareOptions { counts: level.counts.clone(), empty_rows: true, ..options.clone() }
}

fn without_empty_rows(mut level: ShareLevel) -> ShareLevel {
    let is_kept = |row: &CategoryShareRow| row.category.is_none() || has_samples(row);
    level.shares.rows.retain(is_kept);
    level.shares.together.retain(is_kept);
    level
}

fn has_samples(row: &CategoryShareRow) -> bool {
    row.amount.samples > 0 || row.touching.is_some()
}

fn row_key(row: &CategoryShareRow) -> RowKey {
    (row.operation.clone(), row.category.clone())
}

/// The rows that any level has samples in, in the order of the rules.
fn row_keys(levels: &[ShareLevel]) -> IndexSet<RowKey> {
    let rows = || levels.iter().flat_map(|level| level.shares.all_rows());
    let used: IndexSet<RowKey> =
        rows().filter(|row| row.category.is_none() || has_samples(row)).map(row_key).collect();
    rows().map(row_key).collect::<IndexSet<_>>().into_iter().filter(|key| used.contains(key)).collect()
}

/// The runs, each once, with the shares of their iterations in the place of their samples.
fn sampled_records<'a>(
    runs: impl Iterator<Item = (&'a ShareLevelData<'a>, &'a (&'a RunRecord, u32, ProfiledRun<'a>))>,
    keys: &IndexSet<RowKey>,
    (rules, options): (&CategoryRules, &CategoryShareOptions),
    by: Option<&str>,
) -> Vec<RunRecord> {
    let mut records: IndexMap<&str, RunRecord> = IndexMap::new();
    let mut chosen: HashSet<(&str, u32)> = HashSet::new();
    for (level, (record, case, profiled)) in runs {
        let samples = iteration_shares(profiled, rules, &level_options(level, options))
            .into_iter()
            .flat_map(|(slot, rows)| iteration_samples(record, *case, slot, &rows, keys))
            .collect::<Vec<_>>();
        let empty = || RunRecord { samples: Vec::new(), ..(*record).clone() };
        let sampled = records.entry(&record.manifest.id).or_insert_with(empty);
        sampled.samples.extend(samples);
        chosen.insert((&record.manifest.id, *case));
    }
    for (id, record) in &mut records {
        for (number, case) in (0..).zip(&mut record.manifest.plan.cases) {
            name_by_factor(case, by.filter(|_| chosen.contains(&(id, number))));
        }
    }
    records.into_values().collect()
}

/// Whoever compares has chosen the cases: nothing sets them apart but the factor.
fn name_by_factor(case: &mut Case, by: Option<&str>) {
    case.workload = "profile".into();
    case.point.clear();
    case.levels.retain(|factor, _| by == Some(factor));
}

/// The shares of an iteration as samples. A category that no sample is in has a share of 0.
fn iteration_samples(
    record: &RunRecord,
    case: u32,
    slot: u32,
    rows: &[CategoryShareRow],
    keys: &IndexSet<RowKey>,
) -> Vec<Sample> {
    let planned = record.manifest.plan.slots.get(slot as usize);
    let iteration = record.iterations.iter().find(|iteration| iteration.slot == slot);
    let (start, end) = iteration.map_or((Nanos(0), Nanos(0)), |iteration| (iteration.start, iteration.end));
    let sample = |key: &RowKey, measure: ShareMeasure| {
        let found = rows.iter().find(|row| row_key(row) == *key).map(|row| measure.estimate(row));
        let (value, unit) = match found {
            Some(found) => found.and_then(|(share, unit)| Some((share.value?, unit)))?,
            None if measure == ShareMeasure::OfAll => (0.0, "1"),
            None => return None,
        };
        Some(Sample {
            boot: planned.map_or(0, |slot| slot.boot),
            target: None,
            case,
            iteration: planned.map_or(slot, |slot| slot.iteration),
            metric: metric_name(key, measure).into(),
            value,
            unit: Unit::new(unit),
            direction: Direction::Neither,
            primary: is_deciding(key, measure),
            start,
            end,
        })
    };
    let of_measure = |measure| keys.iter().filter_map(move |key| sample(key, measure)).collect::<Vec<_>>();
    ShareMeasure::ALL.into_iter().flat_map(of_measure).collect()
}

/// Whole operations as shares of all samples are tested as a family of their own: with few repetitions, dozens of parts would drown
/// them.
fn is_deciding((_, category): &RowKey, measure: ShareMeasure) -> bool {
    category.is_none() && measure == ShareMeasure::OfAll
}

fn metric_name((operation, category): &RowKey, measure: ShareMeasure) -> String {
    format!("{} {operation}/{}", measure.word(), category.as_deref().unwrap_or("all"))
}

/// A row over all levels; `None` where none of them has such a number.
fn compared_row(
    key: &RowKey,
    measure: ShareMeasure,
    levels: &[ShareLevel],
    comparison: Option<&Comparison>,
) -> Option<ComparedShareRow> {
    let found = |level: &ShareLevel| {
        let row = level.shares.all_rows().find(|row| row_key(row) == *key)?;
        measure.estimate(row).map(|(share, unit)| (share, unit.to_owned()))
    };
    let found: Vec<Option<(ShareEstimate, String)>> = levels.iter().map(found).collect();
    let unit = found.iter().flatten().map(|(_, unit)| unit.clone()).next()?;
    let metric = metric_name(key, measure);
    let difference = |level: &ShareLevel| {
        let rows = comparison.into_iter().flat_map(|comparison| &comparison.rows);
        let row = rows.into_iter().find(|row| row.metric == metric && row.candidate_name == level.name)?;
        category_difference(row)
    };
    Some(ComparedShareRow {
        operation: key.0.clone(),
        category: key.1.clone(),
        measure,
        unit,
        levels: found.into_iter().map(|found| found.map(|(share, _)| share).unwrap_or_default()).collect(),
        differences: levels.iter().skip(1).map(difference).collect(),
    })
}

/// The rate of false discoveries among differences.
const FALSE_DISCOVERY_RATE: f64 = 0.05;

fn category_difference(row: &VerdictRow) -> Option<CategoryDifference> {
    let change = row.change?;
    let is_bounded = change.interval.is_some_and(|interval| interval.low > 0.0 || interval.high < 0.0);
    Some(CategoryDifference {
        value: change.value,
        interval: change.interval.map(|interval| (interval.low, interval.high)),
        covers: change.covers,
        q: row.q,
        differs: is_bounded && row.q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE),
        method: row.method,
    })
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::RunBuilder;
    use perflab_model::profile::{Profile, ProfileSummary, StackTreeBuilder};
    use perflab_model::{FrameKind, Slot, StackFrame, StackSample};

    use super::*;

    /// So many of 1000 samples allocate, in each iteration: slot, and samples.
    fn profile_of_allocations(function: &str, iterations: &[(u32, u64)]) -> Profile {
        let mut profile = Profile::default();
        let mut builder = StackTreeBuilder::default();
        for (slot, allocating) in iterations {
            let comm = builder.intern_comm("hackbench");
            let sample = |builder: &mut StackTreeBuilder, name: &str, count: u64| {
                let frame = builder.intern_frame(StackFrame::new(name, FrameKind::Kernel));
                let leaf = Some(builder.intern_node(None, frame));
                StackSample { at: None, cpu: None, pid: None, tid: None, comm, leaf, count, weight: count }
            };
            let samples = vec![
                sample(&mut builder, function, *allocating),
                sample(&mut builder, "schedule", 1000 - allocating),
            ];
            profile.add_batch(builder.take_batch(*slot, samples));
            profile.add_summary(ProfileSummary { slot: *slot, ..ProfileSummary::default() });
        }
        profile
    }

    /// Two iterations in each of `boots` boots a level; levels never share a boot.
    fn run_of_two_kernels(boots: u32) -> RunRecord {
        let levels = vec!["slub", "slob"];
        let builder = RunBuilder::new("01A").with(|run| run.factors = vec![("kernel", levels)]);
        let mut record = builder.build_run(|_| Some(1.0));
        let slots = (0..boots).flat_map(|boot| {
            (0..4).map(move |at| Slot {
                case: at / 2,
                iteration: at % 2,
                block: at % 2,
                warmup: false,
                boot: 2 * boot + at / 2,
                layout: None,
            })
        });
        record.manifest.plan.slots = slots.collect();
        record.iterations.clear();
        record
    }

    /// Slots of a case, with what each of its iterations shows: what its boot does, and 10 more or less.
    fn iterations_of(case: u32, by_boot: &[u64]) -> Vec<(u32, u64)> {
        let of_boot = |(boot, share): (u32, &u64)| {
            let first = 4 * boot + 2 * case;
            [(first, share - 10), (first + 1, share + 10)]
        };
        (0..).zip(by_boot).flat_map(of_boot).collect()
    }

    fn compare_kernels(slub: &[u64], slob: &[u64]) -> CategoryComparison {
        let record = run_of_two_kernels(u32::try_from(slub.len()).unwrap());
        let slub = profile_of_allocations("kmem_cache_alloc", &iterations_of(0, slub));
        let slob = profile_of_allocations("__kmalloc", &iterations_of(1, slob));
        let level = |name: &str, case, profile| ShareLevelData {
            name: name.into(),
            runs: vec![(&record, case, ProfiledRun::from_manifest(profile, &record.manifest))],
            kernels: Vec::new(),
            counts: BTreeMap::new(),
        };
        let rules = CategoryRules::load_shipped("slab").unwrap().unwrap();
        let levels = [level("slub", 0, &slub), level("slob", 1, &slob)];
        compare_categories(Some("kernel"), &levels, &rules, &CategoryShareOptions::default()).unwrap()
    }

    fn whole_allocation(found: &CategoryComparison) -> &ComparedShareRow {
        let is_whole = |row: &&ComparedShareRow| row.operation == "allocation" && row.category.is_none();
        found.rows.iter().find(is_whole).unwrap()
    }

    #[test]
    fn boots_are_what_intervals_and_differences_are_over() {
        let found = compare_kernels(&[250, 252, 248, 251, 249], &[690, 688, 692, 689, 691]);
        let levels: Vec<_> = found.levels.iter().map(|level| level.shares.repetitions.to_string()).collect();
        assert_eq!(levels, ["5 boots", "5 boots"]);
        let row = whole_allocation(&found);
        assert_eq!(row.levels.iter().map(|level| level.value).collect::<Vec<_>>(), [Some(0.25), Some(0.69)]);
        // Boots of 0.248 to 0.252: sd 0.00158, t(4) = 2.776, so ± 0.00196. Iterations would give ± 0.0076.
        let (low, high) = row.levels[0].interval.unwrap();
        assert!((high - low - 2.0 * 0.001_963).abs() < 1e-5, "{low} {high}");
        let difference = row.differences[0].as_ref().unwrap();
        assert!((difference.value - 0.44).abs() < 1e-9 && difference.differs, "{difference:?}");
        let (low, high) = difference.interval.unwrap();
        assert!(0.43 < low && low < 0.44 && 0.44 < high && high < 0.45, "in points: {difference:?}");
        let method = difference.method.unwrap();
        assert_eq!((method.level.noun(), method.baseline, method.candidate), ("boots", 5, 5));
    }

    #[test]
    fn levels_whose_boots_vary_as_much_as_they_differ_do_not() {
        let found = compare_kernels(&[250, 290, 210, 270, 230], &[270, 230, 300, 250, 260]);
        let difference = whole_allocation(&found).differences[0].clone().unwrap();
        assert!(!difference.differs, "{difference:?}");
    }

    #[test]
    fn a_level_without_samples_is_named() {
        let record = run_of_two_kernels(1);
        let profile = Profile::default();
        let level = |name: &str| ShareLevelData {
            name: name.into(),
            runs: vec![(&record, 0, ProfiledRun::new(&profile))],
            kernels: Vec::new(),
            counts: BTreeMap::new(),
        };
        let rules = CategoryRules::load_shipped("slab").unwrap().unwrap();
        let options = CategoryShareOptions::default();
        let error = compare_categories(None, &[level("a"), level("b")], &rules, &options).unwrap_err();
        assert!(matches!(error, CategoryComparisonError::NoSamples { level } if level == "a"));
    }
}
