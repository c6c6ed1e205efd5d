//! Operations and categories as shares, each with its denominator and its interval.
//!
//! A sample is in one operation and one category, or in none. Intervals come from repetitions alone, of the highest level that
//! repeats: iterations of one load differ by several times the binomial error of one of them (measured: about six times).

use std::collections::BTreeMap;

use perflab_model::profile::{IterationProfile, Profile, SampleCounts};
use perflab_model::{NodeId, StackSample};
use perflab_stats::{ConfidenceInterval, mean_with_interval};
use serde::Serialize;

use crate::flame::call_tree::ProfileAmount;
use crate::flame::categories::{ProfileCategories, StackCategory, UNRECOGNISED, categorise_profile};
use crate::flame::category_rules::CategoryRules;
use crate::flame::profiled_run::{ProfiledRun, RepetitionCount, RepetitionUnits};

/// The confidence of intervals.
const CONFIDENCE: f64 = 0.95;

/// Names of functions without a rule that are listed.
const LISTED: usize = 20;

/// What to look at.
#[derive(Debug, Clone, Default)]
pub struct CategoryShareOptions {
    /// Only samples of this command.
    pub comm: Option<String>,
    /// Operations that one iteration does, by the operation's name: what a sample's time is divided by.
    pub counts: BTreeMap<String, f64>,
    /// Also rows of categories without samples, which others may have.
    pub empty_rows: bool,
}

/// A share, in every repetition.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ShareEstimate {
    /// over all iterations together, in [0, 1]; `None` where there is nothing to be a share of
    pub value: Option<f64>,
    /// confidence interval of the mean over repetitions: low, high; `None` with fewer than two
    pub interval: Option<(f64, f64)>,
}

/// A row of the partition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CategoryShareRow {
    /// `allocation`; `allocation and free` for both together
    pub operation: String,
    /// `slow`; `None` for the whole operation
    pub category: Option<String>,
    /// its samples
    pub amount: ProfileAmount,
    /// of all samples that were looked at
    pub of_all: ShareEstimate,
    /// of the operation's samples
    pub of_operation: ShareEstimate,
    /// of the operation's samples: those that pass the category anywhere, whatever they are counted as
    pub touching: Option<f64>,
    /// its time divided by the number of operations, in the profile's unit
    pub per_operation: Option<CostPerOperation>,
}

/// Time per operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostPerOperation {
    /// mean over repetitions, in the profile's unit
    pub value: f64,
    /// confidence interval of that mean
    pub interval: Option<(f64, f64)>,
    /// the unit
    pub unit: String,
}

/// How samples of the operations were recognised.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RuleCoverage {
    /// samples in an operation by the name of a function
    pub by_name: u64,
    /// samples in an operation by its place in the kernel's text
    pub by_window: u64,
    /// samples that sound as if a rule were missing
    pub undecided: u64,
    /// why the window was not used, if so
    pub no_window: Option<String>,
    /// functions without a rule: name and samples
    pub without_rule: Vec<(String, u64)>,
}

/// The whole answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CategoryShares {
    /// which table
    pub rules: String,
    /// what the kernel is: `SLUB`; several where runs differ
    pub variant: Option<String>,
    /// samples that were looked at: the denominator of `of_all`
    pub all: ProfileAmount,
    /// iterations that were looked at
    pub iterations: usize,
    /// what intervals are over
    pub repetitions: RepetitionCount,
    /// operations and their categories; all operations together first, where they are few
    pub rows: Vec<CategoryShareRow>,
    /// the categories of all operations together
    pub together: Vec<CategoryShareRow>,
    /// operations' samples that end in such a function: name and share of the operations' samples
    pub leaves: Vec<(String, ShareEstimate)>,
    /// what is next to the operations: name, share of all samples, inclusive
    pub beside: Vec<(String, ShareEstimate)>,
    /// how samples were recognised
    pub coverage: RuleCoverage,
    /// patterns that no function of the profile fits, for who writes a table
    pub unmatched: Vec<String>,
}

/// One iteration's sums.
#[derive(Debug, Clone, Default)]
struct CategoryTally {
    all: ProfileAmount,
    /// by operation and category
    cells: BTreeMap<(u8, u8), ProfileAmount>,
    /// samples of an operation that pass a category anywhere
    touching: BTreeMap<(u8, u8), u64>,
    leaves: BTreeMap<u8, u64>,
    beside: Vec<u64>,
    by_window: u64,
    undecided: u64,
}

/// Divides the samples of runs that repeat each other among the operations and categories of a table.
pub fn category_shares(
    runs: &[ProfiledRun<'_>],
    rules: &CategoryRules,
    options: &CategoryShareOptions,
) -> CategoryShares {
    let found: Vec<ProfileCategories> =
        runs.iter().map(|run| categorise_profile(run.profile, rules)).collect();
    let tallied = TalliedIterations::new(runs, &found, rules, options);
    let tallies = &tallied.tallies;
    let unit = runs.iter().flat_map(ProfiledRun::pieces).next();
    let unit = unit.map_or("", |piece| piece.summary.unit.0.as_str());
    let mut coverage = rule_coverage(runs, &found, options);
    let no_window = found.iter().find_map(|verdicts| verdicts.window.as_ref().err());
    coverage.no_window = no_window.filter(|_| rules.window.is_some()).cloned();
    coverage.by_window = saturating_sum(tallies.iter().map(|tally| tally.by_window));
    coverage.undecided = saturating_sum(tallies.iter().map(|tally| tally.undecided));
    let recognised = saturating_sum(tallies.iter().map(|tally| sum_cells(tally, |_| true).samples));
    coverage.by_name = recognised.saturating_sub(coverage.by_window);
    let (together, rows) = share_rows(&tallied, rules, options, unit);
    let mut variants: Vec<&str> = found.iter().filter_map(|verdicts| verdicts.variant.as_deref()).collect();
    variants.dedup();
    CategoryShares {
        rules: rules.name.clone(),
        variant: (!variants.is_empty()).then(|| variants.join(" and ")),
        all: sum_amounts(tallies.iter().map(|tally| tally.all)),
        iterations: tallies.len(),
        repetitions: tallied.units.count(),
        rows,
        together,
        leaves: leaf_shares(&tallied, rules),
        beside: beside_shares(&tallied, rules),
        coverage,
        unmatched: unmatched_patterns(runs, rules),
    }
}

impl CategoryShares {
    /// All rows, each operation with its categories behind it.
    pub fn all_rows(&self) -> impl Iterator<Item = &CategoryShareRow> {
        let (first, others) = self.rows.split_at(usize::from(!self.together.is_empty()).min(self.rows.len()));
        first.iter().chain(&self.together).chain(others)
    }
}

/// The rows of every iteration of a run that counts, each with its slot; those without samples, too.
pub(crate) fn iteration_shares(
    run: &ProfiledRun<'_>,
    rules: &CategoryRules,
    options: &CategoryShareOptions,
) -> Vec<(u32, Vec<CategoryShareRow>)> {
    let options = CategoryShareOptions { empty_rows: true, ..options.clone() };
    let found = [categorise_profile(run.profile, rules)];
    let of_piece = |piece: &IterationProfile| {
        let slot = piece.summary.slot;
        let alone = [ProfiledRun { slots: Some(vec![slot]), ..run.clone() }];
        let tallied = TalliedIterations::new(&alone, &found, rules, &options);
        let (together, rows) = share_rows(&tallied, rules, &options, piece.summary.unit.0.as_str());
        (slot, rows.into_iter().chain(together).collect())
    };
    run.pieces().map(of_piece).collect()
}

/// What became of the samples that shares are of.
pub fn profile_parts(runs: &[ProfiledRun<'_>]) -> SampleCounts {
    runs.iter().flat_map(ProfiledRun::pieces).fold(SampleCounts::default(), |mut sum, piece| {
        sum += piece.sample_counts();
        sum
    })
}

/// The sums of every iteration that counts, and which of them repeat each other.
struct TalliedIterations {
    tallies: Vec<CategoryTally>,
    units: RepetitionUnits,
}

impl TalliedIterations {
    fn new(
        runs: &[ProfiledRun<'_>],
        found: &[ProfileCategories],
        rules: &CategoryRules,
        options: &CategoryShareOptions,
    ) -> Self {
        let of_run = |(run, verdicts): (&ProfiledRun<'_>, &ProfileCategories)| {
            let tally = |piece| tally_piece(run.profile, piece, verdicts, rules, options);
            run.pieces().map(tally).collect::<Vec<_>>()
        };
        let tallies = runs.iter().zip(found).flat_map(of_run).collect();
        TalliedIterations { tallies, units: RepetitionUnits::from_runs(runs) }
    }

    /// The share of all iterations together, and the interval of the mean over repetitions.
    fn estimate_share(&self, of: impl Fn(&CategoryTally) -> (u64, u64)) -> ShareEstimate {
        let counts: Vec<(u64, u64)> = self.tallies.iter().map(of).collect();
        let part = saturating_sum(counts.iter().map(|(part, all)| if *all > 0 { *part } else { 0 }));
        let all = saturating_sum(counts.iter().map(|(_, all)| *all));
        let each = self.units.pooled_ratios(&counts);
        let interval = mean_interval(&each).map(|found| (found.low.max(0.0), found.high.min(1.0)));
        ShareEstimate { value: (all > 0).then(|| part as f64 / all as f64), interval }
    }
}

fn is_selected_sample(profile: &Profile, sample: &StackSample, options: &CategoryShareOptions) -> bool {
    options.comm.as_ref().is_none_or(|comm| profile.comm(sample.comm) == comm)
}

fn tally_piece(
    profile: &Profile,
    piece: &IterationProfile,
    verdicts: &ProfileCategories,
    rules: &CategoryRules,
    options: &CategoryShareOptions,
) -> CategoryTally {
    let mut tally = CategoryTally { beside: vec![0; rules.beside.len()], ..CategoryTally::default() };
    for sample in piece.samples.iter().filter(|sample| is_selected_sample(profile, sample, options)) {
        let amount = ProfileAmount { samples: sample.count, weight: sample.weight };
        tally.all += amount;
        let verdict = sample.leaf.and_then(|leaf| verdicts.nodes.get(leaf.0 as usize));
        if let Some(verdict) = verdict {
            tally.add_sample(*verdict, amount, rules.categories.len());
        }
    }
    tally
}

impl CategoryTally {
    fn add_sample(&mut self, verdict: StackCategory, amount: ProfileAmount, categories: usize) {
        for (at, samples) in self.beside.iter_mut().enumerate() {
            let more = if verdict.beside >> at & 1 == 1 { amount.samples } else { 0 };
            *samples = samples.saturating_add(more);
        }
        let Some(operation) = verdict.operation else {
            let more = if verdict.is_suspect { amount.samples } else { 0 };
            self.undecided = self.undecided.saturating_add(more);
            return;
        };
        *self.cells.entry((operation, verdict.category)).or_default() += amount;
        let more = if verdict.by_window { amount.samples } else { 0 };
        self.by_window = self.by_window.saturating_add(more);
        for category in
            (0..categories).filter(|at| verdict.overlay.checked_shr(*at as u32).unwrap_or(0) & 1 == 1)
        {
            let samples = self.touching.entry((operation, category as u8)).or_default();
            *samples = samples.saturating_add(amount.samples);
        }
        if let Some(leaf) = verdict.leaf {
            let samples = self.leaves.entry(leaf).or_default();
            *samples = samples.saturating_add(amount.samples);
        }
    }
}

/// The sum of numbers of samples.
fn saturating_sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

fn sum_amounts(amounts: impl Iterator<Item = ProfileAmount>) -> ProfileAmount {
    amounts.fold(ProfileAmount::default(), |mut sum, amount| {
        sum += amount;
        sum
    })
}

/// The sum of a tally's cells whose operation and category are selected.
fn sum_cells(tally: &CategoryTally, requested: impl Fn(&(u8, u8)) -> bool) -> ProfileAmount {
    sum_amounts(tally.cells.iter().filter(|(cell, _)| requested(cell)).map(|(_, amount)| *amount))
}

/// A row each for all operations together and each of them, and for each of its categories that has samples; in front, those of the
/// categories of all together.
fn share_rows(
    tallied: &TalliedIterations,
    rules: &CategoryRules,
    options: &CategoryShareOptions,
    unit: &str,
) -> (Vec<CategoryShareRow>, Vec<CategoryShareRow>) {
    let tallies = &tallied.tallies;
    let operations: Vec<(u8, &str)> =
        (0..).zip(rules.operations.iter().map(|one| one.name.as_str())).collect();
    let together = operations.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(" and ");
    let unrecognised =
        tallies.iter().any(|tally| tally.cells.keys().any(|(operation, _)| *operation == UNRECOGNISED));
    let all_of = operations.into_iter().chain(unrecognised.then_some((UNRECOGNISED, "unrecognised")));
    let mut groups: Vec<(Option<u8>, &str)> = all_of.map(|(at, name)| (Some(at), name)).collect();
    // One operation alone is all there is, with its categories below it.
    if (2..4).contains(&rules.operations.len()) {
        groups.insert(0, (None, &together));
    }
    let (mut of_all_together, mut rows) = (Vec::new(), Vec::new());
    for (operation, name) in groups {
        let within = move |cell: &(u8, u8)| operation.is_none_or(|operation| cell.0 == operation);
        rows.push(share_row(tallied, (name, None), (&within, &within), options, unit));
        for (category, named) in (0..).zip(&rules.categories) {
            let of = move |cell: &(u8, u8)| within(cell) && cell.1 == category;
            let mut row = share_row(tallied, (name, Some(named.name.clone())), (&of, &within), options, unit);
            let touching = tallies.iter().flat_map(|tally| tally.touching.iter());
            let touching = saturating_sum(touching.filter(|(cell, _)| of(cell)).map(|(_, count)| *count));
            let base = saturating_sum(tallies.iter().map(|tally| sum_cells(tally, within).samples));
            row.touching = (touching > 0).then(|| touching as f64 / base.max(1) as f64);
            let of_group = if operation.is_none() { &mut of_all_together } else { &mut rows };
            of_group.extend((options.empty_rows || row.amount.samples > 0 || touching > 0).then_some(row));
        }
    }
    (of_all_together, rows)
}

type CellChoice<'a> = &'a dyn Fn(&(u8, u8)) -> bool;

/// The row of some cells, with those that they are a part of.
fn share_row(
    tallied: &TalliedIterations,
    (operation, category): (&str, Option<String>),
    (of, within): (CellChoice<'_>, CellChoice<'_>),
    options: &CategoryShareOptions,
    unit: &str,
) -> CategoryShareRow {
    let count = options.counts.get(operation);
    CategoryShareRow {
        operation: operation.into(),
        category,
        amount: sum_amounts(tallied.tallies.iter().map(|tally| sum_cells(tally, of))),
        of_all: tallied.estimate_share(|tally| (sum_cells(tally, of).samples, tally.all.samples)),
        of_operation: tallied
            .estimate_share(|tally| (sum_cells(tally, of).samples, sum_cells(tally, within).samples)),
        touching: None,
        per_operation: count.and_then(|count| cost_per_operation(tallied, of, *count, unit)),
    }
}

pub(crate) fn mean_interval(values: &[f64]) -> Option<ConfidenceInterval> {
    mean_with_interval(values, CONFIDENCE).ok().filter(|_| values.len() > 1)?.interval
}

fn cost_per_operation(
    tallied: &TalliedIterations,
    of: CellChoice<'_>,
    count: f64,
    unit: &str,
) -> Option<CostPerOperation> {
    if count <= 0.0 || !["ns", "cycles"].contains(&unit) {
        return None;
    }
    let weights: Vec<(u64, u64)> =
        tallied.tallies.iter().map(|tally| (sum_cells(tally, of).weight, 1)).collect();
    let each: Vec<f64> = tallied.units.pooled_ratios(&weights).iter().map(|weight| weight / count).collect();
    let value = perflab_stats::mean(&each).ok()?;
    let interval = mean_interval(&each).map(|found| (found.low.max(0.0), found.high));
    Some(CostPerOperation { value, interval, unit: unit.into() })
}

fn leaf_shares(tallied: &TalliedIterations, rules: &CategoryRules) -> Vec<(String, ShareEstimate)> {
    let of = |at: u8| {
        tallied.estimate_share(|tally| {
            (tally.leaves.get(&at).copied().unwrap_or(0), sum_cells(tally, |_| true).samples)
        })
    };
    (0..).zip(&rules.leaves).map(|(at, named)| (named.name.clone(), of(at))).collect()
}

fn beside_shares(tallied: &TalliedIterations, rules: &CategoryRules) -> Vec<(String, ShareEstimate)> {
    let of = |at: usize| {
        tallied.estimate_share(|tally| (tally.beside.get(at).copied().unwrap_or(0), tally.all.samples))
    };
    rules.beside.iter().enumerate().map(|(at, named)| (named.name.clone(), of(at))).collect()
}

/// The functions by which samples were taken for an operation without a rule, or sound like one.
fn rule_coverage(
    runs: &[ProfiledRun<'_>],
    found: &[ProfileCategories],
    options: &CategoryShareOptions,
) -> RuleCoverage {
    let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
    for (run, verdicts) in runs.iter().zip(found) {
        let began = odd_beginnings(run.profile, verdicts);
        let samples = run.pieces().flat_map(|piece| &piece.samples);
        for sample in samples.filter(|sample| is_selected_sample(run.profile, sample, options)) {
            let Some(leaf) = sample.leaf else { continue };
            let Some(Some(node)) = began.get(leaf.0 as usize) else { continue };
            let samples: &mut u64 = functions.entry(run.function_name(NodeId(*node))).or_default();
            *samples = samples.saturating_add(sample.count);
        }
    }
    let mut without_rule: Vec<(String, u64)> =
        functions.into_iter().map(|(name, count)| (name.into(), count)).collect();
    without_rule.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    without_rule.truncate(LISTED);
    RuleCoverage { without_rule, ..RuleCoverage::default() }
}

/// By node that is odd: the outermost odd one below it, which is the function that the verdict began with.
fn odd_beginnings(profile: &Profile, verdicts: &ProfileCategories) -> Vec<Option<u32>> {
    let is_odd =
        |verdict: &StackCategory| verdict.by_window || (verdict.operation.is_none() && verdict.is_suspect);
    let mut began: Vec<Option<u32>> = Vec::with_capacity(profile.nodes.len());
    for ((at, node), verdict) in (0..).zip(&profile.nodes).zip(&verdicts.nodes) {
        let caller = || node.parent.and_then(|parent| began.get(parent.0 as usize).copied().flatten());
        began.push(is_odd(verdict).then(|| caller().unwrap_or(at)));
    }
    began
}

fn unmatched_patterns(runs: &[ProfiledRun<'_>], rules: &CategoryRules) -> Vec<String> {
    let all = rules.operations.iter().chain(&rules.categories).flat_map(|named| &named.patterns);
    let fits = |pattern: &crate::flame::category_rules::NamePattern| {
        runs.iter().flat_map(|run| &run.profile.frames).any(|frame| pattern.matches(&frame.name))
    };
    all.filter(|pattern| !fits(pattern)).map(|pattern| pattern.text().to_owned()).collect()
}
